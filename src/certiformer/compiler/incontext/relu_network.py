"""The weights of the learners with ReLU attention: two blocks, applied once for every step.

The theorem, its proof and its rule are in `axioms.in_context_relu`, the algorithms in `meanings.relu_learner`.

*Tokens.* A row is (x_j | x_j / n | y_j | 0), the query, which comes last, (x | 0 | 0 | 1), an unused row all zero. In the
stream follow a 1, the weights w, the score w . x and, for logistic regression, the probability. Only the query
token learns: the queries of a head are w and multiples of the mark of the query, so at all other tokens they are 0,
all scores are 0, and w stays 0. Values are x_j / n, which is 0 at the query and at unused rows: so nothing has to be
masked by a large constant, and no bound on scores is needed.

*Block 0, attention.* For s - y two heads: max(s_j - y_j, 0) and max(y_j - s_j, 0) with s_j = w . x_j, values x_j / n,
output -rate and +rate. For p(s) - y a head for each knot: max(s_j - knot, 0) with values bend x_j / n, and a head with
score y_j. One more head, from the query to itself, takes decay w away.

*Block 0, hidden units.* The score of the pass before is erased. For the Lasso, 4 units for each weight turn it into
w - max(w, 0) + max(-w, 0) + max(w - t, 0) - max(-w - t, 0), which is exactly 0 below the threshold in a run, too. (With
max(w + t, 0) - max(w - t, 0) - t two units would do, but a run would leave dust of size t 2^-53 instead of zeros.)

*Block 1.* Two heads: max(w . x, 0) and max(-w . x, 0), with the mark of the query as value; for logistic regression the
hidden units are p.
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
from certiformer.kernel.meanings.relu_learner import ReluLearner
from certiformer.model.config import Attention, Block, Config, FeedForward, Heads, Input, Readout


class Coordinates:
    """Where the stream of a token holds what; `inputs` of them come from outside."""

    def __init__(self, learner: ReluLearner) -> None:
        d = learner.features
        self.x, self.share, self.y, self.query = 0, d, 2 * d, 2 * d + 1
        self.inputs = self.one = 2 * d + 2
        self.w, self.score = 2 * d + 3, 3 * d + 3
        self.probability = 3 * d + 4  # of logistic regression only
        self.width = 3 * d + (5 if learner.knots else 4)


def relu_network(learner: ReluLearner) -> tuple[Config, Tensors]:
    """The transformer that makes the steps of the learner and predicts."""
    at, d = Coordinates(learner), learner.features
    groups = _step_heads(learner, at)
    shrink = _soft_threshold(learner.threshold, range(at.w, at.w + d)) if learner.threshold else []
    scratch = [at.score, at.probability] if learner.knots else [at.score]
    first = [*erasers(scratch), *shrink]
    predict = [
        Head(copies(at.w, d, factor=s), copies(at.x, d), {(at.query, 0): 1.0}, {(0, at.score): s}) for s in (1.0, -1.0)
    ]
    last = [
        Unit({at.score: 1.0, at.query: -knot}, {at.probability: bend})
        for knot, bend in zip(learner.knots, learner.bends, strict=True)
    ]
    sizes = tuple(Heads(len(heads), key, value) for key, value, heads in groups)
    read = ([at.probability] if learner.knots else []) + [at.score, *range(at.w, at.w + d)]
    config = Config(
        Input("continuous", tokens=learner.rows + 1, width=at.inputs),
        width=at.width,
        outputs=len(read),
        readout=Readout("token", learner.rows),
        blocks=(
            Block(Attention(sizes, kind="relu", scale="unit"), FeedForward(len(first))),
            Block(Attention((Heads(2, d, 1),), kind="relu", scale="unit"), FeedForward(len(last)) if last else None),
        ),
        loops=learner.steps,
        dtype=learner.dtype,
    )
    require_room(config, "take fewer --features")
    bias, readout = np.zeros(at.width), np.zeros((at.width, len(read)))
    bias[at.one] = 1.0
    readout[read, range(len(read))] = 1.0
    tensors = {
        "embed.weight": np.eye(at.inputs, at.width),
        "embed.bias": bias,
        **unit_tensors(0, at.width, first),
        **group_tensors(1, 0, at.width, d, 1, predict),
        **(unit_tensors(1, at.width, last) if last else {}),
        "readout.weight": readout,
        "readout.bias": np.zeros(len(read)),
    }
    for index, (key, value, heads) in enumerate(groups):
        tensors |= group_tensors(0, index, at.width, key, value, heads)
    return config, tensors


def _step_heads(learner: ReluLearner, at: Coordinates) -> list[tuple[int, int, list[Head]]]:
    """The groups of heads of one step, each with its key and value size."""
    d, rate = learner.features, learner.rate
    share = copies(at.share, d)
    if learner.knots:
        units = [
            Head(
                {**copies(at.w, d), (at.query, d): -knot},
                {**copies(at.x, d), (at.one, d): 1.0},
                copies(at.share, d, factor=bend),
                copies(0, d, at.w, -rate),
            )
            for knot, bend in zip(learner.knots, learner.bends, strict=True)
        ]
        labels = Head({(at.query, 0): 1.0}, {(at.y, 0): 1.0}, share, copies(0, d, at.w, rate))
        groups = [(d + 1, d, units), (1, d, [labels])]
    else:
        both = [
            Head(
                {**copies(at.w, d, factor=sign), (at.query, d): -sign},
                {**copies(at.x, d), (at.y, d): 1.0},
                share,
                copies(0, d, at.w, -sign * rate),
            )
            for sign in (1.0, -1.0)
        ]
        groups = [(d + 1, d, both)]
    if learner.decay:
        own = {(at.query, 0): 1.0}
        groups.append((1, d, [Head(own, own, copies(at.w, d), copies(0, d, at.w, -learner.decay))]))
    return groups


def _soft_threshold(threshold: float, coordinates: range) -> list[Unit]:
    units = []
    for c in coordinates:
        units += erasers([c])
        units += [Unit({c: sign}, {c: sign}, bias=-threshold) for sign in (1.0, -1.0)]
    return units


def relu_points(
    learner: ReluLearner,
    x: Float[np.ndarray, "rows features"],
    y: Float[np.ndarray, " rows"],
    queries: Float[np.ndarray, "queries features"],
) -> Float[np.ndarray, "queries numbers"]:
    """The inputs of the transformer, one for each query."""
    n, d = x.shape
    tokens = np.zeros((len(queries), learner.rows + 1, 2 * d + 2))
    tokens[:, :n, :d] = x
    tokens[:, :n, d : 2 * d] = x / n
    tokens[:, :n, 2 * d] = y
    tokens[:, -1, :d] = queries
    tokens[:, -1, -1] = 1.0
    return tokens.reshape(len(queries), -1)
