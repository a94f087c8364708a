"""What a head writes: the mean of a value over the selected positions, or the inverse of their number plus one.

Let the selected keys have scores within `osc` of each other and all other keys be at least `gap` below. Then the others
have together a weight of at most l = n e^-gap relative to a selected one, and the weights of w selected keys are
(1/w) (1 + t), |t| <= e^osc - 1 + l. Where all selected values are equal only the sum of the weights matters, and |t| <= l.
For values v with errors e the output is off by at most t |v| + (1 + t) e + l V, V >= every |v|.

*In a run* the same holds with scores in error, and the weights have the errors of exp, the sum and the division. Two
facts are assumed of the run beyond `rounding`: exp(x) = 1 for |x| <= u/4, and x/1 = x. If the selected scores agree within
u/4 and the others' weights add up to at most u/16, the denominator is w exactly (absorption): one selected key has weight
1, w of them have 1/w up to the error of one division.

`width`: the beginning-of-sequence token counts as selected, w + 1 keys in all, and the data positions have a constant value
b: the output is (a + w b) / (1 + w), a the value of the beginning-of-sequence token. `read`: selected keys are above the
beginning-of-sequence token, which is above all others, so its value a is the output where nothing is selected.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from flint import arb

from certiformer.checker.balls import larger, smaller
from certiformer.checker.margin.fixed import (
    BITS,
    UNIT,
    Arithmetic,
    as_fixed,
    ceil_shift,
    low_bit,
    lowered,
    nearest,
    smallest_bit,
    times,
)
from certiformer.checker.margin.scores import Gaps
from certiformer.checker.margin.state import Content, Form, expected, features, tell_apart
from certiformer.checker.margin.variables import IMPOSSIBLE, Variables
from certiformer.checker.rules.refusal import Refused
from certiformer.rasp.circuit import Cell, rational
from certiformer.rasp.facts import selects_one_value
from certiformer.rasp.value import Value, exact, identity, is_number

LARGEST = arb(5000)  # nats: exp of anything lower than -LARGEST is replaced by exp of that, which is larger


@dataclass(frozen=True)
class Mix:
    """Relative error of the weights of selected keys, weight of all others, how many terms are not negligible, and of how
    many keys in all.
    """

    relative: int
    leak: int
    terms: int
    keys: int

    @property
    def copies(self) -> bool:
        """Whether the one selected number is returned, but for what others leak."""
        return self.terms == 1 and not self.relative

    def error(self, arithmetic: Arithmetic, value: int, error: int, most: int, grid: int) -> int:
        """Of a mean of numbers of size `value` with `error`; all numbers of the column are at most `most` in size."""
        off = times(self.relative, value + error) + error + times(self.leak, most)
        if arithmetic.form is None:
            return off
        if self.copies and off <= arithmetic.absorbed(grid, value):
            return off + times(arithmetic.gamma(self.keys + 1), off)
        small = times(self.leak, most) + times(4 * arithmetic.tiny, UNIT + most)
        whole = value + error + times(self.relative, value + error)
        # The lemma on small terms: gamma_K of the big terms, and three times the others (2 (1 + u)^2n < 3).
        return off + times(arithmetic.gamma(self.terms + 1), whole) + 4 * small


def mix(arithmetic: Arithmetic, n: int, selected: int, gap: arb | None, osc: arb, agreed: bool = False) -> Mix:
    """`selected` keys at most; `gap` is None when there are no others; `agreed`: all selected keys have the same value."""
    form, leak = arithmetic.form, 0
    if gap is not None:
        if not gap > 0:
            raise Refused(f"the scores separate selected from other positions by {float(gap):.4g} only")
        lowest = gap if gap < LARGEST else LARGEST
        leak = as_fixed((n * (-lowest).exp()).upper())
    relative = leak + (0 if agreed or not osc > 0 else as_fixed((osc.exp() - 1).upper()))
    if form is None:
        return Mix(relative, leak, selected, n + 1)
    if gap is not None:
        leak = 2 * leak + 4 * n * arithmetic.tiny
    even = osc <= form.unit / 4 and 16 * leak <= arithmetic.unit and selected << BITS <= UNIT << form.precision
    if even:
        return Mix(0 if selected == 1 else arithmetic.gamma(form.divide), leak, selected, n + 1)
    rounded = arithmetic.gamma(2 * form.exp + n + 2 + form.divide)
    return Mix(relative + rounded + times(relative, rounded), leak, selected, n + 1)


class Head:
    """The value side of one head: forms of its columns, and the contents of the coordinates that it writes."""

    def __init__(
        self, arithmetic: Arithmetic, variables: Variables, forms: list[Form], gaps: Gaps, selector: int, where: str
    ):
        self.causal = gaps.start is None
        self.arithmetic, self.variables, self.forms, self.gaps, self.where = arithmetic, variables, forms, gaps, where
        self.n, self.selector = variables.graph.length, variables.node(selector)
        self.plans = [form.plan() for form in forms]
        sizes = [form.size + abs(form.bias) for form in forms]
        pairs = zip(forms, self.plans, sizes, strict=True)
        self.most = [size + plan.error(form.carried, size) for form, plan, size in pairs]
        self.grids = [lowered(smallest_bit([form.grid, (form.bias & -form.bias) << BITS])) for form in forms]
        self.used = sorted({x for form in forms for x in form.parts})
        self.separations: list[arb] = []  # every gap that was needed

    def _mix(self, selected: int, osc: arb, *gaps: arb | None, agreed: bool = False) -> Mix:
        known = [gap for gap in gaps if gap is not None]
        least = min(known, key=lambda gap: float(gap.lower()), default=None)
        if least is not None:
            unit = arb(0) if self.arithmetic.form is None else self.arithmetic.form.unit
            least = (least * (1 - 2 * unit)).lower()  # the difference from the largest score is rounded
            self.separations.append(least)
        try:
            return mix(self.arithmetic, self.n, selected, least, osc, agreed)
        except Refused as problem:
            raise Refused(f"{self.where}: {problem} in {self.arithmetic.name}") from None

    def write(self, kind: str, cell: tuple[int, Cell], out: list[int], bias: int, old: Content) -> Content:
        """The content of a coordinate whose cell is an aggregate or a width; `out` are its weights, one a column."""
        if old.variable is not None or old.size:
            raise Refused(f"{self.where}: the cell {cell[1].name} is written over one that is still there")
        self.out, self.shift, self.shift_size, self.shift_error = out, bias << 2 * BITS, abs(bias), old.worst
        self.shifts = int(bias != 0) + int(old.worst != 0)
        node = self.variables.node(cell[1].node)
        if node.kind == "length":  # the width of a selector that leaves nobody out
            right = not self.causal and self.gaps.unselected is None and self.gaps.selected is not None
        else:
            right = node.kind in ("width", "aggregate") and self.variables.node(node.inputs[0]) is self.selector
        if not right or (node.kind == "aggregate") != (kind == "read"):
            raise Refused(
                f"{self.where}: the cell {cell[1].name} is not what a {kind} head with this selector computes"
            )
        ideal, errors = (self._read if kind == "read" else self._width)(cell[1])
        claimed, slack = nearest(rational(cell[1].at_start))
        columns = self._start_columns()
        start = self._total([v for v, _ in columns])
        alone = self._mix(1, arb(0), None if self.gaps.start is None else -self.gaps.start)
        error = self._error(alone, [(ceil_shift(abs(v)), e) for v, e in columns])
        start_error = error + slack + ceil_shift(abs(start - (claimed << 2 * BITS)), 2 * BITS)
        content = Content(cell[1].node if len(ideal) > 1 else None, ideal, errors, claimed, start_error, cell[0])
        tell_apart(self.arithmetic, content, cell[1], self.where)
        return content

    def _total(self, values: list[int]) -> int:
        """What reaches the coordinate, in units of 2^-3 BITS."""
        return sum(o * v for o, v in zip(self.out, values, strict=True)) + self.shift

    def _error(self, mixed: Mix, columns: list[tuple[int, int]]) -> int:
        """The error of the coordinate when the columns mix numbers of these (size, error)."""
        size, carried, grids = self.shift_size, self.shift_error, [low_bit([self.shift]) >> BITS]
        for o, (value, error), most, grid in zip(self.out, columns, self.most, self.grids, strict=True):
            if o:
                size += times(abs(o), value)
                carried += times(abs(o), mixed.error(self.arithmetic, value, error, most, grid))
                grids.append((o & -o) * (grid if mixed.copies else 1))
        used = [o for o in self.out if o]
        grid = lowered(smallest_bit(grids))
        return self.arithmetic.plan(used, grid, size, carried, more=self.shifts).error(carried, size)

    def _columns(self, places: tuple[int, ...]) -> list[tuple[int, int]]:
        """Value (in units of 2^-2 BITS) and error of every column at a data position."""
        found = []
        for form, plan in zip(self.forms, self.plans, strict=True):
            value, error, size = form.constant, form.constant_error, form.constant_size
            for x, p in zip(self.used, places, strict=False):
                if x in form.parts:
                    values, errors, sizes = form.parts[x]
                    value, error, size = value + values[p], error + errors[p], size + sizes[p]
            found.append((value, plan.error(error, size)))
        return found

    def _start_columns(self) -> list[tuple[int, int]]:
        return [form.at_start() for form in self.forms]

    def _width(self, cell: Cell) -> tuple[list[int], list[int]]:
        data = [self._columns(places) for places in self.variables.combinations(self.used)]
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
        for w, held, feature, s in zip(
            self.variables.domain(cell.node), ideal, features(self.variables, cell), slack, strict=True
        ):
            if type(w) is not int or not 0 <= w <= self.n:
                raise Refused(f"{self.where}: {self.variables.name(cell.node)} has the value {w!r}, no width")
            columns, extra = [], 0
            for (a, e), b, d, o in zip(start, same, off, self.out, strict=True):
                columns.append((-(-ceil_shift(abs(a) + w * abs(b)) // (w + 1)), -(-(e + w * d) // (w + 1))))
                extra += 0 if b or not w else 4 * times(abs(o), d)  # terms that should be zero are small terms
            mixed = one if not w else many if any(same) else replace(many, terms=1)
            away = abs(Fraction(first + w * others, w + 1) - feature * (1 << 3 * BITS))
            errors.append(_up(away, 2 * BITS) + self._error(mixed, columns) + extra + s)
            del held
        return ideal, errors

    def _read(self, cell: Cell) -> tuple[list[int], list[int]]:
        v, facts = self.variables, self.selector.facts
        node = v.node(cell.node)
        value_node, default = node.inputs[1], node.constant
        single = "single" in facts
        agreed = single or selects_one_value(v.graph.nodes, self.selector, value_node)
        ideal, slack = expected(v, cell)
        claimed = features(v, cell)
        errors = [0] * len(ideal)
        order = sorted({*self.used, *v.support(value_node, set(self.used))})
        self.used, before = order, self.used
        value_of = v.evaluator(value_node, order)
        slope = None if agreed and v.listed(cell.node) else _affine(v, cell, claimed, value_node, self.where)
        low = None if self.gaps.selected is None else self.gaps.selected[0]
        osc = arb(0) if single else self.gaps.apart.upper()
        mixed = None if low is None else self._mix(1 if single else self.n, osc, low, self.gaps.over, agreed=agreed)
        shared, undefined, totals = 0, [], []
        for places in v.combinations(order):
            value = value_of(places)
            if value is IMPOSSIBLE or mixed is None:
                continue
            columns = self._columns(places)
            total = self._total([x for x, _ in columns])
            error = self._error(mixed, [(ceil_shift(abs(x)), e) for x, e in columns])
            totals.append(total)
            if value is None and not agreed:
                undefined.append(total)
                shared = max(shared, error)
                continue
            z = v.place(cell.node, value) if v.listed(cell.node) else None
            if slope is not None and is_number(value):
                away = abs(Fraction(total, 1 << 3 * BITS) - slope[0] * exact(value) - slope[1])
                shared = max(shared, error + _up(away * UNIT, 0))
            elif z is not IMPOSSIBLE and z is not None:
                errors[z] = max(errors[z], error + ceil_shift(abs(total - (ideal[z] << 2 * BITS)), 2 * BITS))
        if slope is not None:
            domain = v.domain(cell.node)
            errors = [
                max(e, shared) if x is not None and is_number(x) else e for e, x in zip(errors, domain, strict=True)
            ]
        if undefined:
            self._mixed_undefined(cell, ideal, errors, (min(undefined), min(totals), max(totals), shared))
        if "reflexive" not in facts:
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
            error += _up(abs(Fraction(total, 1 << 3 * BITS) - exact(default)) * UNIT, 0)
            errors[:2] = [max(e, error) for e in errors[:2]]
            return
        z = self.variables.place(cell.node, default)
        if z is IMPOSSIBLE:
            raise Refused(f"{self.where}: the default of {cell.name} is not among its values")
        if default is None and cell.or_more:
            at = ceil_shift(total, 2 * BITS)
            low, high = min(ideal[z] - errors[z], at - 1), max(ideal[z] + errors[z], at)
            if at < nearest(rational(cell.undefined or 0))[0]:
                raise Refused(f"{self.where}: the default of {cell.name} is below what it holds where it is undefined")
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
            raise Refused(f"{self.where}: {said}, and the cell {cell.name} does not hold {cell.undefined} or more then")
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
            f"{where}: several positions may be selected, and the features of {cell.name} are not those of a mean"
        )
    return slope, f0 - slope * x0


def _up(value: Fraction, bits: int) -> int:
    """value / 2^bits, rounded up."""
    return -(-value.numerator // (value.denominator << bits))
