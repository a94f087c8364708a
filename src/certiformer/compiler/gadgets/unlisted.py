"""Numbers that are too many to list, and sums of numbers that may be undefined.

For these no table goes through every value, but few corners are enough. A sum s = a x + b y of inputs that may be
undefined is read with the undefined codes so far out that s is above all sums of defined numbers as soon as one input
is undefined; one more corner makes everything above the undefined code flat. A comparison of x with c is a step:
numbers with denominators up to D differ from c by at least 1 / (D denominator(c)) or not at all.
"""

from __future__ import annotations

from collections.abc import Generator
from fractions import Fraction
from math import floor
from typing import TYPE_CHECKING

from certiformer.compiler.codes import as_number
from certiformer.compiler.draft import Feature
from certiformer.compiler.features import entries, plain
from certiformer.compiler.linear_form import Form, Number
from certiformer.errors import BadInput
from certiformer.rasp.graph import Node, Table
from certiformer.rasp.operation import TRUTHS, Binary, WithConstant, is_exact
from certiformer.rasp.value import Ratio, exact, reduced

if TYPE_CHECKING:
    from certiformer.compiler.extended_to_draft import Lowering

Asking = Generator[tuple[int, Feature], Form, Form]


class UnlistedMaker:
    """Makes the forms that need only the bounds of a node."""

    def __init__(self, lowering: Lowering) -> None:
        self.lowering = lowering

    def bounds(self, number: int) -> tuple[Number, Number]:
        """The smallest and the largest number of a node."""
        values = self.lowering.nodes[number].values
        if values is not None and values.values is not None:
            numbers = [as_number(x) for x in values.values]
            return min(numbers), max(numbers)
        if values is None or values.span is None:
            raise BadInput(f"{self.lowering.nodes[number].name} has no known bounds; use a smaller length")
        return plain(values.span.low), plain(values.span.high)

    def with_undefined(self, number: int, feature: Feature) -> Asking:
        """The number itself, with another code for undefined."""
        code = self.lowering.codes[number]
        base = yield (number, code)
        if code.undefined is None or feature.undefined is None:
            return base
        low, high = self.bounds(number)
        points = dict([(low, low), (high, high), (code.undefined, feature.undefined)])
        return self.lowering.tables.written(number, feature, base, list(points.items()))

    def code(self, number: int, code: Feature) -> Asking:
        """The code of an aggregate with undefined parts, or of an affine map of what may be undefined."""
        low, node = self.lowering, self.lowering.nodes[number]
        affine = low.affine(node)
        if node.kind == "aggregate":
            ridge = yield from low.raw(number)
        elif affine is not None:
            factors = [as_number(f) for f in affine.factors]
            ridge = yield from self._sum(node, factors, as_number(affine.offset), code.undefined or 0)
        else:
            raise BadInput(f"{node.name} has too many values to list, and a table needs the list; use a smaller length")
        if code.undefined is None:
            return ridge
        bottom, top = self.bounds(number)
        points = {x: x for x in (bottom, top, code.undefined)}
        return low.tables.written(number, code, ridge, [*points.items(), (code.undefined + 1, code.undefined)])

    def _sum(self, node: Node, factors: list[Number], offset: Number, above: Number) -> Asking:
        """offset + sum of factor * input, at least `above` where an input is undefined."""
        low = self.lowering
        ends = [sorted((f * a, f * b)) for f, i in zip(factors, node.inputs, strict=True) for a, b in [self.bounds(i)]]
        least = sum(end[0] for end in ends) + offset
        total = Form((), offset)
        for factor, number, end in zip(factors, node.inputs, ends, strict=True):
            feature = low.numbers(number)
            if feature.undefined is not None:
                wanted = above - (least - end[0])  # of factor * input, when all others are smallest
                rounded = Fraction(wanted) / factor
                far = floor(rounded) if factor < 0 else -floor(-rounded)
                if feature.numbers is None or factor * feature.undefined < wanted:
                    feature = Feature(feature.numbers, far)
            total = total + (yield (number, feature)).scaled(factor)
        return total

    def presence(self, number: int) -> int | None:
        """The node without a list that is defined exactly where this one is, through maps that are always defined."""
        while (node := self.lowering.nodes[number]).kind == "map":
            match node.function:
                case Table(shape=(_,), entries=entries) if min(entries) >= 0:
                    pass
                case WithConstant(symbol=symbol, constant=constant) if symbol in TRUTHS and is_exact(constant):
                    pass
                case _:
                    break
            (number,) = node.inputs
        return number if self.lowering.codes[number].numbers is None else None

    def definedness(self, number: int, base: int, feature: Feature, held: Number) -> Asking:
        """A feature that is the same wherever `base` is defined."""
        code = self.lowering.codes[base]
        ridge = yield (base, code)
        low, high = self.bounds(base)
        points = {low: held, high: held, code.undefined or 0: entries(feature)[-1]}
        return self.lowering.tables.written(number, feature, ridge, list(points.items()))

    def comparison(self, number: int, node: Node, feature: Feature) -> Asking:
        """A truth value that compares an unlisted number with a constant, or two numbers."""
        factors, constant = self._compared(node)
        bottom, top = self._range(node, factors)
        step = self._step(node, factors, constant)
        above = floor(max(top, constant)) + 2
        ridge = yield from self._sum(node, factors, 0, above)
        held, listed = entries(feature), list(node.values.values or ())  # type: ignore[union-attr]
        points: dict[Number, Number] = {}
        for s in (min(bottom, constant - 1), constant - step, constant, constant + step, above - 1):
            truth = self._truth(node, Fraction(s), constant)
            # A truth value that was not inferred belongs to numbers that do not occur.
            points[plain(Fraction(s))] = held[listed.index(truth)] if truth in listed else held[0]
        if feature.undefined is not None:
            points[above] = points[above + 1] = feature.undefined
        return self.lowering.tables.written(number, feature, ridge, sorted(points.items()))

    def _compared(self, node: Node) -> tuple[list[Number], Fraction]:
        """The sum that is compared, and with what."""
        match node.function:
            case WithConstant(symbol=symbol, constant=constant) if symbol in TRUTHS and is_exact(constant):
                return [1], exact(constant)
            case Binary(symbol) if symbol in TRUTHS:
                return [1, -1], Fraction(0)
        raise BadInput(f"{node.name} reads one of too many values to list, and is no comparison; use a smaller length")

    def _truth(self, node: Node, s: Fraction, constant: Fraction) -> bool:
        if isinstance(node.function, Binary):
            return bool(node.function(reduced(s), 0))
        return bool(node.function(Ratio(s)))  # type: ignore[operator]

    def _range(self, node: Node, factors: list[Number]) -> tuple[Number, Number]:
        ends = [sorted((f * a, f * b)) for f, i in zip(factors, node.inputs, strict=True) for a, b in [self.bounds(i)]]
        return sum(end[0] for end in ends), sum(end[1] for end in ends)

    def _step(self, node: Node, factors: list[Number], constant: Fraction) -> Fraction:
        product = constant.denominator
        for i in node.inputs[: len(factors)]:
            values = self.lowering.nodes[i].values
            if values is None or values.values is not None:
                largest = max((as_number(x).denominator for x in (values.values if values else None) or ()), default=1)
            else:
                largest = values.span.plain().largest_denominator if values.span else None
            if largest is None:
                raise BadInput(
                    f"{node.name} compares numbers with no bound on their denominators; use a smaller length"
                )
            product *= largest
        return Fraction(1, product)
