"""The gadgets alone: tables through their points, scores that are 0 exactly where selected, ridges, polynomials."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from certiformer.compiler.gadgets.ridge import Grid, additive, choose_ridge
from certiformer.compiler.gadgets.scores import parts_for
from certiformer.compiler.linear_form import Form
from certiformer.construct.one_block import interpolated

RNG = np.random.default_rng(0)


def value(base, units, s):
    return base + sum(factor * max(slope * s + bias, 0) for (slope, bias), factor in units)


@pytest.mark.parametrize("downward", [False, True])
def test_tables_go_through_their_points_exactly(downward: bool) -> None:
    for _ in range(20):
        at = sorted({Fraction(int(p), int(q)) for p, q in RNG.integers(1, 30, size=(12, 2))})
        points = [(s, int(RNG.integers(-5, 6))) for s in at]
        base, units = interpolated(points, downward)
        assert [value(base, units, s) for s, _ in points] == [f for _, f in points]
        beyond = points[-1][0] + 1 if downward else points[0][0] - 1
        assert value(base, units, beyond) == base  # flat on the side of the base point


def test_weights_over_one_plus_the_width_are_integers() -> None:
    for f in ([w * w for w in range(40)], [w % 2 for w in range(40)], [int(x) for x in RNG.integers(-9, 9, 40)]):
        _, units = interpolated([(Fraction(1, w + 1), y) for w, y in enumerate(f)], downward=True)
        assert all(isinstance(x, int) for unit, factor in units for x in (*unit, factor))


def scores(part, keys: int, queries: int) -> list[list]:
    return [
        [
            sum(factor * q[j] * k[i] for factor, q, k in part.products)
            - sum(p[i] for p in part.key_penalties)
            - sum(p[j] for p in part.query_penalties)
            for j in range(queries)
        ]
        for i in range(keys)
    ]


def relations():
    n = 9
    k, q = np.arange(n)[:, None], np.arange(n + 3)[None, :] - 2
    yield from (k < q, k <= q, k == q, k != q, k == 3 + 0 * q, (k > 2) & (q > 0 * k), k > q, k * 0 == q)
    for _ in range(20):
        yield RNG.random((int(RNG.integers(1, 7)), int(RNG.integers(1, 7)))) < RNG.random()


@pytest.mark.parametrize("robust", [False, True])
@pytest.mark.parametrize("step", [1, Fraction(1, 3)])
def test_every_way_scores_zero_exactly_where_selected(robust: bool, step) -> None:
    for truth in relations():
        keys, queries = truth.shape
        key_codes = tuple(step * i for i in range(keys))
        query_codes = tuple(step * (j - 2) for j in range(queries))
        ways = parts_for(truth, key_codes, query_codes, robust)
        assert ways
        for part in ways:
            found = scores(part, keys, queries)
            assert all((found[i][j] == 0) == truth[i, j] for i in range(keys) for j in range(queries))
            assert all(found[i][j] <= -1 for i in range(keys) for j in range(queries) if not truth[i, j])
            if robust:
                assert all(set(f) <= {0, 1} for features in part.features() for f in features)


def test_equality_of_many_values_needs_few_dimensions() -> None:
    codes = tuple(range(200))
    truth = np.eye(200, dtype=bool)
    assert min(len(part.products) for part in parts_for(truth, codes, codes, False)) == 1
    assert min(len(part.products) for part in parts_for(truth, codes, codes, True)) == 8


@pytest.mark.parametrize("scale", [1, 2**40 + 1, 2**61 + 1])  # sums of the larger ones do not fit into 64 bits
def test_ridges_and_sums_reproduce_their_table(scale: int) -> None:
    for _ in range(30):
        x = sorted({int(v) * scale for v in RNG.integers(-5, 9, 5)})
        y = sorted({Fraction(int(v), 2) + Fraction(1, scale) for v in RNG.integers(-5, 9, 4)})
        f = [[int(RNG.integers(0, 3)) for _ in y] for _ in x]
        found = choose_ridge(x, y, Grid.of(f))
        base, units = interpolated(found.points)
        a, b = found.factors

        def at(s: Fraction, base=base, units=units) -> Fraction:
            return base + sum(factor * max(slope * s + bias, 0) for (slope, bias), factor in units)

        assert all(at(a * p + b * q) == f[i][j] for i, p in enumerate(x) for j, q in enumerate(y))
    assert additive(Grid.of([[1, 2], [4, 5]])) == ((0, 3), (1, 2))
    assert additive(Grid.of([[1, 2], [4, 6]])) is None


def test_forms_add_and_scale() -> None:
    a, b = Form.of({1: 2, 3: 1}, 5), Form.of({1: -2, 2: 1})
    assert (a + b) == Form.of({2: 1, 3: 1}, 5)
    assert a.scaled(3, 1) == Form.of({1: 6, 3: 3}, 16)
    assert a.scaled(0).cells == ()


def test_a_ridge_along_small_numbers_is_found_beside_integers_beyond_int64() -> None:
    y = list(range(20))
    found = choose_ridge([0, 1 << 70], y, Grid.of([[k * k for k in y]] * 2))
    assert found.factors == (0, 1) and dict(found.points)[7] == 49
