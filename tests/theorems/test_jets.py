"""Derivatives over a box: every derivative at every point is enclosed, and smoothness is never overstated."""

from __future__ import annotations

import random

import pytest
from flint import arb

from certiformer.axioms.derivatives import DerivativeBounds, series
from certiformer.kernel.balls import BallDomain, Box, hull, working_precision
from certiformer.target import Program, parse_domain, parse_formula
from kernel.oracle import point_of, precisely, random_box, values
from kernel.programs import random_program

working_precision()

STEP = arb((1, -90))
# Central differences at 300 bits with step 2^-90: rounding 2^-300 / 2^-180 = 2^-120 and truncation 2^-180 f''''; both
# stay below 2^-60 times the size of the function and its next derivatives, which are below 2^40 in these tests.
ERROR = arb((1, -50))


def balls_of(box: Box) -> list[arb]:
    return [hull(box.low(i), box.high(i)) for i in range(box.dimension)]


def differences(program: Program, point: list[arb]):
    """Gradient and second derivatives of the first output at a point, by central differences."""

    def f(**moves: int) -> arb:
        return values(program, [x + STEP * moves.get(f"x{i}", 0) for i, x in enumerate(point)])[0]

    n = range(len(point))
    with precisely():
        gradient = [(f(**{f"x{i}": 1}) - f(**{f"x{i}": -1})) / (2 * STEP) for i in n]
    second = {}
    for i in n:
        for j in range(i, len(point)):
            with precisely():
                if i == j:
                    second[i, j] = (f(**{f"x{i}": 1}) - 2 * f() + f(**{f"x{i}": -1})) / (STEP * STEP)
                else:
                    corners = [f(**{f"x{i}": a, f"x{j}": b}) * a * b for a in (1, -1) for b in (1, -1)]
                    second[i, j] = (corners[0] + corners[1] + corners[2] + corners[3]) / (4 * STEP * STEP)
    return gradient, second


def outside(enclosure: arb, value: arb) -> bool:
    with precisely():
        room = ERROR * (1 + abs(value))
        return bool(value - room > enclosure.upper() or value + room < enclosure.lower())


SMOOTH = {
    1: ["sin(3*x1)", "exp(-x1**2)", "log(x1 + 3)", "sqrt(x1 + 3)", "tan(x1/3)", "tanh(2*x1)", "atan(x1)", "erf(x1)",
        "x1**5 - x1", "1/(2 + x1)", "x1/(1 + x1**2)", "-x1*cos(x1)", "abs(x1 + 5)", "max(x1, x1 - 3)", "x1**0",
        "where(x1 < 7, sin(x1), 1/(x1 - 7))", "min(x1**2, 9 + x1)"],
    2: ["x1*x2", "sin(x1*x2) + exp(-x1*x2)", "sqrt(4 + x1*x2)", "x1**3*x2**2", "tanh(x1 - 2*x2)/(3 + x2)"],
    3: ["x1*x2*x3", "exp(x1 - x2*x3)", "atan(x1 + x2**2 - x3)"],
}  # fmt: skip


@pytest.mark.parametrize(("dimension", "text"), [(d, text) for d, texts in SMOOTH.items() for text in texts])
def test_derivatives_of_smooth_functions_are_enclosed_on_boxes_and_tight_at_points(dimension, text):
    rng, program = random.Random(text), parse_formula(text, dimension)
    for width in (0.0, 1e-9, 1e-3, 0.3):
        box = random_box(rng, dimension, centre=1.0, width=width)
        (jet,) = series(program, balls_of(box), 2)
        assert jet.smooth == 2
        for _ in range(3 if width else 1):
            point = point_of(box, [rng.uniform(-1, 1) for _ in range(dimension)])
            gradient, second = differences(program, point)
            assert not outside(jet.value, values(program, point)[0])
            assert not any(outside(g, exact) for g, exact in zip(jet.grad, gradient, strict=True))
            assert not any(outside(jet.hess[pair], second[pair]) for pair in second)
        if not width:
            assert all(ball.rad() < 1e-20 for ball in (jet.value, *jet.grad, *jet.hess.values()))


def test_the_differences_notice_a_wrong_derivative():
    program, point = parse_formula("sin(x1*x2)"), [arb(0.5), arb(0.75)]
    (jet,) = series(program, point, 2)
    gradient, second = differences(program, point)
    assert not outside(jet.grad[0], gradient[0])
    assert outside(jet.grad[0], gradient[1])
    assert outside(-jet.grad[0], gradient[0])
    assert outside(jet.hess[0, 0], second[0, 1])
    assert outside(jet.hess[0, 1] * arb("1.000001"), second[0, 1])


@pytest.mark.parametrize("seed", range(30))
def test_random_programs_never_claim_too_much(seed):
    rng, judged = random.Random(seed), 0
    for _ in range(12):
        dimension = rng.randrange(1, 3)
        program = random_program(rng, dimension, rng.randrange(1, 9)).select(0)
        box = random_box(rng, dimension, centre=1.5, width=10 ** rng.uniform(-6, -0.5))
        (jet,) = series(program, balls_of(box), 2)
        for _ in range(3):
            point = point_of(box, [rng.uniform(-1, 1) for _ in range(dimension)])
            value = values(program, point)[0]
            if jet.smooth > 0 and value.is_finite():
                judged += 1
                assert not outside(jet.value, value)
                gradient, second = differences(program, point)
                sized = all(g.is_finite() and abs(g) < 1e9 for g in gradient) and abs(value) < 1e9
                # At random points kinks are not met, so the Clarke gradient is the gradient.
                if sized:
                    assert not any(outside(g, exact) for g, exact in zip(jet.grad, gradient, strict=True))
                if sized and jet.smooth == 2 and all(abs(s) < 1e9 for s in second.values()):
                    assert not any(outside(jet.hess[pair], second[pair]) for pair in second)
            if jet.smooth > 0:
                assert not value.is_nan() or any(node[0] == "where" for node in program.nodes)
    assert judged > 5


