"""The binomial tail against exact fractions."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import pytest

from certiformer.axioms.binomial_tail import holds, tail
from certiformer.kernel.balls import ball
from certiformer.recommend.binomial import lower_bound


def exact_tail(users: int, hits: int, p: Fraction) -> Fraction:
    return sum((comb(users, j) * p**j * (1 - p) ** (users - j) for j in range(hits, users + 1)), Fraction(0))


@pytest.mark.parametrize(("users", "hits"), [(1, 0), (1, 1), (7, 3), (40, 40), (40, 39), (200, 37), (433, 95)])
@pytest.mark.parametrize("p", [Fraction(1, 100), Fraction(1, 5), Fraction(1, 2), Fraction(97, 100)])
def test_the_tail_is_above_the_exact_one_and_close(users, hits, p):
    found, exact = tail(users, hits, p), exact_tail(users, hits, p)
    assert not found < ball(exact)  # never below
    assert found <= ball(exact * (1 + Fraction(1, 10**15)))


@pytest.mark.parametrize(("users", "hits"), [(10, 3), (100, 30), (433, 95), (433, 433)])
def test_the_bound_is_the_largest_decimal(users, hits):
    share = Fraction(1, 20)
    lower = lower_bound(users, hits, share)
    assert exact_tail(users, hits, lower) <= share < exact_tail(users, hits, lower + Fraction(1, 10**5))


def test_a_probability_that_is_too_large_does_not_hold():
    assert holds(100, 30, Fraction(22, 100), Fraction(5, 100))
    assert not holds(100, 30, Fraction(23, 100), Fraction(5, 100))
    assert lower_bound(100, 0, Fraction(1, 20)) == 0


def test_looks_and_bits_are_paid_for():
    share = Fraction(1, 20)
    assert lower_bound(433, 95, share / 20) < lower_bound(433, 95, share)
    assert lower_bound(433, 95, share / 2**8) < lower_bound(433, 95, share / 20)
    assert lower_bound(433, 95, share / 2**5000) == 0


def test_a_bound_stays_below_one():
    assert lower_bound(10**6, 10**6, Fraction(1, 20)) == Fraction(99_999, 100_000)


def test_many_users_are_quick():
    assert holds(1_000_000, 250_000, Fraction(249, 1000), Fraction(1, 20))
