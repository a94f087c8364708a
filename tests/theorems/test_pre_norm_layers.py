"""The bound of a real block: reference values, and the sensitivities that its covers assume."""

from __future__ import annotations

import numpy as np
import pytest

from certiformer.bounds.chaining import Cover, chain
from certiformer.bounds.numbers import above, ball
from certiformer.bounds.pre_norm_layers import BlockNorms, HeadPair, PreNorm, complexity, cover, growth
from theorems.sine_matrices import l11, matrix, spectral

CLIP = float(np.log(20) + 2)


def model(layers: int, norm: float) -> PreNorm:
    blocks = []
    for i in range(layers):
        q, v = matrix(8, 8, 0.7 + 0.1 * i) / np.sqrt(8), matrix(8, 8, 1.3 + 0.1 * i)
        up, down = matrix(8, 16, 2.1 + 0.1 * i), matrix(16, 8, 2.9 + 0.1 * i)
        heads = (HeadPair(spectral(q), l11(q), spectral(v), l11(v)),)
        blocks.append(BlockNorms(heads, spectral(up), l11(up), spectral(down), l11(down), 16))
    table = matrix(20, 8, 0.5)
    rows, squares = np.linalg.norm(table, axis=1).max(), (np.abs(table).sum(1) ** 2).sum()
    return PreNorm(tuple(blocks), 8, 8**0.5, norm, float(rows), float(squares), 20, 1.1289)


@pytest.mark.parametrize(
    ("norm", "layers", "softmax", "constant", "complexities"),
    [
        (1.0, 1, 1, "1.4048e+06", (3.9202, 0.8673, 0.1333, 0.0181)),
        (1.0, 1, 2, "2.6739e+06", (4.4601, 1.0971, 0.1764, 0.0240)),
        (1.0, 2, 1, "6.3433e+08", (None, None, 1.5212, 0.2506)),
        (1e-5**-0.5, 1, 1, "7.9719e+14", (None,) * 4),
        (1e-5**-0.5, 2, 1, "6.1834e+26", (None,) * 4),
    ],
)
def test_reference_values(norm, layers, softmax, constant, complexities):
    found = cover(model(layers, norm), softmax)
    assert f"{above(found.inverse_square):.4e}" == constant
    for sequences, wanted in zip((10**8, 10**10, 10**12, 10**14), complexities, strict=True):
        value = above(chain(CLIP, Cover(4 * ball(found.inverse_square)), sequences))
        assert round(value, 4) == wanted if wanted else value > 0.999 * CLIP
        assert above(complexity(model(layers, norm), CLIP, sequences, softmax)) >= value


def test_a_layer_stretches_no_more_than_claimed():
    """Random blocks with RMS norms, whose Lipschitz constant is known where streams are not short."""
    rng, worst = np.random.default_rng(2), 0.0
    width, tokens = 4, 5
    for _ in range(200):
        q, v, up, down = (rng.normal(size=(width, width)) * 0.5 for _ in range(4))

        def normed(x):
            return np.sqrt(width) * x / np.linalg.norm(x, axis=0)

        def block(x, q=q, v=v, up=up, down=down):
            n = normed(x)
            s = np.exp((s := n.T @ q @ n) - s.max(1, keepdims=True))
            x = x + v @ n @ (s / s.sum(1, keepdims=True)).T
            return x + down @ np.maximum(up @ normed(x), 0)

        x = rng.normal(size=(width, tokens)) * 3
        step = rng.normal(size=x.shape) * 1e-6
        inside = x + v @ normed(x) @ np.full((tokens, tokens), 1 / tokens)  # only to see how short streams get
        shortest = min(np.linalg.norm(x, axis=0).min(), np.linalg.norm(inside, axis=0).min()) / 2
        norms = BlockNorms((HeadPair(spectral(q), 1, spectral(v), 1),), spectral(up), 1, spectral(down), 1, width)
        whole = PreNorm((norms,), width, width**0.5, np.sqrt(width) / shortest, 1.0, 1.0, 1)
        attention, hidden = (above(each) for each in growth(whole, norms))
        moved = np.linalg.norm(block(x + step) - block(x), axis=0).max() / np.linalg.norm(step, axis=0).max()
        worst = max(worst, moved / (attention * hidden))
    assert 0.005 < worst <= 1


def test_biases_count_where_they_stretch():
    """Heads whose queries have a bias: a change of the tokens moves them no more than claimed, but more than without it."""
    rng, with_bias, without = np.random.default_rng(4), 0.0, 0.0
    width, radius = 3, 1.5
    for _ in range(300):
        a, v, c = rng.normal(size=(3, 3)) * 0.1, rng.normal(size=(3, 3)), rng.normal(size=3) * 8

        def head(x, a=a, v=v, c=c):
            s = x.T @ a @ x + c @ x
            p = np.exp(s - s.max(1, keepdims=True))
            return v @ x @ (p / p.sum(1, keepdims=True)).T

        x = rng.normal(size=(3, 4))
        x *= radius / np.linalg.norm(x, axis=0)
        step = rng.normal(size=x.shape) * 1e-6
        y = x + step
        y *= radius / np.linalg.norm(y, axis=0)
        moved = np.linalg.norm(head(y) - head(x), axis=0).max() / np.linalg.norm(y - x, axis=0).max()
        for shift in (float(np.linalg.norm(c)), 0.0):
            norms = BlockNorms((HeadPair(spectral(a), 1, spectral(v), 1, shift),), 1, 1, 1, 1, width)
            claimed = above(growth(PreNorm((norms,), width, radius, 1.0, 1.0, 1.0, 1), norms)[0]) - 1
            with_bias, without = (
                (max(with_bias, moved / claimed), without) if shift else (with_bias, max(without, moved / claimed))
            )
    assert with_bias <= 1 < without  # the control: the factor without the bias is no bound


def test_a_bias_of_hidden_units_makes_the_inputs_of_the_second_map_longer():
    plain = model(1, 1.0)
    biased = PreNorm(
        (BlockNorms(*(getattr(plain.blocks[0], name) for name in ("heads", "up", "up_l11", "down", "down_l11", "hidden")), 2.0),),
        plain.width, plain.radius, plain.norm, plain.rows, plain.rows_l1_squared, plain.vocabulary, plain.lipschitz,
    )  # fmt: skip
    assert above(cover(biased).inverse_square) > 1.01 * above(cover(plain).inverse_square)
