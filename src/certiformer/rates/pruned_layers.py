"""Pruning a trained one-layer model of Jiang and Li's form: by magnitude and by rank, part by part, with a certificate.

The parts are QK (query and key), VO (value and output) and FFN (both matrices of the feed-forward layer). Magnitude keeps
the largest entries of a part's tensors. Rank keeps the leading singular directions: of the d x d product W_Q W_K^T, of
W_V W_O, and for FFN of both matrices, each by itself. One head, so these are the products that act.

Pruning QK changes the scores by Delta and nothing else, so the output of token t moves by at most
osc_s(v_s) tanh(osc_s(Delta_ts) / 4), where v_s is the value of token s as the read-out sees it (`rates.certificate`).
"""

from __future__ import annotations

from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from certiformer.errors import BadInput
from certiformer.model.config import Config
from certiformer.model.forward import trace_states
from certiformer.rates.certificate import truncated_change
from certiformer.rates.size_models import Tensors

HEAD, FEED = "blocks.1.attention.groups.0", "blocks.0.ffn"
PARTS = {
    "QK": (f"{HEAD}.query", f"{HEAD}.key"),
    "VO": (f"{HEAD}.value", f"{HEAD}.output"),
    "FFN": (f"{FEED}.up", f"{FEED}.down"),
}
# Both sides of the certificate are float64 sums of some hundred terms of size one: 1e-12 is far above their rounding.
ROUNDING = 1e-12


def by_magnitude(tensors: Mapping[str, np.ndarray], part: str, kept: float) -> Tensors:
    """The weights with only the largest share `kept` of the entries of a part."""
    names = PARTS[part]
    sizes = np.sort(np.abs(np.concatenate([tensors[name].ravel() for name in names])))[::-1]
    count = round(kept * len(sizes))
    threshold = sizes[count - 1] if count else np.inf
    return {**tensors, **{name: np.where(np.abs(tensors[name]) >= threshold, tensors[name], 0.0) for name in names}}


def by_rank(tensors: Mapping[str, np.ndarray], part: str, rank: int) -> Tensors:
    """The weights with the leading `rank` singular directions of a part."""
    first, second = PARTS[part]
    if part == "FFN":
        return {**tensors, first: _leading(tensors[first], rank), second: _leading(tensors[second], rank)}
    left, values, right = np.linalg.svd(product(tensors, part), full_matrices=False)
    size = tensors[first].shape[-1]
    if min(rank, len(values)) > size:
        raise BadInput(f"rank {rank} does not fit into a head of size {size}")
    halves = np.zeros((left.shape[0], size)), np.zeros((size, right.shape[1]))
    keep = min(rank, len(values), size)
    halves[0][:, :keep] = left[:, :keep] * np.sqrt(values[:keep])
    halves[1][:keep] = np.sqrt(values[:keep])[:, None] * right[:keep]
    return {**tensors, first: halves[0][None], second: (halves[1].T if part == "QK" else halves[1])[None]}


def product(tensors: Mapping[str, np.ndarray], part: str) -> Float[np.ndarray, "width width"]:
    """W_Q W_K^T or W_V W_O of the one head."""
    first, second = (tensors[name] for name in PARTS[part])
    if len(first) != 1:
        raise BadInput(f"pruning by rank is for one head, not {len(first)}")
    return first[0] @ (second[0].T if part == "QK" else second[0])


def singular_values(tensors: Mapping[str, np.ndarray], part: str) -> Float[np.ndarray, " values"]:
    """Of the product of a part; for FFN those of the matrix that reads the tokens."""
    matrix = tensors[PARTS[part][0]] if part == "FFN" else product(tensors, part)
    return np.linalg.svd(matrix, compute_uv=False)


def _leading(matrix: np.ndarray, rank: int) -> np.ndarray:
    left, values, right = np.linalg.svd(matrix, full_matrices=False)
    return (left[:, :rank] * values[:rank]) @ right[:rank]


def score_bound(
    config: Config,
    tensors: Mapping[str, np.ndarray],
    pruned: Mapping[str, np.ndarray],
    x: Float[np.ndarray, "points tokens"],
) -> Float[np.ndarray, "points tokens"]:
    """The certificate for a pruned QK at every point and token: how far the output can have moved."""
    with jax.enable_x64(True):
        weights = {name: jnp.asarray(tensor, jnp.float64) for name, tensor in tensors.items()}
        inputs = jnp.asarray(x.reshape(len(x), config.tokens, -1), jnp.float64)
        hidden = np.asarray(jax.vmap(lambda one: trace_states(config, weights, one)[1])(inputs))
    change = np.einsum("pti,ij,psj->pts", hidden, product(pruned, "QK") - product(tensors, "QK"), hidden)
    values = hidden @ (product(tensors, "VO") @ tensors["readout.weight"])[:, 0]
    return truncated_change(values[:, None, :], change)
