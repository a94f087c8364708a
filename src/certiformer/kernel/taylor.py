"""Taylor forms in balls: enclosures of functions on a box, and the algebra that runs a scalar program in them.

On a box with centre c and radii r write x = c + r e with e in [-1, 1]^D. A form of order k for a function g holds
coefficients g_a for multi-indices |a| <= k, a remainder R and an interval, and asserts for *every* e in [-1, 1]^D

    | g(e) - sum_a g_a e^a | <= R     and     low <= g(e) <= high.                                            (*)

This is plain set inclusion. No derivative of g is claimed, so kinks, steps and functions with a redefined derivative
cannot make a form wrong. Coefficients are thin balls (the true coefficient used in (*) may be any number of the ball:
a coefficient that is a ball of radius rho stands for a polynomial known up to rho, which is how balls propagate).

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

*Elementary functions* are composed: their coefficients t_0..t_k at x0 (power series of python-flint, or a recursion), a
ball with all t_j = phi^(j) / j!, j = k + 1, on the range [l, u] of X, and the range of phi by monotonicity. That ball is:

* exp: e^u / j!; log: 1 / (j l^j); sqrt: |binom(1/2, j)| l^(1/2 - j): all monotone in x, with a sign that is known;
* sin, cos: the derivatives are sin, cos, -sin, -cos in turn, enclosed on [l, u] as a ball, over j!;
* tan, tanh, atan, erf: the coefficient recursions run on the ball of [l, u]:
  y' = 1 + y^2 (tan), y' = 1 - y^2 (tanh): (i+1) a_{i+1} = [i = 0] +- sum_l a_l a_{i-l};
  atan: g = 1/(1+x^2), g_i = -(2 x g_{i-1} + g_{i-2})/(1+x^2), a_{i+1} = g_i/(i+1);
  erf: g = 2/sqrt(pi) e^{-x^2}, g_i = -2 (x g_{i-1} + g_{i-2})/i, a_{i+1} = g_i/(i+1).

A function that may leave its domain on the box gives a *poisoned* form that says why; a `where` that certainly takes the
other branch discards it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import combinations_with_replacement
from math import comb, prod

from flint import arb, arb_series

from certiformer.kernel import Refused, balls
from certiformer.kernel.balls import HALF, INFINITY, ONE, ZERO, Box, hull, larger, smaller
from certiformer.kernel.programs import Program, fold

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


def polynomial(tab: Table, coef: dict[int, arb], rem: arb) -> Form:
    """The form with these coefficients and this remainder, of which nothing else is known."""
    form = Form(tab, coef, rem.upper(), -INFINITY, INFINITY)
    form.low, form.high = bounds(form)
    return form


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
        if form.table.even[i]:
            low, high = low + smaller(c.lower(), ZERO), high + larger(c.upper(), ZERO)
        else:
            size = c.abs_upper()
            low, high = low - size, high + size
    low, high = (low - form.rem).lower(), (high + form.rem).upper()
    return larger(low, form.low), smaller(high, form.high)


def value_ball(form: Form) -> arb:
    """One ball that contains every value of the form."""
    return hull(*bounds(form))


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
    for line in table.axis if table.order >= 2 else ():
        square = table.product[line][line]
        paired |= {line, square}
        a, b = coef.get(line, ZERO).abs_upper(), (sign * coef.get(square, ZERO)).upper()
        total = total + (a * a / (-4 * b) if a < -2 * b else a + b)
    for i, c in coef.items():
        if i not in paired:
            total = total + (larger((sign * c).upper(), ZERO) if table.even[i] else c.abs_upper())
    return total.upper()


def absolute_sum(coef: Mapping[int, arb]) -> arb:
    """Upper bound of sum_a |g_a|."""
    return sum((c.abs_upper() for c in coef.values()), ZERO).upper()


def add(a: Form, b: Form, sign: int = 1) -> Form:
    """a + b, or a - b for sign -1: coefficientwise, so that common parts cancel before any range is taken."""
    coef = dict(a.coef)
    for i, c in b.coef.items():
        coef[i] = (coef[i] + c if sign > 0 else coef[i] - c) if i in coef else (c if sign > 0 else -c)
    low, high = (b.low, b.high) if sign > 0 else (-b.high, -b.low)
    rem = (a.rem + b.rem).upper()
    return Form(a.table, coef, rem, (a.low + low).lower(), (a.high + high).upper(), a.singular or b.singular)


def total(forms: list[Form]) -> Form:
    """The sum of the forms."""
    result = forms[0]
    for form in forms[1:]:
        result = add(result, form)
    return result


def scale(a: Form, factor: arb) -> Form:
    """factor * a."""
    coef = {i: c * factor for i, c in a.coef.items()}
    low, high = interval_product(a.low, a.high, factor.lower(), factor.upper())
    return Form(a.table, coef, (a.rem * factor.abs_upper()).upper(), low, high, a.singular)


def multiply(a: Form, b: Form) -> Form:
    """The product rule of the module docstring; a square keeps its interval nonnegative."""
    tab = a.table
    coef, dropped = truncate(tab, _full_product(tab, a.coef, b.coef))
    rem = absolute_sum(a.coef) * b.rem + absolute_sum(b.coef) * a.rem + a.rem * b.rem + dropped
    low, high = interval_product(a.low, a.high, b.low, b.high)
    if a is b:
        low = larger(low, ZERO)
    result = Form(tab, coef, rem.upper(), low, high, a.singular or b.singular)
    return result if result.rem.is_finite() else tightest(result)


def _full_product(tab: Table, a: Mapping[int, arb], b: Mapping[int, arb]) -> dict[int, arb]:
    full: dict[int, arb] = {}
    for i, x in a.items():
        row = tab.product[i]
        for j, y in b.items():
            n = row[j]
            full[n] = full[n] + x * y if n in full else x * y
    return full


def truncate(tab: Table, full: dict[int, arb]) -> tuple[dict[int, arb], arb]:
    """Drop the monomials of degree > order from a polynomial; returns what is kept and a bound of what was dropped."""
    coef, dropped = {i: c for i, c in full.items() if i < tab.size}, ZERO
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
    power = prod([rho] * (tab.order + 1), start=ONE)
    last = following.abs_upper() * power
    if tab.order % 2:
        least, most = smaller(following.lower(), ZERO) * power, larger(following.upper(), ZERO) * power
        middle = ((least + most) * HALF).mid()
        result = add(result, constant(tab, middle))
        last = larger((most - middle).upper(), (middle - least).upper())
    return tightest(Form(tab, result.coef, (result.rem + last).upper(), low, high, x.singular))


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
    one_sign = bool(low > 0 or high < 0)
    if smallest is None or not smallest > 0:
        smallest = low if low > 0 else (-high).lower() if high < 0 else ZERO
    if not smallest > 0 or b.coef.get(0, ZERO).contains(0):
        return poisoned(a.table, a.singular or b.singular or "division by a number that may be zero")
    quotient, residual = _power_series_quotient(a, b)
    beyond = {i: c for i, c in _full_product(a.table, quotient, b.coef).items() if i >= a.table.size}
    rem = (absolute_sum(beyond) + residual + a.rem + absolute_sum(quotient) * b.rem) / smallest
    ends = -INFINITY, INFINITY
    if one_sign:
        ends = interval_product(*bounds(a), (ONE / high).lower(), (ONE / low).upper())
    return tightest(Form(a.table, quotient, rem.upper(), *ends, a.singular or b.singular))


def _power_series_quotient(a: Form, b: Form) -> tuple[dict[int, arb], arb]:
    """Coefficients q with (q b)_g = a_g for |g| <= k. Taken at midpoints; `residual` bounds sum |(a - q b)_g|."""
    tab, centre = a.table, b.coef[0]
    quotient: dict[int, arb] = {}
    pending, residual = dict(a.coef), ZERO
    others = [(j, z) for j, z in b.coef.items() if j]
    for i in range(tab.size):
        need = pending.get(i)
        if need is None:
            continue
        q = (need / centre).mid()
        residual = residual + (need - q * centre).abs_upper()
        if q.is_zero():
            continue
        quotient[i], row = q, tab.product[i]
        for j, z in others:
            if row[j] < tab.size:
                pending[row[j]] = pending.get(row[j], ZERO) - q * z
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
    line = scale(x, slope)
    coef = line.coef | {0: line.coef.get(0, ZERO) + half}
    return Form(x.table, coef, (line.rem + half).upper(), ZERO, high, x.singular)


def either(x: Form, y: Form) -> Form:
    """A form that contains both x and y: their mean, within half the largest distance."""
    mean, gap = scale(add(x, y), HALF), magnitude(scale(add(x, y, -1), HALF))
    low, high = smaller(x.low, y.low), larger(x.high, y.high)
    return Form(x.table, mean.coef, (mean.rem + gap).upper(), low, high, x.singular or y.singular)


class FormAlgebra:
    """Runs a scalar program in Taylor forms on one box: an algebra for `programs.fold`."""

    add = staticmethod(add)
    mul = staticmethod(multiply)
    div = staticmethod(divide)

    def __init__(self, table: Table):
        self.table = table

    def constant(self, text: str) -> Form:
        return constant(self.table, balls.constant(text))

    def neg(self, a: Form) -> Form:
        return scale(a, -ONE)

    def sub(self, a: Form, b: Form) -> Form:
        return add(a, b, -1)

    def pow(self, a: Form, n: int) -> Form:
        return balls.power(a, n, multiply, constant(self.table, ONE))

    def max(self, a: Form, b: Form) -> Form:
        """b + relu(a - b), or the side that certainly wins (the sum would count the remainder of b twice)."""
        difference = add(a, b, -1)
        low, high = bounds(difference)
        if low >= 0 or high <= 0:
            return a if low >= 0 else b
        result = add(b, relu(difference))
        low, high = larger(result.low, larger(a.low, b.low)), smaller(result.high, larger(a.high, b.high))
        return Form(result.table, result.coef, result.rem, low, high)

    def min(self, a: Form, b: Form) -> Form:
        return self.neg(self.max(self.neg(a), self.neg(b)))

    def abs(self, a: Form) -> Form:
        return self.max(a, self.neg(a))

    def compare(self, comparison: str, a: Form, b: Form) -> bool | None:
        """Whether the comparison certainly holds, or certainly does not, on the whole box."""
        low, high = bounds(add(a, b, -1))
        true, false = (high < 0, low >= 0) if comparison == "lt" else (high <= 0, low > 0)
        return bool(true) if true or false else None

    def select(self, condition: None, x: Form, y: Form) -> Form:
        """A form that contains both branches."""
        return either(x, y)

    def undefined(self, value: Form) -> bool:
        return bool(value.singular)

    def exp(self, a: Form) -> Form:
        return _increasing(a, "exp", lambda low, high, j: hull(low.exp().lower(), high.exp().upper()) / arb.fac_ui(j))

    def log(self, a: Form) -> Form:
        if not bounds(a)[0] > 0:
            return poisoned(self.table, a.singular or "log of a number that may be zero or negative")
        return _increasing(a, "log", lambda low, _, j: _alternating(ONE / (j * balls.power(low, j)), j))

    def sqrt(self, a: Form) -> Form:
        low, high = bounds(a)
        if not low >= 0:
            return poisoned(self.table, a.singular or "sqrt of a number that may be negative")
        if not low > 0:
            ends = low.sqrt().lower(), high.sqrt().upper()
            return tightest(Form(self.table, {}, INFINITY, *ends, a.singular))

        def following(low: arb, _: arb, j: int) -> arb:
            binomial = prod(((HALF - i) / (i + 1) for i in range(j)), start=ONE)
            return _alternating(abs(binomial) * low.sqrt() / balls.power(low, j), j)

        return _increasing(a, "sqrt", following)

    def sin(self, a: Form) -> Form:
        return _sine(a, "sin")

    def cos(self, a: Form) -> Form:
        return _sine(a, "cos")

    def tan(self, a: Form) -> Form:
        if not value_ball(a).tan().is_finite():
            return poisoned(self.table, a.singular or "tan on an interval that may contain a pole")
        return _increasing(a, "tan", lambda low, high, j: _riccati(hull(low, high).tan(), j, 1)[-1])

    def tanh(self, a: Form) -> Form:
        return _increasing(a, "tanh", lambda low, high, j: _riccati(_rising(arb.tanh, hull(low, high)), j, -1)[-1])

    def atan(self, a: Form) -> Form:
        return _increasing(a, "atan", lambda low, high, j: _atan(hull(low, high), j)[-1])

    def erf(self, a: Form) -> Form:
        return _increasing(a, "erf", lambda low, high, j: _erf(hull(low, high), j)[-1])


def target_forms(program: Program, box: Box, order: int) -> list[Form]:
    """The forms of every output of `program` on `box`."""
    tab = table(box.dimension, order)
    return fold(program, [variable(tab, box, axis) for axis in range(box.dimension)], FormAlgebra(tab))


def _increasing(a: Form, name: str, following: Callable[[arb, arb, int], arb]) -> Form:
    """An increasing function; `following` encloses t_j on [low, high] for j = k + 1."""
    (low, high), function = bounds(a), getattr(arb, name)
    ends = function(low).lower(), function(high).upper()
    return _composed(a, name, following(low, high, a.table.order + 1), *ends)


def _composed(a: Form, name: str, following: arb, low: arb, high: arb) -> Form:
    start = expansion_point(a)
    return compose(a, start, point_series(name, start, a.table.order), following, low, high)


def _alternating(size: arb, j: int) -> arb:
    """Coefficients up to `size` with the sign of (-1)^(j + 1), which log and sqrt have from j = 1 on."""
    return hull(ZERO, size.upper()) if j % 2 else hull(-size.upper(), ZERO)


def _sine(a: Form, name: str) -> Form:
    """sin or cos: exact at the ends where the derivative keeps its sign, else what balls give inside [-1, 1]."""
    low, high = bounds(a)
    whole = hull(low, high)
    value, slope = (whole.sin(), whole.cos()) if name == "sin" else (whole.cos(), -whole.sin())
    if slope > 0 or slope < 0:
        ends = [low.sin(), high.sin()] if name == "sin" else [low.cos(), high.cos()]
        bottom, top = smaller(ends[0].lower(), ends[1].lower()), larger(ends[0].upper(), ends[1].upper())
    else:
        bottom, top = (larger(value.lower(), -ONE), smaller(value.upper(), ONE)) if value.is_finite() else (-ONE, ONE)
    j = a.table.order + 1
    derivative = (value, slope, -value, -slope)[j % 4]
    return _composed(a, name, (derivative if derivative.is_finite() else hull(-ONE, ONE)) / arb.fac_ui(j), bottom, top)


def point_series(name: str, x: arb, order: int) -> list[arb]:
    """Taylor coefficients t_0..t_order of an elementary function at x."""
    if name == "tanh":
        return _riccati(_rising(arb.tanh, x), order, -1)
    if name in ("atan", "erf"):  # python-flint's series return nan or very wide balls when x is wide
        return (_atan if name == "atan" else _erf)(x, order)
    series = getattr(arb_series, name)(arb_series([x, 1], prec=order + 1))
    if series.prec < order + 1:  # cut by python-flint's cap: the missing terms are unknown, not zero
        return [arb.nan()] * (order + 1)
    coefficients = series.coeffs()
    return coefficients[: order + 1] + [ZERO] * (order + 1 - len(coefficients))


def _riccati(value: arb, order: int, sign: int) -> list[arb]:
    """Coefficients of y' = 1 + sign y^2 with y = value, up to `order`."""
    a = [value]
    for i in range(order):
        square = sum((a[m] * a[i - m] for m in range(i + 1)), ZERO)
        a.append(((ONE if i == 0 else ZERO) + sign * square) / (i + 1))
    return a


