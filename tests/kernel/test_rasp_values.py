"""The checker tells True from 1: at the read-out, and where an identity between numbers gives a truth value."""

from __future__ import annotations

import pytest

from certiformer.compiler.driver import compile_program
from certiformer.kernel import Refused
from certiformer.kernel.meanings.rasp import read_program, settled
from certiformer.kernel.situations.rasp.circuit import Identity
from certiformer.kernel.situations.rasp.closure import proved_facts
from certiformer.kernel.situations.rasp.domains import Domains
from certiformer.kernel.situations.rasp.evaluation import Contradiction
from certiformer.kernel.situations.rasp.identities import verify_identities
from certiformer.kernel.situations.rasp.variables import Variables
from certiformer.rasp import Map, indices, tokens
from certiformer.rasp.graph import Table
from certiformer.rasp.graph_builder import GraphBuilder
from certiformer.rasp.selectors import Comparison
from certiformer.rasp.value import identity
from kernel.compiled_programs import Built, built_from, canonical, variables_of

VOCAB = ("a", "b", "c")


def three_values(twin: object) -> Built:
    program = Map(lambda t: {"a": True, "b": twin, "c": 5}[t], tokens)
    return built_from(compile_program(program, VOCAB, 4, dtype="float64"))


@pytest.mark.parametrize("twin", [1, 0, "1"])
def test_two_values_with_one_logit_are_refused_even_if_they_are_equal(twin: object) -> None:
    """A transformer with the same logit for True and 1 answers True for both."""
    honest = three_values(twin)
    assert honest.prove()
    for one, other in ((0, 1), (1, 0)):
        weight, bias = honest.arrays["readout.weight"], honest.arrays["readout.bias"]
        forged = honest.changed("readout.weight", (slice(None), one), weight[:, other])
        with pytest.raises(Refused, match="does not name the value"):
            forged.changed("readout.bias", one, bias[other]).prove()


def test_two_values_with_one_number_are_refused_even_if_they_are_equal() -> None:
    program = Map(lambda i: True if i == 0 else i, indices)  # 260 values, read out as one number
    honest = built_from(compile_program(program, VOCAB, 260, dtype="float64"))
    assert honest.prove()

    def same_feature(data: dict) -> None:
        data["output"]["feature"][0] = data["output"]["feature"][1]

    with pytest.raises(Refused, match="gives True and 1 the same number"):
        honest.with_circuit(same_feature).prove()


def truth_by_identity() -> tuple[Variables, int, int]:
    """`later` (False at position 0, True elsewhere) equals the number of earlier positions that are the first."""
    builder = GraphBuilder(["x"], 4)
    position = builder.add("indices")
    later = builder.add("map", (position,), Table((4,), (0, 1, 1, 1)), outputs=(False, True), name="later")
    first = builder.add("select", (position, builder.add("full", constant=0)), Comparison.EQ)
    earlier = builder.add("select", (position, position), Comparison.LT)
    count = builder.add("width", (builder.add("and", (first, earlier)),))
    variables = variables_of(builder.finish(later))
    verify_identities(variables, (Identity(later, ((1, count),), 0),))
    return variables, later, count


def cases() -> list:
    variables, later, count = truth_by_identity()
    value_of = variables.evaluator(later, [count])
    return [value_of((place,)) for place in range(len(variables.domain(count)))]


def test_an_identity_gives_a_node_of_truth_values_its_truth_value() -> None:
    assert list(map(identity, cases())) == [identity(False), identity(True)]


def test_a_number_in_place_of_the_truth_value_would_leave_no_case_to_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: the number 1 is no value of the node, and no case could be evaluated."""
    monkeypatch.setattr(Domains, "named", lambda self, number, total: settled(total))
    with pytest.raises(Contradiction):
        cases()


def test_an_identity_of_a_node_with_equal_values_is_refused() -> None:
    builder = GraphBuilder(["x"], 3)
    node = builder.add("map", (builder.add("indices"),), Table((3,), (0, 1, 2)), outputs=(0, True, 1))
    variables = variables_of(builder.finish(node))
    for _ in range(2):  # the second time, too
        with pytest.raises(Refused, match="the same number"):
            variables.named(node, 1)


def swapped(values: list) -> list:
    return [values[1], values[0], *values[2:]]


@pytest.mark.parametrize("kind", ["tokens", "indices"])
def test_the_list_of_tokens_is_that_of_ids_and_the_list_of_indices_that_of_positions(kind: str) -> None:
    """A place in these lists is read as an id or a position: with another order every letter would mean its neighbour."""
    honest = built_from(compile_program(tokens if kind == "tokens" else indices, VOCAB, 3, dtype="float64"))
    assert honest.prove()

    def other_vocabulary(data: dict) -> None:
        data["vocab"] = swapped(data["vocab"])

    def other_lists(data: dict) -> None:
        (node,) = (node for node in data["nodes"] if node["kind"] == kind)
        first, last = node["values"].pop("integers", (0, 2))
        listed = node["values"].setdefault("list", [*range(first, last + 1)])
        node["values"]["list"] = swapped(listed)

    def longer_list(data: dict) -> None:
        other_lists(data)
        (node,) = (node for node in data["nodes"] if node["kind"] == kind)
        node["values"]["list"] = [*swapped(node["values"]["list"]), "more"]

    def widened(data: dict) -> None:
        (node,) = (node for node in data["nodes"] if node["kind"] == kind)
        node["values"] = {"span": ["-1", "2"], "largest_denominator": 1, "undefined": False}

    forgeries = [other_lists, longer_list] + ([other_vocabulary] if kind == "tokens" else [widened])
    for change in forgeries:
        with pytest.raises(Refused, match="by their ids, or the indices by their positions"):
            honest.with_program(change).prove()


@pytest.mark.parametrize("symbol", ["or", "and"])
def test_the_constant_beside_a_long_list_is_a_value_as_well(symbol: str) -> None:
    """`x or "none"` is "none" where x is 0: the list of x alone is not enough, however long it is."""
    node = {"kind": "map", "inputs": [1], "name": "", "numerical": False}
    long = {"integers": [0, 60_000], "undefined": False}
    both = {**node, "operation": {"with": symbol, "constant": 60_001, "first": False}}
    data = {
        "format": "certiformer-program-1",
        "length": 3,
        "nodes": [
            {"kind": "indices", "name": "", "numerical": False, "values": {"integers": [0, 2], "undefined": False}},
            {**node, "inputs": [0], "operation": {"affine": [1], "offset": 0}, "values": long},
            {**both, "values": {**long, "integers": [0, 60_001]}},
        ],
        "output": 2,
        "vocab": ["a"],
    }
    assert proved_facts(read_program(canonical(data)), ())
    data["nodes"][2]["values"] = long
    with pytest.raises(Refused, match="may take other values"):
        proved_facts(read_program(canonical(data)), ())


def test_a_name_that_could_read_like_a_claim_stands_in_quotes() -> None:
    """The reason of a proof names nodes, and anybody may name them."""
    honest = built_from(compile_program(Map(lambda t: t, tokens), VOCAB, 3, dtype="float64"))
    lie = 'any); and proved for "all" lengths (x'

    def renamed(name: str):
        def change(data: dict) -> None:
            data["nodes"][data["output"]]["name"] = name

        return honest.with_program(change).prove().reason

    assert f'(where "{lie.replace(chr(34), "")}" is' in renamed(lie)
    assert "(where letter_1 is" in renamed("letter_1")  # the control: a plain name stands as it is
