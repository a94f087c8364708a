"""A head that looks up one place, and sums of enclosed numbers: bounds that hold in real arithmetic and in a run at once.

Every ball here contains the real value *and* every value that a run by the rules of `kernel.rounding` may give.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from flint import arb

from certiformer.kernel import Refused
from certiformer.kernel.balls import ONE, ZERO, larger
from certiformer.kernel.rounding import Format, NoBound, no_overflow, summation
from certiformer.kernel.weights import Tensor


@dataclass(frozen=True)
class Shares:
    """Of the softmax over one wanted key and others: the share of the wanted one, and that of all others together."""

    low: arb
    high: arb
    rest: arb

    def read(self, bit: bool) -> arb:
        """A weighted sum of values in {0, 1}, of which the wanted one is `bit`."""
        return self.low.union(self.high) if bit else ZERO.union(self.rest)


def shares_of(form: Format, others: int, lead: float) -> Shares:
    """The shares where the wanted key's score exceeds each of `others` by at least `lead`, all scores exact in a run.

    Real arithmetic: with e = others exp(-lead) the wanted key has a share of at least 1 / (1 + e), the others at most e
    together. A run: the largest difference of scores is exactly 0, every exponential errs by E u relatively, underflows by
    t, the sum as the lemma on small terms says, and the quotient by D u. Values are 0 or 1, so the weighted sum adds the
    shares; it errs as the same lemma says.
    """
    small = (-arb(lead)).exp().upper() if others else ZERO
    around, quotient = form.exp * form.unit, form.divide * form.unit
    top, tail = 1 + around, others * (small * (1 + around) + form.tiny)
    error = summation(form, [top], top, others, tail)
    least, most = 1 - around - error, top + tail + error
    if not least > 0:
        raise NoBound("the sum of the exponentials may vanish")
    low = (1 - around) / most * (1 - quotient) - form.tiny
    high = larger((top / least * (1 + quotient) + form.tiny).upper(), ONE)
    rest = tail / least * (1 + quotient) + others * form.tiny
    added = summation(form, [high], (high + rest).upper(), others, rest.upper())
    # Where the wanted value is 0, only small terms are added up.
    lost = summation(form, [], ZERO, others, rest.upper())
    found = Shares((low - added - form.tiny).lower(), (high + rest + added).upper(), (rest + lost + form.tiny).upper())
    if not all(bound.is_finite() for bound in (found.low, found.high, found.rest)):
        raise NoBound("the shares of a head are not finite")
    return found


def enclosed_sum(form: Format, products: Iterable[tuple[arb, float]], constants: Iterable[arb] = ()) -> arb:
    """The sum of value times weight and of constants, in any order.

    With m roundings by the counting rule a run errs by at most gamma_m times the sum of the sizes; each of the products and
    additions may underflow, and each operand, weight and constant may be flushed.
    """
    terms = [(value, weight) for value, weight in products if weight and not value.is_zero()]
    added = [value for value in constants if not value.is_zero()]
    total = sum((value * weight for value, weight in terms), ZERO) + sum(added, ZERO)
    size = sum((abs(value * weight) for value, weight in terms), ZERO) + sum((abs(value) for value in added), ZERO)
    count = len(terms) + len(added)
    if count == 0:
        return ZERO
    gamma = form.gamma(count)
    no_overflow(form, size * (1 + gamma))
    operands = sum((abs(arb(weight)) + abs(value) for value, weight in terms), ZERO)
    error = (gamma * size + 2 * form.tiny * (3 * count + operands)).upper()
    found = total + (-error).union(error)
    if not found.is_finite():
        raise NoBound("a sum of the run is not finite")
    return found


class Units:
    """ReLU units with a residual, applied to one row of enclosed numbers."""

    def __init__(self, form: Format, tensors: Mapping[str, Tensor], name: str):
        self.form = form
        up, down = tensors[f"{name}.up"], tensors[f"{name}.down"]
        self.ups = columns(up)
        self.biases = [arb(x) for x in tensors[f"{name}.up_bias"].data]
        self.downs, self.shifts = columns(down), [arb(x) for x in tensors[f"{name}.down_bias"].data]
        self.reads = {coordinate for column in self.ups for coordinate in column}

    def after(self, row: Mapping[int, arb], wanted: Iterable[int]) -> dict[int, arb]:
        """The wanted coordinates of the row after the sub-layer; a coordinate that is not in the row is 0."""
        hidden = []
        for ups, bias in zip(self.ups, self.biases, strict=True):
            argument = enclosed_sum(self.form, [(row.get(c, ZERO), w) for c, w in ups.items()], [bias])
            hidden.append(argument.max(ZERO))
        found = {}
        for c in wanted:
            through = [(hidden[unit], weight) for unit, weight in self.downs[c].items()]
            moved = enclosed_sum(self.form, through, [self.shifts[c]])
            found[c] = enclosed_sum(self.form, [], [row.get(c, ZERO), moved])
        return found


def columns(tensor: Tensor) -> list[dict[int, float]]:
    """For each entry of the last axis of a matrix its nonzero weights, by row."""
    _, size = tensor.shape
    found: list[dict[int, float]] = [{} for _ in range(size)]
    for place, weight in enumerate(tensor.data):
        if weight:
            found[place % size][place // size] = weight
    return found


def sparse_row(tensor: Tensor, *lead: int) -> dict[int, float]:
    """The nonzero entries of the last axis at the given leading indices."""
    size = tensor.shape[-1]
    start = 0
    for length, index in zip(tensor.shape, lead, strict=False):
        start = start * length + index
    return {i: x for i, x in enumerate(tensor.data[start * size : (start + 1) * size]) if x}


def copied_coordinates(tensor: Tensor, head: int, first: int) -> tuple[list[int], set[float]]:
    """The coordinate that each entry of a head's key or query copies, and the factors; none lies before `first`."""
    _, width, size = tensor.shape
    found: list[list[tuple[int, float]]] = [[] for _ in range(size)]
    for coordinate in range(width):
        for entry, weight in sparse_row(tensor, head, coordinate).items():
            found[entry].append((coordinate, weight))
    if any(len(column) != 1 or column[0][0] < first for column in found):
        raise Refused("a key or query is not a copy of position coordinates")
    return [column[0][0] for column in found], {column[0][1] for column in found}
