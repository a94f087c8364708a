"""`circuit.json`: what each residual coordinate, head and hidden unit of a compiled transformer computes.

It is ground truth for people and a *witness* for the checker, which believes none of it: every statement is verified
from the weights and from `program.json`. The words:

* A *cell* is a residual coordinate over some span of sub-layers. At every data position it holds `feature(v)`, v the value
  of one node of the program at that position. Features are exact rationals, one for each listed value and one for
  undefined; a node with too many values to list is held as the number itself.
* *Derived nodes* continue the numbering of the program's nodes: selectors, widths and maps that the program does not
  have but the transformer computes. An *identity* says that a node of the program equals a sum of others.
* A head *reads* (the mean of a value over the selected positions, the default where there is none) or measures a
  *width* (1 / (1 + number of selected positions), by counting the beginning-of-sequence token as selected).
* Units form a *table* (one cell from others) or *clear* a cell that is no longer needed.

Standard library only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from math import gcd
from typing import Any

from certiformer.errors import BadInput

FORMAT = "certiformer-circuit-1"
EMBEDDING, ATTENTION, FFN = "embedding", "attention", "ffn"

Rational = int | str  # 3, or "1/3"


@dataclass(frozen=True)
class Cell:
    """A coordinate that holds `feature(value of node)` from the sub-layer `written` on, until `cleared` (or the end).

    `feature`: one rational for each listed value of the node, in its order; None: the value itself, a number.
    `undefined`: the rational held where the node is undefined; None when it never is.
    `at_start`: what the beginning-of-sequence token holds there.
    `or_more`: where the node is undefined, the cell holds `undefined` or any larger number (a mean with undefined parts).
    """

    name: str
    node: int
    coordinate: int
    written: tuple[int, str]
    cleared: tuple[int, str] | None
    feature: tuple[Rational, ...] | None
    undefined: Rational | None
    at_start: Rational
    or_more: bool = False


@dataclass(frozen=True)
class HeadRole:
    """Head `head` of group `group` in block `block`: `kind` is `read` or `width`; cells are numbers in `cells`."""

    block: int
    group: int
    head: int
    kind: str
    selector: int
    node: int  # what it computes: an aggregate for `read`, a width for `width`
    queries: tuple[int, ...]
    keys: tuple[int, ...]
    values: tuple[int, ...]
    writes: tuple[int, ...]


@dataclass(frozen=True)
class UnitRole:
    """Hidden units `first` .. `first + count - 1` of block `block`: `kind` is `table` or `clear`.

    All units of a table see the same linear form of the cells `reads`, and write all of `cells`.
    """

    block: int
    first: int
    count: int
    kind: str
    cells: tuple[int, ...]
    reads: tuple[int, ...]


@dataclass(frozen=True)
class Identity:
    """At every position of every input: node = offset + sum of factor * other node."""

    node: int
    terms: tuple[tuple[Rational, int], ...]
    offset: Rational


@dataclass(frozen=True)
class Output:
    """How the read-out is decoded: `logits` (the largest names the value; undefined comes last) or `number`.

    The read-out sees the feature of the output node as a linear form x of the cells `reads`. Logit a is 2 f x - f^2
    with f the feature of value a: the largest belongs to the nearest feature. `number` is x itself, to be rounded to
    the nearest.
    """

    kind: str
    reads: tuple[int, ...]
    feature: tuple[Rational, ...] | None
    undefined: Rational | None


@dataclass(frozen=True)
class Circuit:
    """Everything `circuit.json` says; `extended` is the text of the program with the derived nodes after its own."""

    extended: str
    causal: bool
    cells: tuple[Cell, ...]
    heads: tuple[HeadRole, ...]
    units: tuple[UnitRole, ...]
    identities: tuple[Identity, ...]
    output: Output
    lines: dict[str, str] = field(default_factory=dict)  # node number -> where the source says it, for people

    def to_text(self) -> str:
        """The canonical content of the file."""
        data = {"format": FORMAT, **asdict(self)}
        return json.dumps(data, sort_keys=True, indent=None, separators=(",", ":"), ensure_ascii=True) + "\n"

    @staticmethod
    def from_text(text: str | bytes) -> Circuit:
        """Read the file; anything that `to_text` would not write is refused."""
        try:
            content = text.decode("ascii") if isinstance(text, bytes) else text
            circuit = _read(json.loads(content))
            same = circuit.to_text() == content
        except (ValueError, RecursionError, _Malformed):  # no ASCII, no JSON, nested too deeply, or no circuit
            raise BadInput("the circuit file has not the structure of one") from None
        if not same:
            raise BadInput("the circuit file is not in its canonical form")
        return circuit


def rational(number: Rational) -> Fraction:
    """The exact number that a feature, factor or offset stands for.

    >>> rational("1/3"), rational(2)
    (Fraction(1, 3), Fraction(2, 1))
    """
    return Fraction(number)


def as_rational(number: Fraction | int) -> Rational:
    """A number as it is written: an integer, or a text p/q.

    >>> as_rational(Fraction(4, 2)), as_rational(Fraction(1, 3))
    (2, '1/3')
    """
    if type(number) is int:
        return number
    numerator, denominator = number.as_integer_ratio()
    return numerator if denominator == 1 else f"{numerator}/{denominator}"


# --- reading ----------------------------------------------------------------------------------------------------------

LARGEST_BITS = 4_096  # of a numerator or denominator, as in `value`

Reader = Callable[[Any], Any]  # the value of a field; raises `_Malformed` for anything else


class _Malformed(Exception):
    """A field that is not what the format says."""


def _is(kind: type) -> Reader:
    def read(data: Any) -> Any:
        if type(data) is not kind:  # a truth value is no integer
            raise _Malformed
        return data

    return read


def _number(data: Any) -> Rational:
    """An integer, or a fraction p/q in lowest terms that is none."""
    if type(data) is int:
        numbers = [data]
    elif type(data) is str and (parts := _FRACTION.fullmatch(data)):
        numbers = [int(part) for part in parts.groups()]
        if numbers[1] == 1 or gcd(*numbers) != 1:
            raise _Malformed
    else:
        raise _Malformed
    if any(number.bit_length() > LARGEST_BITS for number in numbers):
        raise _Malformed
    return data


_FRACTION = re.compile(r"(-?[1-9][0-9]{0,1299})/([1-9][0-9]{0,1299})")


def _natural(data: Any) -> int:
    if type(data) is not int or data < 0:
        raise _Malformed
    return data


def _one_of(*words: str) -> Reader:
    def read(data: Any) -> str:
        if type(data) is not str or data not in words:
            raise _Malformed
        return data

    return read


def _optional(inner: Reader) -> Reader:
    return lambda data: None if data is None else inner(data)


def _tuple_of(inner: Reader) -> Reader:
    return lambda data: tuple(map(inner, _is(list)(data)))


def _pair(first: Reader, second: Reader) -> Reader:
    def read(data: Any) -> tuple[Any, Any]:
        if type(data) is not list or len(data) != 2:
            raise _Malformed
        return first(data[0]), second(data[1])

    return read


def _record(kind: Callable[..., Any], fields: dict[str, Reader]) -> Reader:
    def read(data: Any) -> Any:
        if type(data) is not dict or set(data) != set(fields):
            raise _Malformed
        return kind(**{name: inner(data[name]) for name, inner in fields.items()})

    return read


def _texts(data: Any) -> dict[str, str]:
    return {name: _is(str)(text) for name, text in _is(dict)(data).items()}


_INTEGERS = _tuple_of(_natural)
_SUB_LAYER = _pair(_natural, _one_of(EMBEDDING, ATTENTION, FFN))
_CELL = {
    "name": _is(str),
    "node": _natural,
    "coordinate": _natural,
    "written": _SUB_LAYER,
    "cleared": _optional(_SUB_LAYER),
    "feature": _optional(_tuple_of(_number)),
    "undefined": _optional(_number),
    "at_start": _number,
    "or_more": _is(bool),
}
_HEAD = {
    **dict.fromkeys(("block", "group", "head", "selector", "node"), _natural),
    "kind": _one_of("read", "width"),
    **dict.fromkeys(("queries", "keys", "values", "writes"), _INTEGERS),
}
_UNITS = {
    **dict.fromkeys(("block", "first", "count"), _natural),
    "kind": _one_of("table", "clear"),
    **dict.fromkeys(("cells", "reads"), _INTEGERS),
}
_IDENTITY = {"node": _natural, "terms": _tuple_of(_pair(_number, _natural)), "offset": _number}
_OUTPUT = {
    "kind": _one_of("logits", "number"),
    "reads": _INTEGERS,
    "feature": _optional(_tuple_of(_number)),
    "undefined": _optional(_number),
}
_CIRCUIT = {
    "format": _one_of(FORMAT),
    "extended": _is(str),
    "causal": _is(bool),
    "cells": _tuple_of(_record(Cell, _CELL)),
    "heads": _tuple_of(_record(HeadRole, _HEAD)),
    "units": _tuple_of(_record(UnitRole, _UNITS)),
    "identities": _tuple_of(_record(Identity, _IDENTITY)),
    "output": _record(Output, _OUTPUT),
    "lines": _texts,
}


def _read(data: Any) -> Circuit:
    """The circuit of these data; raises `_Malformed` unless every field has its type, and every cell named exists."""

    found: Circuit = _record(lambda **fields: Circuit(**{k: x for k, x in fields.items() if k != "format"}), _CIRCUIT)(
        data
    )
    named = [found.output.reads]
    named += [cells for role in found.heads for cells in (role.queries, role.keys, role.values, role.writes)]
    named += [cells for role in found.units for cells in (role.cells, role.reads)]
    if any(number >= len(found.cells) for cells in named for number in cells):
        raise _Malformed
    return found
