"""Elementary functions of Taylor forms, and the algebra that runs a target program in forms.

For each function: the Taylor coefficients t_0..t_k at the constant term (balls, from the power series of python-flint
or a recursion), a ball with all t_{k+1} over the whole range, and the range by monotonicity. A function that may leave its
domain on the box gives a *poisoned* form that says why; a `where` that certainly takes the other branch discards it.

What contains t_{k+1} = phi^(k+1) / (k+1)! on [l, u], j = k + 1:

* exp: e^u / j!; log: 1 / (j l^j); sqrt: |binom(1/2, j)| l^(1/2 - j): all monotone in x, with a sign that is known;
* sin, cos: the derivatives are sin, cos, -sin, -cos in turn, enclosed on [l, u] as a ball, over j!;
* tan, tanh, atan, erf: the coefficient recursions run on the ball of [l, u]:
  y' = 1 + y^2 (tan), y' = 1 - y^2 (tanh): (i+1) a_{i+1} = [i = 0] +- sum_l a_l a_{i-l};
  atan: g = 1/(1+x^2), g_i = -(2 x g_{i-1} + g_{i-2})/(1+x^2), a_{i+1} = g_i/(i+1);
  erf: g = 2/sqrt(pi) e^{-x^2}, g_i = -2 (x g_{i-1} + g_{i-2})/i, a_{i+1} = g_i/(i+1).
"""

from __future__ import annotations

from collections.abc import Callable

from flint import arb, arb_series

from certiformer.kernel import balls, taylor
from certiformer.kernel.balls import HALF, ONE, ZERO, Box, hull, larger, smaller
from certiformer.kernel.programs import Program, fold
from certiformer.kernel.taylor import Form, Table


