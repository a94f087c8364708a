"""The greedy for the fewest pieces: its result fits, is continuous, and no other function has fewer pieces."""

from __future__ import annotations

from bisect import bisect_left
from itertools import combinations, product

import numpy as np
import pytest
from scipy.optimize import linprog

from certiformer.construct.fewest_pieces import Polyline, _at, fewest_pieces


def values(line: Polyline, xs) -> np.ndarray:
    return np.array([_at(line.lines[bisect_left(line.knots, x)], x) for x in xs])


def fits(keys, low, high, pieces: int) -> bool:
    """Whether a continuous function with `pieces` pieces fits, by linear programming over every arrangement.

    Keys are cut into consecutive groups, one line each. Neighbouring lines meet between two keys (one knot; two cases: which is
    higher first) or are joined by a line of their own in the gap (two knots), which is always possible.
    """
    count = len(keys)
    for groups in range(1, pieces + 1):
        for cuts in combinations(range(1, count), groups - 1):
            for joins in product((1, -1, 0), repeat=groups - 1):
                if groups + joins.count(0) > pieces:
                    continue
                rows, limits = [], []
                starts = [0, *cuts, count]
                for g in range(groups):
                    for i in range(starts[g], starts[g + 1]):
                        row = np.zeros(2 * groups)
                        row[2 * g : 2 * g + 2] = keys[i], 1
                        rows += [row, -row]
                        limits += [high[i], -low[i]]
                for g, (cut, join) in enumerate(zip(cuts, joins, strict=True)):
                    for key, sign in ((keys[cut - 1], join), (keys[cut], -join)):
                        row = np.zeros(2 * groups)
                        row[2 * g : 2 * g + 4] = sign * key, sign, -sign * key, -sign
                        rows.append(row)
                        limits.append(0.0)
                done = linprog(np.zeros(2 * groups), np.array(rows), limits, bounds=(None, None))
                if done.status == 0:
                    return True
    return False


@pytest.mark.parametrize("seed", range(8))
def test_no_function_has_fewer_pieces(seed):
    generator = np.random.default_rng(seed)
    keys = np.cumsum(generator.uniform(0.2, 1, 6))
    middle, half = generator.integers(-3, 4, 6).astype(float), generator.uniform(0.1, 0.6)
    found = len(fewest_pieces(keys, middle - half, middle + half).lines)
    assert found == 1 or not fits(keys, middle - half, middle + half, found - 1)
    assert fits(
        keys, middle - half - 1e-7, middle + half + 1e-7, found
    )  # the control: the oracle accepts what was found


@pytest.mark.parametrize("count", [1, 2, 3, 10, 400])
@pytest.mark.parametrize("half", [1e-6, 0.1, 0.4])
def test_the_result_fits_and_is_continuous(count, half):
    generator = np.random.default_rng(count)
    keys, middle = np.sort(generator.uniform(size=count)), generator.uniform(size=count)
    line = fewest_pieces(keys, middle - half, middle + half)
    # Slopes reach (largest difference) / (smallest gap); rounding of the crossing costs 2^-52 times the slope.
    steepest = max(abs(slope) for slope, _, _ in line.lines) + 1
    assert np.max(np.abs(values(line, keys) - middle)) <= half + 1e-15 * steepest
    assert np.all(np.diff(line.knots) >= 0)
    for left, right, knot in zip(line.lines, line.lines[1:], line.knots, strict=False):
        assert abs(_at(left, knot) - _at(right, knot)) <= 1e-14 * steepest


def test_straight_data_need_one_piece_and_a_tent_two():
    keys = np.arange(20.0)
    assert len(fewest_pieces(keys, 3 * keys - 1e-9, 3 * keys + 1e-9).lines) == 1
    tent = np.minimum(keys, 19 - keys)
    assert len(fewest_pieces(keys, tent - 1e-9, tent + 1e-9).lines) == 2  # the knot 9.5 is not a key
