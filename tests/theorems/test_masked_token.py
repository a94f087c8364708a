"""Predicting a token among many: the parts of the cover, heads, length and vocabulary, and the sensitivity behind it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from certiformer.bounds.chaining import linear_cover
from certiformer.bounds.masked_token import HeadNorms, Masked, as_printed, complexity, cover, layer_factor
from certiformer.bounds.numbers import above
from certiformer.bounds.trauger_layers import Stack, later_factors
from certiformer.bounds.trauger_layers import cover as scalar_cover
from certiformer.errors import BadInput
from theorems.sine_matrices import OUTPUT, SCORES, VALUE, l11, matrix, spectral

TABLE = matrix(20, 8, 0.5)
HEAD = HeadNorms(max(l11(SCORES), l11(VALUE), l11(OUTPUT)), spectral(OUTPUT), spectral(VALUE), spectral(SCORES))
ROWS, SQUARES = float(np.linalg.norm(TABLE, axis=1).max()), float((np.abs(TABLE).sum(1) ** 2).sum())


def model(layers: int, heads: int = 1) -> Masked:
    return Masked(((HEAD,) * heads,) * layers, 8, 8, ROWS, SQUARES, 20)


@pytest.mark.parametrize("layers", [1, 2, 4])
@pytest.mark.parametrize("softmax", [1, 2])
def test_only_the_table_differs_from_a_scalar_output(layers, softmax):
    """With the cover of w in place of that of the table, and |w|_2 for the largest row, the two theorems agree."""
    stack = Stack((HEAD,) * layers, 8, 8, ROWS, 3.0)
    word = linear_cover(1, 3.0, 8, 8).inverse_square  # C of w there; here V = 1 row whose C is s1 log(2 d + 1)
    logarithm = linear_cover(1, 1.0, 1, 8).inverse_square
    one = replace(model(layers), rows_l1_squared=above(word / logarithm), vocabulary=1)
    assert np.isclose(
        above(cover(one, softmax).inverse_square), above(scalar_cover(stack, softmax).inverse_square), rtol=1e-12
    )


def test_reference_value_of_the_table():
    """C_out = (sum |w_s|_1^2) log(2 d + 1); no other part once the layers have no weights."""
    bare = replace(model(1), layers=((HeadNorms(0.0, 0.0, 0.0, 0.0),),))
    found = cover(bare)
    assert np.isclose(above(found.inverse_square), SQUARES * np.log(17), rtol=1e-12)
    assert above(found.constant) >= 20 * np.log(17)


def test_heads_cost_the_power_three_halves():
    """One layer: K grows as H^3 once the table is left out, so the complexity as H^1.5; a deeper one adds the sum of factors."""
    bare = [replace(model(1, heads), rows_l1_squared=0.0) for heads in (1, 2, 4)]
    sizes = [above(cover(each).inverse_square) ** 0.5 for each in bare]
    assert np.allclose(np.array(sizes[1:]) / sizes[0], [2**1.5, 4**1.5], rtol=1e-12)
    deep = [above(cover(replace(model(2, heads), rows_l1_squared=0.0)).inverse_square) ** 0.5 for heads in (1, 2)]
    assert 2**1.5 < deep[1] / deep[0] < 2**2.5
    assert np.isclose(above(layer_factor(model(1, 4), (HEAD,) * 4)), 4 * above(layer_factor(model(1), (HEAD,))))


def test_it_grows_with_every_norm_and_falls_with_the_sample():
    base = above(complexity(model(1), 5.0, 10**10))
    for name in ("rows", "rows_l1_squared", "inputs", "lipschitz", "vocabulary"):
        changed = replace(model(1), **{name: type(getattr(model(1), name))(2 * getattr(model(1), name))})
        assert above(complexity(changed, 5.0, 10**10)) > base
    values = [above(complexity(model(1), 5.0, m)) for m in (10**10, 10**11, 10**12)]
    assert all(2 < a / b <= 10**0.5 for a, b in zip(values, values[1:], strict=False))
    assert above(complexity(model(6), 5.0, 10**6)) == 5.0


def test_more_tokens_to_choose_from_cost_less_than_the_root_that_is_printed():
    """Rows of the same size: sum |w|_1^2 grows with V, so the table's part of the complexity as sqrt V, the rest not at all."""
    values = []
    for vocabulary in (100, 10_000):
        each = replace(model(2), rows_l1_squared=0.01 * vocabulary, vocabulary=vocabulary)
        values.append(above(complexity(each, 5.0, 10**14)))
    assert values[1] / values[0] < 2
    assert as_printed(1.0, 10_000) / as_printed(1.0, 100) == 10


def test_logits_move_no_more_than_the_cover_assumes():
    """Random models of two layers with two heads: change one map a little, compare with the weight of its cover."""
    rng, worst = np.random.default_rng(3), 0.0

    def ball(x):
        return x / np.maximum(1, np.linalg.norm(x, axis=0))

    def run(layers, x, table):
        for heads in layers:
            out = 0.0
            for a, v, c in heads:
                s = np.exp(x.T @ a @ x)
                out = out + c @ np.maximum(ball(v @ x @ (s / s.sum(1, keepdims=True)).T), 0)
            x = ball(out)
        return table @ x

    for _ in range(200):
        layers = [[[rng.normal(size=(4, 4)) * 0.6 for _ in range(3)] for _ in range(2)] for _ in range(2)]
        table, x = rng.normal(size=(7, 4)), ball(rng.normal(size=(4, 5)))
        norms = tuple(
            tuple(HeadNorms(1.0, spectral(c), spectral(v), spectral(a)) for a, v, c in heads) for heads in layers
        )
        rows = float(np.linalg.norm(table, axis=1).max())
        whole = Masked(norms, 4, 4, rows, 1.0, 7)
        i, h, which = rng.integers(2), rng.integers(2), rng.integers(3)
        step = rng.normal(size=(4, 4)) * 1e-6
        changed = [[list(head) for head in heads] for heads in layers]
        changed[i][h][which] = changed[i][h][which] + step
        norm = norms[i][h]
        later = above(layer_factor(whole, norms[1])) if i == 0 else 1.0
        weight = rows * later * (norm.output * norm.value, norm.output, 1.0)[which]
        moved = np.abs(run(changed, x, table) - run(layers, x, table)).max()
        worst = max(worst, moved / (weight * spectral(step)))
    assert 0.02 < worst <= 1 + 1e-6  # steps of 1e-6 leave that much of second order


def test_cross_entropy_is_two_lipschitz_in_the_max_norm():
    rng = np.random.default_rng(0)
    z, h = rng.normal(size=(5000, 6)) * 4, rng.choice([-1.0, 1.0], size=(5000, 6)) * 1e-3
    z[:100], h[:100] = np.array([-20.0, 20, 0, 0, 0, 0]), np.array([-1.0, 1, 1, 1, 1, 1]) * 1e-3

    def loss(z):
        return np.log(np.exp(z).sum(1)) - z[:, 0]

    ratio = np.abs(loss(z + h) - loss(z)) / 1e-3
    assert 1.99 < ratio.max() <= 2 + 1e-9  # rounding of losses near 40


def test_factors_are_those_of_the_scalar_theorem_for_one_head():
    stack = Stack((HEAD,) * 2, 8, 8, ROWS, 3.0)
    assert above(layer_factor(model(2), (HEAD,))) == above(later_factors(stack)[0])


def test_layers_without_heads_are_refused():
    for layers in ((), ((),)):
        with pytest.raises(BadInput, match="at least one layer"):
            cover(replace(model(1), layers=layers))
