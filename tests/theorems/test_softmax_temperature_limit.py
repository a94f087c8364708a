"""Softmax against hardmax: exact rational and ball arithmetic on both sides."""

from __future__ import annotations

from fractions import Fraction

import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from certiformer.errors import BadInput
from certiformer.expressivity.softmax_temperature_limit import bound, distance, gap_and_ties, simple_bound

# Multiples of 1/8 make ties likely.
scores_lists = st.lists(st.integers(-80, 80).map(lambda k: Fraction(k, 8)), min_size=1, max_size=9)


@pytest.fixture(autouse=True)
def many_bits():
    with ctx.workprec(1500):  # a weight of e^-700 needs 1010 bits beside 1
        yield


def distance_from_the_definition(scores):
    """|| softmax - hardmax ||_1, term by term."""
    powers = [(arb(s.numerator) / s.denominator).exp() for s in scores]
    best = [s == max(scores) for s in scores]
    total = sum(powers, arb(0))
    hard = [arb(1) / sum(best) if is_best else arb(0) for is_best in best]
    return sum((abs(p / total - h) for p, h in zip(powers, hard, strict=True)), arb(0))


@settings(max_examples=300, deadline=None, derandomize=True)
@given(scores_lists)
def test_the_bounds_hold_and_the_distance_is_right(scores):
    gap, ties = gap_and_ties(scores)
    exact, sharp = distance_from_the_definition(scores), bound(len(scores), gap, ties)
    assert distance(scores).overlaps(exact)
    assert distance(scores).rad() < 1e-70
    losers = {s for s in scores if s < max(scores)}
    if len(losers) > 1:
        assert exact < sharp  # certainly: the balls are apart
    else:
        assert exact.overlaps(sharp)  # equal losers: equality
    if gap is not None:
        assert sharp < 2 * (len(scores) - 1) * (-(arb(gap.numerator) / gap.denominator)).exp()
        assert sharp < simple_bound(len(scores), gap)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.lists(st.fractions(0, 1), min_size=1, max_size=8), st.integers(1, 3))
def test_the_same_with_rational_powers(powers, ties):
    """With e^(s_j - m) = q_j rational, both sides are rational and the inequality needs no tolerance at all."""
    powers = [q for q in powers if 0 < q < 1]
    total = ties + sum(powers)
    exact = ties * abs(1 / total - Fraction(1, ties)) + sum(q / total for q in powers)
    largest = max(powers, default=Fraction(0))
    rest = len(powers) * largest
    assert exact <= 2 * rest / (ties + rest)
    assert (exact == 2 * rest / (ties + rest)) == (len(set(powers)) <= 1)


@pytest.mark.parametrize("ties", [1, 2, 5])
@pytest.mark.parametrize("gap", [Fraction(1, 1000), 1, 40, 700])
def test_tight_when_the_others_are_equal(ties, gap):
    scores = [Fraction(3)] * ties + [3 - Fraction(gap)] * 4
    difference = distance_from_the_definition(scores) / bound(ties + 4, gap, ties) - 1
    assert difference.contains(0)
    assert abs(difference) < 1e-70


def test_the_quoted_bound_is_within_a_factor_of_the_truth():
    scores = [10, *[0] * 99]
    assert 100 * simple_bound(100, 10) < 102 * distance_from_the_definition([Fraction(s) for s in scores])


def test_all_scores_equal():
    assert gap_and_ties([1.5, 1.5]) == (None, 2)
    assert distance([1.5, 1.5]) == 0
    assert bound(2, None, 2) == 0


def test_scores_are_taken_exactly():
    """One unit in the last place is a gap, not a tie."""
    gap, ties = gap_and_ties([1.0, 1.0 + 2**-52])
    assert (gap, ties) == (Fraction(1, 2**52), 1)
    assert distance([1.0, 1.0 + 2**-52]) > 0.99


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_scores_that_are_not_numbers_are_refused(bad):
    with pytest.raises(BadInput, match="finite"):
        distance([0.0, bad])
    with pytest.raises(BadInput, match="finite"):
        bound(3, bad)


def test_senseless_gaps_and_ties_are_refused():
    for gap, ties in ((0, 1), (-1, 1), (1, 0), (1, 4)):
        with pytest.raises(BadInput):
            bound(3, gap, ties)
    with pytest.raises(BadInput, match="at least one score"):
        gap_and_ties([])


def test_a_bound_with_one_score_fewer_is_false():
    """The mutation n-1 -> n-2 is caught by the tight case."""
    scores = [Fraction(5)] + [Fraction(0)] * 4
    assert distance_from_the_definition(scores) > bound(4, 5)
    # And forgetting the ties is caught as well: k best scores count as k.
    assert distance_from_the_definition([Fraction(0)] * 3 + [Fraction(-1)]) < bound(4, 1, ties=2)
    assert distance_from_the_definition([Fraction(0)] * 2 + [Fraction(-1)] * 2) > bound(4, 1, ties=3)
