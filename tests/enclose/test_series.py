"""Constants of the Taylor coefficients that are stated rather than computed, and the tables behind the polynomials."""

from __future__ import annotations

import flint
import numpy as np
import pytest
from flint import arb

from certiformer.enclose.series import GELU_MINIMUM, GELU_TURN
from certiformer.enclose.space import Space, difference_table, even_mask, multinomials
from certiformer.errors import BadInput


def gelu(x: arb) -> arb:
    return x * (1 + (x / arb(2).sqrt()).erf()) / 2


def slope(x: arb) -> arb:
    return (1 + (x / arb(2).sqrt()).erf()) / 2 + x * (-x * x / 2).exp() / (2 * arb.pi()).sqrt()


def test_where_gelu_turns():
    """The derivative changes sign between the two ends; on a fine grid between them the minimum is never passed."""
    flint.ctx.prec = 200
    left, right = (arb(v) for v in GELU_TURN)
    assert slope(left) < 0 < slope(right)
    step = (right - left) / 1000
    # The derivative is monotone here, so its size is largest at an end.
    steepest = abs(slope(left)).max(abs(slope(right)))
    assert all(arb(GELU_MINIMUM) <= gelu(left + step * i) - steepest * step for i in range(1001))


def test_products_of_monomials_land_where_they_should():
    for dimension, a, b in ((1, 3, 2), (2, 2, 3), (3, 1, 2)):
        space = Space(dimension, a + b)
        table, left, right = difference_table(dimension, a, b), space.exponents(a), space.exponents(b)
        for c, row in zip(space.exponents(a + b), table, strict=True):
            for m, i in zip(right, row, strict=True):
                assert (i == len(left)) == ((c - m) < 0).any() or ((c - m).sum() > a and i == len(left))
                if i < len(left):
                    assert (left[i] + m == c).all()


def test_even_monomials_and_multinomials():
    exponents = Space(2, 4).exponents(4)
    assert (even_mask(2, 4) == [not (m % 2).any() for m in exponents]).all()
    # (1 + 1)^n = sum of the multinomials of degree n.
    degrees = exponents.sum(1)
    assert [multinomials(2, 4)[degrees == n].sum() for n in range(5)] == [1, 2, 4, 8, 16]


@pytest.mark.parametrize(("dimension", "order"), [(0, 1), (2, -1), (2, 17), (30, 5)])
def test_a_space_out_of_reach_is_refused(dimension, order):
    with pytest.raises(BadInput, match="order"):
        Space(dimension, order)


def test_a_prefix_is_a_polynomial_of_lower_degree():
    space = Space(3, 4)
    assert (space.exponents(2) == space.exponents(4)[: space.size(2)]).all()
    assert [space.degree_of(space.size(m)) for m in range(5)] == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="no full set"):
        space.degree_of(5)
    assert np.all(np.diff(space.exponents(4).sum(1)) >= 0)
