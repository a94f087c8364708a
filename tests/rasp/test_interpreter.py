"""The reference meaning, rule by rule; every message names the expression."""

from __future__ import annotations

from fractions import Fraction
from itertools import count

import pytest

from certiformer.errors import BadInput
from certiformer.rasp import (
    Aggregate,
    Comparison,
    ConstantSelector,
    ConstantSOp,
    Full,
    Map,
    Select,
    SelectorWidth,
    SequenceMap,
    evaluate,
    indices,
    length,
    tokens,
)
from certiformer.rasp.interpreter import Interpreter, read_tokens

SO_FAR = Select(indices, indices, Comparison.LEQ)
ALL = Select(indices, indices, Comparison.TRUE)


def test_inputs():
    assert (
        tokens("ab") == ["a", "b"]
        and indices("ab") == [0, 1]
        and length("ab") == [2, 2]
        and Full("x")([7, 8]) == ["x", "x"]
    )
    assert tokens([]) == [] and Aggregate(ALL, tokens)([]) == []
    assert tokens([True, 2.0, (1, "b")]) == [True, 2, (1, "b")]


# --- undefined --------------------------------------------------------------------------------------------------------

HOLES = Map(lambda t: t if t else None, tokens)  # 0 becomes undefined


def test_undefined_stays_undefined():
    assert HOLES([0, 1]) == [None, 1]
    assert (
        (HOLES + 1)([0, 1]) == [None, 2] and (HOLES == 0)([0, 1]) == [None, False] and (~HOLES)([0, 1]) == [None, False]
    )
    assert SequenceMap(lambda x, y: "never None", HOLES, tokens)([0, 1]) == [None, "never None"]
    assert Map(lambda x: x is None, HOLES)([0, 1]) == [None, False]  # the function never sees None


def test_an_undefined_pair_is_not_selected_and_the_complement_selects_it():
    for predicate in (Comparison.TRUE, Comparison.NEQ, lambda k, q: True):
        assert Select(HOLES, tokens, predicate)([0, 1]) == [[False, True], [False, predicate is not Comparison.NEQ]]
        assert Select(tokens, HOLES, predicate)([0, 1])[0] == [False, False]
    assert (~Select(HOLES, HOLES, Comparison.TRUE))([0, 1]) == [[True, True], [True, False]]
    assert SelectorWidth(Select(tokens, HOLES, Comparison.TRUE))([0, 1]) == [0, 2]


def test_an_aggregate_that_selects_an_undefined_value_is_undefined():
    assert Aggregate(ALL, HOLES, default=9)([0, 1]) == [None, None]
    assert Aggregate(SO_FAR, HOLES, default=9)([1, 0]) == [1, None]


def test_the_default_stands_only_where_nothing_is_selected():
    nobody = Select(tokens, tokens, Comparison.FALSE)
    for default in (None, 0, -2, "x", True, 0.5, (1, 2)):
        assert Aggregate(nobody, tokens, default)([1, 2]) == [default, default]
        assert Aggregate(ALL, tokens, default)([1, 1]) == [1, 1]


