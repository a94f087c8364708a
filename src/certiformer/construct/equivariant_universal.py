r"""Without position codes a transformer comes within any epsilon of any equivariant function, everywhere.

What does not depend on the order of the tokens is a function of the token and of the tokens in order of size. One head
with equal scores makes the latter, up to an error that is known exactly; a feed-forward layer does the rest. The error
is a supremum, not a mean as in `expressivity.selective_shifts`, and all weights are small.

Statement
---------
Let F: [0,1]^n -> (R^c)^n commute with permutations of the tokens, and let y(X) = (y_1, ..., y_n) be the estimates of
x_(1) >= ... >= x_(n) that m pooled ramps give (`construct.pooled_order_statistics`).

(a) There is a function g on [0,1]^(1+n) with F_i(X) = g(x_i, x_(1), ..., x_(n)). If |F(X) - F(X')| <= L max |X - X'| in
    every output, g can be chosen with |g(z) - g(z')| <= 3 L max |z - z'|; with L instead of 3 L if the F_i are all
    equal (an invariant function). If F is continuous, so is g.
(b) Let N be a ReLU network with one hidden layer, |N - g| <= e_0 on [0,1]^(1+n), and G a number with |g(x, y) - g(x,
    y')| <= G max |y - y'|. The transformer T_i(X) = N(x_i, y(X)) of this module has no position codes, commutes with
    permutations, and

        sup over X in [0,1]^n of |T_i(X) - F_i(X)|  <=  e_0 + G (1 - 1/n)/m.

(c) Hence for every continuous equivariant F and every epsilon > 0 there is such a transformer within epsilon of F in
    the sup norm: three blocks, one head, m + m n + (units of N) hidden units.

Source
------
Own. Yun et al. 2020 (arXiv 1912.10077), Theorem 2, is the same statement in L^p for continuous functions with compact
support, with depth that grows like a power of 1/epsilon; Zaheer et al. 2017 (arXiv 1703.06114) have the form of pooled
features.

Differs from the source in
--------------------------
The sup norm, fixed depth, one head, weights no larger than m, n and those of N, an explicit bound. Tokens are single
numbers: vectors have no order of size.

Proof
-----
(a) F_1 is symmetric in the other tokens, and F_i(X) = F_1(x_i, the others). Let r be a place of x = x_i among s =
(x_(1), ..., x_(n)); the others in order are t_j = s_j for j < r and s_(j+1) for j >= r, so g(x, s) := F_1(x, t) is
defined where s is in order and x is one of its entries. Let (x', s', r', t') be another such point and eta = max(|x -
x'|, max |s - s'|); let r <= r'. For j < r and j >= r', |t_j - t'_j| <= eta. For r <= j < r', t_j = s_(j+1) lies between
s_r' >= s'_r' - eta = x' - eta and s_r = x, and t'_j = s'_j between x' and s'_r <= s_r + eta = x + eta; so t_j - t'_j
lies between x' - eta - (x + eta) >= -3 eta and x - x' <= eta. Hence g has the constant 3 L on a closed set, and inf
over z' of (g(z') + 3 L max |z - z'|) extends it to the cube with the same constant (McShane). For merely continuous F
the same estimate shows that g is continuous on a compact set, and Tietze's theorem extends it. If F does not depend on
i, g(x, s) := F_1(s) has the constant L on the ordered s, and extends likewise.
(b) All y_j lie in [0, 1], so |N - g| <= e_0 at (x_i, y), and |g(x_i, y) - g(x_i, s)| <= G max_j |y_j - x_(j)| <= G (1 -
1/n)/m by `construct.pooled_order_statistics`. Every layer is the same at all tokens and the head's weights are 1/n, so
T commutes with permutations. (c) N exists by `axioms.korovkin_ridges`, which approximates any continuous
function on a box by one hidden layer; m >= 2 G/epsilon makes the second term small (for continuous g, its modulus of
continuity). QED.

Assumptions
-----------
- exact-ramps: **checked** m is a power of two, so that the stored weights of the ramps are exact (`equivariant`).
- network: **trusted** e_0 and G are the caller's promise. For given formulas `certiformer prove` needs neither: it
  bounds sup |T - F| from the stored weights alone.

Certified
---------
`equivariant_bound` is the exact rational of (b). The tests certify examples by rule *boxes*.

Not certified
-------------
Tokens outside of [0, 1]; tokens of several coordinates; the rounding of a floating-point run.

Example
-------
How far is each number from the largest one?

>>> leader = Ridges(np.array([[-1.0], [1.0], [0.0], [0.0]]), np.zeros(1), *no_units(4, 1))
>>> model = equivariant(leader, tokens=3, latent=16)
>>> model.evaluate([[0.25, 0.5, 1.0], [1.0, 0.25, 0.5]])
array([[0.75, 0.5 , 0.  ],
       [0.  , 0.75, 0.5 ]])
>>> equivariant_bound(3, 16, lipschitz=1)
Fraction(1, 24)

Tests
-----
`tests/theorems/test_equivariant_universal.py`
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from jaxtyping import Float

from certiformer.construct.pooled_order_statistics import error_bound
from certiformer.construct.position_gating import Ridges
from certiformer.errors import BadInput
from certiformer.expressivity.exact_numbers import Real, exact
from certiformer.model import Attention, Block, Config, FeedForward, Heads, Input, Readout, Transformer

THEOREM = {
    "id": "construct.equivariant_universal",
    "title": "Without position codes a transformer comes within any epsilon of any equivariant function, everywhere",
    "kind": "upper bound",
    "sources": (
        "classical",
        "yun2020, Theorem 2",
        "zaheer2017",
    ),
    "verb": "explore",
    "assumptions": (
        ("exact-ramps", "The number of ramps is a power of two: their weights are stored exactly.", "checked"),
        ("network", "The network N is within e_0 of g, and G bounds the slope of g.", "trusted"),
    ),
    "uses": (
        "construct.pooled_order_statistics",
        "construct.position_gating",
        "axioms.korovkin_ridges",
    ),
}

LARGEST = 4096


def equivariant(network: Ridges, tokens: int, latent: int) -> Transformer:
    """T_i(X) = N(x_i, y_1, ..., y_n) for N = `network` with 1 + n inputs, largest number first, and m = `latent` ramps.

    The stream: own number | m ramps | their sums over all tokens | y_1, ..., y_n | what the hidden units of N add.
    """
    _check(network, tokens, latent)
    n, m, outputs = tokens, latent, network.linear.shape[1]
    units = len(network.bias)
    width = 1 + 2 * m + n + outputs
    ramps, sums = slice(1, 1 + m), slice(1 + m, 1 + 2 * m)
    order, out = slice(1 + 2 * m, 1 + 2 * m + n), slice(1 + 2 * m + n, width)
    sort = Block(Attention((Heads(1, 1, m),), scale="unit"), FeedForward(m * n))
    blocks = (Block(None, FeedForward(m)), sort) + ((Block(None, FeedForward(units)),) if units else ())
    config = Config(Input("continuous", n, width=1), width, outputs, Readout("all"), blocks=blocks)
    # Ramp k is relu(m x - k) - relu(m x - k - 1); the last unit would be 0 on [0, 1].
    cut_up, cut_down = np.zeros((width, m)), np.zeros((m, width))
    cut_up[0] = m
    cut_down[:, ramps] = np.eye(m) - np.eye(m, k=-1)
    value, output = np.zeros((width, m)), np.zeros((m, width))
    value[ramps], output[:, sums] = n * np.eye(m), np.eye(m)
    # Unit (k, j) is relu(R_k - j), j = 0..n-1; y_j adds clamp(R_k - j + 1)/m, the difference of two neighbours.
    sort_up, sort_down = np.zeros((width, m * n)), np.zeros((m * n, width))
    sort_up[sums] = np.kron(np.eye(m), np.ones((1, n)))
    sort_down[:, order] = np.tile((np.eye(n) - np.eye(n, k=-1)) / m, (m, 1))
    read = np.zeros((width, outputs))
    read[0], read[order], read[out] = network.linear[0], network.linear[1:], np.eye(outputs)
    head, zeros = "blocks.1.attention.groups.0", np.zeros(width)
    tensors = {
        "embed.weight": np.eye(1, width),
        "embed.bias": zeros,
        "blocks.0.ffn.up": cut_up,
        "blocks.0.ffn.up_bias": -np.arange(m, dtype=float),
        "blocks.0.ffn.down": cut_down,
        "blocks.0.ffn.down_bias": zeros,
        f"{head}.query": np.zeros((1, width, 1)),
        f"{head}.key": np.zeros((1, width, 1)),
        f"{head}.value": value[None],
        f"{head}.output": output[None],
        "blocks.1.ffn.up": sort_up,
        "blocks.1.ffn.up_bias": -np.tile(np.arange(n, dtype=float), m),
        "blocks.1.ffn.down": sort_down,
        "blocks.1.ffn.down_bias": zeros,
        "readout.weight": read,
        "readout.bias": network.constant,
    }
    if units:
        up, down = np.zeros((width, units)), np.zeros((units, width))
        up[0], up[order] = network.weights[:, 0], network.weights[:, 1:].T
        down[:, out] = network.coefficients
        tensors |= {"blocks.2.ffn.up": up, "blocks.2.ffn.up_bias": network.bias}
        tensors |= {"blocks.2.ffn.down": down, "blocks.2.ffn.down_bias": zeros}
    return Transformer(config, tensors)


def equivariant_bound(tokens: int, latent: int, lipschitz: Real, network_error: Real = 0) -> Fraction:
    """e_0 + G (1 - 1/n)/m for e_0 = `network_error` and G = `lipschitz`."""
    worst = max(error_bound(tokens, latent, [int(i == j) for i in range(tokens)]) for j in range(tokens))
    return exact(network_error) + exact(lipschitz) * worst


def no_units(
    inputs: int, outputs: int
) -> tuple[Float[np.ndarray, "0 inputs"], Float[np.ndarray, " 0"], Float[np.ndarray, "0 outputs"]]:
    """The last three fields of `Ridges` for an affine function."""
    return np.zeros((0, inputs)), np.zeros(0), np.zeros((0, outputs))


def _check(network: Ridges, tokens: int, latent: int) -> None:
    if type(tokens) is not int or not 1 <= tokens <= LARGEST:
        raise BadInput(f"the number of tokens is an integer from 1 to {LARGEST:,}, not {tokens!r}")
    if type(latent) is not int or not 1 <= latent <= LARGEST or latent & (latent - 1):
        raise BadInput(f"the number of ramps is a power of two from 1 to {LARGEST:,}, not {latent!r}")
    if network.linear.shape[0] != 1 + tokens or network.weights.shape[1:] != (1 + tokens,):
        raise BadInput(
            f"the network reads the own number and {tokens} in order, {1 + tokens} in all, not {network.linear.shape[0]}"
        )
