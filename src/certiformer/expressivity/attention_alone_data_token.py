r"""Attention alone, read at data tokens, does no better on a 3 x 3 determinant than the output 0.

A query that depends on its own token sees the others through one linear form that depends on that token. Three
dimensions leave room for a mirror that contains both the token and the form.

Statement
---------
Let n, d >= 3. The input is n tokens x_1, ..., x_n in R^d, embedded as E x_j + p_j (E any linear map, p_j any position
code), together with any number of constant registers or sinks. T is any output of one attention layer with any number
of heads and any weights, followed by an affine feed-forward network and any linear read-out of the tokens, with or
without residuals; queries, keys and values may all depend on the tokens. Score biases, masks and value biases are
allowed, and the weights of a head may be softmax, hard or linear. Let f(X) = det(x_1, x_2, x_3) in the first three
coordinates, and let x_1, x_2, x_3 be independent and uniform on the unit sphere of these, everything else any
constants.

(a) E[T h] = 0 for every bounded h with h(XQ) = det(Q) h(X) for all orthogonal Q in the first three coordinates; f is
    such an h, and so is every odd function of f.
(b) Hence (E|T - f|^p)^(1/p) >= (E|f|^p)^(1/p) for every p >= 1, and

    sup |T - f|  >=  1  =  sup |f|

    over tokens of norm 1. The output T = 0 attains all of these: attention alone learns nothing about f.

Source
------
Own. Gumaan 2025 (arXiv 2507.10581), Theorem 1, is what this speaks about: the printed proof lets the feed-forward
network be the identity.

Differs from the source in
--------------------------
The statement that attention with an identity feed-forward network is universal is false in this setting; Theorem 1
itself is not, since its feed-forward network may do part of the work. The first form of this result had the constant
16/(9 pi) = E f^2 / E|f| (`projection_bound`) and read one token; letting p grow, the same argument gives 1, and since
it is linear in T, it holds for every linear read-out of all tokens.

Proof
-----
T is a sum of constants, of terms v.x_j (residuals) and of linear read-outs of heads at one query position each, so it
is enough to treat these; write q for the query position. The score of token j is bilinear in the embedded tokens q and j:

    (alpha + B x_q).x_j + beta_j.x_q + b_j  =  a.x_j + b'_j,          a = alpha + B x_q,   b'_j = beta_j.x_q + b_j,

with alpha and B the same for all j. Registers have scores that depend on x_q only. Fix x_q, in the space of the first
three coordinates. The weights are now functions of the numbers u_j = a.x_j, j != q, and as in
`attention_alone_output_token` the read-out sum_j w_j (v.x_j + c_j) + sum_r w_r c_r is

    g(u)  +  d/dt Phi(((a + t v).x_j), j != q) at t = 0,

where g holds the terms with constants, among them w_q (v.x_q + c_q), and for softmax Phi(u) =
log(sum_{j != q} e^(u_j + b'_j) + const).

(a) Given x_q and any a, choose a unit vector e orthogonal to x_q and to a: there is one in three dimensions. The
reflection R in e leaves x_q and all u_j as they are and, given x_q, preserves the law of the other tokens; and
h(X R) = -h(X), where X R reflects all tokens, x_q included. So E[g(u) h | x_q] = 0. The same holds for Phi and a + t v,
with another mirror for each t, and differentiating at t = 0 gives 0 for the whole head. For q > 3 the token x_q is
constant and the argument is the same. A residual v.x_j is a function of one linear form, and hard weights are a
limit, as there.

(b) As there: E|f|^p = E[(f - T) h] with h = sign(f) |f|^(p-1), Hölder, and p -> infinity. |f| is |cos A| |sin B|,
where A is the angle of x_1 with the normal of the plane of x_2 and x_3, and B the angle between these. |cos A| is
uniform on [0, 1] and B has the density sin(B)/2, independently, so

    E|f|^p = 1/(p+1) * sqrt(pi)/2 * Gamma(p/2 + 1) / Gamma(p/2 + 3/2):        pi/8 for p = 1 and 2/9 for p = 2.

Assumptions
-----------
- one-attention-layer: **checked** one block, not looped, with attention, without LayerNorm, the feed-forward network
  absent or affine, and an input of at least three tokens with at least three coordinates (`reasons_not_covered`).

Certified
---------
`lower_bound` encloses (E|f|^p)^(1/p), and is 1 for p = infinity; it holds for the real-number function of every
transformer for which `reasons_not_covered` is empty.

Not certified
-------------
Nothing about fewer than three tokens or coordinates: for n = d = 2 one head with the query of a data token computes
the determinant to any accuracy (`attention_alone_output_token`, part c). Nothing about embeddings that put different tokens
into different coordinates, rotary codes, LayerNorm, several layers, or feed-forward networks that are not affine.

Example
-------
>>> [bound.str(10, radius=False) for bound in (lower_bound(1), lower_bound(), projection_bound())]
['0.3926990817', '1.000000000', '0.5658842421']
>>> from certiformer.model import Attention, Block, Config, Heads, Input, Readout, Transformer
>>> attention = Attention((Heads(8, 3, 3),), bias=True)
>>> config = Config(Input("continuous", 3, width=3), 6, 1, Readout("mean"), blocks=(Block(attention),), registers=1)
>>> model = Transformer.random(config, seed=0)
>>> reasons_not_covered(model)
[]
>>> found = projection_inequality(model.evaluate, frame_quadrature(12))
>>> abs(found.correlation) < 1e-6, found.sampled_sup > 1
(True, True)

Tests
-----
`tests/theorems/test_attention_alone_data_token.py`
"""

