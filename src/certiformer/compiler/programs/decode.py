"""From the numbers that a compiled transformer writes to the values that they stand for.

`logits`: the largest names the value, undefined comes last. `number`: the nearest feature of the output, or, for numbers
too many to list, the nearest fraction whose denominator is within the bound of the program; the number that stands for
undefined lies at least 1 outside of these, so that whatever is within 1/2 of it is undefined. A fraction that stands for a
truth value (the mean 1 of truth values, which is True) is that truth value.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from jaxtyping import Float

from certiformer.errors import BadInput
from certiformer.kernel.situations.rasp.circuit import Cell, Circuit, Output, rational
from certiformer.rasp.graph import Graph, ValueSet
from certiformer.rasp.value import Value, exact

HALF = Fraction(1, 2)


class Decoder:
    """Reads the outputs of one compiled transformer."""

    def __init__(self, graph: Graph, circuit: Circuit) -> None:
        values = graph.nodes[graph.output].values
        if values is None or not values.known:
            raise BadInput("the output of the program has no known set of values")
        self._kind, self._values = circuit.output.kind, values
        self._listed = listed_with_undefined(values)
        self._undefined = None if circuit.output.undefined is None else rational(circuit.output.undefined)
        self._middles = None  # of neighbouring features; a number of the transformer is above one or at most it
        if self._kind == "number" and values.values is not None:
            numbers = features(circuit.output, values)
            order = sorted(range(len(numbers)), key=numbers.__getitem__)
            self._order = np.array(order, dtype=int)
            pairs = zip(order, order[1:], strict=False)
            self._middles = np.array([_at_most((numbers[i] + numbers[j]) / 2) for i, j in pairs])

    def decode(self, outputs: Float[np.ndarray, "rows outputs"]) -> list[Value]:
        """The exact values, one a row."""
        if self._kind == "logits":
            return [self._listed[place] for place in np.argmax(outputs, axis=1).tolist()]
        if self._middles is None:
            return [self._nearest_fraction(float(x)) for x in outputs[:, 0]]
        return [self._listed[place] for place in self.places(outputs).tolist()]

    def places(self, outputs: Float[np.ndarray, "rows outputs"]) -> np.ndarray:
        """For every row the place of its value in the list (undefined last); -1 where the output is not a number."""
        if self._kind == "logits":
            return np.where(np.isfinite(outputs).all(axis=1), np.argmax(outputs, axis=1), -1)
        if self._middles is None:
            raise BadInput("the output has too many values to list")
        numbers = outputs[:, 0].astype(np.float64)
        return np.where(np.isfinite(numbers), self._order[np.searchsorted(self._middles, numbers)], -1)

    @property
    def listed(self) -> Sequence[Value] | None:
        """The values that `places` speaks of; None when they are too many."""
        return None if self._kind == "number" and self._middles is None else self._listed

    def _nearest_fraction(self, number: float) -> Value:
        span = self._values.span
        if span is None or not np.isfinite(number):
            raise BadInput(f"the transformer wrote {number}, which stands for no value")
        if self._values.undefined and self._undefined is not None and abs(Fraction(number) - self._undefined) < HALF:
            return None
        if span.largest_denominator is None:
            raise BadInput(
                "the output has too many values to list and no bound of their denominators: it cannot be read"
            )
        if span.ambiguous:
            raise BadInput("the output may be a truth value or the same number: it cannot be read")
        return span.value_of(span.nearest(Fraction(number)))


def _at_most(number: Fraction) -> float:
    """The largest float that is not above a number: the same floats are above both."""
    try:
        near = float(number)
    except OverflowError:
        return sys.float_info.max if number > 0 else -math.inf
    return near if Fraction(near) <= number else math.nextafter(near, -math.inf)


def listed_with_undefined(values: ValueSet) -> list[Value]:
    """The values in their order, None last where it can occur."""
    return [*(values.values or ()), *([None] if values.undefined else [])]


def features(cell: Cell | Output, values: ValueSet) -> list[Fraction]:
    """What a cell holds for every listed value of its node, then for undefined where that can occur."""
    listed = values.values or ()
    numbers = [exact(v) for v in listed] if cell.feature is None else [rational(x) for x in cell.feature]
    return numbers + ([] if cell.undefined is None else [rational(cell.undefined)])
