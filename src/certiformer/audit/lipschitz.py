"""Lipschitz constants of the attention of every layer, on the ball that its norm lets through.

The theorem is about scores (A x_i) . x_j. A bias b of the queries adds s (W_K^T b) . x_j; what a bias of the keys adds
is the same for all j and leaves the softmax. So (x, 1) in the place of x, with the column s W_K^T b beside A and the
radius sqrt(R^2 + 1), is of the form of the theorem; its score matrix has norm at most sqrt(|A|^2 + |s W_K^T b|^2). A
bias of the values adds a constant, as weights sum to one."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice

from certiformer.audit.architecture import has_score_biases, registers_of
from certiformer.audit.form import Checkpoint, Layer
from certiformer.audit.measure import LayerFigures, Measurements, Progress
from certiformer.audit.pairwise_lipschitz import PAIRS, pairwise
from certiformer.audit.verdict import Factor, Given, Verdict
from certiformer.bounds.attention_lipschitz import above, sequence_lipschitz, token_lipschitz

DOT, DISTANCE = "bounds.attention_lipschitz", "bounds.l2_attention_lipschitz"
IDS = (DOT, PAIRS, DISTANCE)
SMALLEST = 1e-100


def lipschitz(
    checkpoint: Checkpoint, figures: Measurements, given: Given, progress: Progress | None = None
) -> Iterator[Verdict]:
    """The verdicts, in the order of `IDS`."""
    yield _dot_products(checkpoint, figures, given)
    yield pairwise(checkpoint, figures, given, progress)
    yield Verdict(
        DISTANCE, "does-not-apply", "The constant on all of space is for scores by distances; these are dot products."
    )


def _dot_products(checkpoint: Checkpoint, figures: Measurements, given: Given) -> Verdict:
    for layer in checkpoint.layers:
        reason = _unfit(checkpoint, layer)
        if reason is not None:
            return Verdict(
                DOT, "does-not-apply", f"The constant needs one bilinear score matrix for each head; {reason}."
            )
    radii = [found.radius if found.radius is not None else given.radius for found in figures.layers]
    if any(radius is None for radius in radii):
        needs = ("--radius: how long tokens can be where no norm bounds them",)
        return Verdict(DOT, "holds-if", "Dot-product attention has a Lipschitz constant on balls only.", needs=needs)
    constants, sequences, length = [], [], given.length or checkpoint.context
    tokens = None if length is None else length + registers_of(checkpoint)
    for layer, found, radius in zip(checkpoint.layers, figures.layers, radii, strict=True):
        # A gain of zero leaves one token; the constant on any ball around it holds.
        ball = max(radius or 0.0, SMALLEST)
        token, sequence = layer_constants(layer, found, ball, tokens)
        constants.append(token)
        sequences.append(sequence)
    worst = max(range(len(constants)), key=constants.__getitem__, default=None)
    if worst is None:
        return Verdict(DOT, "does-not-apply", "There is no attention.")
    if not math.isfinite(constants[worst]):
        name = checkpoint.layers[worst].name
        return Verdict(DOT, "does-not-apply", f"The weights of {name} are so large that no constant is finite.")
    return Verdict(
        DOT,
        "holds",
        f"Behind its norm (tokens within {radii[worst]:.4g}), the attention of {checkpoint.layers[worst].name} moves no"
        f" token more than {constants[worst]:.4g} times as far as its input moves (largest change of a token); no other"
        " layer moves it more.",
        constants[worst],
        factors=tuple(Factor(layer.name, each) for layer, each in zip(checkpoint.layers, constants, strict=True)),
        details={"layers": constants, "of_sequences": sequences, "radii": radii},
    )


def _unfit(checkpoint: Checkpoint, layer: Layer) -> str | None:
    if not layer.heads_known:
        return "how many heads there are is in no file"
    for attention in layer.attention:
        checks = (
            (attention.cross, "keys and values come from another sequence"),
            (not attention.softmax, "attention is not softmax"),
            (attention.query_norm is not None or attention.key_norm is not None, "queries and keys are normed"),
            (attention.cap is not None, "scores are capped"),
            (attention.output is None, "there is no output projection"),
            (attention.scale is None, "the score scale is in no file"),
            (checkpoint.positions == "rope", "rotary positions change it with the distance"),
            (has_score_biases(checkpoint), "there are score biases beside it"),
        )
        for found, reason in checks:
            if found:
                return reason
    return None


def layer_constants(
    layer: Layer, figures: LayerFigures, radius: float, tokens: int | None
) -> tuple[float, float | None]:
    """The constant in the largest change of a token, and that in the Euclidean norm of all entries of so many tokens."""
    token, sequence = 0.0, 0.0
    found = iter(figures.heads)
    for attention in layer.attention:
        for head in islice(found, attention.query.shape[0]):
            shift = head.key_shift
            if head.vo is None or attention.scale is None:
                continue
            # Figures of qk are divided by the root of the head size; the model's own scale goes in here.
            ratio = abs(attention.scale) * math.sqrt(attention.query.shape[1])
            scores = math.hypot((head.qk.spectral + head.qk.spectral_error) * ratio, shift * (1 + 1e-12))
            reach = math.hypot(radius, 1.0) if shift else radius
            value = head.vo.spectral + head.vo.spectral_error
            token += above(token_lipschitz(value, scores, reach))
            if tokens is not None:
                sequence += min(above(each) for each in sequence_lipschitz(value, scores, reach, tokens))
    return token, sequence if tokens is not None else None
