"""Taylor forms: every operation contains every exact value, at any order, on any box."""

from __future__ import annotations

import random

import pytest
from flint import arb

from certiformer.kernel import taylor
from certiformer.kernel.balls import INFINITY, ONE, ZERO, Box, working_precision
from certiformer.kernel.taylor import MAX_ORDER, Form, FormAlgebra, bounds, magnitude, point_series, table, target_forms
from certiformer.target import Program, parse_formula
from kernel.oracle import places, point_of, polynomial, precisely, random_box, values, violation

working_precision()

# Arguments for the operations: affine, bent, and products, so that forms with all kinds of coefficients occur.
ARGUMENTS = {
    1: ["x1", "3 - 2*x1", "x1**2 - 1/2", "x1*(x1 - 1)*(x1 + 2)"],
    2: ["x1 - x2", "x1*x2 + x1/3", "(x1 + x2)**2 - x2"],
    3: ["x1 + 2*x2 - x3", "x1*x2*x3 - x2", "x1**2 + x2**2 - x3**2"],
}
# What keeps the argument inside the domain of a function, so that not every case is poisoned.
UNARY = {
    "neg": "-({a})", "abs": "abs({a})", "exp": "exp({a})", "sin": "sin({a})", "cos": "cos({a})", "tanh": "tanh({a})",
    "atan": "atan({a})", "erf": "erf({a})", "log": "log(({a})**2 + 0.01)", "sqrt": "sqrt(({a})**2 + 0.01)",
    "log near 0": "log(abs({a}))", "sqrt near 0": "sqrt(abs({a}))", "tan": "tan(atan({a})/1.1)", "tan wild": "tan({a})",
    "pow": "({a})**{n}", "reciprocal": "1/(({a})**2 + 0.1)",
}  # fmt: skip
BINARY = {
    "add": "({a}) + ({b})", "sub": "({a}) - ({b})", "mul": "({a})*({b})", "div": "({a})/(({b})**2 + 0.1)",
    "div wild": "({a})/({b})", "min": "min({a}, {b})", "max": "max({a}, {b})",
    "where": "where({a} < {b}, {a}, ({b})**2)", "where le": "where({a} <= 0, {b}, ({a})*({b}))",
}  # fmt: skip


def check_program(program: Program, box: Box, order: int, rng: random.Random, count: int = 6) -> bool:
    """Assert containment at many places; returns whether the form said anything."""
    forms = target_forms(program, box, order)
    for e in places(rng, box.dimension, count):
        for form, value in zip(forms, values(program, point_of(box, e)), strict=True):
            if value.is_nan() and not form.singular:
                continue  # a comparison on its very boundary, or a singular point: judged in the tests below
            assert violation(form, e, value) == ""
    return all(not form.singular and form.rem.is_finite() for form in forms)


@pytest.mark.parametrize("dimension", [1, 2, 3])
@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_every_operation_contains_its_values(name, dimension):
    rng = random.Random(f"{name} {dimension}")
    informative = 0
    for order in range(7):
        for _ in range(3):
            a, b = rng.choice(ARGUMENTS[dimension]), rng.choice(ARGUMENTS[dimension])
            text = {**UNARY, **BINARY}[name].format(a=a, b=b, n=rng.randrange(2, 7))
            box = random_box(rng, dimension, width=None if rng.random() < 0.6 else 10 ** rng.uniform(-3, 0))
            informative += check_program(parse_formula(text, dimension), box, order, rng)
    assert informative >= 7  # of 21: the rest is poisoned or infinitely wide, never all


@pytest.mark.parametrize("order", [0, 1, 2, 5, 9, 10, 11, MAX_ORDER])
def test_every_order_up_to_the_largest_is_complete(order):
    # Orders of 10 and more are where a truncated power series of the library would go unnoticed.
    rng = random.Random(order)
    for name in ("exp", "sin", "cos", "tanh", "atan", "erf", "log", "sqrt", "tan"):
        text = {"log": "log(x1 + 3)", "sqrt": "sqrt(x1 + 3)", "tan": "tan(x1/2)"}.get(name, f"{name}(x1)")
        box = Box((arb(0.25),), (arb(1.5),))
        assert check_program(parse_formula(text), box, order, rng, 12)


@pytest.mark.parametrize("name", ["exp", "sin", "cos", "tanh", "atan", "erf", "log", "sqrt", "tan"])
def test_point_series_has_every_coefficient(name):
    series = point_series(name, arb(0.75), MAX_ORDER)
    assert len(series) == MAX_ORDER + 1
    assert all(c.is_finite() for c in series)
    assert not series[MAX_ORDER].is_zero()
    with precisely():  # sum_i t_i h^i against the function at 0.75 + h; the tail is below h^13 times a modest number
        h = arb(1) / 1024
        total = sum((t * h**i for i, t in enumerate(series)), ZERO)
        assert abs(total - getattr(arb(0.75) + h, name)()) < arb(2) ** -90


