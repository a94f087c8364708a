"""Sums of units in closed form: every value inside the form, against 300-bit balls and without tolerance."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from flint import arb

from certiformer.kernel import layers as unit_sum
from certiformer.kernel import taylor
from certiformer.kernel.balls import ZERO, working_precision
from certiformer.kernel.layers import Unit, UnitSum
from certiformer.kernel.taylor import MAX_ORDER
from kernel.oracle import places, point_of, precisely, random_box, violation

working_precision()


def gelu(x: arb) -> arb:
    return x * (-x / arb(2).sqrt()).erfc() / 2


ACT = {"relu": lambda x: x.max(ZERO), "gelu": gelu, "sigmoid": lambda x: 1 / (1 + (-x).exp())}


def value(function: UnitSum, point: list[arb]) -> arb:
    """The definition, at 300 bits."""
    with precisely():
        total = function.constant + sum((a * x for a, x in zip(function.linear, point, strict=True)), ZERO)
        for unit in function.units:
            inner = unit.offset + sum((a * s for a, s in zip(unit.slope, point, strict=True)), ZERO)
            total = total + unit.coefficient * ACT[function.kind](inner)
        return total


def random_units(rng: random.Random, kind: str, dimension: int, count: int = 5) -> UnitSum:
    def number(size: float) -> arb:
        return arb(rng.gauss(0, size))

    units = [
        Unit([number(10 ** rng.uniform(-1, 1)) for _ in range(dimension)], number(3), number(1), ZERO)
        for _ in range(count)
    ]
    return UnitSum(kind, [number(1) for _ in range(dimension)], number(1), units)


@pytest.mark.parametrize("kind", ["relu", "gelu", "sigmoid"])
@pytest.mark.parametrize("order", [0, 1, 2, 5, MAX_ORDER])
def test_every_value_is_inside(kind, order):
    rng = random.Random(order)
    for _ in range(40):
        dimension = rng.choice([1, 2, 3]) if order <= 5 else 1
        function = random_units(rng, kind, dimension)
        box = random_box(rng, dimension, width=10 ** rng.uniform(-4, 1.5))
        for part in (function, function.restrict(box)):
            (form,) = part.forms(box, order)
            for e in places(rng, dimension, 6):
                assert not violation(form, e, value(function, point_of(box, e)))


@pytest.mark.parametrize(
    ("name", "forged"),
    [
        ("_remainder", lambda *_: ZERO),
        ("_dip", lambda *_: ZERO),
        ("_cramer", lambda n: ZERO),
        ("chord", lambda low, high: (arb(1), ZERO)),
    ],
)
def test_the_test_sees_a_forged_bound(monkeypatch, name, forged):
    monkeypatch.setattr(taylor if name == "chord" else unit_sum, name, forged)
    rng = random.Random(0)
    seen = 0
    for _ in range(60):
        function = random_units(rng, "gelu", 1)
        box = random_box(rng, 1, width=10 ** rng.uniform(-2, 1.5))
        (form,) = function.forms(box, 3)
        seen += any(violation(form, e, value(function, point_of(box, e))) for e in places(rng, 1, 20))
    assert seen > 0


def test_coefficients_are_the_derivatives():
    """Against python-flint's power series of erfc, another way to the same numbers."""
    from flint import arb_series

    for x in (-6.0, -1.5, 0.0, 0.3, 2.0, 7.0):
        u = arb(x)
        inner = arb_series([-u / arb(2).sqrt(), -1 / arb(2).sqrt()], prec=MAX_ORDER + 2)
        series = arb_series([u, 1], prec=MAX_ORDER + 2) * inner.erfc() / 2
        wanted = [series[i] for i in range(MAX_ORDER + 2)]
        found = unit_sum._gelu(u, MAX_ORDER)
        assert len(found) == MAX_ORDER + 2
        assert all(a.overlaps(b) and a.rad() < 1e-20 for a, b in zip(found, wanted, strict=True))


@pytest.mark.parametrize("n", range(1, MAX_ORDER + 3))
def test_no_derivative_exceeds_its_bound(n):
    bound = unit_sum._cramer(n)
    for k in range(-600, 601):
        x = arb(k) / 50
        coefficient = abs(unit_sum._gelu(x, n)[n])
        assert coefficient <= (bound * (-x * x / 4).exp() if n >= 2 else bound)


def test_relu_minus_gelu_is_below_the_dip():
    assert max(float(x.max(ZERO) - gelu(x)) for x in (arb(k) / 1000 for k in range(-3000, 3000))) > 0.1699
    for k in range(-4000, 4001):
        x = arb(k) / 400
        assert x.max(ZERO) - gelu(x) <= unit_sum._dip(x, x)


def test_a_far_unit_is_left_out_and_paid_for():
    function = UnitSum("gelu", [ZERO], ZERO, [Unit([arb(1)], arb(-30), arb(5), ZERO)] * 2)
    box = random_box(random.Random(0), 1, centre=0.1, width=1.0)
    near = replace(function, units=[replace(function.units[0], offset=arb(-8)), function.units[1]])
    assert (len(function.restrict(box).units), len(near.restrict(box).units)) == (0, 1)
    assert 0 < function.restrict(box).slack < 1e-100
