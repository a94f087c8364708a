"""The number that stands for each value of a node: its *code*.

Exact numbers stand for themselves, so that affine maps and means of them need no table. Symbols get integers above all
numbers. An aggregate has the codes of what it reads. A map of two inputs that never gives the same for two pairs of
classes has the code m x + y of the pair, which is read off the inputs and costs nothing. Undefined is one more number,
above all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import floor
from operator import eq

import numpy as np
from jaxtyping import Int

from certiformer.compiler.draft import Feature
from certiformer.compiler.graph_to_extended import Extended
from certiformer.compiler.linear_form import Number
from certiformer.compiler.twins import require_means
from certiformer.rasp.facts import selects_one_value
from certiformer.rasp.graph import Node, Table, ValueSet
from certiformer.rasp.value import Ratio, Value, exact, identity, is_number


class Codes:
    """The codes of all nodes, computed when asked for."""

    def __init__(self, extended: Extended) -> None:
        self._extended = extended
        self._found: dict[int, Feature] = {}

    def __getitem__(self, number: int) -> Feature:
        if number not in self._found:
            for other in self._chain(number):
                self._found[other] = self._code(other)
        return self._found[number]

    def _chain(self, number: int) -> list[int]:
        """The nodes whose codes this one takes over, the first of them first."""
        chain = []
        following: int | None = number
        while following is not None and following not in self._found:
            chain.append(following)
            following = self._origin(following)
        return chain[::-1]

    def _origin(self, number: int) -> int | None:
        node = self._extended.nodes[number]
        if number in self._extended.plans and node.kind == "aggregate":
            return node.inputs[1]
        same = self._extended.sums.get(number)
        if same is not None and node.kind == "aggregate":
            return same.terms[0][1]
        return None

    def _listed(self, number: int) -> tuple[Value, ...]:
        values = self._extended.nodes[number].values
        return (values.values if values else None) or ()

    def _code(self, number: int) -> Feature:
        node, origin = self._extended.nodes[number], self._origin(number)
        if node.values is None:
            raise TypeError(f"{node.kind} has no values")
        if origin is not None:
            nodes = self._extended.nodes
            means = not selects_one_value(nodes, nodes[node.inputs[0]], node.inputs[1])
            codes = self._found[origin].numbers
            if means and origin == node.inputs[1] and codes is not None:
                require_means(node.name, self._listed(origin), codes)
            return _read_code(node, nodes[origin].values, self._found[origin], means)
        if isinstance(node.function, Table) and len(node.function.shape) == 2 and _symbols_only(node.values):
            paired = _pair_code(node.function, node.values, [self._extended.nodes[i].values for i in node.inputs])
            if paired is not None:
                return paired
        return _own_code(node.values)


def _symbols_only(values: ValueSet) -> bool:
    return values.values is not None and not any(is_number(x) for x in values.values)


def _own_code(values: ValueSet) -> Feature:
    if values.values is None:
        high = values.span.high if values.span else Fraction(0)
        return Feature(None, floor(high) + 1 if values.undefined else None)
    return _with_undefined(_numbers(values.values), values.undefined)


def _with_undefined(numbers: Sequence[Number], undefined: bool) -> Feature:
    return Feature(tuple(numbers), floor(max(numbers, default=-1)) + 1 if undefined else None)


def _numbers(values: Sequence[Value]) -> list[Number]:
    if _stand_for_themselves(values, None):
        return list(as_numbers(tuple(values)))
    numbers = [as_number(x) if is_number(x) else None for x in values]
    known = [x for x in numbers if x is not None]
    if len(set(known)) < len(known):  # True beside 1: only their places tell them apart
        return list(range(len(values)))
    following = floor(max(known, default=-1)) + 1
    result: list[Number] = []
    for x in numbers:
        result.append(following if x is None else x)
        following += x is None
    return result


def as_number(value: Value) -> Number:
    """A numerical value as an integer or an exact fraction."""
    if isinstance(value, int):
        return int(value)
    number = value if isinstance(value, Fraction) else exact(value)
    return number.numerator if number.denominator == 1 else number


def all_numbers(values: Sequence[Value]) -> bool:
    """Whether all values are numbers, truth values among them."""
    return set(map(type, values)) <= {int, bool, float, Ratio, Fraction}


def as_numbers(values: tuple[Value, ...]) -> tuple[Number, ...]:
    """All of them; values that are their own numbers already, thousands of means for instance, are not copied."""
    return values if set(map(type, values)) <= {int, Ratio} else tuple(map(as_number, values))


def _read_code(node: Node, read: ValueSet | None, code: Feature, means: bool) -> Feature:
    """The codes of an aggregate: those of what it reads, means as numbers, and the default."""
    if node.values is None or read is None:
        raise TypeError(node.kind)
    if node.values.values is None:
        high = node.values.span.high if node.values.span else Fraction(0)
        wanted = max(floor(high) + 1, code.undefined or 0)
        return Feature(None, wanted if node.values.undefined else None)
    if _stand_for_themselves(read.values, code) and _stand_for_themselves(node.values.values, None):
        top = floor(as_number(node.values.values[-1])) + 1
        undefined = max(top, code.undefined or 0) if node.values.undefined else None
        return Feature(as_numbers(node.values.values), undefined)
    known = {identity(x): c for x, c in zip(read.values or (), code.numbers or (), strict=False)}
    taken = set(known.values())
    means &= all(is_number(x) and as_number(x) == known[identity(x)] for x in read.values or ())
    following = floor(max([*taken, code.undefined or 0, 0])) + 1
    # Different numbers have a mean strictly between them: a mean 1 beside True has the code of True, a default 0 beside
    # a smallest value False has one of its own.
    low, high = min(taken, default=0), max(taken, default=0)
    numbers: list[Number] = []
    for value in node.values.values:
        own = known.get(identity(value))
        inside = means and is_number(value) and low < as_number(value) < high
        if own is None and is_number(value) and (inside or as_number(value) not in taken):
            own = as_number(value)
        if own is None:
            own, following = following, following + 1
        taken.add(own)
        numbers.append(own)
    if not node.values.undefined:
        return Feature(tuple(numbers))
    return Feature(tuple(numbers), max(floor(max(taken, default=-1)) + 1, code.undefined or 0))


def _stand_for_themselves(values: Sequence[Value] | None, code: Feature | None) -> bool:
    """Whether all values are different numbers, and the codes, if given, are these numbers. Lists are in order."""
    if not values or not all_numbers(values):
        return False
    if any(map(eq, values, values[1:])):
        return False
    return code is None or as_numbers(tuple(values)) == code.numbers


def _pair_code(table: Table, values: ValueSet, inputs: Sequence[ValueSet | None]) -> Feature | None:
    """The code m x + y over the classes of equal rows and equal columns, if no two pairs of classes give the same value."""
    if values.undefined or any(v is None or v.undefined for v in inputs):
        return None
    entries = np.array(table.entries).reshape(table.shape)
    rows, columns = _classes(entries), _classes(entries.T)
    count = int(columns.max()) + 1
    different = len(set(table.entries))
    if len(values.values or ()) != (int(rows.max()) + 1) * count or different != len(values.values or ()):
        return None
    numbers: list[Number] = [0] * len(values.values or ())
    for place, code in zip(
        entries.reshape(-1).tolist(), (rows[:, None] * count + columns).reshape(-1).tolist(), strict=True
    ):
        numbers[place] = code
    return Feature(tuple(numbers))


def _classes(rows: Int[np.ndarray, "n m"]) -> Int[np.ndarray, " n"]:
    """Equal rows by class, in the order of their first member: a class for every value is an affine map."""
    seen: dict[bytes, int] = {}
    return np.array([seen.setdefault(row.tobytes(), len(seen)) for row in np.ascontiguousarray(rows)])