def test_a_series_that_the_library_cut_short_says_nothing():
    import flint

    flint.ctx.cap = 5
    try:
        assert all(c.is_nan() for c in point_series("exp", arb(1), 5))
        form = target_forms(parse_formula("exp(x1)"), Box((arb(0),), (arb(1),)), 6)[0]
        assert violation(form, [1.0], arb(1).exp()) == ""
    finally:
        working_precision()


@pytest.mark.parametrize(
    ("text", "centre", "radius"),
    [
        ("sin(x1)", 1.5, 0.5), ("sin(x1)", 0.0, 50.0), ("cos(x1)", 0.0, 1e-9), ("cos(x1)", 3.25, 3.25),
        ("abs(x1)", 0.0, 1e-12), ("abs(x1)", 1.0, 1.0), ("abs(x1)", -0.5, 0.75), ("max(x1, 0)", 1e-12, 1e-12),
        ("x1**2", 0.0, 1.0), ("x1**2", 1.0, 1.0), ("x1**3 - x1", 0.5, 1.0), ("min(x1, 1 - x1)", 0.5, 0.25),
        ("tanh(x1)", 0.0, 700.0), ("exp(x1)", -700.0, 1.0), ("exp(x1)", 700.0, 100.0), ("exp(-x1**2)", 0.0, 1000.0),
        ("atan(x1)", 0.0, 1e3), ("erf(x1)", 0.0, 30.0), ("sqrt(x1)", 1.0, 1.0), ("sqrt(x1)", 1e-12, 5e-13),
        ("log(x1)", 1e-3, 9e-4), ("x1**100", 0.0, 1.0), ("where(x1 < 0.5, 0, 1)", 0.5, 0.25),
        ("where(x1 <= 0.5, x1, 2)", 0.25, 0.25), ("where(x1 < 0.5, x1, 2)", 0.25, 0.25), ("1/x1", 1e-6, 5e-7),
    ],
)  # fmt: skip
@pytest.mark.parametrize("order", [0, 1, 2, 3, 6])
def test_stationary_points_kinks_steps_and_extremes(text, centre, radius, order):
    rng = random.Random(f"{text}{order}")
    program, box = parse_formula(text), Box((arb(centre),), (arb(radius),))
    form = target_forms(program, box, order)[0]
    special = [-1.0, 1.0, 0.0, 0.5, -0.5, 2.0**-30, -(2.0**-30)]
    # Every stationary point and boundary above is a place with few binary digits, except pi/2 and its kin.
    special += [(k * 1.5707963267948966 - centre) / radius for k in range(-4, 5)]
    for e in [t for t in special if -1 <= t <= 1] + [rng.uniform(-1, 1) for _ in range(20)]:
        value = values(program, point_of(box, [e]))[0]
        if value.is_finite():
            assert violation(form, [e], value) == ""
    low, high = bounds(form)
    assert low <= high


def test_the_expansion_point_lies_in_the_range_even_if_the_constant_term_does_not():
    # cos of a function with values in [1.2, 1.94] whose polynomial is the constant 0: a legal form, badly centred.
    tab = table(1, 1)
    form = Form(tab, {}, arb(1.94), arb(1.2), arb(1.94))
    result = FormAlgebra(tab).cos(form)
    for value in (1.2, 1.5, 1.75, 1.94):
        assert violation(result, [0.0], arb(value).cos()) == ""
    # Expanding at the constant term 0 instead gives cos 0 +- |cos| rho^2/2 <= 1 +- 0.7, which misses cos 1.94 = -0.36.
    naive = taylor.compose(form, ZERO, [ONE, ZERO], (abs(arb(1.94).cos()) / 2).upper(), arb(-1), arb(1))
    assert violation(naive, [0.0], arb(1.94).cos()) != ""


@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "sin", "cos", "tan", "tanh", "atan", "erf"])
def test_functions_of_badly_centred_forms(name):
    """Forms of clipped polynomials: the interval is tight, the polynomial is not, and its centre lies outside."""
    rng, checked = random.Random(name), 0
    for _ in range(60):
        order = rng.randrange(1, 7)
        tab = table(1, order)
        size = rng.choice([0.01, 0.1, 1.0])
        coefficients = [rng.uniform(0.3, 1.2)] + [rng.uniform(-size, size) for _ in range(order)]
        edge = arb(coefficients[0] + rng.choice([-1, 1]) * rng.uniform(0, 0.25))
        above = edge > coefficients[0]
        plain = Form(tab, {i: arb(c) for i, c in enumerate(coefficients)}, ZERO, -INFINITY, INFINITY)
        low, high = bounds(plain)
        # g = max(p, edge) or min(p, edge) differs from p by at most the distance of the edge from the far end of p.
        if above:
            form = Form(tab, plain.coef, taylor.larger(edge - low, ZERO).upper(), edge, taylor.larger(high, edge))
        else:
            form = Form(tab, plain.coef, taylor.larger(high - edge, ZERO).upper(), taylor.smaller(low, edge), edge)
        result = getattr(FormAlgebra(tab), name)(form)
        checked += not result.singular
        for e in places(rng, 1, 12):
            with precisely():
                p = polynomial(plain, e)
                value = getattr(p.max(edge) if above else p.min(edge), name)()
            if value.is_finite():
                assert violation(result, e, value) == ""
    assert checked > 10