def test_division_by_zero_is_undefined():
    assert Map(lambda x: 1 / x, tokens)([0, 2]) == [None, 0.5]
    assert (
        (1 / tokens)([0, 2]) == [None, 0.5]
        and (tokens % tokens)([0, 2]) == [None, 0]
        and (5 // tokens)([0, 2]) == [None, 2]
    )
    assert Select(tokens, tokens, lambda k, q: k / q == 1)([0, 2]) == [[False, False], [False, True]]


# --- aggregates -------------------------------------------------------------------------------------------------------


def test_means_are_exact_and_integers_stay_integers():
    mean = Aggregate(SO_FAR, tokens)
    assert evaluate(mean, [1, 2, 3, 4]) == [1, Fraction(3, 2), 2, Fraction(5, 2)]
    assert [type(x).__name__ for x in evaluate(mean, [1, 2, 3])] == ["int", "Ratio", "int"]
    assert mean([1, 2, 3, 5]) == [1, 1.5, 2, 2.75] and [type(x) for x in mean([1, 2])] == [int, float]
    tenths = Aggregate(ALL, Map(lambda i: 0.1, indices))
    assert evaluate(tenths, [0] * 10) == [0.1] * 10  # ten floats added up would give 0.09999999999999999


def test_a_sum_is_the_mean_times_the_width_at_every_length():
    total = Aggregate(ALL, tokens) * SelectorWidth(ALL)
    for n in range(1, 120):
        assert evaluate(total, [1] + [0] * (n - 1)) == [1] * n
    assert any(round(1 / n * n, 20) != 1 for n in range(1, 120))  # negative control: with floats it is not


def test_one_value_is_kept_as_it_is():
    assert evaluate(Aggregate(ALL, tokens), "aaa") == ["a"] * 3
    assert evaluate(Aggregate(ALL, tokens == 1), [1, 1]) == [True, True]
    assert [type(x) for x in evaluate(Aggregate(ALL, Map(lambda i: True if i else 1, indices)), "ab")] == [int, int]


def test_different_symbols_have_no_mean():
    with pytest.raises(BadInput, match=r"^mix \(at total.inner\) selects both 'a' and 'b'; only numbers have a mean"):
        (Aggregate(ALL, tokens).named("mix") + "c").named("total")("aab")


# --- users' functions -------------------------------------------------------------------------------------------------

counter = count()
FAULTS = [
    (Map(lambda x: {}[x], tokens), r"raises KeyError: 'a' on 'a'; return None where the result is undefined"),
    (Map(lambda x: x + 1, tokens), "raises TypeError"),
    (Map(lambda x: next(counter), tokens), r"gives \d+ and then \d+ on the same 'a'"),
    (Map(lambda x: [x], tokens), "returns what is not a value on 'a': a list is not a value"),
    (Map(lambda x: float("nan"), tokens), "returns what is not a value on 'a': nan is not a value"),
    (Map(lambda x: tokens, tokens), "returns what is not a value on 'a': a TokensType is not a value"),
    (Map(lambda x, y: x, tokens), "raises TypeError"),
    (
        SequenceMap(lambda x, y: 2 ** (10 ** (5 + y)), tokens, indices),
        "returns what is not a value on 'a', 0: a number of more than 4,096",
    ),
    (
        SelectorWidth(Select(tokens, tokens, lambda k, q: k < 3).named("f")),
        "f .at selector_width.selector. raises TypeError",
    ),
    (SelectorWidth(Select(tokens, indices, Comparison.LT)), "raises TypeError: '<' not supported"),
    (ConstantSOp([1, 2]), "is written for inputs of length 2, not 1"),
    (SelectorWidth(ConstantSelector([[True, False], [True, True]])), "is written for inputs of length 2, not 1"),
]


@pytest.mark.parametrize(("program", "sentence"), FAULTS, ids=[sentence[:40] for _, sentence in FAULTS])
def test_a_function_without_meaning_is_one_sentence(program, sentence):
    with pytest.raises(BadInput, match=sentence) as raised:
        program("a")
    assert "\n" not in str(raised.value)


def test_a_function_that_never_ends_is_one_sentence():
    def forever(x):
        return forever(x)

    with pytest.raises(BadInput, match="^loop does not end on 'a'$"):
        Map(forever, tokens).named("loop")("a")


def test_the_message_names_the_expression_by_name_and_place():
    bad = Map(lambda x: x + 1, tokens).named("next")
    with pytest.raises(BadInput, match=r"^next \(at answer.sop\) raises TypeError"):
        Aggregate(ALL, bad).named("answer")("a")


def test_written_values_without_a_checked_length():
    assert ConstantSOp([1, 2], check_length=False)("abc") == [1, 2, None] and ConstantSOp([1, 2], False)("a") == [1]
    assert ConstantSelector([[True, True], [True, True]], False)("abc") == [[1, 1, 0], [1, 1, 0], [0, 0, 0]]


# --- inputs outside what was stated -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("xs", "sentence"),
    [
        ("abz", "the token 'z' at position 2 is not in the vocabulary"),
        ("aaaa", "the input has 4 tokens, and the stated length is 3"),
        (["a", None], "the token at position 1 is None"),
        (3, "an input is a sequence of tokens, not a int"),
        ([["a"]], "a list is not a value"),
    ],
)
def test_an_input_that_does_not_fit_is_refused(xs, sentence):
    with pytest.raises(BadInput, match=sentence):
        evaluate(tokens, xs, vocab={"a", "b"}, length=3)
    assert read_tokens("ab", {"a", "b"}, 3) == ["a", "b"]


def test_true_is_not_the_token_one():
    with pytest.raises(BadInput, match="True at position 0 is not in the vocabulary"):
        evaluate(tokens, [True], vocab={0, 1})


def test_causal_evaluation_cuts_every_selector():
    program = SelectorWidth(ALL)
    assert evaluate(program, "abc") == [3, 3, 3] and evaluate(program, "abc", causal=True) == [1, 2, 3]
    with pytest.raises(BadInput, match="a program is an expression, not a int"):
        Interpreter(3)  # type: ignore[arg-type]


def test_a_predicate_is_any_callable():
    """Even one that cannot be hashed."""

    class Near:
        __hash__ = None  # type: ignore[assignment]

        def __call__(self, key, query):
            return abs(key - query) <= 1

    assert SelectorWidth(Select(indices, indices, Near()))("abc") == [2, 3, 2]
    assert SelectorWidth(SO_FAR)(["a"] * 300) == list(range(1, 301))