def _atan(x: arb, order: int) -> list[arb]:
    """Coefficients of atan, up to `order`."""
    denominator = ONE + _square(x)
    g = [ONE / denominator]
    for i in range(1, order):
        g.append(-(2 * x * g[i - 1] + (g[i - 2] if i > 1 else ZERO)) / denominator)
    return [_rising(arb.atan, x)] + [g[i] / (i + 1) for i in range(order)]


def _erf(x: arb, order: int) -> list[arb]:
    """Coefficients of erf, up to `order`."""
    g = [2 / arb.pi().sqrt() * (-_square(x)).exp()]
    for i in range(1, order):
        g.append(-2 * (x * g[i - 1] + (g[i - 2] if i > 1 else ZERO)) / i)
    return [_rising(arb.erf, x)] + [g[i] / (i + 1) for i in range(order)]


def _rising(function: Callable[[arb], arb], x: arb) -> arb:
    """An increasing function of a ball, from its ends: sharp however wide the ball is."""
    return hull(function(x.lower()).lower(), function(x.upper()).upper())


def _square(x: arb) -> arb:
    """x^2 of a ball, never negative (the product of balls x * x is, when x contains zero)."""
    low, high = x.abs_lower(), x.abs_upper()
    return hull((low * low).lower(), (high * high).upper())