def test_the_oracle_notices_what_is_slightly_too_small():
    """Negative control: a smaller remainder, a flipped sign, a dropped coefficient, a narrower interval."""
    program, box = parse_formula("exp(x1)*cos(x2)"), Box((ZERO, ZERO), (ONE, ONE))
    form = target_forms(program, box, 3)[0]
    grid = [[i / 8, j / 8] for i in range(-8, 9) for j in range(-8, 9)]

    def caught(changed: Form) -> bool:
        return any(violation(changed, e, values(program, point_of(box, e))[0]) for e in grid)

    tight = max(abs(values(program, point_of(box, e))[0] - polynomial(form, e)).upper() for e in grid)
    assert not caught(form)
    assert caught(Form(form.table, form.coef, (tight * arb("0.999")).lower(), form.low, form.high))
    assert caught(Form(form.table, form.coef, form.rem, form.low, arb(2)))
    assert caught(Form(form.table, form.coef, form.rem, arb(1), form.high))
    for i in form.coef:
        flipped = {**form.coef, i: -form.coef[i]}
        if abs(form.coef[i]) > form.rem:
            assert caught(Form(form.table, flipped, form.rem, form.low, form.high))


@pytest.mark.parametrize("order", range(7))
def test_relu_and_either_contain_both_sides(order):
    rng = random.Random(order)
    for _ in range(40):
        box = random_box(rng, 2, 1.0, 10 ** rng.uniform(-3, 1))
        a, b = (rng.choice(["x1*x2 - 0.1", "x1 + x2", "x1**2 - x2", "sin(x1) - x2"]) for _ in range(2))
        x, y = (target_forms(parse_formula(t, 2), box, order)[0] for t in (a, b))
        relu, either = taylor.relu(x), taylor.either(x, y)
        for e in places(rng, 2, 5):
            point = point_of(box, e)
            (u,), (v,) = values(parse_formula(a, 2), point), values(parse_formula(b, 2), point)
            assert violation(relu, e, u.max(arb(0))) == ""
            for mixed in (u, v, (u + v) / 2, (3 * u + v) / 4):
                assert violation(either, e, mixed) == ""


def test_bounds_of_a_polynomial_are_reached():
    # 1 + 2 e - 3 e^2: odd terms swing both ways, even ones one way; the exact ends are 4/3 and -4, the bound 3 and -4.
    tab = table(1, 2)
    form = Form(tab, {0: ONE, 1: arb(2), 2: arb(-3)}, ZERO, -INFINITY, INFINITY)
    assert [float(end) for end in bounds(form)] == [-4.0, 3.0]
    assert float(magnitude(form)) == 4.0


def test_nan_is_never_small():
    tab = table(1, 1)
    nan = arb.nan()
    for form in (
        Form(tab, {0: nan}, ZERO, -INFINITY, INFINITY),
        Form(tab, {1: nan}, ZERO, -INFINITY, INFINITY),
        Form(tab, {0: ONE}, nan, -INFINITY, INFINITY),
        Form(tab, {0: ONE}, ZERO, nan, ONE),
        Form(tab, {0: ONE}, ZERO, ONE, nan),
        taylor.poisoned(tab, "why"),
    ):
        assert not magnitude(form) <= 1e300
        algebra = FormAlgebra(tab)
        one = taylor.constant(tab, ONE)
        for result in (
            taylor.add(form, one), taylor.multiply(form, one), taylor.divide(form, one), taylor.scale(form, ONE),
            algebra.max(form, one), algebra.abs(form), algebra.pow(form, 3), algebra.exp(form),
        ):  # fmt: skip
            assert not magnitude(result) <= 0.5


def test_the_magnitude_takes_line_and_square_of_an_axis_together():
    """3 - 2 (e - 1/4)^2 peaks inside the box; the plain range adds the slope 1 at full size."""
    tab = table(1, 2)
    form = Form(tab, {0: arb(3) - arb(1) / 8, 1: arb(1), 2: arb(-2)}, ZERO, -INFINITY, INFINITY)
    assert float(magnitude(form)) == 3.0
    assert float(bounds(form)[1]) == 3.875


def test_no_value_exceeds_the_magnitude():
    rng, sharper = random.Random(1), 0
    for _ in range(300):
        dimension, order = rng.choice([1, 2, 3]), rng.choice([0, 1, 2, 3, 4])
        tab = table(dimension, order)
        coef = {i: arb(rng.gauss(0, 10 ** rng.uniform(-2, 1))) for i in range(tab.size) if rng.random() < 0.7}
        form = Form(tab, coef, arb(abs(rng.gauss(0, 0.1))), -INFINITY, INFINITY)
        size, (low, high) = magnitude(form), bounds(form)
        assert size <= high or size <= -low
        sharper += bool(size < high or size < -low)
        for e in places(rng, dimension, 12):
            with precisely():
                assert not abs(polynomial(form, e)) + form.rem > size
    assert sharper > 30
