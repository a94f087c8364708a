"""Validation: every reason at once, with the expression and a way out; and no reason against what has a meaning."""

from __future__ import annotations

from itertools import count

import pytest

from certiformer import rasp
from certiformer.errors import BadInput
from certiformer.rasp import Aggregate, Comparison, Map, Select, SelectorWidth, SequenceMap, indices, length, tokens
from certiformer.rasp.causality import masked
from certiformer.rasp.graph_run import run_graph
from certiformer.rasp.graph_to_simplified import graph_to_simplified
from certiformer.rasp.inputs import all_inputs
from certiformer.rasp.library import catalogue
from certiformer.rasp.program_to_graph import program_to_graph
from certiformer.rasp.validate import validate

ALL = Select(indices, indices, Comparison.TRUE)
SO_FAR = Select(indices, indices, Comparison.LEQ)


def same_as_program(program: rasp.SOp, vocab: set, n: int) -> bool:
    """Whether the simplified graph gives the program's answers on all inputs."""
    graph = graph_to_simplified(program_to_graph(program, vocab, n))
    return all(run_graph(graph, xs) == rasp.evaluate(program, xs) for xs in all_inputs(tuple(vocab), n))


# --- the standing issues of Tracr -------------------------------------------------------------------------------------


def test_issue_4_composite_selectors_of_different_keys():
    same, earlier = Select(tokens, tokens, Comparison.EQ), Select(indices, indices, Comparison.LT)
    for selector in (
        rasp.SelectorAnd(same, earlier),
        rasp.SelectorOr(same, earlier),
        rasp.SelectorNot(rasp.SelectorAnd(same, earlier)),
    ):
        program = SelectorWidth(selector)
        assert validate(program, {"a", "b"}, 4) == [] and same_as_program(program, {"a", "b"}, 4)


def test_issue_6_sums():
    program = Aggregate(ALL, tokens) * length
    graph = graph_to_simplified(program_to_graph(program, {1, 2, 3}, 20))
    assert graph.nodes[graph.output].values.values == tuple(range(1, 61))
    assert run_graph(graph, [3] * 19 + [1]) == [58] * 20


def test_issue_7_length_beyond_ten_tokens():
    for n in (10, 11, 20, 50, 100):
        graph = graph_to_simplified(program_to_graph(SelectorWidth(ALL), {"a"}, n))
        assert run_graph(graph, ["a"] * n) == [n] * n


def test_issue_11_prefix_sums():
    program = Aggregate(SO_FAR, tokens) * (indices + 1)
    assert validate(program, {0, 1, 2}, 5) == [] and same_as_program(program, {0, 1, 2}, 4)


def test_issue_19_a_program_that_looks_right_is_not_causal():
    reverse = catalogue()["reverse"].make()
    reasons = validate(reverse, {1, 2, 3}, 4, causal=True)
    assert {reason.expression.partition(" ")[0] for reason in reasons} == {"mirror", "everything"}
    assert all(
        "no causal program has these answers: position 0 must be 1 on 1 and 2 on 1, 2" in r.instead for r in reasons
    )
    assert "on the input 1, 1 position 0 selects position 1" in reasons[0].problem


def test_issue_24_negative_numbers():
    program = rasp.numerical(Map(lambda x: x - 1, tokens))
    graph = graph_to_simplified(program_to_graph(program, {0, 1, 2}, 3))
    assert run_graph(graph, [0, 1, 2]) == [-1, 0, 1] and graph.nodes[graph.output].values.values == (-1, 0, 1)


def test_issue_25_undefined_values_stay_undefined_in_the_next_aggregate():
    first = Aggregate(Select(indices, indices - 1, Comparison.EQ), tokens)  # undefined at position 0
    program = Aggregate(ALL, first, default=0)
    assert program([5, 7]) == [None, None] and same_as_program(program, {5, 7}, 4)
    assert program_to_graph(program, {5, 7}, 4).nodes[-1].values.undefined


# --- reasons ----------------------------------------------------------------------------------------------------------

ticks = count()
MANY = Aggregate(SO_FAR, indices * 17)  # at 200 tokens more means than can be listed
REASONS = [
    (Map(lambda x: {}[x], tokens), "raises KeyError: 'a' on 'a' (and on 1 more)", "return None"),
    (Map(lambda x: next(ticks), tokens), "on the same 'a'", "use a function of its arguments alone"),
    (Map(lambda x: [x], tokens), "a list is not a value", "values are numbers, strings"),
    (tokens + 1, "raises TypeError", "a Map that returns None elsewhere"),
    (rasp.numerical(tokens), "is declared numerical and has the values {a, b}", "use categorical"),
    (Aggregate(ALL, tokens), "selects both 'a' and 'b' on the input 'a', 'b', and they have no mean", "an occurrence number"),
    (SelectorWidth(Select(tokens, indices, Comparison.LT)), "raises TypeError", "compare numbers with numbers"),
    (SelectorWidth(Select(tokens, tokens, lambda k, q: k < 1)), "has a predicate that raises TypeError", "answer for every key"),
    (rasp.ConstantSOp([1, 2]), "is written for inputs of length 2, and inputs of 1 to 200 are asked for", "check_length=False"),
    (SelectorWidth(rasp.ConstantSelector([[True]])), "is written for inputs of length 1", "check_length=False"),
    (rasp.categorical(MANY), "is declared categorical and has too many values to list", "use numerical"),
    (Map(lambda x: x, MANY * indices), "is a map written in Python on the numbers [0, ", "write it with + - *"),
    (SequenceMap(lambda x, y: (x, y), indices * length, indices * length + 1), "combinations of values", "fewer values first"),
    (MANY % 7, "no bounds are known for", "exact numbers"),
]  # fmt: skip


