"""What the coordinates of the residual stream hold, and the linear forms that a sub-layer reads from them.

`Content`: at a data position the coordinate is within `error[v]` of `ideal[v]`, v the place of the value of the node
`variable` there (None: one case only, a constant); at the beginning-of-sequence token it is within `start_error` of
`start`. Where the values are too many to list, `ideal` has the two ends only, and `between` is a power of two that divides
all numbers between them. `Form`: a linear form of coordinates, split by variable, with what a run adds to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil, prod

from certiformer.kernel import Refused
from certiformer.kernel.meanings.rasp import exact, is_number
from certiformer.kernel.situations.numbers import BITS, ceil_shift, times
from certiformer.kernel.situations.rasp.circuit import Cell, rational
from certiformer.kernel.situations.rasp.domains import MOST, TOLERANCE, shown
from certiformer.kernel.situations.rasp.fixed import Arithmetic, Plan, as_float, low_bit, lowered, nearest, smallest_bit
from certiformer.kernel.situations.rasp.variables import Variables


@dataclass(frozen=True)
class Content:
    """One coordinate; see the module docstring."""

    variable: int | None
    ideal: list[int]
    error: list[int]
    start: int
    start_error: int
    cell: int | None = None
    between: int = 0  # 0: all values are listed

    @cached_property
    def size(self) -> int:
        return max(map(abs, [*self.ideal, self.start]))

    @cached_property
    def grid(self) -> int:
        """The largest power of two that divides every number held."""
        return low_bit([*self.ideal, self.start, self.between])

    @cached_property
    def worst(self) -> int:
        return max([*self.error, self.start_error])

    @property
    def is_zero(self) -> bool:
        return not (self.size or self.worst)


Contents = Sequence[Content]
EMPTY = Content(None, [0], [0], 0, 0)


def features(variables: Variables, cell: Cell) -> list[Fraction]:
    """The numbers that a cell claims to hold, one for every place of its node's domain."""
    domain = variables.domain(cell.node)
    undefined = [] if domain[-1] is not None else [cell.undefined]
    defined = domain[: len(domain) - len(undefined)]
    if not variables.listed(cell.node) and cell.feature is not None:
        raise Refused(f"the cell {shown(cell.name)} lists features for numbers too many to list")
    if cell.feature is None:
        if not all(map(is_number, defined)):
            raise Refused(f"the cell {shown(cell.name)} holds {variables.name(cell.node)} as a number, which it is not")
        found = [exact(value) for value in defined]
    else:
        if len(cell.feature) != len(defined):
            raise Refused(f"the cell {shown(cell.name)} states {len(cell.feature)} features for {len(defined)} values")
        found = [rational(number) for number in cell.feature]
    if undefined and cell.undefined is None:
        raise Refused(
            f"the cell {shown(cell.name)} does not say what it holds where {variables.name(cell.node)} is undefined"
        )
    return found + [rational(number) for number in undefined if number is not None]


def grid_between(variables: Variables, node: int | None) -> int:
    """A power of two that divides every number between the ends of a node without a list, as a fixed number; 0: it has one.

    The ends may be round numbers where those between them are not. Integers times a step are multiples of the step;
    fractions of other denominators are multiples of no power of two above one unit.
    """
    if node is None or variables.listed(node):
        return 0
    span = variables.span(node)
    if span is None or span.largest_denominator != 1:
        return 1
    step, lost = nearest(span.step)
    return 1 if lost else low_bit([step])


