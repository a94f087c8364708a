"""Taylor forms of high order on targets and polynomials: |P - f| for a degree-10 fit of sin(3 x1 x2).

Order 1 drowns in boxes, order 6 needs a few hundred: the reason why forms of any order exist.
"""

from fractions import Fraction

import numpy as np
import pytest
from numpy.polynomial import chebyshev, polynomial

from certiformer.enclose.error import difference_bound
from certiformer.enclose.target import enclose_target
from certiformer.kernel.balls import BallDomain, working_precision
from certiformer.target import parse_domain, parse_formula
from certiformer.verify import Budget, FloatDomain, search
from certiformer.verify.bounder import CompiledBounder

EPSILON = 5e-5
TARGET = parse_formula("sin(3*x1*x2)", 2)


def fitted() -> str:
    """A degree-10 least-squares fit in u = x1 x2 (f depends on u alone), as formula text with exact decimals."""
    nodes = (np.cos(np.pi * (np.arange(200) + 0.5) / 200) + 1) / 2
    coefficients = chebyshev.cheb2poly(chebyshev.chebfit(2 * nodes - 1, np.sin(3 * nodes), 10))
    in_u = polynomial.Polynomial(coefficients)(polynomial.Polynomial([-1, 2])).coef
    return "+".join(f"({Fraction(c).limit_denominator(10**12)})*(x1*x2)**{i}" for i, c in enumerate(in_u))


def closing(order: int, boxes: int):
    working_precision()
    domain = FloatDomain(BallDomain(parse_domain("[0, 1]^2")))
    polynomial_form = enclose_target(parse_formula(fitted(), 2), order)
    bound = difference_bound(polynomial_form, enclose_target(TARGET, order))
    hour = 3600.0  # boxes are counted here; how long compiling takes depends on what else the machine does
    return search(CompiledBounder(bound, order, 256, (0, 0)), domain, EPSILON, Budget(boxes, hour))


def test_order_six_closes_in_a_few_hundred_boxes():
    run = closing(6, 1000)
    assert run.closed
    assert run.boxes < 600


@pytest.mark.slow
def test_order_one_does_not():
    assert not closing(1, 5000).closed
