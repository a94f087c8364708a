"""The rule for looped machines: what it accepts, and that no changed number passes."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from certiformer.compiler.computation import computation_certificate
from certiformer.compiler.machines import machine_loop
from certiformer.compiler.machines.examples import busy_beaver, increment, palindrome
from certiformer.kernel import Refused
from certiformer.kernel.certificate import Certificate, Outcome
from certiformer.kernel.computation import check_computation
from certiformer.kernel.files import digest
from certiformer.kernel.meanings.machine import Machine
from certiformer.kernel.situations.looped_machine import machine_walk as looped_machine
from certiformer.kernel.situations.looped_machine import prove_looped
from certiformer.kernel.weights import Tensor, read_model
from compiler.machines.random_machines import after, configuration, random_machine


def stored(machine: Machine, cells: int, dtype: str = "float64"):
    files = machine_loop(machine, cells, dtype).files()
    return read_model(files["config.json"], files["model.safetensors"])


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
@pytest.mark.parametrize("cells", [1, 2, 3, 400])
def test_compiled_machines_are_proved(cells, dtype):
    for machine in (busy_beaver(5), increment(), palindrome(), random_machine(7)):
        report = prove_looped(machine, *stored(machine, cells, dtype))
        assert report.margin > 0.2 and report.leak < 1e-25


def test_the_situations_are_counted():
    """Three sorts of cells, four windows, six states, two symbols here and under the head, two flags; some of them excluded."""
    walk = looped_machine(busy_beaver(5), *stored(busy_beaver(5), 400))
    tally = walk.meaning.tally
    assert tally.total == tally.checked + tally.excluded.total()
    assert set(tally.excluded) == {"the tape ends here", "off is up"}
    cases = walk.meaning.situations(["off", "off after", "ends", "pair", "symbol", "entering"])
    # Inside, at the left end and at the right end: 2 symbols without the head, each with nothing or one of 6 states
    # arriving, and 12 pairs; a step off the tape is seen with both flags. What enters at an end is what would leave.
    left = sum(row[3] == "L" for row in busy_beaver(5).rows)
    entered = len({row[4] for row in busy_beaver(5).rows})
    assert len(cases) <= 3 * (2 * (1 + entered) + 12) + left + (10 - left)


def test_a_blunt_head_is_refused():
    machine = busy_beaver(4)
    config, tensors = stored(machine, 24)
    query = tensors["blocks.0.attention.groups.0.query"]
    for factor, accepted in ((0.5, True), (1 / 8, True), (1 / 16, False), (1 / 32, False)):
        blunt = {**tensors, "blocks.0.attention.groups.0.query": Tensor(query.shape, [factor * x for x in query.data])}
        if accepted:
            assert prove_looped(machine, config, blunt).margin > 0.1
        else:
            with pytest.raises(Refused):
                prove_looped(machine, config, blunt)


def one_pass(tensors: dict[str, Tensor], tokens: np.ndarray) -> np.ndarray:
    """The read-out after one pass in NumPy, for rows of tokens."""
    t = {name: np.array(tensor.data).reshape(tensor.shape) for name, tensor in tensors.items()}
    head, ffn = "blocks.0.attention.groups.0", "blocks.0.ffn"
    x = t["embed.weight"][tokens] + t["code.table"]
    query, key, value = (np.einsum("bid,hdk->bhik", x, t[f"{head}.{role}"]) for role in ("query", "key", "value"))
    scores = np.einsum("bhik,bhjk->bhij", query, key)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    x = x + np.einsum("bhij,bhjv,hvd->bid", weights, value, t[f"{head}.output"])
    hidden = np.maximum(x @ t[f"{ffn}.up"] + t[f"{ffn}.up_bias"], 0)
    x = x + hidden @ t[f"{ffn}.down"] + t[f"{ffn}.down_bias"]
    return x @ t["readout.weight"] + t["readout.bias"]


@pytest.mark.parametrize("machine", [busy_beaver(3), increment()], ids=["beaver", "increment"])
@pytest.mark.parametrize("change", [0.5, -1.0, 2.0**-20])
@pytest.mark.parametrize("number", [4, pytest.param(25, marks=pytest.mark.slow)])
def test_a_changed_number_is_refused_or_harmless(machine, change, number):
    """Every tensor, at some zeros and at some other numbers; what is accepted is run on every configuration."""
    cells, count = 3, len(machine.symbols)
    config, tensors = stored(machine, cells)
    tokens, wanted = [], []
    for symbols in product(machine.symbols, repeat=cells):
        for head, state in product(range(cells), machine.states):
            row = [machine.symbols.index(symbol) for symbol in symbols]
            row[head] += count * (1 + machine.states.index(state))
            tokens.append(row)
            wanted.append(after(configuration(machine, symbols, head, state), 1))
    assert np.array_equal(one_pass(tensors, np.array(tokens)), np.array(wanted))
    rng = np.random.default_rng(3)
    tried = harmless = 0
    for name, tensor in tensors.items():
        data = np.array(tensor.data)
        for places in (np.flatnonzero(data), np.flatnonzero(data == 0)):
            for place in rng.permutation(places)[:number]:
                changed = data.copy()
                changed[place] += change
                forged = {**tensors, name: Tensor(tensor.shape, changed.tolist(), tensor.dtype)}
                tried += 1
                try:
                    prove_looped(machine, config, forged)
                except Refused:
                    continue
                # For instance one more reason for a hidden unit to stay off where it is off anyway.
                harmless += 1
                assert np.array_equal(one_pass(forged, np.array(tokens)), np.array(wanted)), (name, place)
    assert tried > 10 * number and harmless < tried / 3


def test_another_table_is_refused():
    config, tensors = stored(busy_beaver(4), 10)
    rows = busy_beaver(4).rows
    for number, (state, read, write, move, following) in enumerate(rows):
        others = [
            (state, read, "1" if write == "0" else "0", move, following),
            (state, read, write, {"L": "R", "R": "S", "S": "L"}[move], following),
            (state, read, write, move, "A" if following != "A" else "B"),
        ]
        for other in others:
            machine = Machine(("0", "1"), (*"ABCD", "H"), ("H",), (*rows[:number], other, *rows[number + 1 :]))
            with pytest.raises(Refused):
                prove_looped(machine, config, tensors)
    with pytest.raises(Refused):
        prove_looped(busy_beaver(3), config, tensors)
    missing = Machine(("0", "1"), (*"ABCD", "H"), ("H",), rows[1:], missing="halt")
    with pytest.raises(Refused):
        prove_looped(missing, config, tensors)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("loops",), 2),
        (("registers",), 1),
        (("readout", "kind"), "sum"),
        (("code", "kind"), "none"),
        (("blocks", 0, "attention", "scale"), "inverse-sqrt"),
        (("blocks", 0, "attention", "kind"), "linear"),
        (("blocks", 0, "attention", "mask"), "causal"),
        (("blocks", 0, "attention", "residual"), False),
        (("blocks", 0, "ffn", "kind"), "gelu"),
        (("blocks", 0, "ffn", "residual"), False),
    ],
)
def test_another_architecture_is_refused(path, value):
    config, tensors = stored(busy_beaver(3), 6)
    forged = json.loads(json.dumps(config))
    part = forged
    for step in path[:-1]:
        part = part[step]
    assert part[path[-1]] != value
    part[path[-1]] = value
    with pytest.raises(Refused):
        prove_looped(busy_beaver(3), forged, tensors)


def test_hidden_exact_terms_beside_an_emptied_slot_are_refused():
    """+1 and -1 cancel in real arithmetic, but between them a run would round what the slot holds."""
    machine = busy_beaver(3)
    config, tensors = stored(machine, 6)
    down = tensors["blocks.0.ffn.down"]
    units, width = down.shape
    slot = len(machine.symbols) * (1 + len(machine.states)) + 1 + 1
    data = np.array(down.data).reshape(units, width)
    # Two more ways out of the unit that is on when A reads 0: both would go to the slot of B.
    data[0, slot] += 1.0
    forged = {**tensors, "blocks.0.ffn.down": Tensor(down.shape, data.reshape(-1).tolist(), down.dtype)}
    with pytest.raises(Refused, match="is not what they hold after it"):
        prove_looped(machine, config, forged)


@pytest.fixture
def folder(tmp_path):
    machine_loop(busy_beaver(4), 24).certified().save(tmp_path / "m")
    return tmp_path / "m"


def test_the_folder_is_checked(folder):
    verdict = check_computation(folder)
    assert verdict.accepted and verdict.exit_code == 0 and verdict.level == 2
    assert verdict.sentence.startswith(
        "On the 24 cells -12 to 11, from every configuration with one head, any number of"
    )
    assert "0.24999" in verdict.reason


def test_a_changed_file_is_refused(folder):
    path = folder / "machine.json"
    path.write_text(path.read_text().replace('"1","R","B"', '"1","L","B"', 1))
    verdict = check_computation(folder)
    assert verdict.outcome == "refused" and "machine.json was changed" in verdict.reason and verdict.exit_code == 1


def test_a_resealed_lie_is_refused(folder):
    """Another machine, sealed again: the weights do not do what the new table says."""
    files = {name: (folder / name).read_bytes() for name in ("model.safetensors", "config.json", "machine.json")}
    honest = Certificate.from_bytes((folder / "certificate.json").read_bytes())
    files["machine.json"] = files["machine.json"].replace(b'"1","R","B"', b'"1","L","B"', 1)
    assert computation_certificate("looped_machine", files).outcome is Outcome.UNDECIDED
    seals = {name: digest(data) for name, data in files.items()}
    (folder / "machine.json").write_bytes(files["machine.json"])
    (folder / "certificate.json").write_bytes(replace(honest, seals=seals).to_bytes())
    verdict = check_computation(folder)
    assert verdict.outcome == "refused"


def test_a_better_margin_than_proved_is_refused(folder):
    honest = Certificate.from_bytes((folder / "certificate.json").read_bytes())
    for name, text in (("margin", "0.25"), ("leak", "1e-40"), ("cells", 400), ("margin", 0.2)):
        proof = replace(honest.proof, parameters={**honest.proof.parameters, name: text})
        (folder / "certificate.json").write_bytes(replace(honest, proof=proof).to_bytes())
        assert check_computation(folder).outcome == "refused"
    (folder / "certificate.json").write_bytes(honest.to_bytes())
    assert check_computation(folder).accepted


@pytest.mark.parametrize("head", [0, 1])
@pytest.mark.parametrize("power", [10, 1015, 1023])
def test_each_head_has_scores_that_a_run_can_hold(head, power):
    config, tensors = stored(increment(), 9)
    name = "blocks.0.attention.groups.0.query"
    query = np.array(tensors[name].data).reshape(tensors[name].shape)
    query[head] *= 2.0**power / 32
    changed = {**tensors, name: Tensor(query.shape, query.reshape(-1).tolist(), "F64")}
    if power == 1023:
        with pytest.raises(Refused, match="may exceed the largest finite"):
            prove_looped(increment(), config, changed)
    else:
        assert prove_looped(increment(), config, changed).margin > 0.2
    query[1 - head] *= 2.0**power / 32
    changed = {**tensors, name: Tensor(query.shape, query.reshape(-1).tolist(), "F64")}
    if power < 1023:
        assert prove_looped(increment(), config, changed).margin > 0.2
    if power == 1023:
        with pytest.raises(Refused, match="may exceed the largest finite"):
            prove_looped(increment(), config, changed)
