"""A small checkpoint with norms before its parts, as the readers would give it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from certiformer.audit.form import Attention, Checkpoint, FeedForward, Layer, Norm, Source, Weight

WIDTH, HIDDEN, WORDS = 4, 6, 9


def weight(array: np.ndarray) -> Weight:
    return Weight(Source("t", "f"), array.shape, "F64", lambda: np.asarray(array, np.float64))


def checkpoint(seed: int = 0, layers: int = 2) -> Checkpoint:
    rng = np.random.default_rng(seed)

    def some(*shape: int) -> Weight:
        return weight(rng.normal(size=shape) * 0.3)

    def norm(size: float = 1.0) -> Norm:
        return Norm("layer", weight(np.full(WIDTH, size)), weight(np.zeros(WIDTH)), 1.0)

    def layer(number: int) -> Layer:
        attention = Attention(
            some(2, 2, WIDTH), some(2, 2, WIDTH), some(2, 2, WIDTH), some(2, WIDTH, 2), query_bias=some(2, 2), scale=0.5
        )
        ffn = FeedForward(some(HIDDEN, WIDTH), some(WIDTH, HIDDEN), up_bias=some(HIDDEN), activation="gelu")
        return Layer(f"layer {number}", (attention,), (ffn,), {"attention": norm(), "ffn": norm()})

    return Checkpoint(
        "test",
        tuple(layer(number) for number in range(layers)),
        WIDTH,
        positions="learned",
        norm_place="pre",
        embeddings={"tokens": some(WORDS, WIDTH)},
        head=some(WORDS, WIDTH),
        final_norm=norm(),
    )


def part(plain: Checkpoint, name: str, **changes: object) -> Checkpoint:
    layer = plain.layers[0]
    return replace(plain, layers=(replace(layer, **{name: (replace(getattr(layer, name)[0], **changes),)}),))
