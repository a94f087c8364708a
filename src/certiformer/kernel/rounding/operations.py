"""Arrays of a run: their real values as forms, bounds of |run - real|, and what one operation adds to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import frexp

from flint import arb, arb_mat

from certiformer.kernel import stream
from certiformer.kernel.balls import ONE, ZERO
from certiformer.kernel.rounding.formats import Format, no_overflow
from certiformer.kernel.stream import Stream


@dataclass(frozen=True)
class Rounded:
    """An array of a run: forms of its real values, and bounds of |run - real|, entry by entry."""

    value: Stream
    error: arb_mat

    @cached_property
    def size(self) -> arb_mat:
        """Bounds of the real values."""
        return stream.size(self.value) + self.value.rem

    @cached_property
    def reach(self) -> arb_mat:
        """Bounds of the values of the run."""
        return self.size + self.error

    @property
    def shape(self) -> tuple[int, int]:
        return self.value.shape

    def rows(self, chosen: list[int]) -> Rounded:
        return Rounded(self.value.rows(chosen), stream.take_rows(self.error, chosen))


def exact_values(value: Stream) -> Rounded:
    """Values that a run knows exactly."""
    return Rounded(value, arb_mat(*value.shape))


def stacked(*parts: Rounded) -> Rounded:
    """Arrays of one width on top of each other."""
    used = sorted({i for part in parts for i in part.value.coef})
    width, rows = parts[0].shape[1], sum(part.shape[0] for part in parts)

    def joined(pick: Callable[[Rounded], arb_mat | None]) -> arb_mat:
        entries: list[arb] = []
        for part in parts:
            matrix = pick(part)
            entries += [ZERO] * (part.shape[0] * width) if matrix is None else matrix.entries()
        return arb_mat(rows, width, entries)

    coef = {i: joined(lambda part, i=i: part.value.coef.get(i)) for i in used}
    value = Stream(parts[0].value.table, coef, joined(lambda part: part.value.rem))
    return Rounded(value, joined(lambda part: part.error))


def side_by_side(parts: list[Rounded]) -> Rounded:
    """Arrays with the same rows next to each other."""
    if len(parts) == 1:
        return parts[0]
    turned = [Rounded(stream.transpose(part.value), part.error.transpose()) for part in parts]
    whole = stacked(*turned)
    return Rounded(stream.transpose(whole.value), whole.error.transpose())


class Weights:
    """A stored matrix with what the counting rule needs: nonzero weights and inexact products, column by column."""

    def __init__(self, matrix: arb_mat, form: Format):
        self.matrix, self.size = matrix, stream.absolute(matrix)
        entries = [[w for w in column if not w.is_zero()] for column in matrix.transpose().tolist()]
        self.terms = [len(column) for column in entries]
        self.inexact = [any(not _power_of_two(w) for w in column) for column in entries]
        self.sums = [sum((abs(w) for w in column), ZERO) for column in entries]
        flushed = [ONE if w > 0 and w < form.tiny else ZERO for w in self.size.entries()]
        # A weight below the smallest normal number may be read as zero; its factor is then lost.
        self.flushed = arb_mat(matrix.nrows(), matrix.ncols(), flushed) if any(map(bool, flushed)) else None


def _power_of_two(weight: arb) -> bool:
    return frexp(abs(float(weight)))[0] == 0.5


def linear(form: Format, x: Rounded, weights: Weights, constants: list[list[list[arb]]] | None = None) -> Rounded:
    """x W + b_1 + b_2 + ..., each b a list of rows.

    With m by the counting rule, the run is sum (x_i + e_i) w_i (1 + d_i) + sum b (1 + d), so it errs by at most sum
    e_i |w_i| + gamma_m (sum (|x_i| + e_i) |w_i| + sum |b|). Underflow: each of the products and additions loses at
    most t, each operand x_i that is flushed at most t |w_i|, each flushed weight at most t |x_i|, each flushed b at
    most t.
    """
    constants = constants or []
    rows, columns = x.shape[0], len(weights.terms)
    value = stream.linear(x.value, weights.matrix, weights.size)
    for rows_of in constants:
        shift = arb_mat(rows, columns, [entry for row in rows_of for entry in row])
        value = stream.plus(value, stream.constants(x.value.table, shift))
    through = x.reach * weights.size
    carried = x.error * weights.size
    lost = x.reach * weights.flushed if weights.flushed is not None else None
    error = []
    for r in range(rows):
        for c in range(columns):
            terms = weights.terms[c] if not through[r, c].is_zero() else 0
            added = [abs(rows_of[r][c]) for rows_of in constants if not rows_of[r][c].is_zero()]
            roundings = max(terms + len(added) - 1, 0) + (1 if terms and weights.inexact[c] else 0)
            size, gamma = through[r, c] + sum(added, ZERO), form.gamma(roundings)
            no_overflow(form, size * (1 + gamma))
            total = carried[r, c] + gamma * size
            if terms or len(added) > 1 or any(not b >= form.tiny for b in added):
                count = 2 * terms + 2 * len(added)
                total = total + form.tiny * (count + weights.sums[c] + (ZERO if lost is None else lost[r, c])) * 2
            error.append(total.upper())
    return Rounded(value, arb_mat(rows, columns, error))


def plus(form: Format, a: Rounded, b: Rounded) -> Rounded:
    """The residual: one rounding where both summands may be nonzero, and flushed operands and results."""
    value = stream.plus(a.value, b.value)
    error = []
    for x, y, e, f in zip(a.reach.entries(), b.reach.entries(), a.error.entries(), b.error.entries(), strict=True):
        total = e + f
        if not (x.is_zero() or y.is_zero()):
            no_overflow(form, (x + y) * 2)
            total = total + form.unit * (x + y) + 3 * form.tiny
        error.append(total.upper())
    return Rounded(value, arb_mat(*a.shape, error))


def relu(x: Rounded) -> Rounded:
    """max(x, 0) has slope at most 1 and does not round; a unit that is off in both worlds has no error."""
    value = stream.relu(x.value)
    centre = x.value.coef[0].entries() if 0 in x.value.coef else [ZERO] * len(x.error.entries())
    error = []
    for c, size, e in zip(centre, x.size.entries(), x.error.entries(), strict=True):
        highest = c + (size - abs(c)) + e
        error.append(ZERO if highest < 0 else e)
    return Rounded(value, arb_mat(*x.shape, error))


def gelu(form: Format, x: Rounded, value: Stream) -> Rounded:
    """x Phi(x), Phi(x) = (1 + erf(x / sqrt 2)) / 2 = erfc(-x / sqrt 2) / 2; its slope is at most 1.13.

    The argument y of erf has two roundings; as |y| exp(-y^2) <= 0.43 the value moves by at most 2/sqrt(pi) 0.43 2.1 u
    < 1.1 u. erf itself errs by E u, adding one by 2 u, so Phi by at most (E + 3.1) u / 2 (1 + u). Two products: with
    Phi <= 1 the result errs by at most |x| u ((E + 3.1) / 2 + 2) (1 + 4 u) <= |x| u (E / 2 + 4).
    """
    share = form.unit * (arb(form.erf) / 2 + 4)
    error = []
    for size, e in zip(x.reach.entries(), x.error.entries(), strict=True):
        no_overflow(form, size * 4)
        error.append((e * arb("1.13") + size * share + 4 * form.tiny * (1 + size)).upper())
    return Rounded(value, arb_mat(*x.shape, error))
