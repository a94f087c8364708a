"""One layer of linear attention is learned from examples in polynomial time, and the examples can prove that it is unique.

Statement
    Let examples (Z_i, o_i) be given, Z_i a matrix of tokens (rows) with d coordinates, o_i a vector, and let heads
    mean the function Z -> sum_h (sum_j (z_j . Q_h z) z_j) V_h, where z is the last token. (1) Some d^2 heads minimise
    the sum of squared errors over all numbers of heads; they are found by linear least squares with d^2 (d + 1) / 2
    unknowns for each output, and a singular value decomposition. (2) If the matrix of cubic features below has full
    column rank, then all heads (of any number) that minimise the error compute the same function on every Z. The rank
    is certified in exact arithmetic.

Source
    Yau, Akyürek, Mao, Tenenbaum, Jegelka, Andreas 2024 (yau2024).

Differs from the source in
    Features are taken modulo the symmetry of the Gram matrix, so that the rank can be full; it is proved modulo a prime
    from the exact binary values of the examples, instead of estimated in floating point. `proved_gap` bounds the least
    eigenvalue of the second moments from below in ball arithmetic, which says how well the function is determined.

Proof
    With G = sum_j z_j z_j^T, output o of the heads is sum_(j,k,l) T[o,j,k,l] G[j,k] z[l], where T[o,j,k,l] = sum_h
    V_h[j,o] Q_h[k,l]; this is linear in the features G[j,k] z[l]. G is symmetric, so only T[o,j,k,l] + T[o,k,j,l]
    matters: features with j <= k suffice, and there are d^2 (d + 1) / 2. Conversely any T is a sum of at most d^2
    products, by the singular value decomposition of the matrix with rows (o, j) and columns (k, l), whose d^2 columns
    bound its rank. So heads and coefficients are the same class of functions, and its least-squares problem is
    linear: (1). Where features have full column rank, the minimising coefficients are unique, and they determine the
    function: (2). The rank of an integer matrix modulo a prime is at most its rank, and powers of two are units: full
    rank modulo a prime proves full rank. QED.

Assumptions
    rank (**checked**): the rank modulo a prime, from the examples as they are stored.
    minimum (**trusted**): least squares and singular values are those of float64; `learn` says what error is left.

Certified
    That the examples determine the function, and how well (`proved_gap`).

Not certified
    That examples come from linear attention; that the heads found are few: d^2 are allowed.

Example
    >>> rng = np.random.default_rng(0)
    >>> tokens, outputs = rng.normal(size=(60, 5, 3)), rng.normal(size=(60, 2))
    >>> identifiable(tokens), identifiable(tokens[:17])
    (True, False)

Tests
    tests/theorems/test_learn_linear_attention.py
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import frexp

import numpy as np
from flint import arb, nmod_mat
from jaxtyping import Float

from certiformer.errors import BadInput
from certiformer.kernel.balls import working_precision
from certiformer.model.config import Attention, Block, Config, Heads, Input, Readout

THEOREM = {
    "id": "compiler.incontext.learn_linear_attention",
    "title": "A layer of linear attention is learned by least squares, and examples can prove that it is unique.",
    "kind": "exact",
    "sources": ("yau2024",),
    "verb": "compile",
    "assumptions": (
        ("rank", "cubic features have full column rank modulo a prime", "checked"),
        ("minimum", "least squares and singular values are those of float64", "trusted"),
    ),
    "uses": (),
}

PRIME = 2**61 - 1
Tokens = Float[np.ndarray, "examples tokens width"]
Outputs = Float[np.ndarray, "examples outputs"]


@dataclass(frozen=True)
class Learned:
    """The transformer of the learned heads, how many there are, and the largest error that is left on the examples."""

    config: Config
    tensors: dict[str, np.ndarray]
    heads: int
    residual: float


def cubic_features(tokens: Tokens) -> Float[np.ndarray, "examples features"]:
    """G[j,k] z[l] for j <= k, l fastest."""
    gram, last = np.einsum("nti,ntj->nij", tokens, tokens), tokens[:, -1]
    pairs = _pairs(tokens.shape[2])
    return np.stack([gram[:, j, k, None] * last for j, k in pairs], axis=1).reshape(len(tokens), -1)


def learn(tokens: Tokens, outputs: Outputs, least: float = 1e-10) -> Learned:
    """Heads that minimise the sum of squared errors; singular values below `least` times the largest make no head.

    The transformer takes all tokens and gives the outputs at the last one.
    """
    tokens, outputs = _checked(tokens), np.asarray(outputs, float)
    if outputs.ndim != 2 or len(outputs) != len(tokens) or not np.isfinite(outputs).all():
        raise BadInput(f"every example has one vector of finite outputs; there are {len(tokens)} and {outputs.shape}")
    features, width, size = cubic_features(tokens), tokens.shape[2], outputs.shape[1]
    solution = np.linalg.lstsq(features, outputs, rcond=None)[0]
    residual = float(np.abs(features @ solution - outputs).max())
    whole = np.zeros((size, width, width, width))
    for (j, k), block in zip(_pairs(width), solution.reshape(-1, width, size), strict=True):
        # Both orders get half, so that j = k gets all.
        whole[:, j, k] += block.T / 2
        whole[:, k, j] += block.T / 2
    left, values, right = np.linalg.svd(whole.reshape(size * width, width * width), full_matrices=False)
    kept = max(1, int(np.count_nonzero(values > least * values[0])))
    value = (left * values)[:, :kept].T.reshape(kept, size, width)
    config, tensors = heads_model(tokens.shape[1], value, right[:kept].reshape(kept, width, width))
    return Learned(config, tensors, kept, residual)


def heads_model(
    count: int, value: Float[np.ndarray, "heads outputs width"], query: Float[np.ndarray, "heads width width"]
) -> tuple[Config, dict[str, np.ndarray]]:
    """The one model with the heads sum_j (z_j . Q z) V z_j at the last of `count` tokens."""
    heads, size, width = value.shape
    stream = width + size  # outputs are written beside the token
    group = "blocks.0.attention.groups.0"
    ones = np.broadcast_to(np.eye(stream, width), (heads, stream, width)).copy()
    asked, output = np.zeros((heads, stream, width)), np.zeros((heads, width, stream))
    asked[:, :width], output[:, :, width:] = query.transpose(0, 2, 1), value.transpose(0, 2, 1)
    read = np.zeros((stream, size))
    read[width:] = np.eye(size)
    block = Block(Attention((Heads(heads, width, width),), kind="linear", scale="unit", residual=False))
    config = Config(
        Input("continuous", tokens=count, width=width), stream, size, Readout("token", count - 1), blocks=(block,)
    )
    return config, {
        "embed.weight": np.eye(width, stream), "embed.bias": np.zeros(stream),
        f"{group}.query": asked, f"{group}.key": ones, f"{group}.value": ones, f"{group}.output": output,
        "readout.weight": read, "readout.bias": np.zeros(size),
    }  # fmt: skip


def identifiable(tokens: Tokens) -> bool:
    """Whether the cubic features of the examples are proved to have full column rank (exactly, modulo a prime)."""
    tokens = _checked(tokens)
    residues = [[[_residue(x) for x in token] for token in example] for example in tokens.tolist()]
    pairs, rows = _pairs(tokens.shape[2]), []
    for example in residues:
        gram = [sum(token[j] * token[k] for token in example) for j, k in pairs]
        rows.append([entry * x % PRIME for entry in gram for x in example[-1]])
    return nmod_mat(len(rows), len(rows[0]), [x for row in rows for x in row], PRIME).rank() == len(rows[0])


def proved_gap(tokens: Tokens) -> float:
    """A lower bound of the least eigenvalue of the mean of f f^T over the features f, or 0 where none was proved.

    If the mean minus c times the identity has positive pivots in ball arithmetic, its least eigenvalue is above c.
    Balls hold the exact features of the stored examples.
    """
    working_precision()
    tokens = _checked(tokens)
    rows = [_exact_features(example) for example in tokens.tolist()]
    size = len(rows[0])
    mean = [[sum((r[i] * r[j] for r in rows), arb(0)) / len(rows) for j in range(size)] for i in range(size)]
    features = cubic_features(tokens)
    guess = float(np.linalg.eigvalsh(features.T @ features / len(tokens))[0])
    while guess > 1e-300:
        guess *= 0.9
        if _positive([[mean[i][j] - (guess if i == j else 0) for j in range(size)] for i in range(size)]):
            return guess
        guess *= 0.1
    return 0.0


def _positive(matrix: list[list[arb]]) -> bool:
    """Whether Gauss elimination certainly meets positive pivots only."""
    size = len(matrix)
    for k in range(size):
        if not matrix[k][k] > 0:
            return False
        for i in range(k + 1, size):
            factor = matrix[i][k] / matrix[k][k]
            for j in range(k + 1, size):
                matrix[i][j] = matrix[i][j] - factor * matrix[k][j]
    return True


def _exact_features(example: list[list[float]]) -> list[arb]:
    exact = [[arb(x) for x in token] for token in example]
    gram = [sum((token[j] * token[k] for token in exact), arb(0)) for j, k in _pairs(len(example[0]))]
    return [entry * x for entry in gram for x in exact[-1]]


def _residue(value: float) -> int:
    """A float modulo the prime: an integer times a power of two."""
    mantissa, exponent = frexp(value)
    return int(mantissa * 2**53) * pow(2, exponent - 53, PRIME) % PRIME


def _pairs(width: int) -> list[tuple[int, int]]:
    return list(combinations_with_replacement(range(width), 2))


def _checked(tokens: Tokens) -> Tokens:
    tokens = np.asarray(tokens, float)
    if tokens.ndim != 3 or 0 in tokens.shape or not np.isfinite(tokens).all():
        raise BadInput(f"examples are finite numbers of shape (examples, tokens, width), not {tokens.shape}")
    return tokens
