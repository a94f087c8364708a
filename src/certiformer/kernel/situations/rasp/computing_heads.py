"""The two kinds of heads: those that measure a width, and those that read the mean of a value.

`width`: the beginning-of-sequence token counts as selected, w + 1 keys in all, and the data positions have a constant value
b: the output is (a + w b) / (1 + w), a the value of the beginning-of-sequence token. `read`: selected keys are above the
beginning-of-sequence token, which is above all others, so its value is the output where nothing is selected: the default.
Features that are a linear function of the numbers they stand for commute with means.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from flint import arb

from certiformer.kernel import Refused
from certiformer.kernel.balls import larger, smaller
from certiformer.kernel.meanings.rasp import Value, exact, identity, is_number
from certiformer.kernel.situations.numbers import BITS, UNIT, ceil_shift, times
from certiformer.kernel.situations.rasp.circuit import Cell, rational
from certiformer.kernel.situations.rasp.domains import shown
from certiformer.kernel.situations.rasp.fixed import fraction_up, nearest
from certiformer.kernel.situations.rasp.heads import Head
from certiformer.kernel.situations.rasp.state import expected, features
from certiformer.kernel.situations.rasp.variables import Variables


class WidthHead(Head):
    """Writes 1 / (1 + width), or a linear function of it."""

    computes = ("width", "length")

    def features(self, cell: Cell) -> tuple[list[int], list[int]]:
        if not self.variables.listed(cell.node):  # 1 / (1 + width) between the ends does not follow from the ends
            raise Refused(f"{self.where}: {self.variables.name(cell.node)} has too many values to list")
        data = [self._columns(places) for places, _ in self.variables.cases(self.used)]
        same = [column[0][0] for column in zip(*data, strict=True)]
        off = [
            max(ceil_shift(abs(value - first)) + error for value, error in column)
            for first, column in zip(same, zip(*data, strict=True), strict=True)
        ]
        start, ideal, slack = self._start_columns(), *expected(self.variables, cell)
        first, others = self._total([v for v, _ in start]), self._total(same)
        low, high = (arb(0), arb(0)) if self.gaps.selected is None else self.gaps.selected
        osc = (larger(high, arb(0)) - smaller(low, arb(0))).upper()
        gap = None if self.gaps.unselected is None else -self.gaps.unselected
        one, many = (self._mix(k, osc if k > 1 else arb(0), gap, self.gaps.over) for k in (1, self.n + 1))
        errors = []
        for w, feature, s in zip(self.variables.domain(cell.node), features(self.variables, cell), slack, strict=True):
            if type(w) is not int or not 0 <= w <= self.n:
                raise Refused(f"{self.where}: {self.variables.name(cell.node)} has the value {w!r}, no width")
            columns, extra = [], 0
            for (a, e), b, d, o in zip(start, same, off, self.out, strict=True):
                columns.append((-(-ceil_shift(abs(a) + w * abs(b)) // (w + 1)), -(-(e + w * d) // (w + 1))))
                extra += 0 if b or not w else 4 * times(abs(o), d)  # terms that should be zero are small terms
            mixed = one if not w else many if any(same) else replace(many, terms=1)
            away = abs(Fraction(first + w * others, w + 1) - feature * (1 << 3 * BITS))
            errors.append(fraction_up(away, 2 * BITS) + self._error(mixed, columns) + extra + s)
        return ideal, errors


class ReadHead(Head):
    """Writes an aggregate."""

    computes = ("aggregate",)

    def features(self, cell: Cell) -> tuple[list[int], list[int]]:
        v, facts, node = self.variables, self.variables.facts, self.variables.node(cell.node)
        selector, value_node = node.inputs
        default: Value = node.constant
        reflexive, single = facts.holds("reflexive", selector), facts.holds("single", selector)
        agreed = facts.holds("same", selector, value_node)
        ideal, slack = expected(v, cell)
        claimed = features(v, cell)
        errors = [0] * len(ideal)
        order = sorted({*self.used, *v.support(value_node, set(self.used))})
        self.used, before = order, self.used
        slope = None if agreed and v.listed(cell.node) else _affine(v, cell, claimed, value_node, self.where)
        low = None if self.gaps.selected is None else self.gaps.selected[0]
        osc = arb(0) if single else self.gaps.apart.upper()
        mixed = None if low is None else self._mix(1 if single else self.n, osc, low, self.gaps.over, agreed=agreed)
        if mixed is None and reflexive:
            raise Refused(f"{self.where}: every position is said to select itself, and no pair is selected")
        shared, undefined, totals = 0, [], []
        if mixed is not None:  # otherwise no pair is selected in any case, and only the default is ever read
            for places, (value,) in v.cases(order, [value_node]):
                columns = self._columns(places)
                total = self._total([x for x, _ in columns])
                error = self._error(mixed, [(ceil_shift(abs(x)), e) for x, e in columns])
                totals.append(total)
                if value is None and not agreed:
                    undefined.append(total)
                    shared = max(shared, error)
                elif slope is not None and is_number(value):
                    away = abs(Fraction(total, 1 << 3 * BITS) - slope[0] * exact(value) - slope[1])
                    shared = max(shared, error + fraction_up(away * UNIT))
                else:
                    z = v.place(cell.node, value)
                    errors[z] = max(errors[z], error + ceil_shift(abs(total - (ideal[z] << 2 * BITS)), 2 * BITS))
        if slope is not None:
            domain = v.domain(cell.node)
            errors = [
                max(e, shared) if x is not None and is_number(x) else e for e, x in zip(errors, domain, strict=True)
            ]
        if undefined:
            self._mixed_undefined(cell, ideal, errors, (min(undefined), min(totals), max(totals), shared))
        if not reflexive:
            self._default(cell, default, ideal, errors)
        self.used = before
        return ideal, [e + s for e, s in zip(errors, slack, strict=True)]

    def _default(self, cell: Cell, default: Value, ideal: list[int], errors: list[int]) -> None:
        """Where nothing is selected, the beginning-of-sequence token is read."""
        columns = self._start_columns()
        total = self._total([x for x, _ in columns])
        gap = None if self.gaps.unselected is None else -self.gaps.unselected
        error = self._error(self._mix(1, arb(0), gap), [(ceil_shift(abs(x)), e) for x, e in columns])
        if default is not None and not self.variables.listed(cell.node):  # held as the number itself
            error += fraction_up(abs(Fraction(total, 1 << 3 * BITS) - exact(default)) * UNIT)
            errors[:2] = [max(e, error) for e in errors[:2]]
            return
        z = self.variables.place(cell.node, default)
        if default is None and cell.or_more:
            at = ceil_shift(total, 2 * BITS)
            low, high = min(ideal[z] - errors[z], at - 1), max(ideal[z] + errors[z], at)
            if at < nearest(rational(cell.undefined or 0))[0]:
                raise Refused(
                    f"{self.where}: the default of {shown(cell.name)} is below what it holds where it is undefined"
                )
            ideal[z], errors[z] = (low + high) // 2, (high - low) // 2 + 1 + error
        else:
            errors[z] = max(errors[z], error + ceil_shift(abs(total - (ideal[z] << 2 * BITS)), 2 * BITS))

    def _mixed_undefined(
        self, cell: Cell, ideal: list[int], errors: list[int], ends: tuple[int, int, int, int]
    ) -> None:
        """A mean of at most n numbers, one of them at least that of undefined: at least (U + (n - 1) lowest) / n."""
        undefined, lowest, highest, error = ends
        least = Fraction(undefined + (self.n - 1) * lowest, self.n << 3 * BITS)
        if not cell.or_more or cell.undefined is None or least < rational(cell.undefined):
            said = "several positions may be selected, some of them undefined"
            raise Refused(
                f"{self.where}: {said}, and the cell {shown(cell.name)} does not hold {cell.undefined} or more then"
            )
        low, high = nearest(least)[0], ceil_shift(highest, 2 * BITS)
        ideal[-1], errors[-1] = (low + high) // 2, (high - low) // 2 + 1 + error


def _affine(
    variables: Variables, cell: Cell, claimed: list[Fraction], value: int, where: str
) -> tuple[Fraction, Fraction]:
    """Slope and offset of the features as a function of the numbers they stand for: then they commute with means.

    A mean lies between the ends of its values, and equals an end only if all of them do: then it is that value itself. So a
    number outside, or at an end under another type (0 beside False), is no mean; it can only be the default.
    """
    if cell.feature is None:
        return Fraction(1), Fraction(0)
    values = [x for x in variables.domain(value) if x is not None and is_number(x)]
    numbers = [exact(x) for x in values]
    low, high = min(numbers, default=Fraction(0)), max(numbers, default=Fraction(0))
    ends = [x for x, number in zip(values, numbers, strict=True) if number in (low, high)]
    own = {identity(x) for x in values}
    points = []
    for x, f in zip(variables.domain(cell.node), claimed, strict=True):
        if x is not None and is_number(x) and low <= exact(x) <= high:
            alien = exact(x) in (low, high) and identity(x) not in own and sum(exact(y) == exact(x) for y in ends) == 1
            points += [] if alien else [(exact(x), f)]
    if not points:
        return Fraction(0), Fraction(0)
    (x0, f0), (x1, f1) = points[0], points[-1]
    slope = (f1 - f0) / (x1 - x0) if x1 != x0 else Fraction(0)
    if any(f != f0 + slope * (x - x0) for x, f in points):
        raise Refused(
            f"{where}: several positions may be selected, and the features of {shown(cell.name)} are not those of a mean"
        )
    return slope, f0 - slope * x0
