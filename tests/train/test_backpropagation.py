"""Formulas (9) and (10) against automatic differentiation, in the reading that holds and in the one that is printed."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from certiformer.errors import BadInput
from certiformer.train.backpropagation import Chain, Layer, example, forward, gradients

PAGE = Path(__file__).parents[2] / "docs" / "backpropagation.md"


def random_chain(last: str, seed: int = 0) -> Chain:
    generator = np.random.default_rng(seed)
    sizes = (3, 5, 4, 2)
    layers = tuple(
        Layer(generator.normal(size=(after, before)) / 2, generator.normal(size=after) / 2, "tanh" if k < 2 else last)
        for k, (before, after) in enumerate(zip(sizes, sizes[1:], strict=False))
    )
    return Chain(layers, generator.normal(size=3), generator.normal(size=2))


def automatic(chain: Chain) -> list[tuple[np.ndarray, np.ndarray]]:
    def loss(weights):
        h = jnp.asarray(chain.x)
        for (weight, bias), layer in zip(weights, chain.layers, strict=True):
            z = weight @ h + bias
            h = jnp.tanh(z) if layer.activation == "tanh" else z
        return jnp.sum((h - chain.y) ** 2) / 2

    weights = [(jnp.asarray(layer.weight), jnp.asarray(layer.bias)) for layer in chain.layers]
    assert np.isclose(loss(weights), forward(chain).loss, rtol=1e-14)
    return jax.grad(loss)(weights)


def agree(chain: Chain, reading: str) -> list[bool]:
    # Float64 and a dozen products: 1e-12 is far above rounding, and a missing factor changes every digit.
    return [
        np.allclose(found.weight, weight, rtol=1e-12) and np.allclose(found.bias, bias, rtol=1e-12)
        for found, (weight, bias) in zip(gradients(chain, reading), automatic(chain), strict=True)
    ]


def test_the_formulas_hold_for_the_gradient_by_z():
    assert agree(random_chain("tanh"), "z") == [True, True, True]
    assert agree(random_chain("identity"), "z") == [True, True, True]


def test_they_do_not_hold_as_printed():
    assert agree(random_chain("tanh"), "h") == [False, False, False]
    # With no activation at the end both readings start with the same vector.
    assert agree(random_chain("identity"), "h") == [True, True, True]


def test_the_page_shows_these_numbers():
    chain = example()
    right, printed, exact = gradients(chain, "z"), gradients(chain, "h"), automatic(chain)
    text = PAGE.read_text(encoding="utf-8")
    for place, name in enumerate(("1", "2")):
        for part in ("weight", "bias"):
            values = [getattr(each[place], part).item() for each in (right, printed)]
            automatic_value = exact[place][part == "bias"].item()
            symbol = {"weight": "W", "bias": "b"}[part]
            row = f"| ∂L/∂{symbol}{name} | {automatic_value:.6f} | {values[0]:.6f} | {values[1]:.6f} |"
            assert row in text
    done = forward(chain)
    shown = [
        f"{value:.6f}" for value in (done.z[0].item(), done.h[1].item(), done.z[1].item(), done.h[2].item(), done.loss)
    ]
    assert all(number in text for number in shown)
    factor = printed[0].weight.item() / right[0].weight.item()
    assert f"{factor:.4f}" in text and np.isclose(factor, 1 / (1 - np.tanh(done.z[1].item()) ** 2))


def test_another_reading_is_refused():
    with pytest.raises(BadInput, match="by 'z' or by 'h', not 'w'"):
        gradients(example(), "w")  # pyright: ignore[reportArgumentType]
