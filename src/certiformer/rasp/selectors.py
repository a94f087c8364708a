"""Selectors: which positions (keys) each position (query) attends to, and what is read through them."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

from certiformer.errors import BadInput
from certiformer.rasp.expression import RASPExpr, require, require_function
from certiformer.rasp.operation import BINARY
from certiformer.rasp.sequences import SOp
from certiformer.rasp.value import Value, canonical

Predicate = Callable[[Value, Value], Any]


class Comparison(enum.Enum):
    """A predicate of a key and a query, known by its word; `LT` means key < query.

    >>> Comparison.LT(1, 2), Comparison.TRUE(1, 2)
    (True, True)
    """

    EQ = "=="
    LT = "<"
    LEQ = "<="
    GT = ">"
    GEQ = ">="
    NEQ = "!="
    TRUE = "True"
    FALSE = "False"

    def __call__(self, key: Value, query: Value) -> bool:
        if self in (Comparison.TRUE, Comparison.FALSE):
            return self is Comparison.TRUE
        return BINARY[self.value](key, query)


class Selector(RASPExpr):
    """For every position the set of positions it attends to; called on an input, rows are queries, columns keys."""

    default_name = "selector"

    def __and__(self, other: Selector) -> Selector:
        return SelectorAnd(self, _selector(other, "&"))

    def __rand__(self, other: Selector) -> Selector:
        return SelectorAnd(_selector(other, "&"), self)

    def __or__(self, other: Selector) -> Selector:
        return SelectorOr(self, _selector(other, "|"))

    def __ror__(self, other: Selector) -> Selector:
        return SelectorOr(_selector(other, "|"), self)

    def __invert__(self) -> Selector:
        return SelectorNot(self)


def _selector(other: Any, symbol: str) -> Selector:
    return require(Selector, other, f"the other side of `{symbol}` with a selector")


class Select(Selector):
    """Attends where `predicate(key, query)` holds; a pair with an undefined key or query is not selected."""

    default_name = "select"
    fields = ("keys", "queries")
    keys: SOp
    queries: SOp
    predicate: Predicate

    def __init__(self, keys: SOp, queries: SOp, predicate: Predicate) -> None:
        super().__init__(
            keys=require(SOp, keys, "keys of Select"),
            queries=require(SOp, queries, "queries of Select"),
            predicate=require_function(predicate, "predicate of Select"),
        )


class ConstantSelector(Selector):
    """A pattern written down: row = query, column = key.

    With `check_length` only for inputs of exactly that length; without it, nothing outside the pattern is selected.
    """

    default_name = "constant_selector"
    value: tuple[tuple[bool, ...], ...]
    check_length: bool

    def __init__(self, value: Sequence[Sequence[bool]], check_length: bool = True) -> None:
        rows = tuple(tuple(bool(x) for x in row) for row in value)
        if any(len(row) != len(rows) for row in rows):
            raise BadInput("the pattern of a ConstantSelector has as many columns as rows")
        super().__init__(value=rows, check_length=bool(check_length))


class _Pair(Selector):
    fields = ("fst", "snd")
    fst: Selector
    snd: Selector

    def __init__(self, fst: Selector, snd: Selector) -> None:
        where = type(self).__name__
        super().__init__(fst=require(Selector, fst, f"fst of {where}"), snd=require(Selector, snd, f"snd of {where}"))


class SelectorAnd(_Pair):
    """Attends where both do."""

    default_name = "selector_and"


class SelectorOr(_Pair):
    """Attends where at least one does."""

    default_name = "selector_or"


class SelectorNot(Selector):
    """Attends exactly where `inner` does not, pairs with undefined keys or queries included."""

    default_name = "selector_not"
    fields = ("inner",)
    inner: Selector

    def __init__(self, inner: Selector) -> None:
        super().__init__(inner=require(Selector, inner, "inner of SelectorNot"))


def selector_and(fst: Selector, snd: Selector, simplify: bool = True) -> Selector:
    """`fst & snd`; `simplify` is accepted for programs written for Tracr."""
    del simplify
    return SelectorAnd(fst, snd)


def selector_or(fst: Selector, snd: Selector, simplify: bool = True) -> Selector:
    """`fst | snd`; `simplify` is accepted for programs written for Tracr."""
    del simplify
    return SelectorOr(fst, snd)


def selector_not(inner: Selector, simplify: bool = True) -> Selector:
    """`~inner`; `simplify` is accepted for programs written for Tracr."""
    del simplify
    return SelectorNot(inner)


class SelectorWidth(SOp):
    """How many positions each position attends to."""

    default_name = "selector_width"
    fields = ("selector",)
    selector: Selector

    def __init__(self, selector: Selector) -> None:
        super().__init__(selector=require(Selector, selector, "selector of SelectorWidth"))


class Aggregate(SOp):
    """The selected value if all selected values are the same one, otherwise the mean of the selected numbers.

    `default` stands where nothing is selected; where an undefined value is selected the result is undefined.
    """

    default_name = "aggregate"
    fields = ("selector", "sop")
    selector: Selector
    sop: SOp
    default: Value

    def __init__(self, selector: Selector, sop: SOp, default: Value = None) -> None:
        super().__init__(
            selector=require(Selector, selector, "selector of Aggregate"),
            sop=require(SOp, sop, "sop of Aggregate"),
            default=canonical(default),
        )
