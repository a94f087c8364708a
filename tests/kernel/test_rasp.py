"""Compiled programs under the rule of situations: right circuits are proved, every planted fault is refused, and the bounds hold in actual runs."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest

from certiformer.compiler.programs.certify import program_certificate
from certiformer.errors import BadInput
from certiformer.kernel import Refused
from certiformer.kernel.certificate import Certificate
from certiformer.kernel.check import check
from certiformer.kernel.files import CERTIFICATE, CIRCUIT, CONFIG, MODEL, PROGRAM, canonical
from certiformer.kernel.meanings.rasp import read_program
from certiformer.kernel.situations.numbers import Run
from certiformer.kernel.situations.rasp.circuit import Circuit
from certiformer.kernel.situations.rasp.extension import read_programs
from certiformer.kernel.situations.rasp.fixed import Arithmetic
from certiformer.kernel.situations.rasp.identities import verify_identities
from certiformer.kernel.situations.rasp.variables import Variables
from certiformer.kernel.situations.rasp.walk import Walk
from certiformer.kernel.situations.walk import Weights
from certiformer.kernel.weights import DTYPES
from certiformer.rasp.graph_file import graph_from_text
from certiformer.rasp.graph_run import GraphRunner
from certiformer.rasp.value import identity
from kernel.compiled_programs import all_inputs, built, decoded, key, meaning, states

EXACT_IN_FLOAT32 = ("copy", "shift", "reverse", "length", "hist", "sort", "sum", "majority", "frac_prevs", "palindrome")


@pytest.mark.parametrize("name", EXACT_IN_FLOAT32)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_library_programs_are_proved(name, dtype):
    report = built(name, 5, dtype).prove()
    assert report.dtype == dtype and report.program.length == 5
    assert 0 < report.run.decoding.share <= 1 and 0 < report.real.decoding.share <= 1
    assert f"where {report.run.decoding.name} is {report.run.decoding.value}" in report.reason
    assert report.reason.startswith(f"{report.cases:,} cases were checked") and report.cases == report.tally.checked > 0


@pytest.mark.parametrize("name", ["copy", "shift", "window_max"])
def test_some_programs_are_proved_in_bfloat16(name):
    assert built(name, 5).prove("bfloat16").dtype == "bfloat16"


def test_causal_circuits_are_proved():
    for name in ("frac_prevs", "shift", "prefix_modular_sum"):
        model = built(name, 4, "float64", True)
        assert all(b["attention"] is None or b["attention"]["mask"] == "causal" for b in model.config["blocks"])
        model.prove()


# --- the bounds hold in runs -------------------------------------------------------------------------------------------


class _Watched(Walk):
    """Keeps the contents after every sub-layer."""

    def _replace(self, place, new):
        super()._replace(place, new)
        self.trail.append(list(self.contents))


@pytest.mark.parametrize("name", ["sort", "induction", "sum", "pair_balance", "count_less_freq", "dyck1"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_coordinate_of_a_run_is_within_its_bound(name, dtype):
    model = built(name, 4, dtype)
    circuit = Circuit.from_text(model.circuit)
    variables = read_programs(model.program, circuit).variables
    verify_identities(variables, circuit.identities)
    walk = _Watched(Arithmetic(dtype), variables, circuit, model.config, Weights(model.tensors(), Run(dtype)), {})
    walk.trail = []
    walk.run()
    graph = graph_from_text(circuit.extended)
    runner = GraphRunner(graph)
    places = [
        {key(v): k for k, v in enumerate(variables.domain(n))} if node.values else None
        for n, node in enumerate(variables.graph.nodes)
    ]
    checked, rng = 0, random.Random(1)
    inputs = list(all_inputs(model, 4))
    for ids in rng.sample(inputs, min(25, len(inputs))):
        values = runner.run_all([graph.vocab[k] for k in ids])
        for h, contents in zip(states(model, list(ids), np.dtype(dtype).type), walk.trail, strict=True):
            for c, content in enumerate(contents):
                assert abs(float(h[0, c]) - content.start / 2**192) <= content.start_error / 2**192 * (1 + 1e-9)
                for i in range(len(ids)):
                    v = 0 if content.variable is None else places[content.variable][key(values[content.variable][i])]
                    # Both sides are read as float64 here, hence the factor; where the bound is zero they must be equal.
                    off = abs(float(h[i + 1, c]) - content.ideal[v] / 2**192)
                    assert off <= content.error[v] / 2**192 * (1 + 1e-9) + 1e-16 * abs(content.ideal[v] / 2**192) * (
                        content.error[v] > 0
                    )
                    checked += 1
    assert checked > 500


# --- planted faults ----------------------------------------------------------------------------------------------------


def refused(model, *words):
    with pytest.raises((Refused, BadInput)) as problem:
        model.prove()
    assert all(word in str(problem.value) for word in words), str(problem.value)


@pytest.mark.parametrize("name", ["shift", "hist", "reverse", "sort", "length"])
def test_a_mutation_that_changes_an_output_is_refused(name):
    model = built(name, 3, "float64")
    model.prove()
    rng = random.Random(7)
    inputs = [list(ids) for ids in all_inputs(model, 3)]
    right = {tuple(ids): decoded(model, ids) for ids in inputs}
    expected = meaning(model)
    assert all(list(map(identity, right[tuple(ids)])) == list(map(identity, expected(ids))) for ids in inputs)
    changed = accepted = 0
    names = sorted(model.arrays)
    for _ in range(60):
        array = rng.choice(names)
        if not model.arrays[array].size:
            continue
        index = tuple(rng.randrange(n) for n in model.arrays[array].shape)
        old = float(model.arrays[array][index])
        value = rng.choice([0.0, -old, old + 1, old - 1, 2 * old, old + 0.25, old * (1 + 2.0**-12), old + 2.0**-20])
        if value == old:
            continue
        broken = model.changed(array, index, value)
        try:
            broken.prove()
            accepted += 1
            assert all(decoded(broken, ids) == right[tuple(ids)] for ids in inputs), (array, index, old, value)
        except Refused:
            changed += any(decoded(broken, ids) != right[tuple(ids)] for ids in inputs)
    assert changed >= 10  # the mutations do break things


def test_weights_that_are_not_finite_are_refused():
    model = built("shift", 4)
    for bad in (np.nan, np.inf):
        refused(model.changed("readout.bias", (0,), bad), "finite")


def test_weights_outside_the_dtype_are_refused():
    model = built("shift", 4, "float64")
    bias = float(model.arrays["readout.bias"][0])
    broken = model.changed("readout.bias", (0,), bias + 2.0**-20)
    broken.prove()
    with pytest.raises(Refused, match="none of bfloat16"):
        broken.prove("bfloat16")


def test_a_changed_table_is_refused():
    model = built("parity", 4)
    names = [k for k in model.arrays if k.endswith("ffn.down")]
    array = model.arrays[names[0]]
    u, c = (int(x) for x in np.argwhere(array != 0)[0])
    refused(model.changed(names[0], (u, c), 3 * float(array[u, c])))


def test_lower_sharpness_is_refused():
    model = built("sort", 4, "float64")
    weak = dict(model.arrays)
    for name in weak:
        if name.endswith((".query", ".query_bias")):
            weak[name] = weak[name] / 256
    broken = type(model)(model.config, weak, model.program, model.circuit)
    refused(broken)


def test_swapped_heads_are_refused():
    model = built("sum", 4, "float64")
    blocks = enumerate(model.config["blocks"])
    groups = [
        (b, g) for b, x in blocks if x["attention"] for g, y in enumerate(x["attention"]["heads"]) if y["count"] > 1
    ]
    b, g = groups[0]
    arrays = {k: a.copy() for k, a in model.arrays.items()}
    for part in ("query", "query_bias", "key", "key_bias"):
        name = f"blocks.{b}.attention.groups.{g}.{part}"
        arrays[name][[0, 1]] = arrays[name][[1, 0]]
    refused(type(model)(model.config, arrays, model.program, model.circuit))


def test_a_wrong_cell_is_refused():
    model = built("reverse", 4)

    def at(part, change):
        return lambda data: change(data[part])

    refused(model.with_circuit(at("cells", lambda cells: cells[3].update(coordinate=cells[4]["coordinate"]))))
    refused(model.with_circuit(at("cells", lambda cells: cells[3].update(coordinate=99))))
    refused(model.with_circuit(at("cells", lambda cells: cells[0].update(at_start=2))))
    refused(model.with_circuit(at("cells", lambda cells: cells[4]["feature"].reverse())))
    refused(model.with_circuit(at("cells", lambda cells: cells.pop())))
    refused(model.with_circuit(at("cells", lambda cells: cells[0].update(cleared=[0, "ffn"]))))


def test_wrong_roles_are_refused():
    model = built("reverse", 4)
    refused(model.with_circuit(lambda data: data["heads"].pop()), "every head")
    refused(model.with_circuit(lambda data: data["units"].pop()), "does not explain")
    refused(model.with_circuit(lambda data: data["heads"][0].update(selector=data["heads"][1]["selector"])))
    refused(model.with_circuit(lambda data: data["heads"][1].update(kind="width")))
    refused(model.with_circuit(lambda data: data["heads"][1].update(queries=data["heads"][1]["keys"])), "other cells")
    refused(model.with_circuit(lambda data: data["units"][0].update(reads=[0])), "other cells")
    refused(model.with_circuit(lambda data: data["output"].update(reads=[0])), "other cells")
    refused(model.with_circuit(lambda data: data["output"].update(kind="number")))
    refused(model.with_circuit(lambda data: data["output"].update(kind="guess")), "structure")


def test_wrong_identities_are_refused():
    model = built("sort", 4)
    assert json.loads(model.circuit)["identities"]

    def edit(change):
        return model.with_circuit(lambda data: change(data["identities"][0]))

    refused(edit(lambda given: given.update(offset=1)), "identity")
    refused(edit(lambda given: given["terms"][0].__setitem__(0, -1)), "identity")
    refused(edit(lambda given: given["terms"].pop()), "identity")
    refused(edit(lambda given: given["terms"].append([1, given["node"]])), "itself")
    refused(model.with_circuit(lambda data: data["identities"].append(data["identities"][0])), "two identities")
    summed = built("sum", 4)
    refused(summed.with_circuit(lambda data: data["identities"][0]["terms"][-1].__setitem__(0, 3)), "identity")


def test_another_program_is_refused():
    model = built("parity", 4)

    def other_table(data):
        node = next(n for n in data["nodes"] if "operation" in n or "table" in n)
        if "table" in node:
            node["table"]["entries"] = node["table"]["entries"][::-1]
        else:
            node["operation"]["constant"] = 3

    refused(model.with_program(other_table))
    mirror = built("reverse", 4)
    refused(type(model)(mirror.config, mirror.arrays, built("copy", 4).program, mirror.circuit), "another program")

    def other_comparison(data):
        node = next(n for n in data["nodes"] if n.get("comparison") == "==")
        node["comparison"] = "!="

    refused(built("hist", 4).with_program(other_comparison))


def test_swapped_outputs_are_refused():
    model = built("shift", 4)
    arrays = {k: a.copy() for k, a in model.arrays.items()}
    for name in ("readout.weight", "readout.bias"):
        arrays[name][..., [0, 1]] = arrays[name][..., [1, 0]]
    refused(type(model)(model.config, arrays, model.program, model.circuit), "does not name")


def test_another_configuration_is_refused():
    model = built("shift", 4)
    for change in (
        lambda c: c.update(registers=0),
        lambda c: c["input"].update(tokens=5),
        lambda c: c["input"].update(vocabulary=9),
        lambda c: c.update(loops=2),
        lambda c: c["readout"].update(kind="mean"),
        lambda c: c["code"].update(kind="none"),
        lambda c: c["blocks"][0]["attention"].update(kind="hard"),
        lambda c: c["blocks"][0]["attention"].update(residual=False),
        lambda c: c["blocks"][0]["attention"].update(score_bias="table"),
        lambda c: c["blocks"][0].update(norm={"kind": "layer"}),
    ):
        config = json.loads(json.dumps(model.config))
        change(config)
        refused(type(model)(config, model.arrays, model.program, model.circuit))


def test_a_mask_that_hides_selected_positions_is_refused():
    model = built("reverse", 4)
    config = json.loads(json.dumps(model.config))
    for block in config["blocks"]:
        if block["attention"] is not None:
            block["attention"]["mask"] = "causal"
    refused(type(model)(config, model.arrays, model.program, model.circuit))


# --- folders -----------------------------------------------------------------------------------------------------------


def folder_of(model, path):
    from certiformer.model.tensor_file import arrays_to_bytes

    contents = {
        MODEL: arrays_to_bytes(model.arrays),
        CONFIG: canonical(model.config),
        PROGRAM: model.program.encode(),
        CIRCUIT: model.circuit.encode(),
    }
    path.mkdir()
    for name, data in contents.items():
        (path / name).write_bytes(data)
    return contents


def test_a_folder_is_checked(tmp_path):
    model = built("hist", 4)
    contents = folder_of(model, tmp_path / "run")
    certificate = program_certificate(model.prove().reason, contents)
    (tmp_path / "run" / CERTIFICATE).write_bytes(certificate.to_bytes())
    verdict = check(tmp_path / "run")
    assert verdict.accepted and verdict.exit_code == 0 and verdict.upper == "0"
    assert "cases were checked" in verdict.reason and "hist" in verdict.reason
    assert "1 to 4 tokens" in verdict.sentence and model.config["dtype"] in verdict.sentence
    assert DTYPES[model.config["dtype"]]
    (tmp_path / "run" / PROGRAM).write_bytes(contents[PROGRAM] + b" ")
    assert check(tmp_path / "run").outcome == "refused"


def test_a_resealed_folder_with_other_weights_is_refused(tmp_path):
    model = built("hist", 4)
    broken = model.changed("readout.bias", (1,), 50.0)
    contents = folder_of(broken, tmp_path / "run")
    (tmp_path / "run" / CERTIFICATE).write_bytes(program_certificate(model.prove().reason, contents).to_bytes())
    verdict = check(tmp_path / "run")
    assert verdict.outcome == "refused" and verdict.exit_code == 1 and "does not name" in verdict.reason


def test_a_certificate_cannot_claim_otherwise(tmp_path):
    from dataclasses import replace

    from certiformer.kernel.certificate import Finite, Situations

    model = built("hist", 4)
    contents = folder_of(model, tmp_path / "run")
    right = program_certificate(model.prove().reason, contents)
    for wrong in (
        replace(right, epsilon="1"),
        replace(right, proof=Finite("0")),
        replace(right, proof=Situations("1")),
        replace(right, run_error="0"),
        replace(right, seals={**right.seals, "target.json": "0"}),
        replace(right, seals={k: v for k, v in right.seals.items() if k != CIRCUIT}),
    ):
        (tmp_path / "run" / CERTIFICATE).write_bytes(wrong.to_bytes())
        assert check(tmp_path / "run").outcome == "refused"
    assert Certificate.from_bytes(right.to_bytes()) == right


def test_a_proof_by_situations_of_a_box_is_refused(tmp_path):
    from dataclasses import replace

    from certiformer.kernel.certificate import Situations
    from negative.forge import theorem_run

    folder = theorem_run("sin(x1)", "[0,1]", "0.1").write(tmp_path / "run")
    stored = Certificate.from_bytes((folder / CERTIFICATE).read_bytes())
    (folder / CERTIFICATE).write_bytes(replace(stored, proof=Situations("0.1")).to_bytes())
    assert "compiled program" in check(folder).reason


# --- parts -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_absorption_in_any_order(dtype):
    """Sums of integers with tiny errors: every order gives the exact sum, or one within the errors where it is zero."""
    kind, rng = np.dtype(dtype).type, random.Random(3)
    arithmetic = Arithmetic(dtype)
    limit = arithmetic.absorbed(1 << 192, 1000 << 128) / 2**192
    assert 0 < limit < 2.0**-arithmetic.form.precision
    for _ in range(300):
        exact = [rng.randrange(-9, 10) for _ in range(12)]
        exact.append(-sum(exact) if rng.random() < 0.3 else 1)
        errors = [limit / 20 * rng.choice([-1, 0, 1]) for _ in exact]
        terms = [kind(x) + kind(e) if x == 0 else kind(x) for x, e in zip(exact, errors, strict=True)]
        rng.shuffle(terms)
        total = kind(0)
        for term in terms:
            total = total + term
        assert total == sum(exact) or (sum(exact) == 0 and abs(float(total)) <= 2 * limit)
    assert arithmetic.absorbed(1 << 192, 1 << 192 + arithmetic.form.precision + 1) == -1  # too large for the format


def test_a_run_has_the_properties_that_are_assumed_of_it():
    import jax.numpy as jnp

    for kind, u in ((jnp.float32, 2.0**-24), (jnp.float64, 2.0**-53)):
        small = jnp.array([0.0, u / 4, -u / 4, 1e-38, -1e-38], kind)
        assert (jnp.exp(small) == 1).all()
        x = jnp.arange(-50, 50, dtype=kind) / 7
        assert (x / jnp.array(1, kind) == x).all()


def test_an_inexact_cell_is_cleared_exactly_by_one_unit():
    from certiformer.kernel.situations.rasp.cases import settle
    from certiformer.kernel.situations.rasp.state import Content
    from certiformer.kernel.situations.rasp.tables import directions, gathered

    variables = Variables(read_program(built("copy", 4).program))
    one = 1 << 192
    old = Content(variables.tokens, [one, 2 * one, 3 * one], [one // 1000] * 3, one, one // 1000, 0)
    arithmetic = Arithmetic("float32")

    def cleared(k: int, b: int, a: int, bias: int):
        found = directions(arithmetic, variables, [old], [({0: k}, b, {0: a})])
        return settle(arithmetic, variables, gathered(0, found, bias, old), None, "")

    assert cleared(one, 0, -one, 0).worst == 0
    assert (
        0 < cleared(one, -one // 2, -one, -one // 2).worst < one // 10**5
    )  # 6 u of sizes up to 6: rounded, but the error itself cancels
    assert cleared(one, 0, -one, one).worst >= one  # a constant is left
    assert cleared(one, 0, -one // 2, 0).worst > one // 4  # half is left


def test_a_cell_that_rounding_may_leave_below_zero_is_cleared_exactly_by_two_units():
    from certiformer.kernel.situations.rasp.cases import settle
    from certiformer.kernel.situations.rasp.state import Content
    from certiformer.kernel.situations.rasp.tables import directions, gathered

    variables = Variables(read_program(built("copy", 4).program))
    one = 1 << 192
    old = Content(variables.tokens, [0, one, -one], [one // 1000] * 3, 0, one // 1000, 0)
    arithmetic = Arithmetic("float32")

    def cleared(*units: tuple[int, int, int]):
        found = directions(arithmetic, variables, [old], [({0: k}, b, {0: a}) for k, b, a in units])
        return settle(arithmetic, variables, gathered(0, found, 0, old), None, "")

    up, down = (one, 0, -one), (-one, 0, one)
    assert cleared(up, down).worst == 0
    assert cleared(up).worst >= one  # what is below zero is left
    assert cleared(up, (-one, 0, one // 2)).worst >= one // 2
    assert cleared(up, (-one, 0, -one)).worst >= 2 * one  # the wrong sign
    assert cleared(up, (-one, one // 2, one)).worst >= one // 4  # both active between 0 and 1/2
    assert cleared(up, down, down).worst >= one


@pytest.mark.parametrize("seed", range(6))
def test_random_programs(seed):
    from certiformer.compiler.driver import compile_program
    from certiformer.rasp.random_program import random_valid_program
    from kernel.compiled_programs import built_from

    model = built_from(compile_program(random_valid_program(seed, list("abc"), 3, 6), list("abc"), 3, dtype="float64"))
    model.prove()
    expected = meaning(model)
    for ids in all_inputs(model, 3):
        assert list(map(identity, decoded(model, list(ids)))) == list(map(identity, expected(ids)))


def test_a_derived_node_without_a_value_is_refused():
    """A node of the circuit that faults where the program does not would say nothing about those inputs."""
    model = built("copy", 4)

    def add(data):
        extended = json.loads(data["extended"])
        first = next(k for k, node in enumerate(extended["nodes"]) if node["kind"] == "tokens")
        many = {"kind": "select", "name": "all", "inputs": [first, first], "comparison": "True"}
        extended["nodes"].append(many)
        values = extended["nodes"][first]["values"]
        number = len(extended["nodes"]) - 1
        read = {"kind": "aggregate", "name": "mix", "inputs": [number, first], "constant": None, "numerical": False}
        extended["nodes"].append({**read, "values": {**values, "undefined": True}})
        data["extended"] = json.dumps(extended, sort_keys=True, separators=(",", ":")) + "\n"

    refused(model.with_circuit(add), "may have no value")