from __future__ import annotations

import math

import numpy as np
from flint import arb
from jaxtyping import Float

from certiformer.errors import BadInput
from certiformer.expressivity.attention_alone_output_token import (
    Quadrature,
    norm_of_target,
    projection_inequality,
    reasons_not_attention_alone,
)
from certiformer.expressivity.exact_numbers import Real
from certiformer.model import Transformer

__all__ = [
    "THEOREM",
    "frame_quadrature",
    "lower_bound",
    "projection_bound",
    "projection_inequality",
    "reasons_not_covered",
    "token_quadrature",
]

THEOREM = {
    "id": "expressivity.attention_alone_data_token",
    "title": "Attention alone, read at data tokens, does no better on a 3 x 3 determinant than the output 0",
    "kind": "impossibility",
    "sources": (
        "classical",
        "gumaan2025, Theorem 1",
    ),
    "verb": "explore",
    "assumptions": (
        (
            "one-attention-layer",
            "One attention layer, no LayerNorm, an affine feed-forward network or none, three tokens of width "
            "three or more.",
            "checked",
        ),
    ),
    "uses": ("expressivity.attention_alone_output_token",),
}


def lower_bound(exponent: Real = math.inf) -> arb:
    """(E|f|^p)^(1/p) for p = `exponent`; the default is the bound 1 on the largest error."""
    return norm_of_target(
        exponent, lambda p: arb.pi().sqrt() / (2 * (p + 1)) * (p / 2 + 1).gamma() / ((p + 3) / 2).gamma()
    )


def projection_bound() -> arb:
    """E f^2 / E|f| = 16/(9 pi), the weaker bound that testing with f itself gives."""
    return lower_bound(2) ** 2 / lower_bound(1)


def reasons_not_covered(model: Transformer) -> list[str]:
    """Why the theorem does not speak of this transformer; empty when its bound holds for every output of it."""
    return reasons_not_attention_alone(model, least=3)


def token_quadrature(points: int) -> Quadrature:
    """Three tokens on the unit sphere, 2 `points`^2 directions each: exact for polynomials of degree < 2 `points`."""
    sphere, weights = _sphere(points)
    chosen = np.stack(np.meshgrid(*[np.arange(len(sphere))] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    return _with_target(sphere[chosen], np.prod(weights[chosen], axis=1))


def frame_quadrature(points: int) -> Quadrature:
    """Triples of orthonormal tokens, 4 `points`^3 of either orientation: the law on which |f| is 1 everywhere."""
    first, weights = _sphere(points)
    turn = np.pi * np.arange(2 * points) / points
    # Two vectors that complete each direction to a frame; the smallest coordinate is the safest to build on.
    axis = np.eye(3)[np.argmin(np.abs(first), axis=1)]
    across = np.cross(first, axis)
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    along = np.cross(first, across)
    second = np.cos(turn)[:, None, None] * across + np.sin(turn)[:, None, None] * along
    first = np.broadcast_to(first, second.shape)
    third = np.cross(first, second)
    frames = [np.stack([first, second, sign * third], axis=2).reshape(-1, 3, 3) for sign in (1.0, -1.0)]
    return _with_target(np.concatenate(frames), np.tile(np.tile(weights, 2 * points), 2) / (4 * points))


def _sphere(points: int) -> tuple[Float[np.ndarray, "directions 3"], Float[np.ndarray, " directions"]]:
    """Gauss-Legendre in the height, equally spaced angles around; the weights sum to 1."""
    if type(points) is not int or points < 1:
        raise BadInput(f"a quadrature has a positive number of points, not {points!r}")
    heights, weights = np.polynomial.legendre.leggauss(points)
    angles = np.pi * np.arange(2 * points) / points
    height, angle = (grid.ravel() for grid in np.meshgrid(heights, angles, indexing="ij"))
    radius = np.sqrt(1 - height**2)
    directions = np.stack([radius * np.cos(angle), radius * np.sin(angle), height], axis=1)
    return directions, np.repeat(weights, 2 * points) / (4 * points)


def _with_target(tokens: Float[np.ndarray, "points 3 3"], weights: Float[np.ndarray, " points"]) -> Quadrature:
    return Quadrature(tokens.reshape(-1, 9), weights, np.linalg.det(tokens))
