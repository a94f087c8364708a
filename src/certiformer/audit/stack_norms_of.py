"""The norms of a checkpoint as `bounds.stack_norms` has them, each at the end of the cell that holds it.

Measured norms are no norms that were fixed before the data. So every one of them is rounded up to the end of a cell that
was, and pays for it (`bounds.rademacher_gap`). What no theorem covers is refused by name."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from certiformer.audit.architecture import has_maps_between, has_score_biases
from certiformer.audit.form import FIXED_CODES, Attention, Checkpoint, FeedForward, Layer, Norm, Weight
from certiformer.audit.head_figures import HeadFigures
from certiformer.audit.matrix_figures import MatrixFigures
from certiformer.audit.measure import LayerFigures, Measurements
from certiformer.audit.rotary_factor import rotary_factor
from certiformer.bounds.rademacher_gap import stratify
from certiformer.bounds.stack_norms import (
    PLACES,
    AttentionNorms,
    HiddenNorms,
    MapNorms,
    NormNorms,
    StackHead,
    StackLayer,
    StackNorms,
    TableNorms,
    VectorNorms,
)

# Lipschitz constants of activations, rounded up; each is 0 at 0.
ACTIVATIONS = {"relu": 1.0, "tanh": 1.0, "gelu": 1.12905, "gelu-tanh": 1.12905, "silu": 1.1, "gelu-sigmoid": 1.1}
# Cells begin here and grow by this ratio; both are fixed once and for all, so that they do not depend on the data.
UNIT, RATIO = 2.0**-10, Fraction(17, 16)
ROUNDING = 1 + 1e-9  # norms of vectors and of tokens are computed in float64; a cell is much wider


class Cells:
    """Rounds norms up to the ends of their cells, and counts what that costs."""

    def __init__(self) -> None:
        self.paid = Fraction(1)

    def end(self, measured: float) -> float:
        """The end of the cell that holds the number.

        >>> cells = Cells()
        >>> 1.0 < cells.end(1.0) < 1.0625, cells.paid < 1
        (True, True)
        """
        (end,), left = stratify([measured * ROUNDING], [UNIT], 0.5, RATIO)
        self.paid *= 2 * left
        return end

    def left_of(self, delta: float) -> Fraction:
        """What is left of a probability when every norm has paid."""
        return Fraction(str(delta)) * self.paid


MOST_LAYERS = 10_000  # its factors are listed layer by layer


def unfit(checkpoint: Checkpoint) -> str | None:
    """Why the theorem is not about a checkpoint, or None."""
    if checkpoint.norm_place not in PLACES:
        return f"The bound is for norms at {', '.join(PLACES)}; here they are: {checkpoint.norm_place or 'unknown'}."
    if has_score_biases(checkpoint) and checkpoint.positions != "alibi":
        return "The bound has no trained score biases, which this model has."
    if checkpoint.positions == "rope" and rotary_factor(checkpoint.config) is None:
        return "The bound needs the number by which rotary codes are scaled, which no file says."
    if not checkpoint.layers or checkpoint.token_table is None:
        return "The bound needs layers, and a table of tokens."
    if sum(layer.repeats for layer in checkpoint.layers) > MOST_LAYERS:
        return f"The bound is computed for at most {MOST_LAYERS:,} layers."
    for layer in checkpoint.layers:
        if (problem := _unfit_layer(checkpoint, layer)) is not None:
            return problem
    if any(not norm.epsilon or not _finite(norm) for norm in _all_norms(checkpoint)):
        return "The bound needs finite gains and the epsilon of every norm, which is in no file."
    if checkpoint.family == "certiformer" and checkpoint.config["readout"]["kind"] == "sum":
        return "The bound has a read-out of single tokens or of their mean, and here it reads their sum."
    if has_maps_between(checkpoint):
        return "The bound has tables right before and behind the layers, and here maps stand between."
    if len(checkpoint.layers) > 1 and any(layer.repeats > 1 for layer in checkpoint.layers):
        return "The bound takes layers one after the other, and here several of them take turns."
    fixed = checkpoint.positions in FIXED_CODES and (
        checkpoint.final_norm is None if checkpoint.norm_place != "post" else "embeddings" not in checkpoint.norms
    )
    return "The bound needs a norm behind the codes of positions, whose size is in no file." if fixed else None


def _unfit_layer(checkpoint: Checkpoint, layer: Layer) -> str | None:
    if not layer.heads_known or any(one.scale is None for one in layer.attention):
        return "The bound needs the number of heads and the score scale, which are in no file."
    if any(one.cross or not one.softmax for one in layer.attention) or len(layer.ffn) != 1 or not layer.attention:
        return "The bound needs softmax self-attention and one feed-forward part in every layer."
    shared = checkpoint.norm_place == "parallel"
    if not ({"attention"} if shared else {"attention", "ffn"}) <= layer.norms.keys():
        return "The bound needs a norm at each of the two parts of every layer."
    if any(one.query_norm is not None or one.key_norm is not None for one in layer.attention):
        return "The bound needs scores that are products of tokens; here queries or keys are normed."
    if any(one.output is None for one in layer.attention):
        return "The bound needs an output projection."
    if layer.ffn[0].activation not in ACTIVATIONS:
        return f"The Lipschitz constant of the activation {layer.ffn[0].activation} is not known here."
    return None


def _all_norms(checkpoint: Checkpoint) -> list[Norm]:
    """The norms that the bound sees."""
    seen = [norm for layer in checkpoint.layers for part, norm in layer.norms.items() if part in ("attention", "ffn")]
    return [*seen, *(one for one in (checkpoint.final_norm, checkpoint.norms.get("embeddings")) if one is not None)]


def _finite(norm: Norm) -> bool:
    return all(np.isfinite(one.read()).all() for one in (norm.gain, norm.shift) if one is not None)


def stack_norms_of(checkpoint: Checkpoint, figures: Measurements) -> tuple[StackNorms, Cells]:
    """The norms at the ends of their cells; the checkpoint is not `unfit`."""
    cells, layers = Cells(), []
    for layer, measured in zip(checkpoint.layers, figures.layers, strict=True):
        # A layer that is applied several times is one set of norms and pays once.
        layers += [_layer(checkpoint, layer, measured, cells)] * layer.repeats
    tokens = checkpoint.token_table or ""
    names = [tokens, *(name for name in checkpoint.embeddings if name != tokens and name in figures.matrices)]
    embedded = checkpoint.norms.get("embeddings")
    tied = checkpoint.head is None and checkpoint.head_tied
    stack = StackNorms(
        checkpoint.norm_place or "",
        checkpoint.width,
        tuple(layers),
        tuple(_table(figures.matrices[name], cells) for name in names),
        checkpoint.embedding_scale,
        None if embedded is None else _norm(embedded, cells),
        None if checkpoint.final_norm is None else _norm(checkpoint.final_norm, cells),
        None if checkpoint.head is None else _table(figures.matrices["head"], cells),
        None if checkpoint.head_bias is None else _vector(checkpoint.head_bias.read(), cells),
        tied,
    )
    return stack, cells


def _layer(checkpoint: Checkpoint, layer: Layer, measured: LayerFigures, cells: Cells) -> StackLayer:
    heads, constant, figures = [], np.zeros(checkpoint.width), iter(measured.heads)
    for attention in layer.attention:
        for number in range(attention.query.shape[0]):
            heads.append(_head(checkpoint, attention, number, next(figures), cells))
        constant = constant + _constant(attention, checkpoint.width)
    biased = any(one.value_bias is not None or one.output_bias is not None for one in layer.attention)
    norms = layer.norms
    hidden = _hidden(layer.ffn[0], measured, cells)
    first = _norm(norms["attention"], cells)
    second = _norm(norms["ffn"], cells) if "ffn" in norms else first
    return StackLayer(AttentionNorms(tuple(heads), _vector(constant, cells) if biased else None), hidden, first, second)


def _constant(attention: Attention, width: int) -> np.ndarray:
    """What biases of values and outputs add to every token: weights of a row sum to one."""
    constant = np.zeros(width) if attention.output_bias is None else attention.output_bias.read().reshape(-1)
    if attention.value_bias is None or attention.output is None:
        return constant
    output, bias = attention.output.read(), attention.value_bias.read().reshape(attention.value.shape[0], -1)
    repeated = np.repeat(bias, len(output) // len(bias), 0)
    return constant + np.einsum("hde,he->d", output, repeated)


def _head(checkpoint: Checkpoint, attention: Attention, number: int, head: HeadFigures, cells: Cells) -> StackHead:
    width, size, scale = checkpoint.width, attention.query.shape[1], abs(attention.scale or 0.0)
    ways = head.vo
    if ways is None:
        raise TypeError("a head without an output projection is unfit")
    value = MapNorms(
        cells.end(ways.spectral + ways.spectral_error),
        cells.end(ways.frobenius),
        cells.end(ways.l11),
        width,
        width,
        min(width, attention.value.shape[1]),
    )
    biased = attention.query_bias is not None or (checkpoint.positions == "rope" and attention.key_bias is not None)
    if checkpoint.positions == "rope":
        turned = (rotary_factor(checkpoint.config) or 1.0) ** 2
        group = number // (attention.query.shape[0] // attention.key.shape[0])
        query = _with_bias(attention.query, attention.query_bias, number, biased) * scale * turned
        key = _with_bias(attention.key, attention.key_bias, group, biased)
        return StackHead(value, None, _map(query, size, cells), _map(key, size, cells), biased)
    # Figures of qk are divided by the root of the head size; the model's own scale goes in here.
    ratio, shift = scale * math.sqrt(size), head.key_shift if biased else 0.0
    scores = MapNorms(
        cells.end(math.hypot((head.qk.spectral + head.qk.spectral_error) * ratio, shift)),
        cells.end(math.hypot(head.qk.frobenius * ratio, shift)),
        cells.end(head.qk.l11 * ratio + math.sqrt(width) * shift),
        width + biased,
        width,
        min(width, size),
    )
    return StackHead(value, scores, biased=biased)


def _with_bias(maps: Weight, bias: Weight | None, number: int, biased: bool) -> np.ndarray:
    """One map with its bias as one more column."""
    own = maps.read()[number]
    if not biased:
        return own
    column = np.zeros(len(own)) if bias is None else bias.read().reshape(-1, len(own))[number]
    return np.concatenate([own, column[:, None]], axis=1)


def _map(matrix: np.ndarray, rank: int, cells: Cells) -> MapNorms:
    rows, columns = matrix.shape
    return MapNorms(
        cells.end(float(np.linalg.norm(matrix, 2))),
        cells.end(float(np.linalg.norm(matrix))),
        cells.end(float(np.abs(matrix).sum())),
        rows,
        columns,
        min(rows, columns, rank),
    )


def _hidden(ffn: FeedForward, measured: LayerFigures, cells: Cells) -> HiddenNorms:
    biased = ffn.up_bias is not None or ffn.gate_bias is not None
    up = _measured(measured.matrices["up"], ffn.up_bias, biased, cells)
    gate = None if ffn.gate is None else _measured(measured.matrices["gate"], ffn.gate_bias, biased, cells)
    down = _measured(measured.matrices["down"], None, False, cells)
    slope = ACTIVATIONS[ffn.activation or ""]
    behind = None if ffn.down_bias is None else _vector(ffn.down_bias.read(), cells)
    return HiddenNorms(up, down, gate, slope, biased, behind)


def _measured(figures: MatrixFigures, bias: Weight | None, biased: bool, cells: Cells) -> MapNorms:
    """The norms of a map with its bias as one more column: no larger than these."""
    rows, columns = figures.shape
    norms, added = figures.norms, np.zeros(1) if bias is None else bias.read().reshape(-1)
    length, largest = float(np.linalg.norm(added)), float(np.abs(added).max(initial=0.0))
    return MapNorms(
        cells.end(math.hypot(norms.spectral + norms.spectral_error, length)),
        cells.end(math.hypot(norms.frobenius, length)),
        cells.end(norms.l11 + float(np.abs(added).sum())),
        rows,
        columns + biased,
        min(rows, columns + biased),
        cells.end(math.hypot(norms.largest_row_l2, largest)),
    )


def _table(figures: MatrixFigures, cells: Cells) -> TableNorms:
    rows, columns = figures.shape
    squares = cells.end(figures.norms.largest_row_l1) * cells.end(figures.norms.l11)
    return TableNorms(rows, columns, squares, cells.end(figures.norms.largest_row_l2))


def _norm(norm: Norm, cells: Cells) -> NormNorms:
    gain, shift = (None if one is None else _vector(one.read(), cells) for one in (norm.gain, norm.shift))
    return NormNorms(norm.epsilon or 0.0, gain, shift)


def _vector(vector: np.ndarray, cells: Cells) -> VectorNorms:
    flat = np.asarray(vector, np.float64).reshape(-1)
    sums, largest = float(np.abs(flat).sum()), float(np.abs(flat).max(initial=0.0))
    return VectorNorms(cells.end(sums), cells.end(float(np.linalg.norm(flat))), cells.end(largest), flat.size)
