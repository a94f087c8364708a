"""The typed graph of a program: nodes in evaluation order, each with the values it can take; no Python of the user.

A node reads earlier nodes by their number. Kinds with a value at every position: `tokens`, `indices`, `length`, `full`,
`written` (a list), `map` (one or two inputs), `width`, `aggregate`. Selectors: `select` (keys, queries), `pattern` (written
rows), `and`, `or`, `not`. A map's function is an `Operation` or a `Table`, a select's a `Comparison` or a `Relation`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

from certiformer.rasp.operation import Operation
from certiformer.rasp.selectors import Comparison
from certiformer.rasp.value import Value, identities, identity, in_order, reduced


def tabulated(results: Sequence[Value]) -> tuple[tuple[Value, ...], tuple[int, ...]]:
    """The different results in order, and the place of each in that list; -1 for undefined.

    >>> tabulated(["b", None, "a", "b"])
    (('a', 'b'), (1, -1, 0, 1))
    """
    keys = identities(results)
    found = dict(zip(keys, results, strict=True))
    found.pop(identity(None), None)
    outputs = in_order(found.values())
    place = {identity(None): -1} | {key: number for number, key in enumerate(identities(outputs))}
    return outputs, tuple([place[key] for key in keys])


SELECTORS = frozenset({"select", "pattern", "and", "or", "not"})
SEQUENCES = frozenset({"tokens", "indices", "length", "full", "written", "map", "width", "aggregate"})


@dataclass(frozen=True)
class Table:
    """A function of listed values: entry (i, j) is the number of the result in the node's own list, -1 for undefined."""

    shape: tuple[int, ...]
    entries: tuple[int, ...]  # row by row


@dataclass(frozen=True)
class Relation:
    """A predicate of listed keys and queries: entry (key, query)."""

    shape: tuple[int, int]
    entries: tuple[bool, ...]


@dataclass(frozen=True)
class Span:
    """Numbers too many to list, from `low` to `high`: `step` times fractions of denominator at most `largest_denominator`.

    None: the denominators have no known bound. A mean of w multiples of 1/3600 is 1/3600 times a fraction over w: far
    fewer numbers than all with a denominator up to 3600 w, and further apart.

    `truths` are the truth values that occur among the numbers: a mean of truth values is True where all of them are. Each
    stands for its number, so that no 1 occurs beside True, unless the span is `ambiguous`.
    """

    low: Fraction
    high: Fraction
    largest_denominator: int | None
    step: Fraction = Fraction(1)
    truths: tuple[bool, ...] = ()
    ambiguous: bool = False

    @property
    def gap(self) -> Fraction | None:
        """How far two different ones are apart at least: p/q and r/s by 1/(q s), and q s <= D (D - 1) unless q = s."""
        most = self.largest_denominator
        return None if most is None else self.step / max(most * (most - 1), 1)

    def nearest(self, number: Fraction) -> Fraction:
        """The nearest of them, where the denominators are bounded."""
        return self.step * (number / self.step).limit_denominator(self.largest_denominator or 1)

    def plain(self) -> Span:
        """A span of step 1 that contains these numbers, without truth values: what arithmetic makes of them."""
        most = self.largest_denominator
        return Span(self.low, self.high, None if most is None else most * self.step.denominator)

    def value_of(self, number: Fraction) -> Value:
        """The value that a number of the span is, where that is not ambiguous."""
        return next((truth for truth in self.truths if truth == number), reduced(number))


@dataclass(frozen=True, eq=False)
class ValueSet:
    """The values a node can take: a list, or a span of numbers, or neither when they could not be inferred."""

    values: tuple[Value, ...] | None
    undefined: bool = False  # whether None can occur as well
    span: Span | None = None

    @property
    def known(self) -> bool:
        return self.values is not None or self.span is not None

    @cached_property
    def types(self) -> frozenset[type]:
        """The types of the listed values and of what is inside tuples."""
        found, parts = set(), self.values or ()
        while parts:
            found.update(map(type, parts))
            parts = [part for value in parts if type(value) is tuple for part in value] if tuple in found else ()
        return frozenset(found)

    def _key(self) -> tuple:
        listed = None if self.values is None else tuple(map(identity, self.values))
        return (listed, self.undefined, self.span)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, ValueSet) and self._key() == other._key())

    def __hash__(self) -> int:  # of the ends only: the hash of a fraction takes long, and lists have thousands
        ends = self.values and (len(self.values), identity(self.values[0]), identity(self.values[-1]))
        return hash((ends, self.undefined, self.span))

    def __str__(self) -> str:
        if self.values is not None:
            shown = ", ".join(str(value) for value in self.values[:6])
            more = f", ... ({len(self.values):,} values)" if len(self.values) > 6 else ""
            text = f"{{{shown}{more}}}"
        else:
            text = f"[{self.span.low}, {self.span.high}]" if self.span else "unknown"
        return f"{text} or undefined" if self.undefined else text


@dataclass(frozen=True)
class Node:
    """One step of a program. `facts` are what could be proved about it (see `facts`)."""

    kind: str
    inputs: tuple[int, ...]
    function: Operation | Table | Comparison | Relation | None
    constant: Any  # fill, default, written values or rows
    values: ValueSet | None  # None for a selector
    name: str = field(compare=False)
    numerical: bool = False  # whether it is to be carried as a number
    facts: frozenset[str] = frozenset()

    @property
    def is_selector(self) -> bool:
        return self.kind in SELECTORS


@dataclass(frozen=True, eq=False)
class Graph:
    """A program for inputs of at most `length` tokens out of `vocab`."""

    nodes: tuple[Node, ...]
    output: int
    vocab: tuple[Value, ...]
    length: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Graph) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple:
        return (tuple(map(node_key, self.nodes)), self.output, tuple(map(identity, self.vocab)), self.length)

    def __str__(self) -> str:
        return "\n".join(_line(number, node) for number, node in enumerate(self.nodes)) + f"\noutput {self.output}"


def node_key(node: Node) -> tuple:
    """Equal for nodes that compute the same in the same way; names do not matter."""
    outputs = node.values if isinstance(node.function, Table) else None
    return (node.kind, node.inputs, node.function, identity_of_constant(node.constant), outputs, node.numerical)


def identity_of_constant(constant: Any) -> Any:
    """A key for a fill, a default, or written values."""
    return identity(constant)


def _line(number: int, node: Node) -> str:
    function = {Table: "table", Relation: "relation"}.get(type(node.function), node.function)
    what = " ".join(str(part) for part in (node.kind, *node.inputs))
    return f"{number:>4} {what}{'' if function is None else f' {function}'}{f': {node.values}' if node.values else ''}"