@pytest.mark.parametrize(("program", "problem", "instead"), REASONS, ids=[r[1][:30] for r in REASONS])
def test_a_reason_names_the_expression_the_problem_and_the_way_out(program, problem, instead):
    reasons = validate(program.named("culprit"), {"a", "b"}, 200)
    assert len(reasons) == 1, [str(r) for r in reasons]
    assert problem in reasons[0].problem and instead in reasons[0].instead
    assert "culprit" in reasons[0].expression and "\n" not in str(reasons[0])
    with pytest.raises(BadInput, match="instead: "):
        program_to_graph(program, {"a", "b"}, 200)


def test_every_reason_comes_at_once_and_what_follows_is_not_blamed():
    one, two = Map(lambda x: {}[x], tokens).named("one"), (tokens + 1).named("two")
    after = SequenceMap(lambda x, y: (x, y), one, two).named("after")
    other = Aggregate(ALL, tokens).named("other")
    reasons = validate(SequenceMap(lambda x, y: x, after, other).named("top"), {"a", "b"}, 3)
    assert [r.expression for r in reasons] == ["one (at top.fst.fst)", "two (at top.fst.snd)", "other (at top.snd)"]


def test_what_cannot_be_proved_is_tried_on_all_inputs_when_they_are_few():
    squares = Map(lambda i: i * i % 7, indices)  # different at 0, 1, 2, 3, but 3 and 4 collide
    program = Aggregate(Select(squares, squares, lambda k, q: k == q), tokens)
    assert validate(program, {"a", "b"}, 4) == []
    (reason,) = validate(program, {"a", "b"}, 5)
    assert "selects both 'a' and 'b' on the input" in reason.problem


def test_what_remains_open_is_a_reason_that_says_so():
    odd = Select(Map(lambda i: i % 90, indices), indices, lambda k, q: k == q)
    (reason,) = validate(Aggregate(odd, tokens), {"a", "b"}, 100)
    assert "not proved, and no example found on the 2,000 shortest inputs" in reason.problem


def test_other_misuses_are_one_sentence():
    for vocab, n, sentence in [
        (set(), 3, "at least one token"), ("ab", 3, "set or list"), ({"a"}, 0, "from 1 to"), ({"a"}, 2.0, "whole number"), ({"a"}, True, "whole number"),
        ([1, True], 3, "lists a token twice"), (["a", "a"], 3, "twice"), ([None], 3, "None is not a token"), ([[1]], 3, "a list is not a value"),
    ]:  # fmt: skip
        with pytest.raises(BadInput, match=sentence):
            validate(tokens, vocab, n)
    with pytest.raises(BadInput, match="a program is a sequence, not a Select"):
        validate(ALL, {"a"}, 3)  # type: ignore[arg-type]


def test_one_symbol_and_one_position():
    for entry in catalogue().values():
        if entry.name not in ("addition", "mean_after_delimiter"):
            assert validate(entry.make(), entry.vocab[:1], 1) == []


# --- causality --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "shift",
        "frac_prevs",
        "induction",
        "prefix_modular_sum",
        "window_sum",
        "window_max",
        "is_first",
        "detect_pattern",
        "associative_recall",
        "pair_balance",
    ],
)
def test_causal_programs_are_accepted_and_do_not_change_when_cut(name):
    entry = catalogue()[name]
    program = entry.make()
    assert validate(program, entry.vocab, 4, causal=True) == []
    for xs in all_inputs(entry.vocab, 4):
        assert (
            rasp.evaluate(program, xs) == rasp.evaluate(program, xs, causal=True) == rasp.evaluate(masked(program), xs)
        )


@pytest.mark.parametrize("name", ["hist", "sort", "length", "palindrome", "majority", "is_last", "max", "dyck1"])
def test_programs_that_need_later_tokens_are_refused(name):
    entry = catalogue()[name]
    reasons = validate(entry.make(), entry.vocab, 4, causal=True)
    assert reasons and all("no causal program" in r.instead for r in reasons)


def test_a_program_that_only_seems_to_look_right_can_be_rewritten():
    mine = Select(tokens, tokens, Comparison.EQ)  # looks right, but all it finds there is the token itself
    program = Aggregate(mine, tokens).named("again")
    (reason,) = validate(program, {"a", "b"}, 4, causal=True)
    assert "looks right" in reason.problem and "which keeps the answers (on all inputs)" in reason.instead
    assert validate(masked(program), {"a", "b"}, 4, causal=True) == []
    assert all(masked(program)(xs) == program(xs) for xs in all_inputs("ab", 4))


def test_the_length_is_known_only_at_the_end():
    (reason,) = validate(length + 1, {"a"}, 3, causal=True)
    assert reason.expression == "length (at map.inner)" and "only after the last token" in reason.problem


def test_a_broken_program_is_not_run_for_its_causality():
    program = Aggregate(ALL, Map(lambda x: {}[x], tokens))
    problems = [r.problem for r in validate(program, {"a"}, 3, causal=True)]
    assert len(problems) == 2 and "may look right" in problems[1]