class Form:
    """sum of weight * coordinate + bias, weights and bias exact; values in units of 2^-2 BITS, errors in fixed numbers.

    `parts[v]`: what the variable v adds, by place, and the error it carries; `constant` the rest. `sizes[v]` are sums of
    absolute values, for the rounding of a run.
    """

    def __init__(
        self, arithmetic: Arithmetic, variables: Variables, contents: Contents, weights: dict[int, int], bias: int = 0
    ):
        self.arithmetic, self.bias = arithmetic, bias
        self.weights = {c: w for c, w in weights.items() if w and not contents[c].is_zero}
        self.constant, self.constant_error, self.constant_size = bias << BITS, 0, abs(bias)
        self.start, self.start_error, self.start_size = bias << BITS, 0, abs(bias)
        self.parts: dict[int, tuple[list[int], list[int], list[int]]] = {}
        grids, self.size, self.carried = [], 0, 0
        self.collapsed = 0  # the share of the carried error that is not of the coordinates, but of `_collapse`
        for c, w in self.weights.items():
            content = contents[c]
            grids.append((w & -w) * content.grid)
            self.size += times(abs(w), content.size)
            self.carried += times(abs(w), content.worst)
            self.start += w * content.start
            self.start_error += times(abs(w), content.start_error)
            self.start_size += times(abs(w), abs(content.start))
            values, errors, sizes = _scaled(content, w)
            if content.variable is None:
                self.constant += values[0]
                self.constant_error += errors[0]
                self.constant_size += sizes[0]
            elif content.variable in self.parts:
                old = self.parts[content.variable]
                added = (values, errors, sizes)
                self.parts[content.variable] = tuple(_plus(a, b) for a, b in zip(old, added, strict=True))  # type: ignore
            else:
                self.parts[content.variable] = (values, errors, sizes)
        self.grid = smallest_bit(grids)  # in units of 2^-2 BITS, without the bias
        while len(self.parts) > 1 and self._collapse(variables):
            pass

    def _collapse(self, variables: Variables) -> bool:
        """Replace variables by one node that is a linear combination of them, where that leaves fewer variables.

        length - indices takes 2 n values, its two variables together n^2 / 2.
        """
        slopes = {x: slope for x in self.parts if (slope := variables.slope(x, self.parts[x][0])) is not None}
        count = prod(len(variables.domain(x)) for x in self.parts)
        for node, (terms, offset) in variables.definitions(set(slopes)):
            if not variables.listed(node) and count <= MOST:  # of a node without a list, only the ends are known
                continue
            for x, factor in terms.items():
                share = slopes[x] / factor
                gone = sum(1 for y, f in terms.items() if slopes[y] == share * f)
                if (
                    share
                    and gone > 1
                    and node not in self.parts
                    and self._replace(variables, node, share, terms, offset)
                ):
                    return True
        return False

    def _replace(
        self, variables: Variables, node: int, share: Fraction, terms: dict[int, Fraction], offset: Fraction
    ) -> bool:
        """With node = offset + sum f_y y: put share (node - offset) in, take share f_y y out of every part y."""
        rests: dict[int, list[Fraction]] = {}
        for y, f in terms.items():
            rests[y] = [v - share * f * exact(x) for v, x in zip(self.parts[y][0], variables.domain(y), strict=True)]
        added = [share * (exact(x) - offset) for x in variables.domain(node)]
        errors = sizes = 0
        for y, rest in rests.items():
            _, error, size = self.parts.pop(y)
            errors, sizes = errors + max(error), sizes + max(size)
            lost, spread = _lost(rest), ceil(max(rest) - min(rest))
            if spread > 2 * TOLERANCE:
                self.parts[y] = ([round(x) for x in rest], [lost] * len(rest), [0] * len(rest))
            else:
                self.constant += round(rest[0])
                lost += ceil_shift(spread)
                errors += lost
            self.collapsed += lost
            self.carried += lost
        self.collapsed += _lost(added)
        self.carried += _lost(added)
        self.parts[node] = ([round(x) for x in added], [errors + _lost(added)] * len(added), [sizes] * len(added))
        return True

    def plan(self, bias: int | None = None) -> Plan:
        """What a run adds, with the form's own bias or another one."""
        b = self.bias if bias is None else bias
        grid = lowered(smallest_bit([self.grid, (b & -b) << BITS]))
        return self.arithmetic.plan(self.weights.values(), grid, self.size + abs(b), self.carried, more=int(b != 0))

    def at(self, places: Mapping[int, int]) -> tuple[int, int, int]:
        """Value, carried error and size where the variables have these places."""
        value, error, size = self.constant, self.constant_error, self.constant_size
        for x, (values, errors, sizes) in self.parts.items():
            p = places[x]
            value, error, size = value + values[p], error + errors[p], size + sizes[p]
        return value, error, size

    def at_start(self) -> tuple[int, int]:
        """The value at the beginning-of-sequence token, and its error in the run."""
        return self.start, self.plan().error(self.start_error, self.start_size)


def _lost(values: list[Fraction]) -> int:
    """What rounding to integers costs, as an error: nothing, or one unit."""
    return int(any(x.denominator != 1 for x in values))


def _scaled(content: Content, w: int) -> tuple[list[int], list[int], list[int]]:
    size = abs(w)
    ideal = [w * x for x in content.ideal]
    return ideal, [times(size, e) for e in content.error], [ceil_shift(abs(x)) for x in ideal]


def _plus(a: list[int], b: list[int]) -> list[int]:
    return [x + y for x, y in zip(a, b, strict=True)]


def expected(variables: Variables, cell: Cell) -> tuple[list[int], list[int]]:
    """The claimed features as fixed numbers, and what rounding them costs."""
    pairs = [nearest(number) for number in features(variables, cell)]
    return [value for value, _ in pairs], [error for _, error in pairs]


def expected_start(cell: Cell) -> tuple[int, int]:
    """The same for the beginning-of-sequence token."""
    return nearest(rational(cell.at_start))


def tell_apart(arithmetic: Arithmetic, content: Content, cell: Cell, where: str) -> None:
    """A cell whose error reaches half the distance between two of its features would no longer name its value."""
    listed = sorted(set(zip(content.ideal, content.error, strict=True)))
    for (a, e), (b, f) in zip(listed, listed[1:], strict=False):
        if a != b and e + f >= b - a:
            off, apart = as_float(max(e, f)), as_float(b - a)
            raise Refused(
                f"{where}, may be off by {off:.3g} in {arithmetic.name}, and two of its values are {apart:.3g} apart"
            )
