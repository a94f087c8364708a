"""Taylor forms in balls: the checker's enclosure of a function on a box.

On a box with centre c and radii r write x = c + r e with e in [-1, 1]^D. A form of order k for a function g holds
coefficients g_a for multi-indices |a| <= k, a remainder R and an interval, and asserts for *every* e in [-1, 1]^D

    | g(e) - sum_a g_a e^a | <= R     and     low <= g(e) <= high.                                            (*)

This is plain set inclusion. No derivative of g is claimed, so kinks, steps and functions with a redefined derivative
cannot make a form wrong. Coefficients are thin balls (the true coefficient used in (*) may be any number of the ball:
a coefficient that is a ball of radius rho stands for a polynomial known up to rho, which is how balls propagate).

Proofs of the rules, each used below under its name:

*Product.* (P + p)(Q + q) with |p| <= R_P, |q| <= R_Q: the product of the polynomials keeps its monomials of degree
<= k. A dropped monomial u e^a with all exponents even has e^a in [0, 1], so it is u/2 within |u|/2; any other is at most
|u|. The rest is |P| R_Q + |Q| R_P + R_P R_Q with |P| <= sum |P_a|.

*Composition.* X = x0 + y with |y| <= rho. Taylor's theorem with Lagrange remainder at x0 on an interval I that
contains x0 and all values of X: phi(X) = sum_{i<=k} t_i y^i + t y^{k+1} with t a value of phi^(k+1) / (k+1)! on I.
I is the range of X, so x0 must lie in it: it is the constant term of X, or the nearest end when that lies outside.
For odd k the power y^{k+1} lies in [0, rho^{k+1}], so the last term lies in [min(t, 0), max(t, 0)] rho^{k+1}, whose middle
goes into the constant term: half the remainder where the derivative keeps its sign.

*Quotient by defect.* For |Z| >= z > 0 and any polynomial q: N/Z - q = (N - q Z)/Z. With q the power-series quotient
truncated at degree k the kept coefficients of N - q Z vanish up to the radii of their balls; the dropped ones are at
most D = sum over |g| > k of |sum_{a+b=g} q_a Z_b|. So |N/Z - q| <= (D + kept residuals + R_N + |q| R_Z) / z.

*Parabola.* a e + b e^2 with |a| <= A and b <= B is on [-1, 1] at most A t + B t^2 with t = |e|: A + B, unless A < -2 B,
when the vertex t = A/(-2B) lies inside and the value there is A^2/(-4B). Near a peak of the error this is smaller than A.

*Chord of relu.* On [l, u] with l < 0 < u and s = u/(u - l), the convex function relu lies between the line s X and the
chord s (X - l), so relu(X) = s X + d up to d, with d = -s l / 2.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations_with_replacement
from math import comb

from flint import arb

from certiformer.kernel.balls import HALF, INFINITY, ONE, ZERO, Box, hull, larger, smaller
from certiformer.kernel.refusal import Refused

MAX_ORDER = 12
MAX_TABLE = 80_000_000  # entries of a table, of about eight bytes each


class Table:
    """Monomials in `dimension` variables by degree, up to twice the order so that products have a place."""

    def __init__(self, dimension: int, order: int):
        self.dimension, self.order = dimension, order
        self.monomials = [
            tuple(choice.count(i) for i in range(dimension))
            for degree in range(2 * order + 1)
            for choice in combinations_with_replacement(range(dimension), degree)
        ]
        index = {monomial: i for i, monomial in enumerate(self.monomials)}
        self.even = [all(power % 2 == 0 for power in monomial) for monomial in self.monomials]
        # The monomials of degree <= order come first; `product[i][j] < size` means that the product is kept.
        self.size = sum(1 for monomial in self.monomials if sum(monomial) <= order)
        self.axis = [index[tuple(int(i == j) for j in range(dimension))] for i in range(dimension)] if order else []
        self.product = [
            [index[tuple(x + y for x, y in zip(a, b, strict=True))] for b in self.monomials[: self.size]]
            for a in self.monomials[: self.size]
        ]
        # For each monomial a but 1 (parent, axis, exponent, degree): y^a / a! is the parent's times y_axis / exponent.
        self.steps: list[tuple[int, int, int, int]] = []
        for monomial in self.monomials[1 : self.size]:
            axis = next(i for i, exponent in enumerate(monomial) if exponent)
            parent = index[tuple(exponent - (i == axis) for i, exponent in enumerate(monomial))]
            self.steps.append((parent, axis, monomial[axis], sum(monomial)))


@lru_cache(maxsize=64)
def table(dimension: int, order: int) -> Table:
    """The shared monomial table; refused before it is made where it would fill the memory."""
    count, size = comb(dimension + 2 * order, dimension), comb(dimension + order, dimension)
    if count * (dimension + 20) + size * size > MAX_TABLE:  # a monomial is a tuple with some twenty words around it
        raise Refused(f"Taylor forms of order {order} in {dimension} variables have too many coefficients")
    return Table(dimension, order)


class Form:
    """A Taylor form; `coef` maps monomial positions to nonzero balls. `singular` says why it encloses nothing."""

    __slots__ = ("coef", "high", "low", "rem", "singular", "table")

    def __init__(self, tab: Table, coef: dict[int, arb], rem: arb, low: arb, high: arb, singular: str = ""):
        self.table, self.coef, self.rem, self.low, self.high, self.singular = tab, coef, rem, low, high, singular


def poisoned(tab: Table, reason: str) -> Form:
    """The form of a value that may be undefined: it encloses everything and remembers why."""
    return Form(tab, {}, INFINITY, -INFINITY, INFINITY, reason)


def constant(tab: Table, value: arb) -> Form:
    return Form(tab, {0: value}, ZERO, value.lower(), value.upper())


def variable(tab: Table, box: Box, axis: int) -> Form:
    """The coordinate x_axis = c + r e on the box."""
    low, high = box.low(axis), box.high(axis)
    if tab.order == 0:
        return Form(tab, {0: box.centre[axis]}, box.radius[axis], low, high)
    return Form(tab, {0: box.centre[axis], tab.axis[axis]: box.radius[axis]}, ZERO, low, high)


def bounds(form: Form) -> tuple[arb, arb]:
    """Exact ends of an interval that contains every value of the form (rule (*))."""
    low = high = form.coef.get(0, ZERO)
    for i, c in form.coef.items():
        if i == 0:
            continue
        size = c.abs_upper()
        if form.table.even[i]:
            low, high = low + smaller(c.lower(), ZERO), high + larger(c.upper(), ZERO)
        else:
            low, high = low - size, high + size
    low, high = (low - form.rem).lower(), (high + form.rem).upper()
    return larger(low, form.low), smaller(high, form.high)


def magnitude(form: Form) -> arb:
    """An upper bound of |value| over the box; infinite or nan when the form is singular."""
    if form.singular:
        return INFINITY
    high, low = smaller(_highest(form, 1), form.high), larger((-_highest(form, -1)).upper(), form.low)
    return larger(high, (-low).upper())


def _highest(form: Form, sign: int) -> arb:
    """An upper bound of sign times the form, the linear and the square term of an axis taken together (rule *Parabola*)."""
    table, coef = form.table, form.coef
    total, paired = form.rem + sign * coef.get(0, ZERO), {0}
    for axis in range(table.dimension if table.order >= 2 else 0):
        line, square = table.axis[axis], table.product[table.axis[axis]][table.axis[axis]]
        paired |= {line, square}
        a, b = coef.get(line, ZERO).abs_upper(), (sign * coef.get(square, ZERO)).upper()
        total = total + (a * a / (-4 * b) if a < -2 * b else a + b)
    for i, c in coef.items():
        if i not in paired:
            total = total + (larger((sign * c).upper(), ZERO) if table.even[i] else c.abs_upper())
    return total.upper()


def absolute_sum(form: Form) -> arb:
    """Upper bound of sum_a |g_a|."""
    return sum((c.abs_upper() for c in form.coef.values()), ZERO).upper()


def add(a: Form, b: Form, sign: int = 1) -> Form:
    """a + b, or a - b for sign -1: coefficientwise, so that common parts cancel before any range is taken."""
    coef = dict(a.coef)
    for i, c in b.coef.items():
        value = (coef[i] + c if sign > 0 else coef[i] - c) if i in coef else (c if sign > 0 else -c)
        coef[i] = value
    low, high = (b.low, b.high) if sign > 0 else (-b.high, -b.low)
    rem = (a.rem + b.rem).upper()
    return Form(a.table, coef, rem, (a.low + low).lower(), (a.high + high).upper(), a.singular or b.singular)


def scale(a: Form, factor: arb) -> Form:
    """factor * a."""
    coef = {i: c * factor for i, c in a.coef.items()}
    low, high = interval_product(a.low, a.high, factor.lower(), factor.upper())
    return Form(a.table, coef, (a.rem * factor.abs_upper()).upper(), low, high, a.singular)


def multiply(a: Form, b: Form) -> Form:
    """The product rule of the module docstring; a square keeps its interval nonnegative."""
    tab = a.table
    full: dict[int, arb] = {}
    for i, x in a.coef.items():
        row = tab.product[i]
        for j, y in b.coef.items():
            place = row[j]
            full[place] = full[place] + x * y if place in full else x * y
    coef, dropped = truncate(tab, full)
    rem = absolute_sum(a) * b.rem + absolute_sum(b) * a.rem + a.rem * b.rem + dropped
    low, high = interval_product(a.low, a.high, b.low, b.high)
    if a is b:
        low = larger(low, ZERO)
    result = Form(tab, coef, rem.upper(), low, high, a.singular or b.singular)
    return result if result.rem.is_finite() else tightest(result)


def truncate(tab: Table, full: dict[int, arb]) -> tuple[dict[int, arb], arb]:
    """Drop the monomials of degree > order from a polynomial; returns what is kept and a bound of what was dropped."""
    coef = {i: c for i, c in full.items() if i < tab.size}
    dropped = ZERO
    for i, c in full.items():
        if i >= tab.size:
            if tab.even[i]:
                c = c * HALF
                coef[0] = coef[0] + c if 0 in coef else c
            dropped = dropped + c.abs_upper()
    return coef, dropped


def interval_product(a: arb, b: arb, c: arb, d: arb) -> tuple[arb, arb]:
    """[a, b] * [c, d], outward."""
    products = [a * c, a * d, b * c, b * d]
    low, high = products[0].lower(), products[0].upper()
    for p in products[1:]:
        low, high = smaller(low, p.lower()), larger(high, p.upper())
    return low, high


def expansion_point(x: Form) -> arb:
    """The point x0 of the composition rule: the constant term, moved into the range of x if it may lie outside."""
    low, high = bounds(x)
    start = x.coef.get(0, ZERO)
    return start if low <= start and start <= high else smaller(larger(start.mid(), low), high)


def compose(x: Form, start: arb, series: list[arb], following: arb, low: arb, high: arb) -> Form:
    """The composition rule: `series` holds t_0..t_k at `start`, the ball `following` all t_{k+1} on the range of x.

    `low`, `high` is the range of phi by monotonicity; when the remainder is worse than that, the form falls back to it.
    """
    tab = x.table
    shifted = {i: c for i, c in x.coef.items() if i}
    if start is not x.coef.get(0):
        shifted[0] = x.coef.get(0, ZERO) - start
    x_low, x_high = bounds(x)
    rho = larger((x_high - start).upper(), (start - x_low).upper())
    inner = Form(tab, shifted, x.rem, (x_low - start).lower(), (x_high - start).upper())
    result = constant(tab, series[tab.order])
    for i in range(tab.order - 1, -1, -1):
        result = add(multiply(result, inner), constant(tab, series[i]))
    power = ONE
    for _ in range(tab.order + 1):
        power = power * rho
    last = following.abs_upper() * power
    if tab.order % 2:
        least, most = smaller(following.lower(), ZERO) * power, larger(following.upper(), ZERO) * power
        middle = ((least + most) * HALF).mid()
        result = add(result, constant(tab, middle))
        last = larger((most - middle).upper(), (middle - least).upper())
    rem = (result.rem + last).upper()
    return tightest(Form(tab, result.coef, rem, low, high, x.singular))


def tightest(form: Form) -> Form:
    """The form itself, or the constant form of its interval when the remainder alone is already wider than that."""
    if form.rem.is_finite() and form.rem <= (form.high - form.low).upper():
        return form
    middle = ((form.low + form.high) * HALF).mid()
    if not middle.is_finite():
        return Form(form.table, {}, INFINITY, form.low, form.high, form.singular)
    radius = larger((form.high - middle).upper(), (middle - form.low).upper())
    return Form(form.table, {0: middle}, radius, form.low, form.high, form.singular)


def within(form: Form, low: arb, high: arb) -> Form:
    """The form of a value that is known to lie in [low, high] as well."""
    low = low if form.low.is_nan() else larger(form.low, low)
    high = high if form.high.is_nan() else smaller(form.high, high)
    return tightest(Form(form.table, form.coef, form.rem, low, high, form.singular))


def divide(a: Form, b: Form, smallest: arb | None = None) -> Form:
    """a / b by the defect rule; `smallest` is a proved positive lower bound of |b| if the caller knows a better one."""
    low, high = bounds(b)
    if smallest is None or not smallest > 0:
        smallest = low if low > 0 else (-high).lower() if high < 0 else ZERO
    centre = b.coef.get(0, ZERO)
    if not (smallest > 0) or centre.contains(0):
        return poisoned(a.table, a.singular or b.singular or "division by a number that may be zero")
    quotient, residual = _power_series_quotient(a, b)
    tab = a.table
    beyond: dict[int, arb] = {}
    for i, q in quotient.items():
        for j, z in b.coef.items():
            place = tab.product[i][j]
            if place >= tab.size:
                beyond[place] = beyond[place] + q * z if place in beyond else q * z
    dropped = sum((c.abs_upper() for c in beyond.values()), ZERO)
    size = sum((q.abs_upper() for q in quotient.values()), ZERO)
    rem = (dropped + residual + a.rem + size * b.rem) / smallest
    if low > 0 or high < 0:
        a_low, a_high = bounds(a)
        ends = sorted_reciprocal(low, high)
        value_low, value_high = interval_product(a_low, a_high, *ends)
    else:
        value_low, value_high = -INFINITY, INFINITY
    return tightest(Form(tab, quotient, rem.upper(), value_low, value_high, a.singular or b.singular))


def sorted_reciprocal(low: arb, high: arb) -> tuple[arb, arb]:
    """The range of 1/z for z in [low, high], zero excluded."""
    return (ONE / high).lower(), (ONE / low).upper()


def _power_series_quotient(a: Form, b: Form) -> tuple[dict[int, arb], arb]:
    """Coefficients q with (q b)_g = a_g for |g| <= k. Taken at midpoints; `residual` bounds sum |(a - q b)_g|."""
    tab, centre = a.table, b.coef[0]
    quotient: dict[int, arb] = {}
    pending = dict(a.coef)
    residual = ZERO
    others = [(j, z) for j, z in b.coef.items() if j]
    for i in range(tab.size):
        need = pending.get(i)
        if need is None:
            continue
        q = (need / centre).mid()
        residual = residual + (need - q * centre).abs_upper()
        if q.is_zero():
            continue
        quotient[i] = q
        row = tab.product[i]
        for j, z in others:
            place = row[j]
            if place < tab.size:
                pending[place] = pending.get(place, ZERO) - q * z
    return quotient, residual


def chord(low: arb, high: arb) -> tuple[arb, arb]:
    """Slope s and half height h of a strip around relu: |relu(v) - s v - h| <= h on [low, high].

    Any slope in [0, 1] is sound: relu(v) - s v is convex, so it is at most its larger end value, and at least 0, at v = 0.
    """
    if low >= 0:
        return ONE, ZERO
    if high <= 0:
        return ZERO, ZERO
    slope = (high / (high - low)).mid()
    return slope, larger((-slope * low).upper(), ((ONE - slope) * high).upper()) * HALF


def relu(x: Form) -> Form:
    """max(x, 0) by its chord."""
    low, high = bounds(x)
    if low >= 0:
        return x
    if high <= 0:
        return Form(x.table, {}, ZERO, ZERO, ZERO, x.singular)
    if not (high.is_finite() and low.is_finite()):
        return Form(x.table, {}, INFINITY, ZERO, high, x.singular)
    slope, half = chord(low, high)
    line = scale(Form(x.table, x.coef, x.rem, low, high, x.singular), slope)
    coef = dict(line.coef)
    coef[0] = coef.get(0, ZERO) + half
    return Form(x.table, coef, (line.rem + half).upper(), ZERO, high, x.singular)


def either(x: Form, y: Form) -> Form:
    """A form that contains both x and y: their mean, within half the largest distance."""
    mean, half_gap = scale(add(x, y), HALF), scale(add(x, y, -1), HALF)
    gap = magnitude(half_gap)
    low, high = smaller(x.low, y.low), larger(x.high, y.high)
    return Form(x.table, mean.coef, (mean.rem + gap).upper(), low, high, x.singular or y.singular)


def value_ball(form: Form) -> arb:
    """One ball that contains every value of the form."""
    return hull(*bounds(form))
