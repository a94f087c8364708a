"""What the reader of jaxprs does with single elements: numbers of nodes, numbers of conditions, infinities, choices.

Real semantics: nothing rounds, integers do not overflow, and no value of an expression is infinite or NaN; a test for
that is decided wherever the expression has a real value, and singular elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import reduce

from certiformer.errors import BadInput
from certiformer.target.build import Builder, Condition

# Numbers below zero stand for constants that are not real, and for elements read out of range. They may be moved,
# compared and passed to min and max (an initial value of -inf is how JAX writes a maximum); anything else is refused.
PLUS_INFINITY, MINUS_INFINITY, NAN = -1, -2, -3


class Scalars:
    """One builder, and the conditions that depend on the variables, by number; 0 is false and 1 is true."""

    def __init__(self) -> None:
        self.build = Builder()
        self.conditions: list[Condition] = [False, True]
        self._condition_number: dict[Condition, int] = {}
        # Integer nodes made of conditions: node -> ((condition, integer), ...); the first true one counts, else 0
        self._choices: dict[int, tuple[tuple[Condition, int], ...]] = {}

    def number(self, condition: Condition) -> int:
        """The number of a condition."""
        if isinstance(condition, bool):
            return int(condition)
        if condition not in self._condition_number:
            self._condition_number[condition] = len(self.conditions)
            self.conditions.append(condition)
        return self._condition_number[condition]

    def double(self, value: float) -> int:
        """A constant of floating type: it means the exact double."""
        if math.isfinite(value):
            return self.build.rational(Fraction(value))
        return NAN if math.isnan(value) else PLUS_INFINITY if value > 0 else MINUS_INFINITY

    def max(self, a: int, b: int) -> int:
        return self._best(a, b, self.build.max, neutral=MINUS_INFINITY, absorbing=PLUS_INFINITY)

    def min(self, a: int, b: int) -> int:
        return self._best(a, b, self.build.min, neutral=PLUS_INFINITY, absorbing=MINUS_INFINITY)

    def _best(self, a: int, b: int, function: Callable[[int, int], int], neutral: int, absorbing: int) -> int:
        if a == neutral or b == neutral:
            return b if a == neutral else a
        other = b if a == absorbing else a
        if absorbing in (a, b) and (other < 0 or self.build.total(other)):
            return absorbing
        return function(finite(a), finite(b))

    # Conditions

    def defined(self, a: int) -> Condition:
        """True, as a condition that is singular where node `a` is."""
        return True if self.build.total(a) else ("defined", a)

    def compare(self, name: str, a: int, b: int) -> Condition:
        if name in ("gt", "ge"):
            return self.compare({"gt": "lt", "ge": "le"}[name], b, a)
        if name == "ne":
            return negated(self.compare("eq", a, b))
        if a < 0 or b < 0:
            return self._compare_infinite(name, a, b)
        if name == "eq":
            both = [self.build.compare("le", a, b), self.build.compare("le", b, a)]
            return self.defined(a) if a == b else all_of(both)
        return self.build.compare(name, a, b)

    def _compare_infinite(self, name: str, a: int, b: int) -> Condition:
        """A comparison with an infinite constant: decided wherever the other side is a real number."""
        infinite = {PLUS_INFINITY: math.inf, MINUS_INFINITY: -math.inf}
        if min(a, b) <= NAN:
            raise BadInput("the callable compares with NaN or with an element out of range")
        left, right = infinite.get(a, 0.0), infinite.get(b, 0.0)
        holds = {"lt": left < right, "le": left <= right, "eq": left == right}[name]
        defined = all_of(self.defined(c) for c in (a, b) if c >= 0)
        return defined if holds else negated(defined)

    def different(self, c: int, d: int) -> int:
        """Exclusive or of two conditions, through a node that is 0 or 1, so that long chains of it stay small."""
        zero, one = self.build.rational(0), self.build.rational(1)
        first, second = self.conditions[c], self.conditions[d]
        node = self.build.select(first, self.build.select(second, zero, one), self.build.select(second, one, zero))
        return self.number(self.build.compare("lt", zero, node))

    # Choices

    def choice(self, cases: Sequence[tuple[Condition, int]]) -> int:
        """The node of the integer of the first true condition, or of 0."""
        node = self.build.rational(0)
        for condition, integer in reversed(cases):
            node = self.build.select(condition, self.build.rational(integer), node)
        self._choices[node] = tuple(cases)
        return node

    def first_true(self, row: Sequence[int]) -> int:
        """The node of the first place in a row of conditions that is true, or of 0."""
        return self.choice([(self.conditions[c], k) for k, c in enumerate(row)])

    def place(self, row: Sequence[int], largest: bool) -> int:
        """The node of the first place in a row of nodes that holds its largest (or smallest) value."""
        best = finite(row[0])
        place = self.build.select(self.defined(best), self.build.rational(0), self.build.rational(0))
        for k, node in enumerate(row[1:], start=1):
            better = self.compare("gt" if largest else "lt", finite(node), best)
            place = self.build.select(better, self.build.rational(k), place)
            best = (self.max if largest else self.min)(best, node)
        return place

    def indicator(self, c: int) -> int:
        """The node that is 1 where condition `c` holds and 0 elsewhere."""
        return self.choice([(self.conditions[c], 1)])

    def branches(self, selector: int, count: int) -> Sequence[tuple[Condition, int]]:
        """When an integer node selects which of `count` cases; case 0 is the default."""
        if selector in self._choices:
            return self._choices[selector]
        return [(self.compare("eq", selector, self.build.rational(k)), k) for k in range(1, count)]

    def pick_real(self, condition: Condition, x: int, y: int) -> int:
        """Node `x` where the condition holds, else `y`; like `Builder.select`, but an untaken side may be infinite."""
        if isinstance(condition, bool):
            return x if condition else y
        name, *parts = condition
        if name == "not":
            return self.pick_real(parts[0], y, x)
        if name == "and":
            return reduce(lambda value, part: self.pick_real(part, value, y), reversed(parts), x)
        if name == "or":
            return reduce(lambda value, part: self.pick_real(part, x, value), reversed(parts), y)
        if name == "defined":
            return self.build.select(condition, finite(x), finite(x))
        if x == y and all(self.build.total(side) for side in parts):
            return x
        return self.build.select(condition, finite(x), finite(y))

    def pick_truth(self, condition: Condition, x: int, y: int) -> int:
        yes, no = self.conditions[x], self.conditions[y]
        return self.number(any_of([all_of([condition, yes]), all_of([negated(condition), no])]))


def finite(number: int) -> int:
    """The number of a node, refusing what is not a real number."""
    if number < 0:
        raise BadInput("the callable computes with a constant that is infinite or NaN, or with an element out of range")
    return number


def negated(condition: Condition) -> Condition:
    if isinstance(condition, bool):
        return not condition
    return condition[1] if condition[0] == "not" else ("not", condition)


def all_of(conditions: Iterable[Condition]) -> Condition:
    """All of the conditions, asked from the first on: one after a false one is not looked at, one before it is."""
    parts = [c for c in conditions if c is not True]
    if False in parts:
        parts = parts[: parts.index(False) + 1]
    return ("and", *parts) if len(parts) > 1 else parts[0] if parts else True


def any_of(conditions: Iterable[Condition]) -> Condition:
    return negated(all_of(negated(c) for c in conditions))
