"""Forms of sums of ridge functions: they contain the function, agree with the plain forms, and are no wider."""

from __future__ import annotations

import random

import pytest
from flint import arb

from certiformer.checker.ridge_program import RidgeProgram, as_ridges
from certiformer.kernel import taylor
from certiformer.kernel.balls import ZERO, BallDomain, Box, working_precision
from certiformer.kernel.problem import ProgramFunction
from certiformer.kernel.taylor import value_ball
from certiformer.target import parse_domain, parse_formula

working_precision()

SUMS = [
    ("sin(x1 + 2*x2) - (x1 - x2)**5 + 3*x1", 2),
    ("exp(x1/3) + cos(7*x2) + x2", 2),
    ("(x1+x2-x3)**4 + abs(x1 - x3) + tanh(2*x2)", 3),
    ("[max(x1, x2), x1 - x2, 1/(3 + x1 + x2)]", 2),
    ("7/3", 2),
]


@pytest.mark.parametrize(("text", "inputs"), SUMS)
@pytest.mark.parametrize("order", [0, 1, 3, 6])
def test_forms_contain_the_function(text, inputs, order):
    program = parse_formula(text, inputs)
    ridges, plain = as_ridges(program), ProgramFunction(program)
    assert isinstance(ridges, RidgeProgram)
    domain = BallDomain(parse_domain("[-1,2]" if inputs == 1 else f"[-1,2]^{inputs}"))
    draw = random.Random(order)
    for cell in (((0, 0),) * inputs, tuple((2, draw.randrange(4)) for _ in range(inputs))):
        box = domain.box(cell)
        forms, others = ridges.forms(box, order), plain.forms(box, order)
        for form, other in zip(forms, others, strict=True):
            low, high = taylor.bounds(form)
            # The same polynomial up to what products drop: never noticeably wider than the plain form.
            assert float(form.rem) <= float(other.rem) * 1.01 + 1e-24 or taylor.bounds(other) == (low, high)
        for _ in range(30):
            e = [draw.uniform(-1, 1) for _ in range(inputs)]
            point = Box(
                tuple(c + r * arb(t) for c, r, t in zip(box.centre, box.radius, e, strict=True)), (ZERO,) * inputs
            )
            exact = plain.forms(Box(tuple(x.mid() for x in point.centre), tuple(x.rad() for x in point.centre)), 0)
            for form, value in zip(forms, exact, strict=True):
                total = ZERO
                for i, c in form.coef.items():
                    term = c
                    for axis, power in enumerate(form.table.monomials[i]):
                        for _ in range(power):
                            term = term * arb(e[axis])
                    total = total + term
                gap = abs(value_ball(value) - total)
                assert not gap.lower() > form.rem + arb("1e-22")
                low, high = taylor.bounds(form)
                assert not (value_ball(value) < low) and not (value_ball(value) > high)


def test_a_wrong_remainder_would_be_noticed():
    # The control of the test above: the remainder of exp on a wide box is not zero.
    form = as_ridges(parse_formula("exp(x1 + x2)", 2)).forms(
        BallDomain(parse_domain("[-1,2]^2")).box(((0, 0),) * 2), 3
    )[0]
    assert float(form.rem) > 0.01


def test_singular_profiles_stay_singular():
    box = BallDomain(parse_domain("[-1,2]^2")).box(((0, 0),) * 2)
    form = as_ridges(parse_formula("1/(x1 + x2) + x1", 2)).forms(box, 3)[0]
    assert form.singular


def test_what_is_no_sum_of_ridges_stays_a_program():
    assert type(as_ridges(parse_formula("x1*x2", 2))) is ProgramFunction
