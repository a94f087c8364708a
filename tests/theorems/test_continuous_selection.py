"""Numbers that depend continuously on the function: antipodes, and that as many numbers as bumps suffice."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import pytest

from certiformer.expressivity.bits_lower_bound import bumps
from certiformer.expressivity.continuous_selection import antipodes, numbers


@pytest.mark.parametrize(
    "theta",
    [
        lambda c: c[0],
        lambda c: c[0] + 3 * c[1] ** 3,
        lambda c: math.sin(4 * c[0]) + c[1] * c[0],
        lambda c: abs(c[1]) - c[0],
    ],
)
def test_one_number_gives_two_antipodal_functions_the_same_approximant(theta):
    """So on two bumps some function is missed by at least their height, whatever the approximant is."""
    a, b = antipodes(theta)
    assert max(abs(a), abs(b)) == 1 and abs(theta((a, b)) - theta((-a, -b))) <= 1e-9  # 60 bisections in float64
    f, g = bumps([1, -1], 2, 1, 4), bumps([1, 1], 2, 1, 4)  # height 1 each; f_c is their combination
    centres = [Fraction(1, 4), Fraction(3, 4)]
    values = [(a + b) / 2 * float(g([x])) + (a - b) / 2 * float(f([x])) for x in centres]
    assert max(map(abs, values)) == pytest.approx(1)  # f_c and -f_c are 2 apart somewhere


def test_as_many_numbers_as_bumps_suffice():
    """Tight: the values at the centres are continuous in f and tell all combinations of the bumps apart."""
    cells = 3
    centres = [[Fraction(2 * k + 1, 2 * cells)] for k in range(cells)]
    tables = {tuple(bumps(signs, cells, 1, 1)(c) for c in centres) for signs in product((1, -1), repeat=cells)}
    assert len(tables) == 2**cells


def test_a_jump_escapes():
    """Negative control: a number that may jump tells all functions apart, so continuity is what is used."""
    jumping = {signs: sum((s > 0) << k for k, s in enumerate(signs)) for signs in product((1, -1), repeat=2)}
    assert len(set(jumping.values())) == 4 and numbers(4, "0.9", 1) == 2