KINKS = [
    "abs(x1 - 0.5)",
    "max(x1, 1 - x1)",
    "min(x1, 0.5)",
    "abs(x1 - 0.5)**2",
    "max(0, x1 - 0.5)**3",
    "abs(abs(x1 - 0.5))",
]


@pytest.mark.parametrize("text", KINKS)
def test_a_kink_exactly_on_an_interface_is_undecided_on_both_sides(text):
    program, domain = parse_formula(text), BallDomain(parse_domain("[0,1]"))
    for parts in (1, 2, 4, 8, 64):  # 0.5 is an end of two parts, or inside the only one
        bounds = DerivativeBounds(program, domain, (parts,), order=2)
        assert bounds.smooth == 1
        assert "kink" in bounds.why
        assert all(g.is_finite() for g in bounds.gradient[0])
    # One part that does not touch the kink is smooth.
    assert DerivativeBounds(program, BallDomain(parse_domain("[0,0.49]")), (1,), order=2).smooth == 2


def test_a_box_that_only_touches_the_kink_is_undecided():
    """[0, 1] as the exact ball 1/2 +- 1/2: max(x1, 0) is x1 on it, but not on any neighbourhood of it."""
    (jet,) = series(parse_formula("max(x1, 0)"), [arb(0.5, 0.5)], 2)
    assert jet.smooth == 1
    (jet,) = series(parse_formula("where(x1 < 0, 0, x1)"), [arb(0.5, 0.5)], 2)
    assert jet.smooth == 0


@pytest.mark.parametrize(
    ("text", "slopes"),
    [("abs(x1)", (-1, 1)), ("max(x1, 3*x1)", (1, 3)), ("min(x1, -2*x1)", (-2, 1)), ("2*abs(x1) - max(0, x1)", (-2, 1))],
)
def test_clarke_gradients_contain_both_one_sided_slopes(text, slopes):
    (jet,) = series(parse_formula(text), [hull(arb(-1), arb(1))], 1)
    assert jet.smooth == 1
    assert all(jet.grad[0].contains(slope) for slope in slopes)


STEPS = [
    "where(x1 < 0.5, 0, 1)",
    "where(x1 <= 0.5, x1, x1)",
    "where(x1 < 0.5, x1, 1 - x1)",
    "sin(where(0.5 < x1, 1, 2))",
]


@pytest.mark.parametrize("text", STEPS)
def test_an_undecided_branch_is_not_even_lipschitz(text):
    program = parse_formula(text)
    if not any(node[0] == "where" for node in program.nodes):  # the builder may see that both branches agree
        program = Program(1, (("var", 0), ("const", "1/2"), ("where", "le", 0, 1, 0, 0)), (2,))
    for parts in (1, 2, 3, 8):
        bounds = DerivativeBounds(program, BallDomain(parse_domain("[0,1]")), (parts,), order=2)
        assert bounds.smooth == 0
        assert "where" in bounds.why
    decided = DerivativeBounds(program, BallDomain(parse_domain("[0.6,1]")), (3,), order=2)
    assert decided.smooth == 2


SINGULAR = ["1/(x1 - 0.5)", "log(x1)", "sqrt(x1)", "tan(4*x1)", "0/(x1 - 0.5)", "sqrt(x1 - 0.5)**2", "x1**1.5"]


@pytest.mark.parametrize("text", SINGULAR)
def test_singular_functions_and_unbounded_derivatives_are_not_smooth(text):
    bounds = DerivativeBounds(parse_formula(text), BallDomain(parse_domain("[0,1]")), (16,), order=2)
    assert bounds.smooth == 0
    assert bounds.why
    assert bounds.where


def test_the_zeroth_power_of_a_singular_base_is_not_smooth():
    program = Program(1, (("var", 0), ("const", "1"), ("div", 1, 0), ("pow", 2, 0)), (3,))
    assert DerivativeBounds(program, BallDomain(parse_domain("[-1,1]")), (4,), order=2).smooth == 0
    assert DerivativeBounds(program, BallDomain(parse_domain("[1,2]")), (4,), order=2).smooth == 2


def test_bounds_are_upper_bounds_and_tight_on_a_fine_partition():
    # sin(3 x1): max |f'| = 3, max |f''| = 9 on [0, 2*pi], both reached; 500 parts enclose them within 2 %.
    bounds = DerivativeBounds(parse_formula("sin(3*x1)"), BallDomain(parse_domain("[0,2*pi]")), (500,), order=2)
    assert 3 <= float(bounds.gradient[0][0]) < 3.06
    assert 9 <= float(bounds.hessian[0][0, 0]) < 9.18


def test_the_partition_reaches_both_ends_of_the_domain():
    # x1**8 has its largest derivatives at the ends: 8 and 56.
    for parts in (1, 3, 7):
        bounds = DerivativeBounds(parse_formula("x1**8"), BallDomain(parse_domain("[-1,1]")), (parts,), order=2)
        assert not bounds.gradient[0][0] < 8
        assert not bounds.hessian[0][0, 0] < 56


def test_every_output_has_its_own_bounds():
    bounds = DerivativeBounds(parse_formula("[x1, 5*x1*x2]"), BallDomain(parse_domain("[0,1]^2")), (2, 2), order=2)
    assert [float(g) for g in bounds.gradient[0]] == [1.0, 0.0]
    assert float(bounds.hessian[0][0, 1]) == 0.0
    assert abs(float(bounds.hessian[1][0, 1]) - 5.0) < 1e-12
