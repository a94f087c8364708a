"""The rule for circuits: what it accepts, and that no changed number, table or certificate passes."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from certiformer.axioms.chain_of_thought_circuit import prove_circuit
from certiformer.compiler.circuits import Gate, Gates, gate_writer
from certiformer.compiler.computation import computation_certificate
from certiformer.kernel import Refused
from certiformer.kernel.certificate import Certificate, Outcome
from certiformer.kernel.computation import check_computation
from certiformer.kernel.files import digest
from certiformer.kernel.situations.circuits import written_circuit
from certiformer.kernel.weights import Tensor, read_model
from compiler.circuits.random_circuits import random_circuit
from compiler.numpy_decoder import arrays, outputs

HEAD = "blocks.0.attention.groups.0"
SMALL = Gates(
    ("a", "b", "c"),
    (
        Gate("not", "10", ("a",)),
        Gate("xor", "0110", ("not", "b")),
        Gate("same", "0110", ("xor", "xor")),
        Gate("one", "1", ()),
        Gate("but", "0010", ("one", "c")),
        Gate("or", "0111", ("but", "xor")),
    ),
    ("or", "a"),
)


def stored(circuit: Gates, dtype: str = "float64"):
    files = gate_writer(circuit, dtype).files()
    return read_model(files["config.json"], files["model.safetensors"])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_compiled_circuits_are_proved(dtype):
    for circuit in (SMALL, random_circuit(1, 0, 3), random_circuit(2, 5, 60), random_circuit(3, 1, 40)):
        report = prove_circuit(circuit, *stored(circuit, dtype))
        assert report.margin > 0.999 and report.leak < 1e-24
    outputs_alone = Gates(("a", "b"), (), ("b", "b"))
    assert prove_circuit(outputs_alone, *stored(outputs_alone, dtype)).cases == 0


def test_the_cases_are_counted():
    """Each set of cells that are read together: rows, operands, and the truth tables with both operands."""
    walk, _ = written_circuit(SMALL, *stored(SMALL))
    tables, tally = len({gate.table_of_two for gate in SMALL.gates}), walk.meaning.tally
    assert tally.total == tally.checked + tally.excluded.total()
    # Of nine pairs of tokens, five have `start` as an operand, which none but a constant has.
    assert tally.excluded["an operand is an input or a gate"] % 5 == 0 < tally.excluded.total()
    assert len(walk.meaning.known["gate", "left", "right", "table"]) == 4 * (tables - 1) + 9


def all_sequences(circuit: Gates) -> np.ndarray:
    """`start` and all signals, for every input."""
    inputs = product((0, 1), repeat=len(circuit.inputs))
    return np.array([[2, *circuit.values(bits).values()] for bits in inputs])


def is_right(circuit: Gates, config: dict, tensors: dict[str, Tensor]) -> bool:
    tokens, first = all_sequences(circuit), len(circuit.inputs)
    written = np.argmax(outputs(config, arrays(tensors), tokens), axis=-1)[:, first:-1]
    return np.array_equal(written, tokens[:, first + 1 :])


@pytest.mark.parametrize("change", [0.5, -1.0, 2.0**-30])
def test_a_changed_number_is_refused_or_harmless(change):
    """Every tensor, at places that are zero and at places that are not; what is accepted is run on every input."""
    config, tensors = stored(SMALL)
    assert is_right(SMALL, config, tensors)
    rng = np.random.default_rng(3)
    tried = accepted = wrong = 0
    for name, tensor in tensors.items():
        data = np.array(tensor.data)
        for places in (np.flatnonzero(data), np.flatnonzero(data == 0)):
            for place in rng.permutation(places)[:12]:
                changed = data.copy()
                changed[place] += change
                forged = {**tensors, name: Tensor(tensor.shape, changed.tolist(), tensor.dtype)}
                tried += 1
                right = is_right(SMALL, config, forged)
                wrong += not right
                try:
                    prove_circuit(SMALL, config, forged)
                except Refused:
                    continue
                accepted += 1
                assert right, (name, place)
    # Rows behind the last gate, numbers of small size, and those that only lower an output that loses do not matter.
    assert tried > 150 and tried - accepted > max(20, wrong)
    assert wrong > 10 or abs(change) < 1e-3


def test_two_places_with_one_code_are_refused():
    """The later one would be found as before, but the earlier one gets half of the weight."""
    config, tensors = stored(SMALL)
    codes = arrays(tensors)["code.table"].copy()
    bits = (codes.shape[1] - 8) // 3
    codes[0, 8 : 8 + bits] = codes[2, 8 : 8 + bits]
    forged = {**tensors, "code.table": Tensor(codes.shape, codes.reshape(-1).tolist(), "F64")}
    with pytest.raises(Refused, match="do not tell the row that a head looks at"):
        prove_circuit(SMALL, config, forged)


def test_a_blunt_head_is_refused():
    config, tensors = stored(SMALL)
    query = tensors[f"{HEAD}.query"]
    for factor, accepted in ((0.5, True), (1 / 8, True), (1 / 32, False), (1 / 64, False)):
        blunt = {**tensors, f"{HEAD}.query": Tensor(query.shape, [factor * x for x in query.data])}
        if accepted:
            assert prove_circuit(SMALL, config, blunt).margin > 0.1
        else:
            with pytest.raises(Refused):
                prove_circuit(SMALL, config, blunt)


def test_scores_that_overflow_are_refused():
    """inf - inf would be the score of a run."""
    config, tensors = stored(SMALL, "float32")
    query = tensors[f"{HEAD}.query"]
    for power, accepted in ((110, True), (121, False)):
        huge = Tensor(query.shape, [2.0**power * x for x in query.data], "F32")  # it was 32
        forged = {**tensors, f"{HEAD}.query": huge}
        if accepted:
            assert prove_circuit(SMALL, config, forged).margin > 0.9
        else:
            with pytest.raises(Refused, match="may exceed the largest finite float32"):
                prove_circuit(SMALL, config, forged)


def test_another_circuit_is_refused():
    config, tensors = stored(SMALL)
    for number, gate in enumerate(SMALL.gates):
        flipped = "".join("10"[int(bit)] if place == 0 else bit for place, bit in enumerate(gate.table))
        others = [gate._replace(table=flipped)]
        if gate.operands:
            others.append(gate._replace(operands=("b", *gate.operands[1:]) if gate.operands[0] != "b" else ("a",)))
        for other in others:
            forged = replace(SMALL, gates=(*SMALL.gates[:number], other, *SMALL.gates[number + 1 :]))
            with pytest.raises(Refused):
                prove_circuit(forged, config, tensors)
    swapped = replace(SMALL, gates=(Gate("xor", "0110", ("a", "b")), Gate("not", "10", ("xor",)), *SMALL.gates[2:]))
    for forged in (swapped, replace(SMALL, gates=SMALL.gates[:-1], outputs=("a",))):
        with pytest.raises(Refused):
            prove_circuit(forged, config, tensors)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("loops",), 2),
        (("registers",), 1),
        (("readout", "kind"), "sum"),
        (("code", "kind"), "none"),
        (("input", "vocabulary"), 4),
        (("blocks", 0, "attention", "scale"), "inverse-sqrt"),
        (("blocks", 0, "attention", "kind"), "hard"),
        (("blocks", 0, "attention", "mask"), "none"),
        (("blocks", 0, "attention", "residual"), False),
        (("blocks", 0, "ffn", "kind"), "gelu"),
        (("blocks", 0, "ffn", "residual"), False),
    ],
)
def test_another_architecture_is_refused(path, value):
    config, tensors = stored(SMALL)
    forged = json.loads(json.dumps(config))
    part = forged
    for step in path[:-1]:
        part = part[step]
    assert part[path[-1]] != value
    part[path[-1]] = value
    with pytest.raises(Refused):
        prove_circuit(SMALL, forged, tensors)


@pytest.fixture
def folder(tmp_path):
    gate_writer(SMALL).certified().save(tmp_path / "c")
    return tmp_path / "c"


def test_the_folder_is_checked(folder):
    verdict = check_computation(folder)
    assert verdict.accepted and verdict.exit_code == 0 and verdict.level == 2
    assert verdict.sentence.startswith(
        "For each of the 2^3 inputs the decoder writes the values of the 6 gates in order"
    )
    assert "leads by at least 0.99999" in verdict.reason


def test_a_resealed_lie_is_refused(folder):
    """Another truth table, sealed again: the weights do not do what it says."""
    files = {name: (folder / name).read_bytes() for name in ("model.safetensors", "config.json", "gates.json")}
    honest = Certificate.from_bytes((folder / "certificate.json").read_bytes())
    files["gates.json"] = files["gates.json"].replace(b'"0111"', b'"0110"', 1)
    assert computation_certificate("chain_of_thought_circuit", files).outcome is Outcome.UNDECIDED
    (folder / "gates.json").write_bytes(files["gates.json"])
    assert "gates.json was changed" in check_computation(folder).reason
    seals = {name: digest(data) for name, data in files.items()}
    (folder / "certificate.json").write_bytes(replace(honest, seals=seals).to_bytes())
    verdict = check_computation(folder)
    assert verdict.outcome == "refused"


def test_a_better_number_than_proved_is_refused(folder):
    honest = Certificate.from_bytes((folder / "certificate.json").read_bytes())
    for name, text in (("margin", "1"), ("leak", "1e-40"), ("gates", 7), ("inputs", 2), ("margin", 0.2)):
        proof = replace(honest.proof, parameters={**honest.proof.parameters, name: text})
        (folder / "certificate.json").write_bytes(replace(honest, proof=proof).to_bytes())
        assert check_computation(folder).outcome == "refused"
    (folder / "certificate.json").write_bytes(honest.to_bytes())
    assert check_computation(folder).accepted


@pytest.mark.parametrize("head", [0, 1])
@pytest.mark.parametrize("power", [10, 1015, 1023])
def test_each_head_has_scores_that_a_run_can_hold(head, power):
    config, tensors = stored(SMALL)
    query = np.array(tensors[f"{HEAD}.query"].data).reshape(tensors[f"{HEAD}.query"].shape)
    query[head] *= 2.0**power / 32
    changed = {**tensors, f"{HEAD}.query": Tensor(query.shape, query.reshape(-1).tolist(), "F64")}
    if power == 1023:
        with pytest.raises(Refused, match="may exceed the largest finite"):
            prove_circuit(SMALL, config, changed)
    else:
        assert prove_circuit(SMALL, config, changed).margin > 0.999


def test_scores_of_both_heads_are_bounded_by_what_a_run_can_hold():
    config, tensors = stored(SMALL)
    query = tensors[f"{HEAD}.query"]
    for power, right in ((1000, True), (1023, False)):
        data = [x / 32 * 2.0**power for x in query.data]
        changed = {**tensors, f"{HEAD}.query": Tensor(query.shape, data, "F64")}
        if right:
            assert prove_circuit(SMALL, config, changed).margin > 0.999
        else:
            with pytest.raises(Refused, match="may exceed the largest finite"):
                prove_circuit(SMALL, config, changed)
