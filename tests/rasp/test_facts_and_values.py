"""Inferred values contain everything that occurs, facts hold on all inputs, and sets are not needlessly large."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from certiformer.errors import BadInput
from certiformer.rasp import (
    Aggregate,
    Comparison,
    Full,
    LinearSequenceMap,
    Map,
    Select,
    SelectorWidth,
    SequenceMap,
    evaluate,
    indices,
    length,
    tokens,
)
from certiformer.rasp.expression import RASPExpr
from certiformer.rasp.graph import Graph, Span
from certiformer.rasp.graph_run import GraphRunner
from certiformer.rasp.graph_to_simplified import graph_to_simplified
from certiformer.rasp.inputs import all_inputs
from certiformer.rasp.library import catalogue
from certiformer.rasp.meaning import apply
from certiformer.rasp.operation import Affine, Binary
from certiformer.rasp.program_to_graph import program_to_graph, translate
from certiformer.rasp.random_program import random_valid_program
from certiformer.rasp.validate import validate
from certiformer.rasp.value import Ratio, identity
from certiformer.rasp.values import arguments_of, listed, of_mean, of_operation, of_sum

SO_FAR = Select(indices, indices, Comparison.LEQ)
BEFORE = Select(indices, indices, Comparison.LT)
ALL = Select(indices, indices, Comparison.TRUE)
SAME = Select(tokens, tokens, Comparison.EQ)


def node_of(program: RASPExpr, vocab=(1, 2, 3), n: int = 5):
    graph, _ = translate(program, vocab, n)  # type: ignore[arg-type]
    return graph.nodes[graph.output]


@pytest.mark.parametrize(
    ("program", "text"),
    [
        (tokens, "{1, 2, 3}"),
        (indices, "{0, 1, 2, 3, 4}"),
        (length, "{1, 2, 3, 4, 5}"),
        (SelectorWidth(ALL), "{1, 2, 3, 4, 5}"),
        (SelectorWidth(BEFORE), "{0, 1, 2, 3, 4, 5}"),
        (SelectorWidth(Select(indices, tokens, Comparison.EQ)), "{0, 1}"),
        (Aggregate(Select(indices, tokens, Comparison.EQ), tokens), "{1, 2, 3} or undefined"),
        (Aggregate(Select(indices, tokens, Comparison.EQ), tokens, 9), "{1, 2, 3, 9}"),
        (6 / indices, "{3/2, 2, 3, 6} or undefined"),
        (indices - length, "{-5, -4, -3, -2, -1, 0, ... (9 values)}"),
        (Full(None), "{} or undefined"),
        (tokens * tokens, "{1, 4, 9}"),  # not 2, 3, 6: both sides are the same
        (SequenceMap(lambda x, y: x - y, tokens, tokens), "{0}"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_sets(program, text):
    assert str(node_of(program).values) == text


def means_by_hand(values: list, n: int) -> set:
    """All means of 1 to n of the values, one after the other."""
    sums, found = {(Fraction(0))}, set()
    for w in range(1, n + 1):
        sums = {s + Fraction(v) for s in sums for v in values}
        found |= {s / w for s in sums}
    return found


@pytest.mark.parametrize(
    "values", [[0, 1], [1, 2, 4], [-3, 0, 3], [Fraction(1, 2), 2], [0, 5], [0.5, 0.25], [7]], ids=str
)
def test_means_and_sums_contain_all_and_for_steps_of_one_nothing_else(values):
    n = 6
    found = {Fraction(x) for x in of_mean(listed(values), n).values}
    true = means_by_hand(values, n)
    assert true <= found
    if values in ([0, 1], [0, 5], [7]):
        assert found == true
    if not any(isinstance(x, float) for x in values):
        sums = of_sum(listed(values), n)
        totals = {Fraction(0)}
        every = set()
        for _ in range(n):
            totals = {t + Fraction(v) for t in totals for v in values}
            every |= totals
        assert every <= {Fraction(x) for x in sums.values}


def test_the_counts_that_the_documentation_states():
    assert len(of_mean(listed([0, 1]), 50).values) == 775 and len(of_mean(listed([0, 1]), 100).values) == 3045


def test_long_lists_become_spans_with_a_bound_on_the_denominator():
    values = node_of(Aggregate(SO_FAR, tokens == 1), n=1_000).values
    assert values.values is None and (values.span.low, values.span.high, values.span.largest_denominator) == (
        0,
        1,
        1_000,
    )
    balance = LinearSequenceMap(Aggregate(SO_FAR, tokens == 1), Aggregate(SO_FAR, tokens == 2), 1, -1)
    span = node_of(balance, n=1_000).values.span
    assert (span.low, span.high, span.largest_denominator) == (-1, 1, 10**6)
    assert (
        str(node_of(balance < 0, n=1_000).values) == "{False, True}"
        and str(node_of(balance > 2, n=1_000).values) == "{False}"
    )
    product = Aggregate(SO_FAR, tokens == 1) * Aggregate(SO_FAR, tokens == 2)
    assert (node_of(product, n=1_000).values.span.low, node_of(product, n=1_000).values.span.high) == (0, 1)


@pytest.mark.parametrize(
    ("step", "most"), [(Fraction(1), 1), (Fraction(1), 7), (Fraction(1, 12), 5), (Fraction(3, 4), 6)]
)
def test_the_numbers_of_a_span_are_as_far_apart_as_it_says_and_found_again(step, most):
    span = Span(Fraction(0), Fraction(3), most, step)
    numbers = sorted({step * Fraction(p, q) for q in range(1, most + 1) for p in range(int(3 * q / step) + 1)})
    gaps = [b - a for a, b in zip(numbers, numbers[1:], strict=False)]
    assert min(gaps) == span.gap  # neither too large, which would be wrong, nor smaller than need be
    for x in numbers:
        assert span.nearest(x + span.gap * Fraction(49, 100)) == x == span.nearest(x - span.gap * Fraction(49, 100))
    coarse = span.plain()
    assert coarse.step == 1 and all(x.denominator <= coarse.largest_denominator for x in numbers)


def test_means_of_multiples_are_fractions_of_their_step():
    sixtieths = listed([Fraction(k, 60) for k in range(0, 400, 7)])
    span = of_mean(sixtieths, 40).span
    assert (span.largest_denominator, span.step) == (40, Fraction(7, 60))
    shifted = listed([Fraction(1, 3) + Fraction(k, 60) for k in range(0, 400, 7)])
    assert of_mean(shifted, 40).span.step == Fraction(1, 60)
    # Over something else than a mean the step is given up, and the denominators are bounded by the product.
    assert node_of(Aggregate(SO_FAR, tokens / 7) + 1, n=1_000).values.span == Span(
        Fraction(8, 7), Fraction(10, 7), 7_000
    )


def test_a_relation_of_positions_bounds_how_many_numbers_a_mean_has():
    band = Select(indices, indices, lambda k, q: abs(k - q) <= 1)
    means = node_of(Aggregate(band, tokens), n=6).values.values
    assert means == of_mean(listed([1, 2, 3]), 3).values and max(Fraction(x).denominator for x in means) == 3
    seen = {x for xs in all_inputs((1, 2, 3), 6) for x in evaluate(Aggregate(band, tokens), xs)}
    assert {Fraction(x).limit_denominator(6) for x in seen} == {Fraction(x) for x in means}
    both = Aggregate(band & SAME, indices)
    assert max(Fraction(x).denominator for x in node_of(both, n=6).values.values) == 3
    # Many positions can have the same token, so a relation of tokens bounds nothing.
    close = Select(tokens, tokens, lambda k, q: abs(k - q) <= 1)
    assert node_of(Aggregate(close, tokens), n=6).values == of_mean(listed([1, 2, 3]), 6)


def test_numbers_among_symbols_have_means_as_well():
    mixed = Map(lambda t: "x" if t == 3 else t, tokens)
    program = Aggregate(Select(mixed, mixed, lambda k, q: isinstance(k, int) and isinstance(q, int)), mixed)
    assert str(node_of(program, n=2).values) == "{1, 3/2, 2, x} or undefined"
    assert evaluate(program, [1, 2]) == [Fraction(3, 2)] * 2


# --- facts ------------------------------------------------------------------------------------------------------------

RANK = SelectorWidth(Select(tokens, tokens, Comparison.LT) | (SAME & BEFORE))
NUMBER = SelectorWidth(SAME & SO_FAR)
FACTS = [
    (indices, {"injective"}), (length, {"constant"}), (tokens, set()), (Full(3), {"constant"}), (length - indices - 1, {"injective"}),
    (indices * 0, set()), (indices % 3, set()), (RANK, {"injective"}), (NUMBER, set()), (indices + tokens, set()),
    (Map(lambda i: (i * 3) % 7, indices), {"injective"}), (Map(lambda i: i // 2, indices), set()),
    (SequenceMap(lambda t, i: t + 10 * i, tokens, indices), {"injective"}), (SequenceMap(lambda t, i: t + i, tokens, indices), set()),
    (indices + 0.1, set()), (SelectorWidth(Select(tokens, length, Comparison.EQ)), {"constant"}),
    (SelectorWidth(Select(tokens, tokens, Comparison.LT)), set()), (SelectorWidth(SO_FAR), {"injective"}),
]  # fmt: skip


@pytest.mark.parametrize(("program", "facts"), FACTS, ids=range(len(FACTS)))
def test_facts_of_sequences_are_found_and_true(program, facts):
    node = node_of(program, n=4)
    assert node.facts == facts
    for xs in all_inputs((1, 2, 3), 4):
        values = [identity(x) for x in evaluate(program, xs)]
        assert "injective" not in facts or len(set(values)) == len(values)
        assert "constant" not in facts or len(set(values)) == 1


SELECTORS = [
    (ALL, {"reflexive"}), (BEFORE, {"total"}), (SO_FAR, {"reflexive", "total or equal"}), (SAME, {"reflexive"}), (SAME & BEFORE, set()),
    (Select(tokens, tokens, Comparison.LT) | (SAME & BEFORE), {"total"}), (Select(tokens, tokens, Comparison.GT) | (SO_FAR & SAME), {"total or equal", "reflexive"}),
    (Select(tokens, tokens, Comparison.LT) | (SAME & ALL), {"reflexive"}), (Select(indices, tokens, Comparison.EQ), {"single"}), (Select(tokens, indices, Comparison.EQ), set()),
    (SAME & Select(NUMBER, NUMBER, Comparison.EQ), {"single", "reflexive"}), (Select(NUMBER, NUMBER, Comparison.EQ), {"reflexive"}),
    (SAME & Select(NUMBER, length, Comparison.EQ), {"single"}), (Select(indices, indices, lambda k, q: q == k + 1), {"single"}),
    (Select(indices, indices - 3, Comparison.GT), {"reflexive"}), (Select(indices, indices - 3, Comparison.LT), set()),
    (Select(tokens + 1, tokens, Comparison.GEQ), {"reflexive"}), (Select(indices, 3 - indices, Comparison.NEQ), set()),
    (Select(indices, indices, lambda k, q: abs(q - k) < 2), {"reflexive"}), (~SO_FAR, set()), (Select(tokens, tokens, Comparison.FALSE), {"single"}),
    (Select(tokens, Full(1), Comparison.EQ) & Select(SelectorWidth(Select(tokens, Full(1), Comparison.EQ) & SO_FAR), Full(1), Comparison.EQ), {"single"}),
    (Select(tokens, Full(2), Comparison.EQ) & Select(SelectorWidth(Select(tokens, Full(1), Comparison.EQ) & SO_FAR), Full(1), Comparison.EQ), set()),
]  # fmt: skip


def has(fact: str, pattern: list[list[bool]]) -> bool:
    n = range(len(pattern))
    if fact == "reflexive":
        return all(pattern[i][i] for i in n)
    if fact == "single":
        return all(sum(row) <= 1 for row in pattern)
    own = fact == "total or equal"
    return sorted(sum(row) - own for row in pattern) == list(n) and all(pattern[i][i] == own for i in n)


@pytest.mark.parametrize(("selector", "facts"), SELECTORS, ids=range(len(SELECTORS)))
def test_facts_of_selectors_are_found_and_true(selector, facts):
    graph, _ = translate(SelectorWidth(selector), (1, 2, 3), 4)
    assert graph.nodes[graph.nodes[graph.output].inputs[0]].facts == facts
    patterns = [evaluate(selector, xs) for xs in all_inputs((1, 2, 3), 4)]
    for fact in ("reflexive", "single", "total", "total or equal"):
        if fact in facts:
            assert all(has(fact, pattern) for pattern in patterns)


def test_undefined_keys_give_no_order():
    holes = Map(lambda i: i if i else None, indices)
    for selector in (Select(holes, holes, Comparison.LT), Select(holes, holes, Comparison.EQ)):
        graph, _ = translate(SelectorWidth(selector), (1, 2), 4)
        assert not graph.nodes[graph.nodes[graph.output].inputs[0]].facts & {"total", "reflexive"}


def test_floats_beside_ratios_are_not_told_apart():
    """Two different ratios can equal the same float, so an equality of the two selects perhaps both."""
    near = Map(lambda i: Fraction(1, 3) + Fraction(i, 10**30), indices)
    third = Map(lambda i: 1 / 3, indices)
    selector = Select(near, third, Comparison.EQ)
    assert evaluate(SelectorWidth(selector), "aa") == [2, 2]
    graph, _ = translate(SelectorWidth(selector), ("a",), 3)
    assert "single" not in graph.nodes[graph.nodes[graph.output].inputs[0]].facts


def test_a_map_that_tells_true_from_one_is_not_determined_by_their_equality():
    key = Map(lambda t: True if t == 1 else 1, tokens)
    program = Aggregate(Select(key, key, Comparison.EQ), Map(str, key))
    with pytest.raises(BadInput, match="selects both 'True' and '1'"):
        evaluate(program, [1, 2])
    assert len(validate(program, {1, 2}, 3)) == 1
    twin = Map(lambda t: 2 if t == 1 else 1, tokens)
    assert validate(Aggregate(Select(twin, twin, Comparison.EQ), Map(str, twin)), {1, 2}, 30) == []


def fact_faults(graph: Graph, n: int) -> list[str]:
    """Facts of nodes that an input refutes."""
    runner, found = GraphRunner(graph), []
    for xs in all_inputs(graph.vocab, n):
        for number, (node, result) in enumerate(zip(graph.nodes, runner.run_all(xs), strict=True)):
            for fact in node.facts:
                if node.is_selector:
                    true = has(fact, result)
                else:  # a constant may be undefined everywhere; values are compared as selectors compare them
                    true = len(set(map(repr, result))) == 1 if fact == "constant" else len(set(result)) == len(result)
                if not true:
                    found.append(f"{number} {node.kind} {fact}")
    return found


@pytest.mark.parametrize("start", range(0, 60, 20))
def test_facts_of_random_programs_are_true(start):
    count = 0
    for seed in range(start, start + 20):
        graph = program_to_graph(random_valid_program(seed, ("a", "b", "c"), 3), ("a", "b", "c"), 3)
        for form in (graph, graph_to_simplified(graph)):
            assert fact_faults(form, 3) == []
            count += sum(len(node.facts) for node in form.nodes)
    assert count > 100


def test_facts_of_library_programs_are_true():
    for entry in catalogue().values():
        vocab = entry.vocab[:3] if entry.name != "addition" else (0, 9, "+")
        assert fact_faults(program_to_graph(entry.make(), vocab, 4), 4) == [], entry.name


def test_a_false_fact_is_noticed():
    graph = program_to_graph(tokens + indices, (1, 2), 3)
    nodes = [replace(node, facts=frozenset({"injective"})) for node in graph.nodes]
    assert fact_faults(replace(graph, nodes=tuple(nodes)), 3)[0].endswith("tokens injective")


def test_sums_of_exact_numbers_are_those_of_the_operation():
    """Over one denominator or one by one: the same values, in order, integers where they are."""
    halves = listed([Ratio(1, 2), Ratio(1, 3), 0, True, -2])
    others = listed([Ratio(1, 6), 5, Ratio(-1, 3)])
    for operation in (Binary("+"), Binary("-"), Affine((Ratio(3, 2), -2), Ratio(1, 7))):
        found = of_operation(operation, (halves, others)).values
        assert found == listed([apply(operation, x) for x in arguments_of((halves, others))]).values
        assert [type(x) for x in found] == [type(x) for x in listed(list(found)).values]
    assert any(type(x) is int for x in of_operation(Binary("+"), (halves, others)).values)
    nothing = listed([], undefined=True)
    assert of_operation(Affine((1, -1), 0), (nothing, others)) == nothing
    floats = listed([0.1, 0.2])
    assert of_operation(Binary("+"), (floats, floats)).values == listed([0.2, 0.1 + 0.2, 0.4]).values


def test_numbers_with_too_many_digits_are_refused():
    large = listed([1 << 4000])
    assert of_operation(Affine((1 << 90,), 0), (large,)).values == (1 << 4090,)
    with pytest.raises(BadInput, match="more than 4,096 binary digits"):
        of_operation(Affine((1 << 100,), 0), (large,))
