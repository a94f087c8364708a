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
from dataclasses import asdict, dataclass, field
from fractions import Fraction
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
        except (ValueError, TypeError, KeyError, AttributeError, ZeroDivisionError, RecursionError):
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


_INTEGERS = ("node", "coordinate", "block", "group", "head", "selector", "first", "count")
_LISTS_OF_INTEGERS = ("queries", "keys", "values", "writes", "cells", "reads")


def _read(data: dict[str, Any]) -> Circuit:
    if data.pop("format") != FORMAT:
        raise ValueError("format")
    parts = {"cells": Cell, "heads": HeadRole, "units": UnitRole, "identities": Identity}
    for name, kind in parts.items():
        data[name] = tuple(kind(**_typed(entry)) for entry in data[name])
    data["output"] = Output(**_typed(data["output"]))
    if type(data["extended"]) is not str or type(data["causal"]) is not bool or type(data["lines"]) is not dict:
        raise TypeError("fields")
    return Circuit(**data)


def _typed(entry: dict[str, Any]) -> dict[str, Any]:
    """The fields of a record with lists as tuples; raises when a number is not one."""
    result: dict[str, Any] = {}
    for name, value in entry.items():
        if name in _INTEGERS and not _is_integer(value):
            raise TypeError(name)
        if name in _LISTS_OF_INTEGERS and not all(map(_is_integer, value)):
            raise TypeError(name)
        if name in ("feature", "undefined", "at_start", "offset"):
            absent = name != "offset"
            value = [_checked(x, absent) for x in value] if isinstance(value, list) else _checked(value, absent)
        elif name == "terms":
            value = [(_checked(factor, False), int(node)) for factor, node in value]
        result[name] = tuple(value) if isinstance(value, list) else value
    return result


def _is_integer(value: Any) -> bool:
    return type(value) is int


def _checked(number: Any, may_be_absent: bool) -> Rational | None:
    if number is None and may_be_absent:
        return None
    if not isinstance(number, (int, str)) or type(number) is bool or as_rational(Fraction(number)) != number:
        raise ValueError("a number of the circuit is not in lowest terms")
    return number
