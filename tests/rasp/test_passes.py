"""The passes keep the meaning: 200 random programs on all short inputs; and planted faults in the passes are noticed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from certiformer import rasp
from certiformer.errors import BadInput
from certiformer.rasp import (
    Comparison,
    Map,
    Select,
    SelectorWidth,
    SequenceMap,
    facts,
    graph_builder,
    graph_to_simplified,
    indices,
    map_fusion,
    tokens,
)
from certiformer.rasp.expression import in_evaluation_order
from certiformer.rasp.graph import Graph, Relation, Table
from certiformer.rasp.graph_run import GraphRunner
from certiformer.rasp.inputs import all_inputs
from certiformer.rasp.interpreter import Interpreter
from certiformer.rasp.operation import Affine
from certiformer.rasp.program_to_graph import program_to_graph
from certiformer.rasp.random_program import random_program, random_valid_program
from certiformer.rasp.value import identity

simplify = graph_to_simplified.graph_to_simplified
VOCAB = ("a", "b", "c")


def first_difference(program: rasp.SOp, graph: Graph, n: int = 4) -> tuple | None:
    """The first input on which a graph and its program differ; a value that was not inferred counts as a difference."""
    interpreter, runner = Interpreter(program), GraphRunner(graph)
    for xs in all_inputs(graph.vocab, n):
        wanted = [identity(x) for x in interpreter.run(xs)]
        try:
            found = [identity(x) for x in runner.run(xs)]
        except (BadInput, KeyError, IndexError):
            return xs
        if wanted != found:
            return xs
    return None


# --- random programs --------------------------------------------------------------------------------------------------


@cache
def programs() -> list[rasp.SOp]:
    return [random_valid_program(seed, VOCAB, 4) for seed in range(200)]


@pytest.mark.parametrize("start", range(0, 200, 20))
def test_random_programs_and_their_simplified_graphs_agree_on_all_inputs(start):
    for seed in range(start, start + 20):
        graph = program_to_graph(programs()[seed], VOCAB, 4)
        assert first_difference(programs()[seed], simplify(graph)) is None, seed
        if seed % 4 == 0:
            assert first_difference(programs()[seed], graph, 3) is None, seed


def test_random_programs_use_the_whole_language():
    used = {type(expr).__name__ for program in programs() for expr in in_evaluation_order(program)}
    assert used == {
        "TokensType", "IndicesType", "LengthType", "Full", "Map", "SequenceMap", "LinearSequenceMap", "SelectorWidth", "Aggregate",
        "Select", "ConstantSelector", "SelectorAnd", "SelectorOr", "SelectorNot",
    }  # fmt: skip
    graphs = [simplify(program_to_graph(program, VOCAB, 4)) for program in programs()[:60]]
    functions = {type(node.function) for graph in graphs for node in graph.nodes}
    assert {Table, Affine, Relation, Comparison} <= functions
    assert any(node.values and node.values.undefined for graph in graphs for node in graph.nodes)
    assert sum(len(graph.nodes) == 1 for graph in graphs) < 15


def test_the_seed_decides_everything():
    one, two = (program_to_graph(random_program(7, VOCAB), VOCAB, 3) for _ in "ab")
    assert one == two and one != program_to_graph(random_program(8, VOCAB), VOCAB, 3)


def test_simplifying_twice_changes_nothing_more():
    for program in programs()[:40]:
        once = simplify(program_to_graph(program, VOCAB, 4))
        assert first_difference(program, simplify(once), 2) is None
        assert len(simplify(once).nodes) <= len(once.nodes)


# --- what the passes do -----------------------------------------------------------------------------------------------


def simplified(program: rasp.SOp, vocab=VOCAB, n: int = 5) -> Graph:
    graph = simplify(program_to_graph(program, vocab, n))
    assert first_difference(program, graph, 3) is None
    return graph


def kinds(graph: Graph) -> list[str]:
    return [node.kind for node in graph.nodes]


ALL = Select(tokens, tokens, Comparison.TRUE)
SAME = Select(tokens, tokens, Comparison.EQ)


def test_equal_expressions_share_a_node():
    twice = (
        SelectorWidth(Select(tokens, tokens, Comparison.EQ)) + SelectorWidth(Select(tokens, tokens, Comparison.EQ)) * 2
    )
    assert kinds(simplified(twice)).count("width") == 1
    f, g = (lambda t: t + "x"), (lambda t: t + "x")
    assert (
        len(program_to_graph(SequenceMap(lambda a, b: a + b, Map(f, tokens), Map(g, tokens)), VOCAB, 3).nodes) == 3
    )  # by their tables


def test_true_and_one_are_different_constants():
    program = SequenceMap(lambda a, b: (str(a), str(b)), rasp.Full(True), rasp.Full(1))
    assert rasp.evaluate(program, "a") == [("True", "1")]
    assert first_difference(program, simplify(program_to_graph(program, VOCAB, 2)), 2) is None


def test_chains_of_arithmetic_become_one_affine_map():
    graph = simplified((rasp.length - indices - 1) * 2 + indices)
    assert kinds(graph) == ["length", "indices", "map"] and graph.nodes[2].function == Affine((2, -1), -2)
    assert kinds(simplified(indices + 3 - 3)) == ["indices"]


def test_a_factor_of_zero_does_not_hide_an_undefined_value():
    holes = Map(lambda i: i if i else None, indices)
    assert simplified(holes - holes + 1).nodes[-1].values.undefined


def test_chains_of_maps_become_one_table():
    graph = simplified(Map(lambda s: s * 2, Map(lambda s: s + "y", Map(lambda s: s + "x", tokens))))
    assert kinds(graph) == ["tokens", "map"] and graph.nodes[1].values.values == ("axyaxy", "bxybxy", "cxycxy")


def test_maps_that_change_nothing_or_forget_everything_disappear():
    assert kinds(simplified(Map(lambda s: s, tokens))) == ["tokens"]
    assert kinds(simplified(Map(lambda s: 7, tokens))) == ["full"]
    assert kinds(simplified(Map(lambda s: None, tokens))) == ["full"]
    assert kinds(simplified(Map(int, tokens == "a"))) == ["tokens", "map"]  # True becomes 1: that is a change


def test_selectors_are_simplified():
    assert kinds(simplified(SelectorWidth(ALL))) == ["length"]
    assert (
        kinds(simplified(SelectorWidth(ALL & SAME)))
        == kinds(simplified(SelectorWidth(~~SAME)))
        == ["tokens", "select", "width"]
    )
    assert kinds(simplified(SelectorWidth(ALL | SAME))) == ["length"] and kinds(simplified(SelectorWidth(~ALL))) == [
        "full"
    ]
    assert simplified(SelectorWidth(~SAME)).nodes[1].function is Comparison.NEQ
    both = Select(tokens, indices, lambda k, q: q > 1) & Select(tokens, indices, lambda k, q: k == "a")
    assert kinds(simplified(SelectorWidth(both))).count("select") == 1
    assert kinds(simplified(rasp.Aggregate(Select(indices, indices, Comparison.EQ), tokens))) == ["tokens"]


def test_complements_with_undefined_pairs_are_left_alone():
    holes = Map(lambda t: None if t == "a" else t, tokens)
    graph = simplified(SelectorWidth(~Select(holes, holes, Comparison.EQ)))
    assert "not" in kinds(graph)
    assert "select" in kinds(simplified(SelectorWidth(Select(holes, holes, Comparison.TRUE))))


def test_dead_code_is_removed():
    unused = SelectorWidth(SAME)
    graph = simplified(SequenceMap(lambda a, b: a, tokens, unused))
    assert kinds(graph) == ["tokens", "map"]  # the input that never matters is not even computed
    assert kinds(simplified(SelectorWidth(ALL) * 0 + SelectorWidth(ALL))) == ["length"]


def test_ten_thousand_nodes_are_translated_and_simplified():
    program = tokens
    for _ in range(5_000):
        program = (program + 1) % 3
    graph = program_to_graph(program, (0, 1, 2), 3)
    assert len(graph.nodes) == 10_001 and len(simplify(graph).nodes) <= 2
    assert first_difference(program, simplify(graph), 1) is None


# --- planted faults ---------------------------------------------------------------------------------------------------


def swapped(graph: Graph) -> Graph | None:
    """The graph with the arguments of its first asymmetric two-input map exchanged, or None."""
    for number, node in enumerate(graph.nodes):
        if (
            len(node.inputs) == 2
            and isinstance(node.function, Affine)
            and node.function.factors[0] != node.function.factors[1]
        ):
            changed = node.__class__(node.kind, node.inputs[::-1], node.function, node.constant, node.values, node.name)
            return Graph(
                (*graph.nodes[:number], changed, *graph.nodes[number + 1 :]), graph.output, graph.vocab, graph.length
            )
    return None


def test_a_fused_map_with_swapped_arguments_is_noticed():
    program = (rasp.length - indices - 1) * 2
    graph = simplified(program)
    assert first_difference(program, swapped(graph)) is not None  # type: ignore[arg-type]


def plant(monkeypatch, name: str) -> None:
    """Put one fault into a pass."""
    fuser, builder, rules = map_fusion.MapFuser, graph_builder.GraphBuilder, graph_to_simplified._Pass
    add_table, blank = fuser._add_table, lambda self, inputs: True
    negated = {**graph_to_simplified.NEGATED, Comparison.LT: Comparison.GT, Comparison.EQ: Comparison.EQ}
    faults: dict[str, Callable[[], None]] = {
        "a fused table with swapped inputs": lambda: monkeypatch.setattr(
            fuser, "_add_table", lambda self, node, sources, sizes, results: add_table(self, node, sources[::-1], sizes, results)
        ),
        "a fused table shifted by one": lambda: monkeypatch.setattr(
            fuser, "_add_table", lambda self, node, sources, sizes, results: add_table(self, node, sources, sizes, results[1:] + results[:1])
        ),
        "affine maps that forget the inner offset": lambda: monkeypatch.setattr(
            map_fusion, "canonical", lambda x: 0 if isinstance(x, int) and x < 0 else x
        ),
        "undefined forgotten": lambda: monkeypatch.setattr(rules, "_defined", blank),
        "a wrong negation": lambda: monkeypatch.setattr(graph_to_simplified, "NEGATED", negated),
        "everything taken for nothing": lambda: monkeypatch.setattr(
            rules, "_is", lambda self, number, word: self._node(number).function in (Comparison.TRUE, Comparison.FALSE)
        ),
        "means of two left out": lambda: monkeypatch.setattr(graph_builder, "of_mean", lambda values, length: values),
        "every selector single": lambda: monkeypatch.setattr(facts, "_is_single", lambda nodes, node: True),
        "every selector reflexive": lambda: monkeypatch.setattr(facts, "_is_reflexive", lambda nodes, node: True),
        "the last node dropped": lambda: monkeypatch.setattr(
            graph_to_simplified._Pass, "finish", lambda self: self.builder.finish(max(0, self.new[self.graph.output] - 1))
        ),
        "equal nodes by kind only": lambda: monkeypatch.setattr(builder, "add", _add_by_kind(builder.add)),
    }  # fmt: skip
    faults[name]()


def _add_by_kind(add: Callable) -> Callable:
    """Sharing that ignores the constant."""

    def wrong(self, kind, inputs=(), function=None, constant=None, **more):
        return add(self, kind, inputs, function, 0 if kind == "aggregate" else constant, **more)

    return wrong


FAULTS = [
    "a fused table with swapped inputs", "a fused table shifted by one", "affine maps that forget the inner offset", "undefined forgotten",
    "a wrong negation", "everything taken for nothing", "means of two left out", "every selector single", "every selector reflexive",
    "the last node dropped", "equal nodes by kind only",
]  # fmt: skip


def noticed() -> bool:
    """Whether any of the random programs shows a difference."""
    for program in programs():
        try:
            graph = simplify(program_to_graph(program, VOCAB, 4))
        except (BadInput, KeyError, IndexError, ValueError, AttributeError):
            return True
        output = graph.nodes[graph.output]
        if output.is_selector or first_difference(program, graph, 3) is not None:
            return True
    return False


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_noticed(monkeypatch, fault):
    plant(monkeypatch, fault)
    assert noticed()