class FormAlgebra:
    """Runs a target program in Taylor forms on one box: an algebra for `target.fold`."""

    def __init__(self, table: Table):
        self.table = table

    def constant(self, text: str) -> Form:
        return taylor.constant(self.table, balls.constant(text))

    def neg(self, a: Form) -> Form:
        return taylor.scale(a, -ONE)

    def add(self, a: Form, b: Form) -> Form:
        return taylor.add(a, b)

    def sub(self, a: Form, b: Form) -> Form:
        return taylor.add(a, b, -1)

    def mul(self, a: Form, b: Form) -> Form:
        return taylor.multiply(a, b)

    def div(self, a: Form, b: Form) -> Form:
        return taylor.divide(a, b)

    def pow(self, a: Form, n: int) -> Form:
        result: Form | None = None
        square = a
        while n:
            if n & 1:
                result = square if result is None else taylor.multiply(result, square)
            n >>= 1
            if n:
                square = taylor.multiply(square, square)
        return taylor.constant(self.table, ONE) if result is None else result

    def max(self, a: Form, b: Form) -> Form:
        """b + relu(a - b), or the side that certainly wins (the sum would count the remainder of b twice)."""
        difference = taylor.add(a, b, -1)
        low, high = taylor.bounds(difference)
        if low >= 0 or high <= 0:
            return a if low >= 0 else b
        result = taylor.add(b, taylor.relu(difference))
        low, high = larger(result.low, larger(a.low, b.low)), smaller(result.high, larger(a.high, b.high))
        return Form(result.table, result.coef, result.rem, low, high)

    def min(self, a: Form, b: Form) -> Form:
        return self.neg(self.max(self.neg(a), self.neg(b)))

    def abs(self, a: Form) -> Form:
        return self.max(a, self.neg(a))

    def compare(self, comparison: str, a: Form, b: Form) -> bool | None:
        """Whether the comparison certainly holds, or certainly does not, on the whole box."""
        low, high = taylor.bounds(taylor.add(a, b, -1))
        true, false = (high < 0, low >= 0) if comparison == "lt" else (high <= 0, low > 0)
        return bool(true) if true or false else None

    def select(self, condition: None, x: Form, y: Form) -> Form:
        """A form that contains both branches."""
        return taylor.either(x, y)

    def undefined(self, value: Form) -> bool:
        return bool(value.singular)

    def exp(self, a: Form) -> Form:
        low, high = taylor.bounds(a)
        top = high.exp().upper()
        bottom = low.exp().lower()
        return _composed(a, "exp", hull(bottom, top) / arb.fac_ui(a.table.order + 1), bottom, top)

    def log(self, a: Form) -> Form:
        low, high = taylor.bounds(a)
        if not low > 0:
            return taylor.poisoned(self.table, a.singular or "log of a number that may be zero or negative")
        j = a.table.order + 1
        following = _alternating(ONE / (j * balls.power(low, j)), j)
        return _composed(a, "log", following, low.log().lower(), high.log().upper())

    def sqrt(self, a: Form) -> Form:
        low, high = taylor.bounds(a)
        if not low >= 0:
            return taylor.poisoned(self.table, a.singular or "sqrt of a number that may be negative")
        ends = low.sqrt().lower(), high.sqrt().upper()
        j = a.table.order + 1
        if not low > 0:
            return taylor.tightest(Form(self.table, {}, balls.INFINITY, *ends, a.singular))
        following = _alternating(abs(_binomial_half(j)) * low.sqrt() / balls.power(low, j), j)
        return _composed(a, "sqrt", following, *ends)

    def sin(self, a: Form) -> Form:
        return _sine(a, "sin")

    def cos(self, a: Form) -> Form:
        return _sine(a, "cos")

    def tan(self, a: Form) -> Form:
        ends = taylor.bounds(a)
        value = hull(*ends).tan()
        if not value.is_finite():
            return taylor.poisoned(self.table, a.singular or "tan on an interval that may contain a pole")
        return _composed(
            a, "tan", _riccati(value, a.table.order + 1, 1)[-1], ends[0].tan().lower(), ends[1].tan().upper()
        )

    def tanh(self, a: Form) -> Form:
        low, high = taylor.bounds(a)
        ends = low.tanh().lower(), high.tanh().upper()
        return _composed(a, "tanh", _riccati(hull(*ends), a.table.order + 1, -1)[-1], *ends)

    def atan(self, a: Form) -> Form:
        low, high = taylor.bounds(a)
        return _composed(
            a, "atan", _atan(hull(low, high), a.table.order + 1)[-1], low.atan().lower(), high.atan().upper()
        )

    def erf(self, a: Form) -> Form:
        low, high = taylor.bounds(a)
        return _composed(a, "erf", _erf(hull(low, high), a.table.order + 1)[-1], low.erf().lower(), high.erf().upper())


def target_forms(program: Program, box: Box, order: int) -> list[Form]:
    """The forms of every output of `program` on `box`."""
    tab = taylor.table(box.dimension, order)
    variables = [taylor.variable(tab, box, axis) for axis in range(box.dimension)]
    return fold(program, variables, FormAlgebra(tab))


def _composed(a: Form, name: str, following: arb, low: arb, high: arb) -> Form:
    start = taylor.expansion_point(a)
    series = point_series(name, start, a.table.order)
    return taylor.compose(a, start, series, following, low, high)


def _alternating(size: arb, j: int) -> arb:
    """Coefficients up to `size` with the sign of (-1)^(j + 1), which log and sqrt have from j = 1 on."""
    return hull(ZERO, size.upper()) if j % 2 else hull(-size.upper(), ZERO)


def point_series(name: str, x: arb, order: int) -> list[arb]:
    """Taylor coefficients t_0..t_order of an elementary function at x."""
    if name == "tanh":
        return _riccati(_rising(arb.tanh, x), order, -1)
    if name in ("atan", "erf"):  # python-flint's series return nan or very wide balls when x is wide
        return (_atan if name == "atan" else _erf)(x, order)
    method: Callable = getattr(arb_series, name)
    series = method(arb_series([x, 1], prec=order + 1))
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


def _binomial_half(j: int) -> arb:
    """binom(1/2, j)."""
    result = ONE
    for i in range(j):
        result = result * (HALF - i) / (i + 1)
    return result


def _sine(a: Form, name: str) -> Form:
    """sin or cos: exact at the ends where the derivative keeps its sign, else what balls give inside [-1, 1]."""
    low, high = taylor.bounds(a)
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
