"""Heads that weigh points as physics does, without training; and what no softmax head can do.

Scores are written as coupling(t, s) up to a function of t, which a softmax does not see.

* `centre`: coupling ln m_s. exp(ln m_s) / sum exp(ln m) = m_s / sum m: exact, rank 1.
* `nearest`: coupling -beta |p_t - p_s|^2 = 2 beta <p_t, p_s> - beta |p_s|^2 + (function of t): rank d + 1 = 3. The second
  set is chosen by adding (2 beta + MARGIN) * mark to the last key, in the same rank: |p_t - p_s|^2 <= 2. The weights
  become 0 and 1 as beta grows. The gap of the two smallest squared distances has a density that is positive at 0, and
  the error is of order 1 where beta * gap <= 1, so both mean errors fall like 1 / beta.
* `pull`: coupling ln m_s + kappa(p_t, p_s), kappa(u, v) = -(3/2) ln(|u - v|^2 + SOFTENING^2). On a circle of radius r,
  kappa is a function of the angle between u and v with Fourier coefficients (3/2) q^k / k, q + 1/q = 2 + SOFTENING^2/r^2
  (from ln(1 - 2 q cos + q^2) = -2 sum_k q^k cos(k .) / k). None is zero: kappa has infinite rank, and NO head with a finite
  key size has these weights exactly, whatever feed-forward layers make its queries and keys. The best ones of rank m + 1
  keep ln m_s, the mean of kappa over u, and m eigenfunctions of the doubly centred kernel.
* `acceleration` = Z_t * pull, and a softmax divides by Z_t. Feed every point twice: each softmax head of a model without
  positions, registers and masks averages the same values with the same shares, so the output at each point is the same,
  at any depth; but every acceleration doubles (a point and its copy do not attract each other). So no such model computes
  accelerations for every number of points. One register with score ln c and value 0 repairs it: its share
  w_0 = c / (c + Z_t) gives Z_t = c (1/w_0 - 1), one division away from the acceleration.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from certiformer.model.config import Attention, Block, Code, Config, FeedForward, Heads, Input, Readout
from certiformer.model.transformer import Transformer
from certiformer.rates.point_masses import SOFTENING

MARGIN = 50.0  # exp(-50) = 2e-22: the share of a point of the wrong set is below rounding
GRID = 24  # nodes per axis of the midpoint rule behind the eigenfunctions
LARGEST_RANK = 24  # the 24th eigenvalue is 1 percent of the first

Tokens = Float[np.ndarray, "samples points features"]


def trained_config(points: int, key: int, width: int, hidden: int, positions: bool) -> Config:
    """Feed-forward, one head, feed-forward: the model of Jiang & Li with residuals, and a stored code if `positions`."""
    attention = Attention((Heads(1, key, width),), bias=True, scale="unit")
    blocks = (Block(ffn=FeedForward(hidden, "relu")), Block(attention, FeedForward(hidden, "relu")))
    code = Code("table") if positions else Code()
    return Config(Input("continuous", points, 3), width, 2, Readout("all"), blocks=blocks, code=code, dtype="float32")


def _one_head(points: int, features: int, query: np.ndarray, key: np.ndarray, start: np.ndarray, minus: float):
    """Features -> sum_s softmax(q_t . k_s) p_s - minus * p_t. `query`, `key`: features to the key size; `start`: the bias
    of the query. The stream holds the features, then the two coordinates that attention writes."""
    width, size = features + 2, query.shape[1]
    config = Config(
        Input("continuous", points, features),
        width,
        2,
        Readout("all"),
        blocks=(Block(Attention((Heads(1, size, 2),), bias=True, scale="unit")),),
    )
    chosen, written = np.eye(width)[:, :2], np.eye(width)[:, features:]
    pad = np.zeros((2, size))
    head = "blocks.0.attention.groups.0"
    tensors = {
        "embed.weight": np.eye(features, width),
        "embed.bias": np.zeros(width),
        f"{head}.query": np.concatenate([query, pad])[None],
        f"{head}.key": np.concatenate([key, pad])[None],
        f"{head}.query_bias": start[None],
        f"{head}.key_bias": np.zeros((1, size)),
        f"{head}.value": chosen[None],
        f"{head}.value_bias": np.zeros((1, 2)),
        f"{head}.output": written.T[None],
        "blocks.0.attention.output_bias": np.zeros(width),
        "readout.weight": written - minus * chosen,
        "readout.bias": np.zeros(2),
    }
    return Transformer(config, tensors)


def centre_model(points: int) -> Transformer:
    """Tokens (x, y, ln m): the centre of gravity at every point, exactly, with key size 1."""
    return _one_head(points, 3, np.zeros((3, 1)), np.eye(3)[:, 2:], np.ones(1), 0.0)


def nearest_model(points: int, beta: float) -> Transformer:
    """Tokens (x, y, mark, x^2 + y^2): for points of the first set, nearly the nearest one of the second; key size 3."""
    query, key = np.zeros((4, 3)), np.zeros((4, 3))
    query[0, 0] = query[1, 1] = 1.0
    key[0, 0] = key[1, 1] = 2.0 * beta
    key[2, 2], key[3, 2] = 2.0 * beta + MARGIN, -beta
    return _one_head(points, 4, query, key, np.array([0.0, 0.0, 1.0]), 0.0)


def nearest_tokens(tokens: Tokens) -> Tokens:
    """The tokens of `nearest_model`: |p|^2 is given, since no ReLU layer squares exactly."""
    return np.concatenate([tokens, np.sum(tokens[..., :2] ** 2, axis=-1, keepdims=True)], axis=-1)


def kappa(u: Float[np.ndarray, "*a 2"], v: Float[np.ndarray, "*a 2"]) -> Float[np.ndarray, "*a"]:
    """-(3/2) ln(|u - v|^2 + SOFTENING^2)."""
    return -1.5 * np.log(np.sum((u - v) ** 2, axis=-1) + SOFTENING**2)


def circle_coefficient(k: int, radius: float) -> float:
    """The k-th complex Fourier coefficient of kappa on a circle, (3/2) q^k / k; positive for every k >= 1."""
    half = 1.0 + SOFTENING**2 / (2.0 * radius**2)
    return 1.5 * (half - np.sqrt(half**2 - 1.0)) ** k / k


@dataclass(frozen=True)
class PullFeatures:
    """`values`: eigenvalues of the doubly centred kappa on the square (uniform measure), largest modulus first.
    `lift`: tokens (x, y, ln m) to (x, y, ln m, mean of kappa, eigenfunctions 1 .. LARGEST_RANK)."""

    values: Float[np.ndarray, " ranks"]
    lift: Callable[[Tokens], Tokens]


def pull_features() -> PullFeatures:
    """Nystroem: eigenvectors on midpoints of a grid, extended by the kernel itself."""
    axis = (np.arange(GRID) + 0.5) / GRID
    nodes = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    kernel = kappa(nodes[:, None], nodes[None])
    means = kernel.mean(axis=1)
    centred = kernel - means[:, None] - means[None] + means.mean()
    values, vectors = np.linalg.eigh(centred / len(nodes))
    order = np.argsort(-np.abs(values))[:LARGEST_RANK]
    values, functions = values[order], vectors[:, order] * np.sqrt(len(nodes))

    def lift(tokens: Tokens) -> Tokens:
        rows = kappa(tokens[..., None, :2], nodes)
        mean = rows.mean(axis=-1, keepdims=True)
        extended = (rows - mean - means + means.mean()) @ functions / (len(nodes) * values)
        return np.concatenate([tokens, mean, extended], axis=-1)

    return PullFeatures(values, lift)


def pull_model(points: int, features: PullFeatures, rank: int) -> Transformer:
    """The pull with `rank` eigenfunctions; key size `rank` + 1."""
    size = 4 + len(features.values)
    query, key = np.zeros((size, rank + 1)), np.zeros((size, rank + 1))
    key[2, 0] = key[3, 0] = 1.0
    chosen = np.arange(rank)
    query[4 + chosen, 1 + chosen] = features.values[:rank]
    key[4 + chosen, 1 + chosen] = 1.0
    return _one_head(points, size, query, key, np.eye(rank + 1)[0], 1.0)


def acceleration_by_register(tokens: Float[np.ndarray, "points 3"], c: float = 1.0) -> Float[np.ndarray, "points 2"]:
    """What one head with a register of score ln c sees, and the division that makes accelerations of it."""
    at = tokens[:, :2]
    scores = tokens[None, :, 2] + kappa(at[:, None], at[None])
    scores = np.concatenate([np.full((len(at), 1), np.log(c)), scores], axis=1)
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    register = shares[:, :1]
    return (shares[:, 1:] @ at - (1.0 - register) * at) * c / register
