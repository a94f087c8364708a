"""The weights of the choice among several strengths: six blocks, applied once for every step.

The theorem, its proof and its rule are in `axioms.in_context_selection`, the algorithm in `meanings.selection`.

*Tokens.* With n training and m validation rows: a training row is (x_j | x_j / n | 0 | y_j | 0 | 0), a validation row
(x_j | 0 | x_j / m | y_j | y_j / m | 0), the query, which comes last, (x | 0 | 0 | 0 | 0 | 1), an unused row all zero.
In the stream follow the K weight vectors and, for each k, the residual part, the prediction, the loss, the excess, the
bid and the share; at the end the answer. As in `relu_network` only the query token learns, and values that are zero
where nothing should be counted take the place of masks.

| block | attention | hidden units |
|---|---|---|
| 0 | the steps of all K weight vectors | erase what the pass before left |
| 1 | w_k . x_j / m at the validation rows; w_k . x at the query | |
| 2 | the losses: sum_j max(r, 0) r / m + max(-r, 0) (-r / m) | the excess m_k |
| 3 | | the bids b_k |
| 4 | | the shares s_(k-1) - s_k |
| 5 | the answer: sum_k max(share_k, 0) times the prediction | |
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from certiformer.compiler.incontext.sparse_weights import (
    Head,
    Tensors,
    Unit,
    copies,
    erasers,
    group_tensors,
    unit_tensors,
)
from certiformer.compiler.room import require_room
from certiformer.kernel.meanings.selection import Selection
from certiformer.model.config import Attention, Block, Config, FeedForward, Heads, Input, Readout


class Coordinates:
    """Where the stream of a token holds what; `inputs` of them come from outside."""

    def __init__(self, learner: Selection) -> None:
        d, count = learner.features, len(learner.rates)
        self.x, self.train, self.validate = 0, d, 2 * d
        self.y, self.y_validate, self.query = 3 * d, 3 * d + 1, 3 * d + 2
        self.inputs = 3 * d + 3
        self.weights = [self.inputs + k * d for k in range(count)]
        start = self.scratch = self.inputs + count * d
        slots = [range(start + i * count, start + (i + 1) * count) for i in range(6)]
        self.fitted, self.prediction, self.loss, self.excess, self.bid, self.share = slots
        self.answer = start + 6 * count
        self.width = self.answer + 1


def selection_network(learner: Selection) -> tuple[Config, Tensors]:
    """The transformer that learns with every strength, validates, and predicts with the best."""
    at, d, count = Coordinates(learner), learner.features, len(learner.rates)
    groups = {
        0: [(d + 1, d, _steps(learner, at)), (1, d, _decays(learner, at))],
        1: [(d, 1, _predictions(at, d, count))],
        2: [(d + 1, 1, _losses(at, d, count))],
        5: [(1, 1, _answers(at, count))],
    }
    units = {
        0: erasers(range(at.scratch, at.width)),
        2: _excess(at, count, 1.0 / learner.gap),
        3: [Unit({at.query: 1.0, at.excess[k]: -1.0}, {at.bid[k]: 1.0}) for k in range(count)],
        4: _shares(at, count),
    }
    blocks = []
    for block in range(6):
        sizes = tuple(Heads(len(heads), key, value) for key, value, heads in groups.get(block, []))
        attention = Attention(sizes, kind="relu", scale="unit") if sizes else None
        blocks.append(Block(attention, FeedForward(len(units[block])) if block in units else None))
    config = Config(
        Input("continuous", tokens=learner.rows + 1, width=at.inputs),
        width=at.width,
        outputs=1 + 2 * count,
        readout=Readout("token", learner.rows),
        blocks=tuple(blocks),
        loops=learner.steps,
        dtype=learner.dtype,
    )
    require_room(config, "take fewer --features or strengths")
    tensors = _ends(at, count)
    for block in range(6):
        for index, (key, value, heads) in enumerate(groups.get(block, [])):
            tensors |= group_tensors(block, index, at.width, key, value, heads)
        if block in units:
            tensors |= unit_tensors(block, at.width, units[block])
    return config, tensors


def _ends(at: Coordinates, count: int) -> Tensors:
    read = [at.answer, *at.share, *at.loss]
    readout = np.zeros((at.width, len(read)))
    readout[read, range(len(read))] = 1.0
    return {
        "embed.weight": np.eye(at.inputs, at.width),
        "embed.bias": np.zeros(at.width),
        "readout.weight": readout,
        "readout.bias": np.zeros(len(read)),
    }


def _residuals(at: Coordinates, w: int, d: int, sign: float) -> tuple[dict, dict]:
    """Query and key of the score sign (w . x_j - y_j)."""
    return (
        {**copies(w, d, factor=sign), (at.query, d): -sign},
        {**copies(at.x, d), (at.y, d): 1.0},
    )


def _steps(learner: Selection, at: Coordinates) -> list[Head]:
    d = learner.features
    return [
        Head(*_residuals(at, w, d, sign), copies(at.train, d), copies(0, d, w, -sign * rate))
        for w, rate in zip(at.weights, learner.rates, strict=True)
        for sign in (1.0, -1.0)
    ]


def _decays(learner: Selection, at: Coordinates) -> list[Head]:
    own, d = {(at.query, 0): 1.0}, learner.features
    pairs = zip(at.weights, learner.decays, strict=True)
    return [Head(own, own, copies(w, d), copies(0, d, w, -decay)) for w, decay in pairs]


def _predictions(at: Coordinates, d: int, count: int) -> list[Head]:
    mark, heads = {(at.query, 0): 1.0}, []
    for k in range(count):
        for sign in (1.0, -1.0):
            w = at.weights[k]
            heads.append(Head(copies(at.validate, d, factor=sign), copies(w, d), mark, {(0, at.fitted[k]): sign}))
            heads.append(Head(copies(w, d, factor=sign), copies(at.x, d), mark, {(0, at.prediction[k]): sign}))
    return heads


def _losses(at: Coordinates, d: int, count: int) -> list[Head]:
    return [
        Head(
            *_residuals(at, at.weights[k], d, sign),
            {(at.fitted[k], 0): 1.0, (at.y_validate, 0): -1.0},
            {(0, at.loss[k]): sign},
        )
        for k in range(count)
        for sign in (1.0, -1.0)
    ]


def _excess(at: Coordinates, count: int, factor: float) -> list[Unit]:
    return [
        Unit({at.loss[k]: factor, at.loss[other]: -factor}, {at.excess[k]: 1.0})
        for k in range(count)
        for other in range(count)
        if other != k
    ]


def _shares(at: Coordinates, count: int) -> list[Unit]:
    """What is left after the first k bids, k = 0 .. K - 1; nothing is left after the last, as the best bids 1."""
    units = []
    for k in range(count):
        outs = {at.share[k]: 1.0, **({at.share[k - 1]: -1.0} if k else {})}
        units.append(Unit({at.query: 1.0, **{at.bid[i]: -1.0 for i in range(k)}}, outs))
    return units


def _answers(at: Coordinates, count: int) -> list[Head]:
    mark = {(at.query, 0): 1.0}
    return [
        Head({(at.share[k], 0): 1.0}, mark, {(at.prediction[k], 0): 1.0}, {(0, at.answer): 1.0}) for k in range(count)
    ]


def selection_points(
    learner: Selection,
    x: Float[np.ndarray, "rows features"],
    y: Float[np.ndarray, " rows"],
    queries: Float[np.ndarray, "queries features"],
) -> Float[np.ndarray, "queries numbers"]:
    """The inputs of the transformer, one for each query."""
    (rows, d), m = x.shape, learner.validation
    n = rows - m
    tokens = np.zeros((len(queries), learner.rows + 1, 3 * d + 3))
    tokens[:, :rows, :d] = x
    tokens[:, :n, d : 2 * d] = x[:n] / n
    tokens[:, n:rows, 2 * d : 3 * d] = x[n:] / m
    tokens[:, :rows, 3 * d] = y
    tokens[:, n:rows, 3 * d + 1] = y[n:] / m
    tokens[:, -1, :d] = queries
    tokens[:, -1, -1] = 1.0
    return tokens.reshape(len(queries), -1)
