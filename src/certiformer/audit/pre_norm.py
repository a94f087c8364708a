"""The bound for layers with norms and residuals (`bounds.pre_norm_layers`), with the norms of a checkpoint.

What enters: R is the largest token behind any norm of the model, the last one included; n is the largest gain over the
root of the smallest epsilon; the bias of the queries tilts the scores, that of the hidden units makes the inputs of the
second map longer. Rotary positions make the score matrix depend on the distance, and norms of queries and keys make
scores no bilinear form: for these the bound is not proved. Biases, gains and embeddings have no covers in it, as if they
had been fixed before the data; so even a number below the trivial one only *holds if* they were."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from certiformer.audit.feeding_norms import norm_radius
from certiformer.audit.form import Checkpoint, Layer, Norm
from certiformer.audit.measure import LayerFigures, Measurements
from certiformer.audit.verdict import Factor, Given, Verdict, judged
from certiformer.bounds import pre_norm_layers
from certiformer.bounds.numbers import above
from certiformer.bounds.rademacher_gap import gap, stratify

NAME = "bounds.pre_norm_layers"
# Lipschitz constants of activations, rounded up.
ACTIVATIONS = {"relu": 1.0, "tanh": 1.0, "gelu": 1.12905, "gelu-tanh": 1.12905, "silu": 1.1, "gelu-sigmoid": 1.1}
# Cells of measured norms start here; fixed once and for all, so that they do not depend on the data.
UNIT = 2.0**-10
ROUNDING = 1 + 1e-9  # norms of vectors and of tokens are computed in float64; a cell is much wider


def pre_norm(checkpoint: Checkpoint, figures: Measurements, given: Given) -> Verdict:
    """The verdict on `bounds.pre_norm_layers`."""
    problem = _unfit(checkpoint)
    if problem is not None:
        return Verdict(NAME, "does-not-apply", problem)
    model, factors = norms_of(checkpoint, figures)
    if given.samples is None:
        growth = math.prod(factor.value for factor in factors if factor.name.startswith("layer"))
        return Verdict(
            NAME,
            "holds-if",
            f"Norms and residuals counted, the layers may stretch a change by {growth:.3g}; a bound on the loss needs the"
            " number of independent training sequences.",
            needs=("--samples: the number of independent training sequences",),
            factors=factors,
        )
    loss = above(pre_norm_layers.complexity(model, given.largest_loss, given.samples))
    value = above(gap(loss, given.largest_loss, given.samples, left_over(model, given.delta)))
    sentence = (
        f"On {given.samples:,} independent sequences (biases, gains and embeddings counted as fixed, norms in dyadic"
        f" cells), with probability {1 - given.delta:g} the loss exceeds its mean on the sample by at most"
    )
    if value < given.largest_loss:
        return Verdict(
            NAME,
            "holds-if",
            f"{sentence} {value:.4g} (trivial: {given.largest_loss:.4g}).",
            value,
            given.largest_loss,
            needs=("biases, gains and embeddings that were fixed before the data",),
            factors=factors,
            details={"unit": "sequences"},
        )
    return judged(NAME, value, given.largest_loss, sentence, factors=factors, details={"unit": "sequences"})


def _unfit(checkpoint: Checkpoint) -> str | None:
    if checkpoint.norm_place != "pre":
        return f"The bound needs norms before the sub-layers; here they are: {checkpoint.norm_place or 'unknown'}."
    if checkpoint.positions == "rope":
        return "The bound needs one score matrix for each head; rotary positions change it with the distance."
    for layer in checkpoint.layers:
        problem = _unfit_layer(layer)
        if problem is not None:
            return problem
    if not checkpoint.layers or checkpoint.final_norm is None:
        return "The bound needs layers, and a norm in front of the output table."
    if checkpoint.head is None and not checkpoint.head_tied:
        return "The bound needs an output table; the files hold none."
    if any(norm.epsilon is None or norm_radius(norm, checkpoint.width) is None for norm in _all_norms(checkpoint)):
        return "The bound needs finite gains and the epsilon of every norm, which is in no file."
    return None


def _unfit_layer(layer: Layer) -> str | None:
    if not layer.heads_known or any(a.scale is None for a in layer.attention):
        return "The bound needs the number of heads and the score scale, which are in no file."
    if len(layer.attention) != 1 or len(layer.ffn) != 1 or layer.attention[0].cross or not layer.attention[0].softmax:
        return "The bound needs one softmax self-attention and one feed-forward part in every layer."
    if not {"attention", "ffn"} <= layer.norms.keys():
        return "The bound needs a norm before each of the two parts of every layer."
    attention, ffn = layer.attention[0], layer.ffn[0]
    if attention.query_norm is not None or attention.key_norm is not None:
        return "The bound needs scores that are products of tokens; here queries or keys are normed."
    if attention.output is None or ffn.gate is not None:
        return "The bound needs an output projection and hidden units without a gate."
    if ffn.activation not in ACTIVATIONS:
        return f"The Lipschitz constant of the activation {ffn.activation} is not known here."
    return None


def _all_norms(checkpoint: Checkpoint) -> Iterator[Norm]:
    for layer in checkpoint.layers:
        yield from layer.norms.values()
    if checkpoint.final_norm is not None:
        yield checkpoint.final_norm


def norms_of(checkpoint: Checkpoint, figures: Measurements) -> tuple[pre_norm_layers.PreNorm, tuple[Factor, ...]]:
    """The norms of the model at the ends of their dyadic cells, and the factors of the picture."""
    blocks = []
    for layer, found in zip(checkpoint.layers, figures.layers, strict=True):
        blocks += [_block(layer, found)] * layer.repeats
    every = list(_all_norms(checkpoint))
    gain = max(1.0 if norm.gain is None else float(np.abs(norm.gain.read()).max()) for norm in every)
    radius = max(norm_radius(norm, checkpoint.width) or 0.0 for norm in every)
    table = figures.matrices.get("head") or figures.matrices[next(iter(checkpoint.embeddings))]
    model = pre_norm_layers.PreNorm(
        tuple(blocks),
        checkpoint.width,
        _cell(radius),
        _cell(gain / math.sqrt(min(norm.epsilon or 0.0 for norm in every))),
        _cell(table.norms.largest_row_l2),
        _cell(table.norms.largest_row_l1) ** 2 * table.shape[0],
        table.shape[0],
        max(ACTIVATIONS[layer.ffn[0].activation or ""] for layer in checkpoint.layers),
    )
    factors = [Factor("a norm", model.norm), Factor("output table", model.rows)]
    for place, block in enumerate(blocks):
        attention, hidden = pre_norm_layers.growth(model, block)
        factors += [
            Factor(f"layer {place} attention", above(attention)),
            Factor(f"layer {place} hidden units", above(hidden)),
        ]
    return model, tuple(factors)


def _block(layer: Layer, figures: LayerFigures) -> pre_norm_layers.BlockNorms:
    attention, ffn = layer.attention[0], layer.ffn[0]
    # Figures of qk are divided by the root of the head size; the model's own scale goes in here.
    ratio = abs(attention.scale or 0.0) * math.sqrt(attention.query.shape[1])
    heads = tuple(
        pre_norm_layers.HeadPair(
            _cell((head.qk.spectral + head.qk.spectral_error) * ratio),
            _cell(head.qk.l11 * ratio),
            _cell(head.vo.spectral + head.vo.spectral_error),
            _cell(head.vo.l11),
            0.0 if attention.query_bias is None else _cell(head.key_shift),
        )
        for head in figures.heads
        if head.vo is not None
    )
    up, down = (figures.matrices[name].norms for name in ("up", "down"))
    return pre_norm_layers.BlockNorms(
        heads,
        _cell(up.spectral + up.spectral_error),
        _cell(up.l11),
        _cell(down.spectral + down.spectral_error),
        _cell(down.l11),
        figures.matrices["up"].shape[0],
        0.0 if ffn.up_bias is None else _cell(float(np.linalg.norm(ffn.up_bias.read()))),
    )


def _cell(measured: float) -> float:
    """The end of the dyadic cell of a measured norm."""
    return stratify([measured * ROUNDING], [UNIT], 0.5)[0][0]


def left_over(model: pre_norm_layers.PreNorm, delta: float) -> Fraction:
    """What is left of delta when every norm that was measured has paid for its cell."""
    ends = [model.radius, model.norm, model.rows, math.sqrt(model.rows_l1_squared / model.vocabulary)]
    # A layer that is applied several times is one block and pays once; equal cells of different layers pay each.
    for block in {id(block): block for block in model.blocks}.values():
        ends += [block.up, block.up_l11, block.down, block.down_l11, block.up_bias]
        for head in block.heads:
            ends += [head.scores, head.scores_l11, head.value, head.value_l11, head.key_shift]
    return stratify(ends, [UNIT] * len(ends), delta)[1]
