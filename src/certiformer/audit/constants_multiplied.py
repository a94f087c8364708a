"""The Lipschitz constant of a whole model of ours on a ball of inputs as the product of the constants of its parts.

What everyone can write down without an enclosure: every part is taken at its worst, on the ball that all tokens can reach,
and the worst cases are multiplied. All constants are in the Euclidean norm of all entries. With x inside radius r of a
part: a norm stretches by max |g| / sqrt(epsilon) and lets nothing longer through than its own radius; attention by
`bounds.pairwise_attention_lipschitz`, its outputs are averages of values; hidden units by c |up| |down|, c that of the
activation, which is 0 at 0. A residual adds 1."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from certiformer.audit.feeding_norms import norm_radius
from certiformer.audit.form import Checkpoint, FeedForward, Layer, Norm, Weight
from certiformer.audit.measure import LayerFigures, Measurements
from certiformer.audit.score_slopes import UP, Tokens, slopes
from certiformer.audit.stack_norms_of import ACTIVATIONS
from certiformer.bounds.pairwise_attention_lipschitz import above, sequence_lipschitz

SLOPES = {**ACTIVATIONS, "identity": 1.0}


def constants_multiplied(checkpoint: Checkpoint, figures: Measurements, start: float, rows: int) -> float:
    """The product for a model of ours whose first tokens, `rows` of them with the registers, are within `start`."""
    config, slope, radius = checkpoint.config, spectral(checkpoint.embeddings["input"].read()), start
    for _ in range(config["loops"]):
        for layer, found, block in zip(checkpoint.layers, figures.layers, config["blocks"], strict=True):
            for part, made in (("attention", _attention), ("ffn", _hidden)):
                if block[part] is None:
                    continue
                norm, place = layer.norms.get(part), None if block["norm"] is None else block["norm"]["place"]
                steep, inside = _normed(norm, radius, checkpoint.width) if norm and place == "pre" else (1.0, radius)
                stretch, reach = made(checkpoint, layer, found, inside, rows)
                kept = 1.0 if block[part]["residual"] else 0.0
                slope, radius = slope * (kept + steep * stretch), kept * radius + reach
                if norm and place == "post":
                    steep, radius = _normed(norm, radius, checkpoint.width)
                    slope *= steep
    tokens = config["input"]["tokens"]
    pooled = {"mean": tokens**-0.5, "sum": tokens**0.5}.get(config["readout"]["kind"], 1.0)
    return slope * pooled * (0.0 if checkpoint.head is None else spectral(checkpoint.head.read())) * UP


def spectral(matrix: np.ndarray) -> float:
    """The largest singular value, rounded up."""
    return float(np.linalg.norm(matrix, 2)) * UP


def _length(weight: Weight | None) -> float:
    return 0.0 if weight is None else float(np.linalg.norm(weight.read()))


def _normed(norm: Norm, radius: float, width: int) -> tuple[float, float]:
    gain = 1.0 if norm.gain is None else float(np.abs(norm.gain.read()).max(initial=0.0))
    most = norm_radius(norm, width)
    return gain / math.sqrt(norm.epsilon or 0.0), math.inf if most is None else most


def _attention(
    checkpoint: Checkpoint, layer: Layer, found: LayerFigures, radius: float, rows: int
) -> tuple[float, float]:
    """The constant, and how long the output can be."""
    stretch, reach, heads, tokens = 0.0, 0.0, iter(found.heads), Tokens(radius)
    for attention in layer.attention:
        own = [next(heads) for _ in range(attention.query.shape[0])]
        numbers = slopes(checkpoint, attention, own, tokens, tokens)
        stretch += sum(math.inf if each is None else above(sequence_lipschitz(each, rows)) for each in numbers)
        reach += sum(head.vo.spectral * radius for head in own if head.vo is not None) * UP + _length(
            attention.output_bias
        )
        if attention.value_bias is not None and attention.output is not None:
            moved = np.einsum("hde,he->hd", attention.output.read(), attention.value_bias.read())
            reach += float(np.linalg.norm(moved, axis=1).sum()) * UP
    return stretch, reach


def _hidden(_: Any, layer: Layer, found: Any, radius: float, rows: int) -> tuple[float, float]:
    hidden: FeedForward = layer.ffn[0]
    slope, up, down = SLOPES[hidden.activation or ""], spectral(hidden.up.read()), spectral(hidden.down.read())
    return slope * up * down, down * slope * (up * radius + _length(hidden.up_bias)) + _length(hidden.down_bias)
