"""Programs at many points, or on many boxes, at once: which of them have a value is an array of truth values.

`fold` asks whether a value is undefined and expects one answer. Where an algebra computes with arrays the answer differs
from element to element, so `PointwiseAlgebra` carries it beside each value and does with every element what `fold` does
with a whole value: an operation has no value where one argument has none, and `where` ignores the branch that is not
taken, never a side of its comparison. The algebra inside says only where a *single* operation has no value.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import or_
from typing import Any, NamedTuple, Protocol

from certiformer.kernel.programs import PARTIAL, Program, fold


class Partial(NamedTuple):
    """An array of values, and where they mean nothing: an array of truth values, or False if all have a value."""

    value: Any
    missing: Any


class ArrayAlgebra(Protocol):
    """What an algebra of arrays provides besides `constant`, `pow` and a method for each name in `UNARY` and `BINARY`."""

    def compare(self, comparison: str, a: Any, b: Any) -> tuple[Any, Any]:
        """Where the comparison certainly holds, and where it certainly does not."""
        ...

    def select(self, condition: tuple[Any, Any], x: Any, y: Any) -> Any:
        """`x` where the condition holds, `y` where it does not, and something that is both or NaN elsewhere."""

    def outside(self, name: str, result: Any, *arguments: Any) -> Any:
        """Where the operation `name`, one of `PARTIAL`, has no value at arguments that have one."""

    def blank(self, value: Any, missing: Any) -> Any:
        """The value, and NaN where it is missing."""


class PointwiseAlgebra:
    """An algebra of arrays that keeps track of where its values are missing: an algebra for `fold`."""

    def __init__(self, arrays: Any) -> None:
        self.arrays = arrays

    def constant(self, text: str) -> Partial:
        return Partial(self.arrays.constant(text), False)

    def pow(self, a: Partial, n: int) -> Partial:
        return Partial(self.arrays.pow(a.value, n), a.missing)

    def __getattr__(self, name: str) -> Callable[..., Partial]:
        operation = getattr(self.arrays, name)

        def lifted(*arguments: Partial) -> Partial:
            values = [a.value for a in arguments]
            result = operation(*values)
            outside = [self.arrays.outside(name, result, *values)] if name in PARTIAL else []
            return Partial(result, _any(*(a.missing for a in arguments), *outside))

        return lifted

    def compare(self, comparison: str, a: Partial, b: Partial) -> Partial:
        return Partial(self.arrays.compare(comparison, a.value, b.value), _any(a.missing, b.missing))

    def select(self, condition: Partial, x: Partial, y: Partial) -> Partial:
        true, false = condition.value
        missing = [side.missing & ~excluded for side, excluded in ((x, false), (y, true)) if side.missing is not False]
        return Partial(self.arrays.select(condition.value, x.value, y.value), _any(condition.missing, *missing))

    def undefined(self, value: Partial) -> bool:
        return False


def fold_pointwise(program: Program, variables: list, arrays: Any) -> list:
    """`fold` in an algebra of arrays; an element is NaN where the program has no value."""
    outputs = fold(program, [Partial(v, False) for v in variables], PointwiseAlgebra(arrays))
    return [o.value if o.missing is False else arrays.blank(o.value, o.missing) for o in outputs]


def _any(*masks: Any) -> Any:
    """Where one of the masks is true."""
    return reduce(or_, (mask for mask in masks if mask is not False), False)
