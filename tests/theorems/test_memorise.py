"""Memorisation: proved at every row, small where the data allow it, honest where float64 does not."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from certiformer.construct.key_function import fit
from certiformer.construct.memorise import memorise
from certiformer.errors import BadInput
from certiformer.kernel import Refused
from certiformer.target import Table

EPS = Fraction(1, 10**6)


def random_table(rows: int, inputs: int, outputs: int = 1, seed: int = 0, kind: str = "continuous") -> Table:
    generator = np.random.default_rng(seed)
    points = generator.normal(size=(rows, inputs))
    if kind == "ids":
        points = np.array([[(r >> i) & 1 for i in range(inputs)] for r in range(rows)], float)
    values = generator.uniform(-1, 1, (rows, outputs))
    exact = tuple(
        (tuple(map(Fraction, x)), tuple(map(Fraction, y)))
        for x, y in zip(points.tolist(), values.tolist(), strict=True)
    )
    return Table("random", kind, exact)


def table_of(pairs) -> Table:
    return Table("given", "continuous", tuple((tuple(map(Fraction, x)), tuple(map(Fraction, y))) for x, y in pairs))


@pytest.mark.parametrize(
    ("tokens", "width", "outputs", "out_tokens"), [(1, 1, 1, 1), (1, 3, 2, 1), (4, 2, 1, 1), (3, 2, 3, 3), (2, 1, 4, 2)]
)
def test_every_row_is_within_epsilon_and_the_model_agrees(tokens, width, outputs, out_tokens):
    table = random_table(30, tokens * width, outputs)
    found = memorise(table, EPS, tokens=tokens, out_tokens=out_tokens)
    assert found.error <= EPS
    points = [[float(x) for x in row] for row, _ in table.rows]
    wanted = np.array([[float(y) for y in row] for _, row in table.rows])
    # The float64 run adds rounding: slopes below 1e5 times 2^-53, over 30 to 90 units.
    assert np.max(np.abs(found.model.evaluate(points) - wanted)) <= float(found.error) + 1e-9
    assert found.plain_units == 30 * out_tokens - 2


def test_units_of_plain_interpolation_are_not_exceeded_and_the_bound_is_tight():
    found = memorise(random_table(60, 4), EPS)
    assert found.units < found.plain_units == 58  # units between the keys serve two rows each where they can
    assert found.fewest_units is not None
    assert found.fewest_units <= found.units <= found.fewest_units + 2  # half of epsilon is kept for rounding
    # Half of epsilon is spent on fewer pieces, and the pieces touch the ends of their intervals: the error is exactly that.
    assert EPS / 2 * Fraction(999, 1000) < found.error < EPS / 2 * Fraction(1001, 1000)


def test_a_tighter_epsilon_reaches_rounding():
    found = memorise(random_table(60, 4, 2), Fraction(1, 10**12))
    assert found.error <= Fraction(1, 10**12)


def test_affine_data_need_no_unit():
    table = table_of([([i, i * i % 7], [2 * i - 3 * (i * i % 7) + 1]) for i in range(20)])
    found = memorise(table, EPS)
    assert (found.units, found.plain_units > 10) == (0, True)
    assert found.error < Fraction(1, 10**12)


def test_rows_that_share_outputs_share_units():
    # The output depends on the first input alone, which takes three values: one projection sees it.
    table = table_of([([i % 3, i], [(i % 3) ** 2]) for i in range(30)])
    found = memorise(table, EPS)
    assert found.units == 1
    assert found.error <= EPS


@pytest.mark.parametrize("tokens", [1, 6])
def test_parity_needs_one_unit_a_count(tokens):
    # The sum of the bits has seven values; parity turns at five of them.
    rows = [[(r >> i) & 1 for i in range(6)] for r in range(64)]
    found = memorise(table_of([(row, [sum(row) % 2]) for row in rows]), EPS, tokens=tokens)
    assert (found.units, found.plain_units) == (5, 62)
    assert found.error <= EPS


@pytest.mark.parametrize("rows", [1, 2])
def test_very_short_tables(rows):
    found = memorise(random_table(rows, 2), EPS)
    assert (found.units, found.error <= EPS) == (0, True)


def test_a_constant_table():
    found = memorise(table_of([([i], [5]) for i in range(9)]), EPS)
    assert (found.units, found.error) == (0, 0)


def test_token_ids_are_memorised():
    found = memorise(random_table(16, 4, 1, kind="ids"), EPS, tokens=4)
    assert found.error <= EPS
    assert found.model.config.input.kind == "ids"


def test_columns_of_very_different_size():
    generator = np.random.default_rng(1)
    points = generator.normal(size=(40, 2)) * [1e-9, 1e9]
    table = table_of([(x, [y]) for x, y in zip(points.tolist(), generator.normal(size=40).tolist(), strict=True)])
    assert memorise(table, EPS).error <= EPS


def test_epsilon_below_float64_is_refused_with_what_can_be_reached():
    with pytest.raises(Refused, match=r"come within .*e-1\d of the rows, not within 1e-25"):
        memorise(random_table(20, 2), Fraction(1, 10**25))


def test_rows_that_no_float64_key_can_separate_are_refused():
    # Two rows that differ by 1e-40 have different outputs: w . x is the same number to 40 digits.
    table = table_of([([1, 0], [0]), ([1 + Fraction(1, 10**40), 0], [1]), ([2, 0], [0])])
    with pytest.raises(Refused):
        memorise(table, EPS)


def test_two_outputs_at_one_key_are_refused():
    with pytest.raises(Refused, match="same key"):
        fit([Fraction(1), Fraction(1), Fraction(2)], [(Fraction(0),), (Fraction(1),), (Fraction(0),)], EPS, True)


@pytest.mark.parametrize(("tokens", "out_tokens"), [(4, 1), (0, 1), (True, 2), (3, 2), (6, 6)])
def test_shapes_that_do_not_fit_are_bad_input(tokens, out_tokens):
    with pytest.raises(BadInput):
        memorise(random_table(5, 6, 4), EPS, tokens=tokens, out_tokens=out_tokens)


def test_the_same_seed_gives_the_same_transformer():
    first, second = (memorise(random_table(25, 3), EPS, seed=4).model for _ in range(2))
    assert all(np.array_equal(first.tensors[name], second.tensors[name]) for name in first.tensors)
