"""Values: canonical forms, identity, exact fractions beside floats, and their strict spelling in files."""

from __future__ import annotations

from fractions import Fraction

import pytest

from certiformer.errors import BadInput
from certiformer.rasp.operation import (
    Affine,
    Binary,
    Linear,
    Unary,
    WithConstant,
    as_affine,
    operation_from_json,
    operation_to_json,
)
from certiformer.rasp.value import MAX_BITS, MAX_TEXT, Ratio, canonical, from_json, identity, in_order, plain, to_json


class Scalar:
    """What an array library returns for one number."""

    dtype, ndim = "int64", 0

    def item(self) -> int:
        return 7


def test_canonical_forms():
    given = [2.0, Fraction(6, 3), Fraction(1, 2), True, 0.5, "a", (1.0, (True, "b")), Scalar(), None, -0.0]
    wanted = [2, 2, Ratio(1, 2), True, 0.5, "a", (1, (True, "b")), 7, None, 0]
    assert [identity(canonical(x)) for x in given] == [identity(x) for x in wanted]


@pytest.mark.parametrize(
    "bad", [float("inf"), float("nan"), [1], {1}, {}, b"a", 1j, object(), (1, None), 2 ** (MAX_BITS + 1), "a" * (MAX_TEXT + 1), (0,) * (MAX_TEXT + 1)], ids=lambda x: type(x).__name__
)  # fmt: skip
def test_what_is_no_value(bad):
    with pytest.raises(BadInput, match="not a value"):
        canonical(bad)


def test_tuples_in_tuples_end():
    nested: tuple = ("x",)
    for _ in range(10_000):
        nested = (nested,)
    with pytest.raises(BadInput, match="nested more than 20 deep"):
        canonical(nested)
    assert canonical((((1.0,),),)) == (((1,),),)


def test_identity_tells_apart_what_python_calls_equal():
    same = [True, 1, (True,), (1,), 0.5, Ratio(1, 2)]
    assert len({identity(x) for x in same}) == 6
    assert True == 1 and hash(0.5) == hash(Ratio(1, 2))


def test_a_ratio_compares_with_floats_as_floats_do_and_computes_exactly():
    third = Ratio(1, 3)
    assert third == 1 / 3 and third <= 1 / 3 and third >= 1 / 3 and not third < 1 / 3 and not third > 1 / 3
    assert 1 - third == 2 / 3 and third * 3 == 1 and isinstance(third + third, Ratio) and isinstance(-third, Ratio)
    assert Fraction(1, 3) != 1 / 3  # negative control: the plain fraction does not
    assert plain((third, "a")) == (1 / 3, "a")


def test_order_is_by_size_then_text_then_tuples():
    assert in_order(["b", 2, (1, 2), "a", -1, True, 1, 0.5, 2]) == (-1, 0.5, True, 1, 2, "a", "b", (1, 2))
    assert [type(x) for x in in_order([1, True])] == [bool, int] == [type(x) for x in in_order([True, 1])]


@pytest.mark.parametrize(
    "value", [None, True, 0, -7, "a", "", 0.1, Ratio(-5, 3), (1, (True, "x"), Ratio(1, 2)), 2**200]
)
def test_json_round_trip(value):
    assert identity(from_json(to_json(value))) == identity(value)


@pytest.mark.parametrize(
    "bad", [0.5, [1], {}, {"ratio": "2/4"}, {"ratio": "2/1"}, {"ratio": "1/0"}, {"ratio": 1}, {"float": "0x1p0"}, {"float": "inf"}, {"float": "0.1"},
            {"tuple": 3}, {"tuple": [None]}, {"ratio": "1/2", "float": "0x1p-1"}, {"other": 1}, 2 ** (MAX_BITS + 1), {"tuple": [[1]]}], ids=str
)  # fmt: skip
def test_other_spellings_are_refused(bad):
    with pytest.raises(BadInput):
        from_json(bad)


OPERATIONS = [
    Unary("not"), Unary("negative"), Binary("+"), Binary("and"), WithConstant("-", 2, True), WithConstant("==", "a"), WithConstant("<", True),
    Linear(1, Ratio(-1, 2)), Affine((1, -1), -1), Affine((2,), Ratio(1, 3)),
]  # fmt: skip


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
def test_operations_survive_their_file(operation):
    assert operation_from_json(operation_to_json(operation)) == operation


@pytest.mark.parametrize(
    "bad", [{}, {"unary": "exec"}, {"binary": "**"}, {"binary": "+", "more": 1}, {"with": "+", "constant": 1}, {"linear": [1]}, {"affine": [], "offset": 0},
            {"affine": [True], "offset": 0}, {"affine": ["a"], "offset": 0}, {"affine": [1, 1, 1], "offset": 0}, "+", {"with": "+", "constant": 1, "first": 0}], ids=str
)  # fmt: skip
def test_other_operations_are_refused(bad):
    with pytest.raises(BadInput):
        operation_from_json(bad)


def test_constants_that_python_calls_equal_are_different_operations():
    assert (
        WithConstant("==", True) != WithConstant("==", 1) and len({WithConstant("+", True), WithConstant("+", 1)}) == 2
    )


@pytest.mark.parametrize(
    "operation",
    [
        Unary("negative"),
        WithConstant("+", 2),
        WithConstant("-", 2),
        WithConstant("-", 2, True),
        WithConstant("*", 3),
        WithConstant("/", 4),
    ],
    ids=str,
)
def test_the_affine_form_is_the_same_function(operation):
    affine = as_affine(operation)
    assert affine is not None
    for x in (-3, 0, 5, Ratio(1, 3), True):
        assert identity(canonical(affine(x))) == identity(canonical(operation(x)))


def test_what_is_not_affine():
    others = [
        WithConstant("/", 0),
        WithConstant("/", 2, True),
        WithConstant("%", 2),
        WithConstant("+", 0.5),
        WithConstant("+", "a"),
        Binary("*"),
        Unary("not"),
        Linear(0.5, 1),
    ]
    assert [as_affine(x) for x in others] == [None] * len(others)
