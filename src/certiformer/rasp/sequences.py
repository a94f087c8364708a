"""Expressions with a value at every position: the inputs, constants, maps, and Python's operators on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from certiformer.errors import BadInput
from certiformer.rasp.expression import RASPExpr, require, require_function
from certiformer.rasp.operation import Binary, Linear, Unary, WithConstant
from certiformer.rasp.value import Value, canonical


class SOp(RASPExpr):
    """A sequence operation: from an input sequence to a value at every position.

    >>> (tokens * 2 - indices)([5, 5, 5])
    [10, 9, 8]
    """

    default_name = "sop"

    def __bool__(self) -> NoReturn:
        raise BadInput("an expression has no truth value of its own; write & | ~ instead of `and`, `or`, `not`")

    __hash__ = object.__hash__  # expressions are compared by identity; `==` builds an expression

    def _with(self, symbol: str, other: Any, other_first: bool = False) -> SOp:
        if isinstance(other, SOp):
            return SequenceMap(Binary(symbol), *((other, self) if other_first else (self, other)))
        if isinstance(other, RASPExpr):
            raise BadInput(f"`{symbol}` joins two sequences or two selectors, not one of each")
        return Map(WithConstant(symbol, _constant(other, symbol), other_first), self)

    def __lt__(self, other: Any) -> SOp:
        return self._with("<", other)

    def __le__(self, other: Any) -> SOp:
        return self._with("<=", other)

    def __eq__(self, other: Any) -> SOp:  # type: ignore[override]
        return self._with("==", other)

    def __ne__(self, other: Any) -> SOp:  # type: ignore[override]
        return self._with("!=", other)

    def __gt__(self, other: Any) -> SOp:
        return self._with(">", other)

    def __ge__(self, other: Any) -> SOp:
        return self._with(">=", other)

    def __add__(self, other: Any) -> SOp:
        return self._with("+", other)

    def __radd__(self, other: Any) -> SOp:
        return self._with("+", other, True)

    def __sub__(self, other: Any) -> SOp:
        return self._with("-", other)

    def __rsub__(self, other: Any) -> SOp:
        return self._with("-", other, True)

    def __mul__(self, other: Any) -> SOp:
        return self._with("*", other)

    def __rmul__(self, other: Any) -> SOp:
        return self._with("*", other, True)

    def __truediv__(self, other: Any) -> SOp:
        return self._with("/", other)

    def __rtruediv__(self, other: Any) -> SOp:
        return self._with("/", other, True)

    def __floordiv__(self, other: Any) -> SOp:
        return self._with("//", other)

    def __rfloordiv__(self, other: Any) -> SOp:
        return self._with("//", other, True)

    def __mod__(self, other: Any) -> SOp:
        return self._with("%", other)

    def __rmod__(self, other: Any) -> SOp:
        return self._with("%", other, True)

    def __and__(self, other: Any) -> SOp:
        return self._with("and", other)

    def __rand__(self, other: Any) -> SOp:
        return self._with("and", other, True)

    def __or__(self, other: Any) -> SOp:
        return self._with("or", other)

    def __ror__(self, other: Any) -> SOp:
        return self._with("or", other, True)

    def __invert__(self) -> SOp:
        return Map(Unary("not"), self)

    def __neg__(self) -> SOp:
        return Map(Unary("negative"), self)


def _constant(value: Any, symbol: str) -> Value:
    try:
        return canonical(value)
    except BadInput as error:
        raise BadInput(f"`{symbol}` with this constant is not possible: {error}") from None


class TokensType(SOp):
    """The input itself."""

    default_name = "tokens"
    label = "tokens"  # type: ignore[assignment]


class IndicesType(SOp):
    """The position, counted from 0."""

    default_name = "indices"
    label = "indices"  # type: ignore[assignment]


class LengthType(SOp):
    """The number of tokens, the same at every position."""

    default_name = "length"
    label = "length"  # type: ignore[assignment]


tokens = TokensType()
indices = IndicesType()
length = LengthType()


class Map(SOp):
    """A function of one value, at every position. Undefined stays undefined: the function never sees None."""

    default_name = "map"
    fields = ("inner",)
    f: Callable[[Value], Any]
    inner: SOp

    def __init__(self, f: Callable[[Value], Any], inner: SOp, simplify: bool = True) -> None:
        """`simplify` is accepted for programs written for Tracr; maps are fused by the compiler, not here."""
        del simplify
        super().__init__(f=require_function(f, "the first argument of Map"), inner=require(SOp, inner, "inner of Map"))


class SequenceMap(SOp):
    """A function of two values at the same position."""

    default_name = "sequence_map"
    fields = ("fst", "snd")
    f: Callable[[Value, Value], Any]
    fst: SOp
    snd: SOp

    def __init__(self, f: Callable[[Value, Value], Any], fst: SOp, snd: SOp) -> None:
        super().__init__(
            f=require_function(f, "the first argument of SequenceMap"),
            fst=require(SOp, fst, "fst of SequenceMap"),
            snd=require(SOp, snd, "snd of SequenceMap"),
        )


class LinearSequenceMap(SequenceMap):
    """`fst_fac * fst + snd_fac * snd`."""

    default_name = "linear_sequence_map"
    fst_fac: Value
    snd_fac: Value

    def __init__(self, fst: SOp, snd: SOp, fst_fac: float, snd_fac: float) -> None:
        first, second = _constant(fst_fac, "*"), _constant(snd_fac, "*")
        super().__init__(Linear(first, second), fst, snd)
        object.__setattr__(self, "fst_fac", first)
        object.__setattr__(self, "snd_fac", second)


class Full(SOp):
    """The same value at every position."""

    default_name = "full"
    fill: Value

    def __init__(self, fill: Value) -> None:
        super().__init__(fill=canonical(fill))


class ConstantSOp(SOp):
    """Values written down one by one; with `check_length` only for inputs of exactly that length.

    Without it, positions beyond the list are undefined.
    """

    default_name = "constant_sop"
    value: tuple[Value, ...]
    check_length: bool

    def __init__(self, value: Sequence[Value], check_length: bool = True) -> None:
        super().__init__(value=tuple(canonical(x) for x in value), check_length=bool(check_length))


def sop_not(sop: SOp) -> SOp:
    """`~sop`."""
    return ~require(SOp, sop, "the argument of sop_not")
