"""Layer norm as it is run: how far off a run may be.

The run takes two passes: the mean, then the mean square of the differences. With n numbers h_i and their errors e_i:
the mean errs by E = mean e + gamma_(n+4) mean(|h| + e); c_i = h_i - mean by g_i = e_i + E + u(|c_i| + e_i + E); the
variance v by mean(2 |c| g + g^2) + gamma_(n+6) mean (|c| + g)^2, to which 2 u (v + eps) is added for eps: W in all.
With w = v + eps and W/w <= q < 1 the factor 1/sqrt(w) is off by a relative r = 1/sqrt(1 - q) - 1. As |c_i| / sqrt(w)
<= sqrt(n), the quotient errs by at most g_i (1 + r) / sqrt(w) + |y_i| r, and relative roundings of root and quotient.
Without such a q: the run, too, divides by no less than the root of its own mean square, so its quotient is below
sqrt(n) (1 - gamma_(n+6))^(-1/2) (1 + gamma_9) < 2 sqrt(n), and the error below 3 sqrt(n). (What the mean square loses
by underflow is less than eps, which must not be tiny.)
"""

from __future__ import annotations

from flint import arb, arb_mat

from certiformer.kernel import stream, taylor
from certiformer.kernel.balls import ONE, ZERO, smaller
from certiformer.kernel.rounding import Format, NoBound, no_overflow
from certiformer.kernel.rounding.operations import Rounded, exact_values
from certiformer.kernel.stream import Stream


def layer_norm(form: Format, h: Rounded, value: Stream, scale: list[arb], shift: list[arb], epsilon: arb) -> Rounded:
    """The normalised rows, times `scale`, plus `shift`; `value` encloses the result in real numbers."""
    u, tiny, (rows, n) = form.unit, form.tiny, h.shape
    centring = arb_mat(n, n, [(ONE if i == j else ZERO) - ONE / n for i in range(n) for j in range(n)])
    centred = exact_values(stream.linear(h.value, centring, stream.absolute(centring)))
    error, last = [], form.gamma(form.root + form.divide + 1)
    if not (form.gamma(n + 6) < 0.25 and last < 0.25):
        raise NoBound(f"a layer norm over {n} numbers of {form.name} may lose every digit")
    if not epsilon > 16 * n * tiny:
        raise NoBound(f"the epsilon of a layer norm may underflow in {form.name}")
    for r in range(rows):
        e, size = [h.error[r, c] for c in range(n)], [centred.size[r, c] for c in range(n)]
        mean = sum(e, ZERO) / n + form.gamma(n + 4) * sum((h.reach[r, c] for c in range(n)), ZERO) / n + 3 * n * tiny
        g = [x + mean + u * (s + x + mean) + 3 * tiny for x, s in zip(e, size, strict=True)]
        squares = sum(((s + x) * (s + x) for s, x in zip(size, g, strict=True)), ZERO) / n
        no_overflow(form, 2 * (squares * n + sum((h.reach[r, c] for c in range(n)), ZERO)))
        spread = sum(((2 * s + x) * x for s, x in zip(size, g, strict=True)), ZERO) / n
        wrong = spread + form.gamma(n + 6) * squares + 2 * u * (squares + epsilon) + 4 * n * tiny * (1 + squares)
        lows = [_least_size(centred, r, c) for c in range(n)]
        least = (sum((x * x for x in lows), ZERO) / n + epsilon).lower()
        quotient, root_n = (wrong / least).upper(), arb(n).sqrt().upper()
        inverse = least.rsqrt()
        off = (1 - quotient).rsqrt() - 1 if quotient < 0.75 else None
        for c in range(n):
            y = smaller((size[c] * inverse).upper(), root_n)
            if off is None:  # the variance may be lost in rounding
                own = 3 * root_n + 3 * tiny
            else:
                total_off = off + last * (1 + off)
                own = g[c] * (1 + total_off) * inverse + y * total_off + 3 * tiny
            total = own * abs(scale[c]) + form.gamma(2) * ((y + own) * abs(scale[c]) + abs(shift[c]))
            no_overflow(form, 2 * ((y + own) * abs(scale[c]) + abs(shift[c])))
            error.append((total + 4 * tiny * (1 + y + own + abs(scale[c]))).upper())
    return Rounded(value, arb_mat(rows, n, error))


def _least_size(x: Rounded, row: int, column: int) -> arb:
    """A lower bound of |real value|."""
    low, high = taylor.bounds(x.value.form(row, column))
    return low if low > 0 else (-high).lower() if high < 0 else ZERO
