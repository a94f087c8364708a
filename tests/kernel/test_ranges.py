"""What forms know beyond their polynomials: norms, means and gelu stay within their ranges however wide the box is."""

from __future__ import annotations

import random

import pytest
from flint import arb

from certiformer.kernel import arrays, taylor
from certiformer.kernel.arrays import Stream
from certiformer.kernel.balls import Box, working_precision
from certiformer.kernel.taylor import FormAlgebra

working_precision()

SQUARE = Box((arb(0), arb(0)), (arb(4), arb(4)))


def lines(table: taylor.Table, rows: list[list[tuple[float, float, float]]], box: Box = SQUARE) -> Stream:
    """Entries a + b x_1 + c x_2 on the box."""
    axes = [taylor.variable(table, box, axis) for axis in range(2)]

    def line(a: float, b: float, c: float) -> taylor.Form:
        moving = taylor.add(taylor.scale(axes[0], arb(b)), taylor.scale(axes[1], arb(c)))
        return taylor.add(moving, taylor.constant(table, arb(a)))

    return arrays.from_forms(table, [[line(*entry) for entry in row] for row in rows])


def drawn(rng: random.Random, rows: int, columns: int) -> list[list[tuple[float, float, float]]]:
    def one() -> float:
        return rng.uniform(-3, 3)

    return [[(one(), one(), one()) for _ in range(columns)] for _ in range(rows)]


def points(rng: random.Random, count: int) -> list[Box]:
    """Boxes of radius zero inside the square."""
    return [Box((arb(rng.uniform(-4, 4)), arb(rng.uniform(-4, 4))), (arb(0), arb(0))) for _ in range(count)]


def normed(table: taylor.Table, entries, box: Box) -> Stream:
    columns = len(entries[0])
    one, zero = [arb(1)] * columns, [arb(0)] * columns
    return arrays.normalised(lines(table, entries, box), arb("1e-5"), one, zero)


@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_a_normed_row_is_within_the_root_of_its_length(order):
    rng = random.Random(order)
    table = taylor.table(2, order)
    for columns in (2, 3, 5):
        entries = drawn(rng, 1, columns)
        whole = normed(table, entries, SQUARE)
        for c in range(columns):
            low, high = taylor.bounds(whole.form(0, c))
            # The polynomial of a form that was kept may stick out of the range by as much as the range is wide.
            assert -3.01 * columns**0.5 <= low <= high <= 3.01 * columns**0.5
            for point in points(rng, 20):
                value = taylor.value_ball(normed(table, entries, point).form(0, c))
                assert low <= value and value <= high


def mean(table: taylor.Table, scores, values, box: Box) -> Stream:
    row = lines(table, scores, box)
    return arrays.mix("softmax", [row.form(0, j) for j in range(len(scores[0]))], lines(table, values, box))


@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_a_mean_lies_between_its_values(order):
    rng = random.Random(10 + order)
    table = taylor.table(2, order)
    for _ in range(5):
        scores, values = drawn(rng, 1, 3), [[(rng.uniform(-1, 1), 0.0, 0.0)] for _ in range(3)]
        ends = sorted(entry[0][0] for entry in values)
        low, high = taylor.bounds(mean(table, scores, values, SQUARE).form(0, 0))
        middle, width = (ends[0] + ends[-1]) / 2, ends[-1] - ends[0]
        assert middle - 1.51 * width <= low <= high <= middle + 1.51 * width
        for point in points(rng, 20):
            value = taylor.value_ball(mean(table, scores, values, point).form(0, 0))
            assert low <= value and value <= high


def gelu_range(low: float, high: float, order: int) -> tuple[arb, arb]:
    box = Box((arb((low + high) / 2),), (arb((high - low) / 2),))
    return taylor.bounds(arrays.gelu(taylor.variable(taylor.table(1, order), box, 0)))


def missed(low: float, high: float, order: int) -> list[float]:
    """Points of [low, high] whose gelu lies outside the enclosure."""
    bottom, top = gelu_range(low, high, order)
    xs = [low + (high - low) * k / 400 for k in range(401)]
    values = [(x, arb(x) * (1 + (arb(x) / arb(2).sqrt()).erf()) / 2) for x in xs]
    return [x for x, value in values if value < bottom or value > top]


@pytest.mark.parametrize("order", [0, 1, 2, 5])
def test_gelu_is_bounded_below_and_a_bound_that_is_not_its_own_is_noticed(order, monkeypatch):
    for low, high in ((-50.0, 50.0), (-3.0, -0.125), (-9.0, 1.0), (0.25, 7.0)):
        assert missed(low, high, order) == []
    bottom, top = gelu_range(-50.0, 50.0, order)
    assert bottom >= -51 and top <= 101  # a kept polynomial may stick out by the width of the range
    monkeypatch.setattr(arrays, "GELU_LOW", arb(-0.16))  # the least value is -0.16997
    assert missed(-1.0, 0.0, 0) or missed(-2.0, 0.0, 0)


def test_the_last_term_of_an_odd_order_keeps_its_sign():
    box = Box((arb(0),), (arb(1),))
    for order in (1, 3, 5):
        table = taylor.table(1, order)
        form = FormAlgebra(table).exp(taylor.variable(table, box, 0))
        whole = arb(1).exp() / arb.fac_ui(order + 1)
        assert form.rem <= 0.51 * whole  # half of what |t| <= e / (k + 1)! alone would give
        low, high = taylor.bounds(form)
        for k in range(-100, 101):
            value = (arb(k) / 100).exp()
            assert low <= value and value <= high


@pytest.mark.parametrize("name", ["sin", "cos", "log", "sqrt", "tanh", "erf"])
def test_signed_remainders_contain_the_function_on_both_sides(name):
    """At every order, so that all four signs of the derivatives of a sine come by."""
    for order in range(9):
        table = taylor.table(1, order)
        for centre in (0.4, 1.3, 2.2, 3.9, 5.1):
            box = Box((arb(centre),), (arb(0.35),))
            form = getattr(FormAlgebra(table), name)(taylor.variable(table, box, 0))
            for k in range(-20, 21):
                e = arb(k) / 20
                polynomial = sum((c * e ** sum(table.monomials[i]) for i, c in form.coef.items()), arb(0))
                value = getattr(arb(centre) + e * arb(0.35), name)()
                assert (polynomial - value).abs_lower() <= form.rem
