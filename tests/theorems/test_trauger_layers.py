"""Several attention layers: reference values, as proved and as printed, and the sensitivity behind them."""

from __future__ import annotations

import numpy as np
import pytest

from certiformer.bounds.chaining import Cover, chain
from certiformer.bounds.numbers import above
from certiformer.bounds.trauger_layers import LayerNorms, Stack, as_printed, complexity, cover, later_factors
from certiformer.errors import BadInput
from theorems.sine_matrices import OUTPUT, READOUT, SCORES, VALUE, l11, spectral

LARGEST = max(l11(SCORES), l11(VALUE), l11(OUTPUT))
LAYER = LayerNorms(LARGEST, spectral(OUTPUT), spectral(VALUE), spectral(SCORES))
NORM = float(np.linalg.norm(READOUT))


def stack(layers: int, inputs: float = 1.0) -> Stack:
    return Stack((LAYER,) * layers, 8, 8, NORM, LARGEST, inputs)


@pytest.mark.parametrize(
    ("layers", "printed", "proved", "complexities"),
    [
        (1, "4.7711e+04", "8.6565e+04", (0.53806, 0.11139, 0.01701)),
        (2, "1.2757e+06", "3.9570e+06", (None, 0.42371, 0.08280)),
        (4, "1.6808e+09", "6.4722e+09", (None, None, None)),
        (6, "2.5645e+12", "1.0065e+13", (None, None, None)),
    ],
)
def test_reference_values(layers, printed, proved, complexities):
    found = cover(stack(layers), softmax=2)
    assert f"{as_printed(stack(layers)):.4e}" == printed
    assert f"{above(found.inverse_square):.4e}" == proved
    for sequences, wanted in zip((10**8, 10**10, 10**12), complexities, strict=True):
        value = above(chain(NORM, Cover(found.inverse_square), sequences))
        assert round(value, 5) == wanted if wanted else value > 0.999 * NORM
        assert above(complexity(stack(layers), sequences, softmax=2)) >= value


def test_large_tokens_cost_more_than_is_printed():
    assert f"{as_printed(stack(2, 2.0)):.4e}" == "2.7418e+06"
    assert f"{above(cover(stack(2, 2.0), softmax=2).inverse_square):.4e}" == "3.8257e+07"


def test_the_factor_of_a_layer():
    assert round(above(later_factors(stack(2), softmax=2)[0]), 6) == 6.272382
    assert above(later_factors(stack(3))[2]) == 1


def test_outputs_move_no_more_than_the_cover_assumes():
    """Random stacks of two layers: change one map by a little and compare with the weight of its cover."""
    rng = np.random.default_rng(1)

    def ball(x):
        return x / np.maximum(1, np.linalg.norm(x, axis=0))

    def run(maps, x, w):
        for a, v, c in maps:
            s = np.exp(x.T @ a @ x)
            x = ball(c @ np.maximum(ball(v @ x @ (s / s.sum(1, keepdims=True)).T), 0))
        return w @ x

    worst = 0.0
    for _ in range(300):
        maps = [tuple(rng.normal(size=(4, 4)) * 0.6 for _ in range(3)) for _ in range(2)]
        w, x = rng.normal(size=4), ball(rng.normal(size=(4, 6)))
        norms = tuple(LayerNorms(1, spectral(c), spectral(v), spectral(a)) for a, v, c in maps)
        whole = Stack(norms, 4, 4, float(np.linalg.norm(w)), 1)
        a_i = [above(each) for each in later_factors(whole)]
        i, which = rng.integers(2), rng.integers(3)
        step = rng.normal(size=(4, 4)) * 1e-6
        changed = [list(each) for each in maps]
        changed[i][which] = changed[i][which] + step
        norm = norms[i]
        weight = a_i[i] * np.linalg.norm(w) * (norm.output * norm.value, norm.output, 1.0)[which]
        moved = np.abs(run(changed, x, w) - run(maps, x, w)).max()
        worst = max(worst, moved / (weight * spectral(step)))
    assert 0.02 < worst <= 1 + 1e-6  # steps of 1e-6 leave that much of second order


def test_no_layers_are_refused():
    with pytest.raises(BadInput, match="at least one layer"):
        cover(stack(0))
