"""The moments of the discrete Gaussian: true upper bounds at every point, and close to the truth."""

from __future__ import annotations

from fractions import Fraction

import pytest
from flint import arb, fmpq

from certiformer.axioms.lattice import SHARPNESS, first_order_moment, moments
from certiformer.kernel import Refused
from certiformer.kernel.balls import working_precision
from kernel.oracle import precisely

working_precision()


def exact_moments(sharpness: Fraction, cells: int, margin: int, x: Fraction) -> tuple[arb, arb, arb]:
    """|E y|, E y^2 and E|y| at x in [0, cells], for centres k + 1/2, k = -margin .. cells - 1 + margin, at 300 bits."""
    with precisely():
        b = arb(fmpq(sharpness.numerator, sharpness.denominator))
        total = first = second = absolute = arb(0)
        for k in range(-margin, cells + margin):
            y = arb(fmpq(1, 2)) + k - arb(fmpq(x.numerator, x.denominator))
            w = (-b * y * y).exp()
            total, first = total + w, first + w * y
            second, absolute = second + w * y * y, absolute + w * abs(y)
        return abs(first / total), second / total, absolute / total


def positions(cells: int) -> list[Fraction]:
    """A dense set with both ends of the domain, cell centres, cell edges, and points very close to each."""
    base = [Fraction(i, 40) for i in range(40 * cells + 1)]
    near = [p + Fraction(s, 10**9) for p in (Fraction(0), Fraction(1, 2), Fraction(cells)) for s in (-1, 1)]
    return [p for p in base + near if 0 <= p <= cells]


CASES = [(Fraction(n, 10), margin) for n in (5, 7, 10, 13, 17, 20, 25) for margin in (2, 3, 5)] + [
    (Fraction(1, 3), 4),
    (Fraction(1, 4), 1),
    (Fraction(1, 4), 3),
]


@pytest.mark.parametrize(("sharpness", "margin"), CASES, ids=str)
def test_moments_are_upper_bounds_everywhere(sharpness, margin):
    bounds = moments(sharpness, margin)
    for cells in (1, 2, 6):
        for x in positions(cells):
            drift, second, absolute = exact_moments(sharpness, cells, margin, x)
            assert not drift > bounds.drift
            assert not second > bounds.second
            assert not absolute > bounds.absolute


@pytest.mark.parametrize(("sharpness", "margin"), CASES, ids=str)
def test_moments_are_close_to_the_truth(sharpness, margin):
    """Within 5 % for the two that carry the theorem; the drift within 5 % of the largest second moment."""
    bounds = moments(sharpness, margin)
    values = [exact_moments(sharpness, 6, margin, x) for x in positions(6)]
    largest = [max(float(v[i]) for v in values) for i in range(3)]
    if (
        margin >= 3 and sharpness >= 0.5 or sharpness >= 1
    ):  # with few margin cells and a soft softmax the margin bound is coarse
        assert float(bounds.second) < 1.05 * largest[1]
        assert float(bounds.absolute) < 1.05 * largest[2]
        assert float(bounds.drift) < 1.05 * largest[0] + 0.05 * largest[1]


def test_the_drift_bound_is_sharp_far_inside():
    # Far from the ends the bound is the first Fourier term, reached at a quarter of a cell.
    sharpness = Fraction(2)
    drift = max(float(exact_moments(sharpness, 12, 8, 6 + Fraction(i, 400))[0]) for i in range(400))
    assert drift <= float(moments(sharpness, 8).drift) < 1.05 * drift


@pytest.mark.parametrize("margin", [1, 2, 3])
def test_fewer_margin_cells_cost_more(margin):
    assert moments(Fraction(2), margin).drift > moments(Fraction(2), margin + 1).drift


def test_without_enough_margin_the_moments_are_larger_than_the_periodic_ones():
    """Negative control: the margin terms are needed. At the end of a domain with one margin cell E y^2 and E y grow."""
    sharpness = Fraction(1, 2)
    periodic = moments(sharpness, 40)
    drift, _, _ = exact_moments(sharpness, 6, 1, Fraction(0))
    assert drift > periodic.drift


@pytest.mark.parametrize(
    ("sharpness", "margin"),
    [(Fraction(1, 5), 3), (Fraction(17), 3), (Fraction(16), 3), (Fraction(1), 0), (Fraction(1), -1), (Fraction(1), 65),
     (Fraction(0), 3), (Fraction(-1), 3)],
    ids=str,
)  # fmt: skip
def test_parameters_outside_the_proof_are_refused(sharpness, margin):
    with pytest.raises(Refused):
        moments(sharpness, margin)
    assert (Fraction(1, 4), Fraction(16)) == SHARPNESS


@pytest.mark.parametrize("sharpness", [Fraction(2), Fraction(5, 2), Fraction(4), Fraction(10), Fraction(100)], ids=str)
@pytest.mark.parametrize("cells", [1, 2, 3, 8])
def test_the_first_order_moment_bounds_the_grid_without_margin(sharpness, cells):
    bound = first_order_moment(sharpness)
    worst = 0.0
    for x in positions(cells):
        _, second, _ = exact_moments(sharpness, cells, 0, x)
        with precisely():
            assert not second > arb(bound) * arb(bound)
        worst = max(worst, float(second))
    # At the edge of a cell E y^2 is 1/4: the bound 1/4 + 1.3 e^-b is close when b is not small.
    assert worst >= 0.2499
    if sharpness >= 4:
        assert float(bound) ** 2 < 1.1 * worst


def test_the_first_order_moment_needs_sharpness_two():
    with pytest.raises(Refused, match="below 2"):
        first_order_moment(Fraction(199, 100))
    # Negative control: for a soft softmax 1/4 + 1.3 e^-b is false.
    soft = Fraction(1, 10)
    largest = max(float(exact_moments(soft, 30, 0, Fraction(i, 8))[1]) for i in range(241))
    assert largest > 0.25 * (1 + 5.2)
