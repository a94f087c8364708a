"""Pruning a trained one-layer model of Jiang and Li's form: by magnitude and by rank, part by part, with a certificate.

The parts are QK (query and key), VO (value and output) and FFN (both matrices of the feed-forward layer). Magnitude keeps
the largest entries of a part's tensors. Rank keeps the leading singular directions: of the d x d product W_Q W_K^T, of
W_V W_O, and for FFN of both matrices, each by itself. One head, so these are the products that act.

Pruning QK changes the scores by Delta and nothing else, so the output of token t moves by at most
osc_s(v_s) tanh(osc_s(Delta_ts) / 4), where v_s is the value of token s as the read-out sees it (`output_change`).

How far the outputs of attention can move when its scores do:

Statement. Let p and q be the softmax of two rows of scores that differ by Delta, and osc = max - min. Then the total
variation of p and q is at most tanh(osc(Delta)/4), so for all values f

    | sum_s p_s f_s - sum_s q_s f_s |  <=  osc(f) tanh(osc(Delta)/4),

and behind a function F with Lipschitz constant K_F at most K_F times that.

Proof. q_s = p_s e^(Delta_s) / Z. Let S = {q > p} = {Delta > log Z} and x = p(S). With Delta <= a on S and >= b off it,
a - b <= o = osc(Delta), q(S) <= x e^a / (x e^a + (1 - x) e^b) <= x e^o / (x e^o + 1 - x). The difference to x is
largest at x = 1/(1 + e^(o/2)), where it is (e^(o/2) - 1)/(e^(o/2) + 1) = tanh(o/4). Total variation is q(S) - p(S).
Equality: two tokens with scores (0, o/2) before and (o, o/2) after, or the same for two groups of tokens. Last, p f -
q f = (p - q)(f - c) for every c, and with c the middle of f it is at most 2 TV osc(f)/2. QED

In floating point, the bound is multiplied by 1 + 2^-48 and the smallest number is added: two differences, one tanh
(within 4 units in the last place in every C library we know of) and two products err by less. It speaks of the
real-number softmax of the stored scores.
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
from certiformer.rates.size_models import Tensors

_UP = 1 + 2.0**-48


def output_change(
    values: Float[np.ndarray, "*rows tokens"],
    before: Float[np.ndarray, "*rows tokens"],
    after: Float[np.ndarray, "*rows tokens"],
    lipschitz: float = 1.0,
) -> Float[np.ndarray, "*rows"]:
    """An upper bound on the change of each row's output when its scores go from `before` to `after`.

    A token that is masked is left out of the arrays. NaN and infinity are refused: they prove nothing.

    >>> bound = output_change(np.array([0.0, 1.0]), np.array([0.0, 1.0]), np.array([2.0, 1.0]))
    >>> round(float(bound), 9), round(float(np.tanh(0.5)), 9)
    (0.462117157, 0.462117157)
    """
    arrays = [np.asarray(each, np.float64) for each in (values, before, after)]
    if any(not np.isfinite(each).all() for each in arrays) or not 0 <= lipschitz < np.inf:
        raise BadInput("a certificate needs finite values, scores and Lipschitz constant")
    values, before, after = arrays
    # The rounding of a difference of scores is proportional to the difference, not to the scores.
    change = _oscillation(after - before) * _UP
    return lipschitz * _oscillation(values) * np.tanh(change / 4) * _UP + np.nextafter(0, 1)


def truncated_change(
    values: Float[np.ndarray, "*rows tokens"], left_out: Float[np.ndarray, "*rows tokens"], lipschitz: float = 1.0
) -> Float[np.ndarray, "*rows"]:
    """The same when scores lose the part `left_out`, a tail of the POD, say."""
    return output_change(values, np.zeros_like(left_out), left_out, lipschitz)


def _oscillation(rows: np.ndarray) -> np.ndarray:
    return rows.max(axis=-1) - rows.min(axis=-1)


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
