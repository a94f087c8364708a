"""Balls, boxes and exact numbers: everything outward, NaN never lost."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from flint import arb, fmpq

from certiformer.errors import BadInput
from certiformer.kernel.balls import (
    BallDomain,
    ConstantAlgebra,
    ball,
    constant,
    hull,
    larger,
    largest,
    power,
    smaller,
    working_precision,
)
from certiformer.kernel.programs import exact
from certiformer.target import Domain, fold, parse_constant, parse_domain
from kernel.oracle import precisely

working_precision()
NAN = arb.nan()


@pytest.mark.parametrize("text", ["[0,1]", "[-1/3,2/7]", "[0,2*pi]", "[-e,pi]", "[1e-9,1e9]", "[sqrt(2),10**20]"])
def test_the_box_of_a_cell_contains_the_cell(text):
    rng, domain = random.Random(text), BallDomain(parse_domain(text))
    (low_program, high_program), *_ = parse_domain(text).ends()
    for m in (0, 1, 5, 30, 60):
        for k in {0, 2**m - 1, rng.randrange(2**m)}:
            box = domain.box(((m, k),))
            with precisely():
                (low,), (high,) = (fold(p, [arb(0)], ConstantAlgebra()) for p in (low_program, high_program))
                for t in (0, Fraction(1, 3), 1):
                    place = (Fraction(k) + t) / 2**m
                    x = low + (high - low) * arb(fmpq(place.numerator, place.denominator))
                    assert not x < box.centre[0] - box.radius[0]
                    assert not x > box.centre[0] + box.radius[0]
            assert not x < box.low(0)
            assert not x > box.high(0)


def test_neighbouring_boxes_overlap_or_touch():
    domain = BallDomain(parse_domain("[0,2*pi]"))
    for m in (1, 3, 20):
        for k in range(min(2**m - 1, 10)):
            assert not domain.box(((m, k),)).high(0) < domain.box(((m, k + 1),)).low(0)


@pytest.mark.parametrize(
    "bounds",
    [("1", "0"), ("0", "0"), ("2*pi", "2*pi"), ("1/0.0000000001 - 1e10", "0"), ("log(0.5)", "-1"), ("pi", "3.14")],
)
def test_empty_and_reversed_domains_are_refused(bounds):
    with pytest.raises(BadInput):
        BallDomain(Domain((bounds,)))


def test_ends_that_agree_to_ninety_six_bits_are_not_told_apart():
    # 0 < 1e-40 would be a legal box around 0, but around 1 it is below the working precision: refused, never guessed.
    assert BallDomain(Domain((("0", "1e-40"),))).dimension == 1
    with pytest.raises(BadInput, match="empty, reversed or infinite"):
        BallDomain(Domain((("1/3", "1/3 + 1e-40"),)))


@pytest.mark.parametrize(
    ("point", "inside"),
    [(["0"], True), (["1"], True), (["1/2"], True), (["-1e-300"], False), (["1.0000000000000000000001"], False)],
)
def test_membership_is_exact_at_rational_ends(point, inside):
    assert BallDomain(parse_domain("[0,1]")).contains([ball(exact(p)) for p in point]) is inside


def test_membership_near_an_irrational_end_needs_certainty():
    domain = BallDomain(parse_domain("[0,pi]"))
    assert domain.contains([ball(exact("3.14159265358979"))])
    assert not domain.contains([ball(exact("3.14159265358980"))])
    assert not domain.contains([arb.pi()])


@pytest.mark.parametrize("text", ["0", "-3", "1/3", "-22/7", "0.125", "1e-5", "-2.5E+3", "12345678901234567890/7"])
def test_exact_numbers(text):
    assert exact(text) == Fraction(text)


@pytest.mark.parametrize(
    "text",
    ["", " 1", "1 ", "1_000", "nan", "inf", "1/0", "1/-2", "0x10", "1e99999", "1e999999999", "٣", "1.", ".5", "+1", "1/2/3",
     "9" * 5000, "1\n"],
)  # fmt: skip
def test_numbers_in_any_other_spelling_are_refused(text):
    with pytest.raises(BadInput, match="exact number"):
        exact(text)


def test_nan_is_never_lost_in_a_maximum():
    one = arb(1)
    for pair in ((NAN, one), (one, NAN), (NAN, NAN)):
        assert larger(*pair).is_nan()
        assert smaller(*pair).is_nan()
    assert largest([one, NAN, arb(2)]).is_nan()
    assert largest([one, arb(3), arb(2)]) == 3
    assert max([one, NAN, arb(2)]) == 2  # what Python's own maximum would say


def test_the_hull_contains_both_ends_and_what_lies_between():
    for a, b in ((0, 1), (-5, 7), (1e-300, 1e300)):
        assert all(hull(arb(a), arb(b)).contains(x) for x in (a, b, (a + b) / 2))


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 10, 101])
def test_powers_of_balls_that_contain_zero(n):
    x = arb(0, 1)
    assert power(x, n).is_finite()
    assert all(power(x, n).contains(arb(t) ** n if t or n else 1) for t in (-1, -0.5, 0.25, 1))


@pytest.mark.parametrize(
    ("text", "value"),
    [("pi", "3.14159265358979323846"), ("e", "2.71828182845904523536"), ("-1/3", "-0.33333333333333333333")],
)
def test_constants_are_what_they_say(text, value):
    assert abs(constant(text) - arb(value)) < 1e-19
    assert constant(text).rad() < 1e-27


def test_an_undecided_comparison_of_constants_contains_both_branches():
    # 1/3 + 1/3 + 1/3 <= 1 holds exactly, but not in balls.
    program = parse_constant("where(pi*(1/pi) <= 1, 5, 7)")
    (value,) = fold(program, [arb(0)], ConstantAlgebra())
    assert value.contains(5)
    assert value.contains(7)
