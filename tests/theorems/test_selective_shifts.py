"""Selective shifts: all ids different in exact rationals and in float64, the L^p bound, and where it does not hold."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import chain

import numpy as np
import pytest
from flint import arb, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

from certiformer.errors import BadInput
from certiformer.expressivity.rational_run import rational_outputs
from certiformer.expressivity.selective_shifts import (
    Grid,
    Layers,
    approximator,
    contextual_mapping,
    layers,
    lp_bound,
    source_layers,
    token_ids,
)
from certiformer.model import Transformer

SIZES = [Grid(1, 2, 3), Grid(1, 3, 3), Grid(2, 2, 2), Grid(1, 1, 4), Grid(1, 2, 2), Grid(1, 3, 4, positions=False)]


def exactly(model, grid, sequence):
    """The ids in rational arithmetic on the stored weights, at the grid points themselves (1/3 is no double)."""
    rows = rational_outputs(model, [[Fraction(m, grid.cells) for m in token] for token in sequence])
    return tuple(row[0] for row in rows)


def as_points(grid, sequences):
    return [[m / grid.cells for token in sequence for m in token] for sequence in sequences]


@pytest.mark.parametrize("grid", SIZES, ids=str)
def test_every_token_of_every_sequence_has_its_own_id(grid):
    model, sequences = contextual_mapping(grid), list(grid.sequences())
    assert len(sequences) == (grid.letters**grid.tokens if grid.positions else 24)
    ids = [exactly(model, grid, sequence) for sequence in sequences]
    assert ids == [token_ids(grid, sequence) for sequence in sequences]
    if grid.positions:
        assert len(set(chain.from_iterable(ids))) == grid.tokens * len(sequences)
    else:
        meaning = {
            i: (frozenset(s), token)
            for row, s in zip(ids, sequences, strict=True)
            for i, token in zip(row, s, strict=True)
        }
        assert len(meaning) == 3 * 4  # three tokens of each of the four sets of three letters
        assert all(
            meaning[i] == (frozenset(s), token)
            for row, s in zip(ids, sequences, strict=True)
            for i, token in zip(row, s, strict=True)
        )
    assert max(chain.from_iterable(ids)) < (grid.top + 1) ** 2 < 2**grid.bits
    # The float64 run is exact: equality, no tolerance.
    if grid in SIZES[:3]:
        assert model.evaluate(as_points(grid, sequences)).tolist() == [[float(i) for i in row] for row in ids]


def shifted_layer_by_layer(grid, sequence, multiplier):
    """The layers themselves, without the claim that no token is shifted twice."""
    letters = [sum(m * grid.cells**i for i, m in enumerate(token)) for token in sequence]
    ids = [letter + j * grid.letters for j, letter in enumerate(letters)]
    for b in range(grid.starting_ids):
        shift = multiplier * (max(ids) - min(ids))
        ids = [i + shift if i == b else i for i in ids]
    return tuple(i + (grid.top + 1) * max(ids) for i in ids)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(1, 2), st.integers(1, 6), st.integers(2, 6), st.data())
def test_the_recursion_is_what_the_layers_do_and_it_can_be_read_back(width, tokens, cells, data):
    grid = Grid(width, tokens, cells)
    cell = st.integers(0, cells - 1)
    sequence = data.draw(st.lists(st.lists(cell, min_size=width, max_size=width), min_size=tokens, max_size=tokens))
    ids = token_ids(grid, sequence)
    assert ids == shifted_layer_by_layer(grid, sequence, grid.multiplier)
    assert [decoded(grid, i) for i in ids] == [(tuple(map(tuple, sequence)), j) for j in range(tokens)]


def decoded(grid, number):
    """The sequence and the token from the id alone, as the proof reads it back."""
    last, own = divmod(number, grid.top + 1)
    shifted, ids = [last], []
    for j in reversed(range(grid.tokens)):
        start = j * grid.letters
        g = start + (shifted[-1] - start) % grid.multiplier if grid.tokens > 1 else shifted[-1]
        ids.append(g - start)
        shifted.append((shifted[-1] - g) // grid.multiplier + g)
    sequence = tuple(tuple(g // grid.cells**i % grid.cells for i in range(grid.width)) for g in reversed(ids))
    return sequence, shifted[grid.tokens - 1 :: -1].index(own)


def test_the_usual_multiplier_shifts_one_token_twice():
    """Why B = A + 1 for two tokens: with B = A the sequence of letters D - 1 and 0 does not follow the recursion."""
    for cells in (2, 3, 8):
        grid = Grid(1, 2, cells)
        usual = type("Usual", (Grid,), {"multiplier": property(lambda self: self.letters)})(1, 2, cells)
        twice = [s for s in grid.sequences() if shifted_layer_by_layer(usual, s, cells) != token_ids(usual, s)]
        assert twice == [((cells - 1,), (0,))]


def test_a_smaller_multiplier_gives_two_sequences_one_id():
    """Negative control: B = 1 moves every token to the largest id."""
    grid = Grid(1, 3, 3)
    ids = [shifted_layer_by_layer(grid, s, 1) for s in grid.sequences()]
    assert len(set(chain.from_iterable(ids))) < 3 * 27


@pytest.mark.parametrize("part", ["blocks.3.attention.groups.0.output", "blocks.4.attention.groups.0.query_bias"])
def test_a_changed_weight_loses_ids(part):
    grid = Grid(1, 2, 3)
    model = contextual_mapping(grid)
    broken = Transformer(model.config, {**model.tensors, part: 0 * model.tensors[part]})
    assert any(exactly(broken, grid, s) != token_ids(grid, s) for s in grid.sequences())


# --- the whole construction -------------------------------------------------------------------------------------------

RAMP = 2.0**-3  # wide enough to be met by the sample below


def target(x):
    """f_1 = x_1 x_2, f_2 = (x_1 - x_2)^2 / 2: M = 1, and L = 2 in the largest coordinate. No symmetry."""
    return np.stack([x[..., 0] * x[..., 1], (x[..., 0] - x[..., 1]) ** 2 / 2], axis=-1)


def built(cells, ramp=RAMP):
    return approximator(Grid(1, 2, cells), lambda s: target((np.array(s)[:, 0] + 0.5) / cells), ramp)


@pytest.mark.parametrize("cells", [2, 6])
def test_the_mean_error_is_within_the_bound_and_not_far_below(cells):
    points = (np.stack(np.meshgrid(*[np.arange(200)] * 2), axis=-1).reshape(-1, 2) + 0.5) / 200
    error = np.abs(built(cells).evaluate(points) - target(points))
    for p in (1, 2, 4):
        measured = (np.mean(error**p, axis=0) ** (1 / p)).max()
        bound = float(lp_bound(Grid(1, 2, cells), 2, 1, p, RAMP))
        assert measured < bound < 12 * measured, (p, measured, bound)
    assert error.max() > 0.9  # the mean error shrinks with the cells, the supremum does not


def test_the_parts_of_the_bound_are_exact():
    """w is attained at a corner of a cell, and the share of bad points of the first token is that of the statement."""
    cells, ramp = 3, Fraction(1, 4)
    grid = Grid(1, 2, cells)
    # f_j = x_1 + x_2 has L = 2 and M = 2; at the lower corner of the cell (1, 2) both coordinates are farthest away.
    model = approximator(grid, lambda s: [float(sum(m + Fraction(1, 2) for (m,) in s)) / cells] * 2, float(ramp))
    corner = [(1 - ramp / 2) / cells, (2 - ramp / 2) / cells]
    attained = abs(rational_outputs(model, [[x] for x in corner])[0][0] - sum(corner))
    near = 2 * (1 + ramp) / (2 * cells) + Fraction(2, 2**53)
    assert 0 <= near - attained < Fraction(1, 2**51)
    # The quantiser is constant on each of these intervals or has a ramp on it; token 2 stays at 0.
    ids, steps = contextual_mapping(grid, float(ramp)), int(2 * cells / ramp)
    good = 0
    for i in range(steps):
        x = Fraction(2 * i + 1, 2 * steps)
        own = [k for k in range(cells) if exact_ids(ids, x) == token_ids(grid, ((k,), (0,)))]
        good += any(abs(cells * x - k - Fraction(1, 2)) <= (1 + ramp) / 2 for k in own)
    bad = 1 - Fraction(good, steps)
    assert bad == ramp * (cells + 1) / (2 * cells)
    bound = near + 2 * 2 * (1 - (1 - bad) ** 2)
    assert lp_bound(grid, 2, 2, 1, float(ramp)).overlaps(arb(fmpq(bound.numerator, bound.denominator)))


def exact_ids(model, first):
    return tuple(row[0] for row in rational_outputs(model, [[first], [Fraction(0)]]))


def test_the_error_shrinks_with_cells_and_ramps():
    bounds = [float(lp_bound(Grid(1, 2, 4**k), 2, 1, 2, 2.0 ** (-4 * k))) for k in (1, 2, 3, 4)]
    assert all(b < 0.6 * a for a, b in zip(bounds, bounds[1:], strict=False))


def test_the_table_is_exact_on_the_cells_and_bounded_everywhere():
    cells, model = 3, built(3)
    grid = Grid(1, 2, cells)
    for sequence in grid.sequences():
        wanted = target((np.array(sequence)[:, 0] + 0.5) / cells)
        assert [
            row[0] for row in rational_outputs(model, [[Fraction(token[0], cells)] for token in sequence])
        ] == wanted.tolist()
    anywhere = np.random.default_rng(0).uniform(0, 1, (4096, 2))
    assert np.abs(model.evaluate(anywhere)).max() <= 1


@pytest.mark.parametrize("ramp", [2.0**-1, 2.0**-10, 2.0**-20])
def test_the_supremum_does_not_shrink(ramp):
    """Part (c): constant target 1, output 0, in exact arithmetic and for every ramp."""
    model = approximator(Grid(1, 2, 3), lambda s: (1.0, 1.0), ramp)
    point = [[(1 - 3 * Fraction(ramp) / 4) / 3], [Fraction(0)]]
    assert rational_outputs(model, point) == [[0], [0]]
    assert rational_outputs(model, [[Fraction(1, 3)], [Fraction(0)]]) == [[1], [1]]


# --- sizes ------------------------------------------------------------------------------------------------------------


def test_what_float64_does_not_carry_is_refused_with_the_bits():
    assert (Grid(1, 13, 3).bits, Grid(1, 14, 3).bits) == (52, 56)
    Grid(1, 13, 3).require_float64()
    with pytest.raises(BadInput, match="the ids of 14 tokens with d = 1 and 3 cells need whole numbers of 56 bits"):
        contextual_mapping(Grid(1, 14, 3))
    # The refusal is not timid: float64 does not hold an id of the refused size.
    largest = max(token_ids(Grid(1, 14, 3), ((0,),) * 13 + ((2,),)))
    assert largest > 2**53 and int(float(largest)) != largest


@pytest.mark.slow
def test_the_largest_size_that_is_carried():
    grid = Grid(1, 13, 3)
    model, generator = contextual_mapping(grid), np.random.default_rng(0)
    sequences = [tuple((int(m),) for m in row) for row in generator.integers(0, 3, (200, 13))]
    assert model.evaluate(as_points(grid, sequences)).tolist() == [
        list(map(float, token_ids(grid, s))) for s in sequences
    ]
    assert exactly(model, grid, sequences[0]) == token_ids(grid, sequences[0])


def test_layers_of_both():
    assert layers(Grid(1, 3, 3)) == Layers(2, 10, 2)
    assert source_layers(Grid(1, 3, 3)) == Layers(4, 10, 81)
    assert len(contextual_mapping(Grid(1, 3, 3)).config.blocks) == 12
    assert layers(replace(Grid(1, 3, 3), positions=False)).contextual == 4


@pytest.mark.parametrize("bad", [(0, 1, 2), (1, 0, 2), (1, 1, 1), (1.0, 2, 3)])
def test_no_grid(bad):
    with pytest.raises(BadInput, match="at least one coordinate"):
        Grid(*bad)


def test_other_refusals():
    with pytest.raises(BadInput, match="cannot have different letters"):
        Grid(1, 4, 3, positions=False)
    with pytest.raises(BadInput, match="have to differ"):
        token_ids(Grid(1, 2, 3, positions=False), [[1], [1]])
    with pytest.raises(BadInput, match="power of two"):
        contextual_mapping(Grid(1, 2, 3), ramp=0.3)
    with pytest.raises(BadInput, match="more than 4,096"):
        approximator(Grid(1, 8, 3), lambda s: [0.0] * 8)
    with pytest.raises(BadInput, match="with positions"):
        approximator(Grid(1, 2, 3, positions=False), lambda s: [0.0] * 2)
    with pytest.raises(BadInput, match="p >= 1"):
        lp_bound(Grid(1, 2, 3), 1, 1, 0.5)
