"""A decoder run by plain NumPy in any type, with every state before a norm; noise may be added to what sub-layers read."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from certiformer.export.decoder import Decoder


# Kernels of OpenBLAS may raise the flag for numbers beside the matrices (numpy issue 24067: "invalid value encountered in
# matmul", and none in the result). It is the comparisons that have to fail on NaN, and they do.
@np.errstate(invalid="ignore")
def run(
    decoder: Decoder,
    ids: list[int],
    kind: type = np.float64,
    disturb: Callable[[np.ndarray, int], np.ndarray] | None = None,
) -> tuple[list[np.ndarray], np.ndarray]:
    """The stream before each norm, and the logits, the start token included."""
    states: list[np.ndarray] = []

    def read(x: np.ndarray) -> np.ndarray:
        states.append(x)
        return x if disturb is None else disturb(x, len(states) - 1)

    def number(x: np.ndarray) -> np.ndarray:
        return np.asarray(x).astype(kind)

    rows = number(decoder.embed)[ids] + number(decoder.positions)[: len(ids)]
    x = np.concatenate([number(decoder.start)[None], rows])
    for layer in decoder.layers:
        y, added = read(x), np.zeros_like(x)
        for h in range(layer.heads):
            q, k, v = (
                y @ number(getattr(layer, p)[h]) + number(getattr(layer, f"{p}_bias")[h])
                for p in ("query", "key", "value")
            )
            scores = q @ k.T
            if layer.causal:
                scores = np.where(np.tri(len(x), dtype=bool), scores, -np.inf)
            weights = np.exp(scores - scores.max(1, keepdims=True))
            added = added + (weights / weights.sum(1, keepdims=True)) @ v @ number(layer.output[h])
        x = x + added + number(layer.output_bias)
        hidden = np.maximum(read(x) @ number(layer.up) + number(layer.up_bias), 0)
        x = x + hidden @ number(layer.down) + number(layer.down_bias)
    return states + [x], read(x) @ number(decoder.unembed) + number(decoder.unembed_bias)
