"""What the canonical form says a layer computes, in NumPy: attention weights, outputs, hidden units, norms.

Written from the docstrings of the form alone, so that a comparison with a running model tests the readers."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import erf, expit

from certiformer.audit.form import Attention, FeedForward, Norm, Weight

ACTIVATIONS = {
    "gelu": lambda x: 0.5 * x * (1 + erf(x / math.sqrt(2))),
    "gelu-tanh": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "relu": lambda x: np.maximum(x, 0),
    "silu": lambda x: x * expit(x),
}


def value(weight: Weight | None) -> np.ndarray | float:
    return 0.0 if weight is None else weight.read()


def by_head(bias: Weight | None) -> np.ndarray | float:
    """A bias (heads, size) beside (heads, tokens, size)."""
    return 0.0 if bias is None else bias.read()[:, None, :]


def normed(norm: Norm | None, x: np.ndarray) -> np.ndarray:
    """Along the last axis."""
    if norm is None:
        return x
    assert norm.epsilon is not None and norm.gain is not None
    if norm.kind == "layer":
        x = x - x.mean(-1, keepdims=True)
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + norm.epsilon) * norm.gain.read() + value(norm.shift)


def weights(
    attention: Attention, x: np.ndarray, seen: np.ndarray | None = None, bias=0.0, share: str = "//"
) -> np.ndarray:
    """The attention weights (heads, tokens, tokens); `share="%"` is the wrong rule for keys that heads share."""
    seen = x if seen is None else seen
    q = np.einsum("hed,td->hte", attention.query.read(), x)
    k = np.einsum("ged,td->gte", attention.key.read(), seen)
    q, k = q + by_head(attention.query_bias), k + by_head(attention.key_bias)
    q, k = normed(attention.query_norm, q), normed(attention.key_norm, k)
    assert attention.scale is not None
    scores = attention.scale * np.einsum("hte,hse->hts", q, k[_groups(len(q), len(k), share)])
    if attention.cap is not None:
        scores = attention.cap * np.tanh(scores / attention.cap)
    scores = scores + bias
    back = np.arange(len(x))[:, None] - np.arange(len(seen))[None, :]
    if attention.causal:
        scores = np.where(back < 0, -np.inf, scores)
    if attention.window is not None:
        scores = np.where(back >= attention.window, -np.inf, scores)
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    return scores / scores.sum(-1, keepdims=True)


def output(attention: Attention, shares: np.ndarray, seen: np.ndarray, share: str = "//") -> np.ndarray:
    """What attention gives back for these weights, (tokens, width); heads side by side where there is no map behind them."""
    v = np.einsum("ged,td->gte", attention.value.read(), seen) + by_head(attention.value_bias)
    mixed = np.einsum("hts,hse->hte", shares, v[_groups(len(shares), len(v), share)])
    if attention.output is None:
        return mixed.transpose(1, 0, 2).reshape(len(seen), -1)
    return np.einsum("hde,hte->td", attention.output.read(), mixed) + value(attention.output_bias)


def hidden(ffn: FeedForward, x: np.ndarray) -> np.ndarray:
    active = ACTIVATIONS[str(ffn.activation)]
    up = x @ ffn.up.read().T + value(ffn.up_bias)
    inner = active(up) if ffn.gate is None else active(x @ ffn.gate.read().T + value(ffn.gate_bias)) * up
    return inner @ ffn.down.read().T + value(ffn.down_bias)


def _groups(heads: int, groups: int, share: str) -> np.ndarray:
    each = np.arange(heads)
    return each // (heads // groups) if share == "//" else each % groups
