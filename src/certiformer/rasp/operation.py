"""The functions behind Python's operators, as data: they can be compared, stored in a file and run by a checker.

`tokens + 1` keeps the word "+" and the constant 1 instead of a lambda. So the inference of values can reason about it
without a table, equal expressions are recognised as equal, and `program.json` needs no Python of the user. Division of
exact numbers is exact: `1 / 3` is a third, not a float.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from certiformer.errors import BadInput
from certiformer.rasp.value import Ratio, Value, from_json, identity, reduced, to_json


def _divide(x: Any, y: Any) -> Any:
    if isinstance(x, (int, Fraction)) and isinstance(y, (int, Fraction)):
        return Ratio(x) / Ratio(y)
    return x / y


BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divide,
    "//": operator.floordiv,
    "%": operator.mod,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
    "and": lambda x, y: x and y,
    "or": lambda x, y: x or y,
}
UNARY: dict[str, Callable[[Any], Any]] = {"not": operator.not_, "negative": operator.neg}
TRUTHS = frozenset({"<", "<=", "==", "!=", ">", ">=", "not"})


class Operation:
    """A function of one or two values that is known by its data."""

    arguments: int

    def __call__(self, *values: Value) -> Any:
        raise NotImplementedError


@dataclass(frozen=True)
class Unary(Operation):
    """`not x` or `-x`."""

    symbol: str
    arguments = 1

    def __call__(self, *values: Value) -> Any:
        return UNARY[self.symbol](*values)


@dataclass(frozen=True, eq=False)
class WithConstant(Operation):
    """`x symbol constant`, or `constant symbol x` when `constant_first`."""

    symbol: str
    constant: Value
    constant_first: bool = False
    arguments = 1

    def __call__(self, *values: Value) -> Any:
        (x,) = values
        return BINARY[self.symbol](self.constant, x) if self.constant_first else BINARY[self.symbol](x, self.constant)

    # `True` and `1` are different constants, so the generated equality would merge too much.
    def _key(self) -> tuple:
        return (self.symbol, identity(self.constant), self.constant_first)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WithConstant) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())


@dataclass(frozen=True)
class Binary(Operation):
    """`x symbol y`."""

    symbol: str
    arguments = 2

    def __call__(self, *values: Value) -> Any:
        x, y = values
        return BINARY[self.symbol](x, y)


@dataclass(frozen=True, eq=False)
class Linear(Operation):
    """`first x + second y`; exact when the factors and the values are."""

    first: Value
    second: Value
    arguments = 2

    def __call__(self, *values: Value) -> Any:
        x, y = values
        return self.first * x + self.second * y

    # A factor 0.5 rounds where a factor 1/2 does not, though the two are equal.
    def _key(self) -> tuple:
        return (identity(self.first), identity(self.second))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Linear) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())


@dataclass(frozen=True)
class Affine(Operation):
    """`factors[0] x + factors[1] y + offset` for one or two exact numbers; chains of + - * are gathered into one.

    Factors and offset are exact, so equal ones compute the same: arithmetic takes True for 1.
    """

    factors: tuple[Value, ...]
    offset: Value

    @property
    def arguments(self) -> int:  # type: ignore[override]
        return len(self.factors)

    def __call__(self, *values: Value) -> Any:
        return sum((f * x for f, x in zip(self.factors, values, strict=True)), self.offset)


def as_affine(operation: Operation) -> Affine | None:
    """The same function of exact numbers as `Affine`, when it is one and its constants are exact."""
    match operation:
        case Affine():
            return operation
        case Unary("negative"):
            found = Affine((-1,), 0)
        case Binary("+"):
            found = Affine((1, 1), 0)
        case Binary("-"):
            found = Affine((1, -1), 0)
        case Linear(first, second):
            found = Affine((first, second), 0)
        case WithConstant(symbol="+", constant=c):
            found = Affine((1,), c)
        case WithConstant(symbol="-", constant=c, constant_first=first):
            found = Affine((-1,), c) if first else Affine((1,), -c) if is_exact(c) else None
        case WithConstant(symbol="*", constant=c):
            found = Affine((c,), 0)
        case WithConstant(symbol="/", constant=c, constant_first=False) if is_exact(c) and c != 0:
            found = Affine((reduced(1 / Fraction(c)),), 0)
        case _:
            return None
    return found if found is not None and all(map(is_exact, (*found.factors, found.offset))) else None


def is_exact(value: Value) -> bool:
    """Whether a value is a number that arithmetic does not round."""
    return isinstance(value, (int, Fraction))


def operation_to_json(operation: Operation) -> dict[str, Any]:
    """The operation as JSON data."""
    match operation:
        case Unary(symbol):
            return {"unary": symbol}
        case WithConstant():
            data: dict[str, Any] = {"constant": to_json(operation.constant), "first": operation.constant_first}
            return {"with": operation.symbol, **data}
        case Binary(symbol):
            return {"binary": symbol}
        case Linear(first, second):
            return {"linear": [to_json(first), to_json(second)]}
        case Affine(factors, offset):
            return {"affine": [*map(to_json, factors)], "offset": to_json(offset)}
    raise TypeError(type(operation).__name__)


def operation_from_json(data: Any) -> Operation:
    """The operation of `operation_to_json`; anything else is refused."""
    operation: Operation | None = None
    match data:
        case {"unary": str(symbol)} if symbol in UNARY:
            operation = Unary(symbol)
        case {"with": str(symbol), "constant": constant, "first": bool(first)} if symbol in BINARY:
            operation = WithConstant(symbol, from_json(constant), first)
        case {"binary": str(symbol)} if symbol in BINARY:
            operation = Binary(symbol)
        case {"linear": [first, second]}:
            operation = Linear(from_json(first), from_json(second))
        case {"affine": [*factors], "offset": offset} if 1 <= len(factors) <= 2:
            numbers = [from_json(x) for x in (*factors, offset)]
            if all(is_exact(x) and type(x) is not bool for x in numbers):
                operation = Affine(tuple(numbers[:-1]), numbers[-1])
    if operation is None or operation_to_json(operation) != data:
        raise BadInput(f"{str(data)[:80]} is not an operation of a program file")
    return operation
