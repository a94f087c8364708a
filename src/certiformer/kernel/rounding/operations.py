"""What one operation on whole arrays adds to the difference between a run and the real numbers.

Every rule has the shape |op_run(x + e) - op(x)| <= |op(x + e) - op(x)| + what rounding may add to op(x + e): the first by
a Lipschitz constant, the second by `formats`. Each function returns the bounds for the entries of its result.

*GELU*, x Phi(x) with Phi(x) = (1 + erf(x / sqrt 2)) / 2 = erfc(-x / sqrt 2) / 2, has slope at most 1.13. The argument y of
erf has two roundings; as |y| exp(-y^2) <= 0.43 the value moves by at most 2/sqrt(pi) 0.43 2.1 u < 1.1 u. erf itself errs
by E u, adding one by 2 u, so Phi by at most (E + 3.1) u / 2 (1 + u). Two products: with Phi <= 1 the result errs by at
most |x| u ((E + 3.1) / 2 + 2) (1 + 4 u) <= |x| u (E / 2 + 4).

*Layer norm.* The run takes two passes: the mean, then the mean square of the differences. With n numbers h_i and their
errors e_i: the mean errs by E = mean e + gamma_(n+4) mean(|h| + e); c_i = h_i - mean by g_i = e_i + E + u(|c_i| + e_i +
E); the variance v by mean(2 |c| g + g^2) + gamma_(n+6) mean (|c| + g)^2, to which 2 u (v + eps) is added for eps: W in
all. With w = v + eps and W/w <= q < 1 the factor 1/sqrt(w) is off by a relative r = 1/sqrt(1 - q) - 1. As |c_i| / sqrt(w)
<= sqrt(n), the quotient errs by at most g_i (1 + r) / sqrt(w) + |y_i| r, and relative roundings of root and quotient.
Without such a q: the run, too, divides by no less than the root of its own mean square, so its quotient is below
sqrt(n) (1 - gamma_(n+6))^(-1/2) (1 + gamma_9) < 2 sqrt(n), and the error below 3 sqrt(n). (What the mean square loses
by underflow is less than eps, which must not be tiny.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import frexp

from flint import arb, arb_mat

from certiformer.kernel import arrays, taylor
from certiformer.kernel.arrays import Norm, Stream, Weight
from certiformer.kernel.balls import ONE, ZERO, smaller
from certiformer.kernel.rounding.formats import Format, NoBound, no_overflow


@dataclass(frozen=True)
class Rounded:
    """An array of a run: forms of its real values, and bounds of |run - real|, entry by entry."""

    value: Stream
    error: arb_mat

    @cached_property
    def size(self) -> arb_mat:
        """Bounds of the real values."""
        return arrays.size(self.value) + self.value.rem

    @cached_property
    def reach(self) -> arb_mat:
        """Bounds of the values of the run."""
        return self.size + self.error

    @property
    def shape(self) -> tuple[int, int]:
        return self.value.shape

    def rows(self, chosen: list[int]) -> Rounded:
        return Rounded(self.value.rows(chosen), arrays.take_rows(self.error, chosen))


def exact_values(value: Stream) -> Rounded:
    """Values that a run knows exactly."""
    return Rounded(value, arb_mat(*value.shape))


class Counted:
    """A stored matrix with what the counting rule needs: nonzero weights and inexact products, column by column."""

    def __init__(self, weight: Weight, form: Format):
        self.size = weight.size
        entries = [[w for w in column if not w.is_zero()] for column in weight.matrix.transpose().tolist()]
        self.terms = [len(column) for column in entries]
        self.inexact = [any(frexp(abs(float(w)))[0] != 0.5 for w in column) for column in entries]  # no power of two
        self.sums = [sum((abs(w) for w in column), ZERO) for column in entries]
        flushed = [ONE if w > 0 and w < form.tiny else ZERO for w in self.size.entries()]
        # A weight below the smallest normal number may be read as zero; its factor is then lost.
        self.flushed = arb_mat(self.size.nrows(), self.size.ncols(), flushed) if any(map(bool, flushed)) else None


def products(form: Format, parts: Sequence[tuple[Rounded, Counted]], constants: Sequence[arb_mat]) -> arb_mat:
    """x W + y V + ... + b_1 + b_2 + ..., one sum of products.

    With m by the counting rule, the run is sum (x_i + e_i) w_i (1 + d_i) + sum b (1 + d), so it errs by at most sum
    e_i |w_i| + gamma_m (sum (|x_i| + e_i) |w_i| + sum |b|). Underflow: each of the products and additions loses at
    most t, each operand x_i that is flushed at most t |w_i|, each flushed weight at most t |x_i|, each flushed b at
    most t.
    """
    sums = [
        (w, x.reach * w.size, x.error * w.size, x.reach * w.flushed if w.flushed is not None else None)
        for x, w in parts
    ]
    rows, columns = sums[0][1].nrows(), sums[0][1].ncols()
    error = []
    for r in range(rows):
        for c in range(columns):
            live = [part for part in sums if not part[1][r, c].is_zero()]
            terms = sum(w.terms[c] for w, *_ in live)
            added = [abs(b[r, c]) for b in constants if not b[r, c].is_zero()]
            rounded = 1 if any(w.inexact[c] for w, *_ in live) else 0
            gamma = form.gamma(max(terms + len(added) - 1, 0) + rounded)
            size = sum((through[r, c] for _, through, _, _ in live), sum(added, ZERO))
            no_overflow(form, size * (1 + gamma))
            total = sum((carried[r, c] for _, _, carried, _ in live), gamma * size)
            if terms or len(added) > 1 or any(not b >= form.tiny for b in added):
                faint = sum((w.sums[c] + (ZERO if gone is None else gone[r, c]) for w, _, _, gone in sums), ZERO)
                total = total + form.tiny * (2 * terms + 2 * len(added) + faint) * 2
            error.append(total.upper())
    return arb_mat(rows, columns, error)


def added(form: Format, a: Rounded, b: Rounded) -> arb_mat:
    """a + b: one rounding where both summands may be nonzero, and flushed operands and results."""
    error = []
    for x, y, e, f in zip(a.reach.entries(), b.reach.entries(), a.error.entries(), b.error.entries(), strict=True):
        total = e + f
        if not (x.is_zero() or y.is_zero()):
            no_overflow(form, (x + y) * 2)
            total = total + form.unit * (x + y) + 3 * form.tiny
        error.append(total.upper())
    return arb_mat(*a.shape, error)


def relu(x: Rounded) -> arb_mat:
    """max(x, 0) has slope at most 1 and does not round; a unit that is off in both worlds has no error."""
    centre = x.value.coef[0].entries() if 0 in x.value.coef else [ZERO] * len(x.error.entries())
    error = []
    for c, size, e in zip(centre, x.size.entries(), x.error.entries(), strict=True):
        highest = c + (size - abs(c)) + e
        error.append(ZERO if highest < 0 else e)
    return arb_mat(*x.shape, error)


def gelu(form: Format, x: Rounded) -> arb_mat:
    """The rule on GELU of the module docstring."""
    share, error = form.unit * (arb(form.erf) / 2 + 4), []
    for size, e in zip(x.reach.entries(), x.error.entries(), strict=True):
        no_overflow(form, size * 4)
        error.append((e * arb("1.13") + size * share + 4 * form.tiny * (1 + size)).upper())
    return arb_mat(*x.shape, error)


def pooled(form: Format, x: Rounded, weights: Weight) -> arb_mat:
    """The sum of n rows errs by gamma_(n-1) of the sizes; the division by n, for their mean, by its own error."""
    count = x.shape[0]
    if count == 1:
        return x.error
    shares = weights.matrix.entries()
    divided = not all(share == 1 for share in shares)
    if divided and not all((share * count).contains(1) for share in shares):
        raise NoBound("a run of a mean with unequal weights is not defined")
    for size in (arb_mat(1, count, [ONE] * count) * x.reach).entries():
        no_overflow(form, 2 * size)
    gamma = form.gamma(count - 1 + (form.divide + 1 if divided else 0))
    error = weights.size * x.error + (weights.size * x.reach) * gamma
    return arb_mat(1, x.shape[1], [(e + 2 * count * form.tiny).upper() for e in error.entries()])


def norm(form: Format, h: Rounded, node: Norm) -> arb_mat:
    """The rule on layer norm of the module docstring, with the factor `gain` and the summand `shift`."""
    u, tiny, (rows, n), epsilon = form.unit, form.tiny, h.shape, node.epsilon
    centring = arb_mat(n, n, [(ONE if i == j else ZERO) - ONE / n for i in range(n) for j in range(n)])
    centred = exact_values(arrays.linear(h.value, centring, arrays.absolute(centring)))
    error, last, root_n = [], form.gamma(form.root + form.divide + 1), arb(n).sqrt().upper()
    if not (form.gamma(n + 6) < 0.25 and last < 0.25):
        raise NoBound(f"a layer norm over {n} numbers of {form.name} may lose every digit")
    if not epsilon > 16 * n * tiny:
        raise NoBound(f"the epsilon of a layer norm may underflow in {form.name}")
    for r in range(rows):
        e, size = [h.error[r, c] for c in range(n)], [centred.size[r, c] for c in range(n)]
        total = sum((h.reach[r, c] for c in range(n)), ZERO)
        mean = sum(e, ZERO) / n + form.gamma(n + 4) * total / n + 3 * n * tiny
        g = [x + mean + u * (s + x + mean) + 3 * tiny for x, s in zip(e, size, strict=True)]
        squares = sum(((s + x) * (s + x) for s, x in zip(size, g, strict=True)), ZERO) / n
        no_overflow(form, 2 * (squares * n + total))
        spread = sum(((2 * s + x) * x for s, x in zip(size, g, strict=True)), ZERO) / n
        wrong = spread + form.gamma(n + 6) * squares + 2 * u * (squares + epsilon) + 4 * n * tiny * (1 + squares)
        lows = [_least_size(centred, r, c) for c in range(n)]
        least = (sum((x * x for x in lows), ZERO) / n + epsilon).lower()
        quotient, inverse = (wrong / least).upper(), least.rsqrt()
        off = (1 - quotient).rsqrt() - 1 if quotient < 0.75 else None
        for c, (gain, shift) in enumerate(zip(map(abs, node.gain), map(abs, node.shift), strict=True)):
            y = smaller((size[c] * inverse).upper(), root_n)
            if off is None:  # the variance may be lost in rounding
                own = 3 * root_n + 3 * tiny
            else:
                relative = off + last * (1 + off)
                own = g[c] * (1 + relative) * inverse + y * relative + 3 * tiny
            whole = (y + own) * gain + shift
            no_overflow(form, 2 * whole)
            error.append((own * gain + form.gamma(2) * whole + 4 * tiny * (1 + y + own + gain)).upper())
    return arb_mat(rows, n, error)


def _least_size(x: Rounded, row: int, column: int) -> arb:
    """A lower bound of |real value|."""
    low, high = taylor.bounds(x.value.form(row, column))
    return low if low > 0 else (-high).lower() if high < 0 else ZERO
