"""What a head writes, whatever it is for: value columns mixed by softmax, with their errors. See also `computing_heads`.

Let the selected keys have scores within `osc` of each other and all other keys be at least `gap` below. Then the others
have together a weight of at most l = n e^-gap relative to a selected one, and the weights of w selected keys are
(1/w) (1 + t), |t| <= e^osc - 1 + l. Where all selected values are equal only the sum of the weights matters, and |t| <= l.
For values v with errors e the output is off by at most t |v| + (1 + t) e + l V, V >= every |v|.

*In a run* the same holds with scores in error, and the weights have the errors of exp, the sum and the division. Two
facts are assumed of the run beyond `rounding`: exp(x) = 1 for |x| <= u/4, and x/1 = x. If the selected scores agree within
u/4 and the others' weights add up to at most u/16, the denominator is w exactly (absorption): one selected key has weight
1, w of them have 1/w up to the error of one division.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from flint import arb

from certiformer.kernel import Refused
from certiformer.kernel.balls import smaller
from certiformer.kernel.situations.numbers import BITS, UNIT, ceil_shift, times
from certiformer.kernel.situations.rasp.circuit import Cell
from certiformer.kernel.situations.rasp.domains import shown
from certiformer.kernel.situations.rasp.fixed import Arithmetic, as_fixed, lowered, smallest_bit
from certiformer.kernel.situations.rasp.score_bounds import Gaps
from certiformer.kernel.situations.rasp.state import Content, Form, expected_start, grid_between, tell_apart
from certiformer.kernel.situations.rasp.variables import Variables

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
            raise Refused(f"the scores separate selected from other positions by about {float(gap):.4g} only")
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

    computes: tuple[str, ...]  # kinds of nodes

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
        known = [gap.lower() for gap in gaps if gap is not None]
        least = reduce(smaller, known) if known else None
        if least is not None:
            unit = arb(0) if self.arithmetic.form is None else self.arithmetic.form.unit
            least = (least * (1 - 2 * unit)).lower()  # the difference from the largest score is rounded
            self.separations.append(least)
        try:
            return mix(self.arithmetic, self.n, selected, least, osc, agreed)
        except Refused as problem:
            raise Refused(f"{self.where}: {problem} in {self.arithmetic.name}") from None

    def features(self, cell: Cell) -> tuple[list[int], list[int]]:
        """What the coordinate of a cell holds for every place of its node, and the errors."""
        raise NotImplementedError

    def write(self, cell: tuple[int, Cell], out: list[int], bias: int, old: Content) -> Content:
        """The content of a coordinate; `out` are its weights, one a column."""
        if old.variable is not None or old.size:
            raise Refused(f"{self.where}: the cell {shown(cell[1].name)} is written over one that is still there")
        self.out, self.shift, self.shift_size, self.shift_error = out, bias << 2 * BITS, abs(bias), old.worst
        self.shifts = int(bias != 0) + int(old.worst != 0)
        node = self.variables.node(cell[1].node)
        if node.kind == "length":  # the width of a selector that leaves nobody out
            right = not self.causal and self.gaps.unselected is None and self.gaps.selected is not None
        else:
            right = node.kind in self.computes and self.variables.node(node.inputs[0]) is self.selector
        if not right or node.kind not in self.computes:
            raise Refused(
                f"{self.where}: the cell {shown(cell[1].name)} is not what such a head with this selector computes"
            )
        ideal, errors = self.features(cell[1])
        claimed, slack = expected_start(cell[1])
        columns = self._start_columns()
        start = self._total([v for v, _ in columns])
        alone = self._mix(1, arb(0), None if self.gaps.start is None else -self.gaps.start)
        error = self._error(alone, [(ceil_shift(abs(v)), e) for v, e in columns])
        start_error = error + slack + ceil_shift(abs(start - (claimed << 2 * BITS)), 2 * BITS)
        variable, between = cell[1].node if len(ideal) > 1 else None, grid_between(self.variables, cell[1].node)
        content = Content(variable, ideal, errors, claimed, start_error, cell[0], between)
        tell_apart(self.arithmetic, content, cell[1], self.where)
        return content

    def _total(self, values: list[int]) -> int:
        """What reaches the coordinate, in units of 2^-3 BITS."""
        return sum(o * v for o, v in zip(self.out, values, strict=True)) + self.shift

    def _error(self, mixed: Mix, columns: list[tuple[int, int]]) -> int:
        """The error of the coordinate when the columns mix numbers of these (size, error)."""
        size, carried, grids = self.shift_size, self.shift_error, [(self.shift & -self.shift) >> BITS]
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
        at = dict(zip(self.used, places, strict=True))
        found = [(form.at(at), plan) for form, plan in zip(self.forms, self.plans, strict=True)]
        return [(value, plan.error(error, size)) for (value, error, size), plan in found]

    def _start_columns(self) -> list[tuple[int, int]]:
        return [form.at_start() for form in self.forms]
