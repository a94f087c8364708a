r"""Attention alone, read at an output token, does no better on a 2 x 2 determinant than the output 0.

A head whose query does not depend on the input sees every token through one and the same linear form. Mirror images
look alike through it, and the determinant of two tokens changes sign in a mirror.

Statement
---------
Let n, d >= 2. The input is n tokens x_1, ..., x_n in R^d, embedded as E x_j + p_j (E any linear map, p_j any position
code), together with any number of constant registers or sinks. T is any output of one attention layer with any number
of heads and any weights, followed by an affine feed-forward network and a linear read-out, with or without residuals,
in which *no query depends on the tokens* (an output token). Score biases, masks and value biases are allowed, and the
weights of a head may be softmax, hard or linear. Let f(X) = x_11 x_22 - x_12 x_21, and let x_1, x_2 be independent and
uniform on the unit circle of the first two coordinates, everything else any constants (these only change the b_j and
c_j below).

(a) E[T h] = 0 for every bounded h with h(XQ) = det(Q) h(X) for all orthogonal Q in the first two coordinates; f is
    such an h, and so is every odd function of f.
(b) Hence (E|T - f|^p)^(1/p) >= (E|f|^p)^(1/p) for every p >= 1, and

    sup |T - f|  >=  1  =  sup |f|

    over tokens of norm 1. The output T = 0 attains all of these: attention alone learns nothing about f.
(c) The condition on the query matters: with the query of a data token and n = d = 2 a single head has error at most
    s^2/12 for every s > 0 (`content_query_model`), without feed-forward network.

Source
------
Own. Gumaan 2025 (arXiv 2507.10581), Theorem 1, is what this speaks about: the printed proof lets the feed-forward
network be the identity and mentions the output token as one of its ways to produce the output.

Differs from the source in
--------------------------
The statement that attention with an identity feed-forward network is universal is false in this setting; Theorem 1
itself is not, since its feed-forward network may do part of the work. The first form of this result had the constant
pi/4 = E f^2 / E|f|, which is what (a) gives for h = f (`projection_bound`); letting p grow, the same argument gives 1.

Proof
-----
Fix a head. Its query is a constant, so token j has the score u_j + b_j with u_j = a.x_j: the *same* a in R^2 for
all tokens, because E and the key matrix are shared, while b_j may depend on j. Registers have constant scores. A linear
read-out of the head is sum_j w_j (v.x_j + c_j) + sum_r w_r c_r, with weights that are functions of u = X a only. For
softmax let Phi(u) = log(sum_j e^(u_j + b_j) + const), the sum over the tokens that the mask allows; then w_j is
dPhi/du_j. For linear weights Phi(u) = sum_j (u_j + b_j)^2/2. So

    read-out of the head  =  g(X a)  +  d/dt Phi(X (a + t v)) at t = 0,     g(u) = sum_j w_j c_j + sum_r w_r c_r.

Residuals and affine feed-forward networks only add terms v.x_j + const, which are functions of X v.

(a) Let g be any continuous function and a in R^2. Choose a unit vector e orthogonal to a and let R be the reflection
x -> x - 2 (e.x) e. R preserves the law of the tokens, X R a = X a, and h(X R) = -h(X). Hence E[g(Xa) h] = -E[g(Xa) h] =
0. This holds for Phi and a + t v for all t as well; differentiating at t = 0 (everything is smooth on a compact set)
gives 0 for the second term. Hard weights are the limit of softmax weights with scores multiplied by a growing factor,
ties included, and dominated convergence carries the equality over.

(b) With h = sign(f) |f|^(p-1), (a) and Hölder's inequality give

    E|f|^p = E[f h] = E[(f - T) h] <= (E|f - T|^p)^(1/p) (E|f|^p)^(1 - 1/p).

The supremum is at least (E|f - T|^p)^(1/p) >= (E|f|^p)^(1/p), which tends to sup |f| = 1. Since f is the sine of the
angle between the tokens, E|f|^p = Gamma((p+1)/2) / (sqrt(pi) Gamma(p/2 + 1)): 2/pi for p = 1 and 1/2 for p = 2.

(c) Query x_1 with key J x_j, J a quarter turn, scaled by s: token 1 has the score 0 and token 2 the score s f. Values 0
and 1 by the position code give the weight 1/(1 + e^(-s f)); T = (4/s)(that - 1/2) = (2/s) tanh(s f/2), and
|tanh(y) - y| <= |y|^3/3 with y = s f/2 and |f| <= 1.

Assumptions
-----------
- one-attention-layer: **checked** one block, not looped, with attention, without LayerNorm, the feed-forward network
  absent or affine, and an input of at least two tokens with at least two coordinates (`reasons_not_covered`).
- constant-query: **checked** the query weights are 0 on every coordinate of the stream that the embedding writes to
  (`reasons_not_covered`).

Certified
---------
`lower_bound` encloses (E|f|^p)^(1/p), and is 1 for p = infinity; it holds for the real-number function of every
transformer for which `reasons_not_covered` is empty. `projection_inequality` is an inequality between finite sums that
holds for every function, up to rounding.

Not certified
-------------
Nothing about queries that depend on the tokens (see `attention_alone_data_token`), embeddings that put different tokens
into different coordinates, rotary codes (a would depend on j), LayerNorm, or feed-forward networks that are not affine.
For d = 1, and for slot embeddings, attention alone with an output token is dense in the continuous functions.

Example
-------
>>> [bound.str(10, radius=False) for bound in (lower_bound(1), lower_bound(), projection_bound())]
['0.6366197724', '1.000000000', '0.7853981634']
>>> content = content_query_model(0.5)
>>> reasons_not_covered(content)
['a query depends on the tokens (head group 0)']
>>> found = projection_inequality(content.evaluate, frame_quadrature(64))
>>> print(f"{found.sampled_sup:.4f} >= {found.implied:.4f}")
0.0203 >= 0.0203

Tests
-----
`tests/theorems/test_attention_alone_output_token.py`
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from flint import arb
from jaxtyping import Float

from certiformer.errors import BadInput
from certiformer.expressivity.exact_numbers import Real, ball
from certiformer.model import Attention, Block, Code, Config, Heads, Input, Readout, Transformer

THEOREM = {
    "id": "expressivity.attention_alone_output_token",
    "title": "Attention alone, read at an output token, does no better on a 2 x 2 determinant than the output 0",
    "kind": "impossibility",
    "sources": (
        "classical",
        "gumaan2025, Theorem 1",
    ),
    "verb": "explore",
    "assumptions": (
        (
            "one-attention-layer",
            "One attention layer, no LayerNorm, an affine feed-forward network or none, two tokens of width two or more.",
            "checked",
        ),
        ("constant-query", "No query depends on the tokens.", "checked"),
    ),
    "uses": (),
}

Evaluate = Callable[[Float[np.ndarray, "points size"]], Float[np.ndarray, "points outputs"]]
"""A function of many inputs at once, a row each, such as `Transformer.evaluate`; its first output is looked at."""


class Quadrature(NamedTuple):
    """Inputs as rows, positive weights that sum to 1, and the target at each input."""

    rows: Float[np.ndarray, "points size"]
    weights: Float[np.ndarray, " points"]
    target: Float[np.ndarray, " points"]


class Projection(NamedTuple):
    """What `projection_inequality` found: E[T f], the bound on the largest error that follows, and that error."""

    correlation: float
    implied: float
    sampled_sup: float


def lower_bound(exponent: Real = math.inf) -> arb:
    """(E|f|^p)^(1/p) for p = `exponent`; the default is the bound 1 on the largest error."""
    return norm_of_target(exponent, lambda p: ((p + 1) / 2).gamma() / (arb.pi().sqrt() * (p / 2 + 1).gamma()))


def norm_of_target(exponent: Real, moment: Callable[[arb], arb]) -> arb:
    """(E|f|^p)^(1/p) from the formula for E|f|^p, and 1 = sup |f| for an infinite exponent."""
    if exponent == math.inf:
        return arb(1)
    if not exponent >= 1:
        raise BadInput(f"an exponent is a number from 1 to infinity, not {exponent!r}")
    p = ball(exponent)
    return moment(p) ** (1 / p)


def projection_bound() -> arb:
    """E f^2 / E|f| = pi/4, the weaker bound that testing with f itself gives."""
    return lower_bound(2) ** 2 / lower_bound(1)


def reasons_not_covered(model: Transformer) -> list[str]:
    """Why the theorem does not speak of this transformer; empty when its bound holds for every output of it."""
    embedding = np.asarray(model.tensors.get("embed.weight"))
    reasons = reasons_not_attention_alone(model, least=2)
    block = model.config.blocks[0] if model.config.blocks else Block()
    groups = block.attention.heads if block.attention is not None else ()
    # Sufficient and exact, where testing the rounded product for 0 would be neither.
    content = np.any(embedding != 0, axis=0)
    for index, _ in enumerate(groups):
        if np.any(np.asarray(model.tensors[f"blocks.0.attention.groups.{index}.query"])[:, content, :] != 0):
            reasons.append(f"a query depends on the tokens (head group {index})")
    return reasons


def reasons_not_attention_alone(model: Transformer, least: int) -> list[str]:
    """Why this is not one attention layer with affine surroundings on at least `least` tokens of that width."""
    config = model.config
    block = config.blocks[0] if config.blocks else Block()
    width = config.input.width or 0
    faults = {
        "the input is not continuous": config.input.kind != "continuous",
        f"it takes fewer than {least} tokens of width {least}": min(config.tokens, width) < least,
        "it does not have exactly one block, applied once": len(config.blocks) != 1 or config.loops != 1,
        "it has no attention": block.attention is None,
        "it has a normalisation": block.norm is not None,
        "its feed-forward network is not affine": block.ffn is not None and block.ffn.kind != "identity",
    }
    return [reason for reason, holds in faults.items() if holds]


def token_quadrature(points: int) -> Quadrature:
    """Two tokens on the unit circle, `points` equally spaced angles each: the uniform law."""
    first, second = np.meshgrid(*[_angles(points)] * 2, indexing="ij")
    return _on_circles(first.ravel(), second.ravel())


def frame_quadrature(points: int) -> Quadrature:
    """Pairs of orthogonal tokens, `points` of either orientation: the law on which |f| is 1 everywhere."""
    angles = _angles(points)
    return _on_circles(np.tile(angles, 2), np.concatenate([angles + np.pi / 2, angles - np.pi / 2]))


def projection_inequality(evaluate: Evaluate, quadrature: Quadrature) -> Projection:
    """max |T - f| >= (E f^2 - E[T f]) / E|f| over the points of a quadrature.

    True of every function T. When the theorem speaks of T, E[T f] is 0 up to the error of the quadrature, and the right
    side is pi/4 for `token_quadrature` and 1 for `frame_quadrature`.
    """
    rows, weights, target = quadrature
    values = np.asarray(evaluate(rows))[:, 0]
    correlation = float(weights @ (values * target))
    implied = (float(weights @ target**2) - correlation) / float(weights @ np.abs(target))
    return Projection(correlation, implied, float(np.max(np.abs(values - target))))


def _angles(points: int) -> Float[np.ndarray, " points"]:
    if type(points) is not int or points < 1:
        raise BadInput(f"a quadrature has a positive number of points, not {points!r}")
    return 2 * np.pi * np.arange(points) / points


def _on_circles(first: Float[np.ndarray, " points"], second: Float[np.ndarray, " points"]) -> Quadrature:
    rows = np.stack([np.cos(first), np.sin(first), np.cos(second), np.sin(second)], axis=1)
    return Quadrature(rows, np.full(len(rows), 1.0 / len(rows)), np.sin(second - first))


def content_query_model(scale: float) -> Transformer:
    """The head of (c): the query of token 1 turns the determinant into a score; error at most `scale`^2/12."""
    if not 0 < scale < math.inf:
        raise BadInput(f"a scale is a positive number, not {scale!r}")
    # Coordinates of the stream: the two of a token, its one-hot position code, and the output.
    attention = Attention((Heads(1, 2, 1),), scale="unit")
    source = Input("continuous", 2, width=2)
    config = Config(source, 5, 1, Readout("token", 0), blocks=(Block(attention),), code=Code("one-hot", offset=2))
    content, output = np.eye(2, 5), np.eye(5)[4]
    head = "blocks.0.attention.groups.0"
    tensors = {
        "embed.weight": content,
        "embed.bias": np.zeros(5),
        f"{head}.query": scale * content.T[None],
        f"{head}.key": (content.T @ np.array([[0.0, -1.0], [1.0, 0.0]]))[None],
        f"{head}.value": np.eye(5)[3].reshape(1, 5, 1),
        f"{head}.output": (4.0 / scale) * output.reshape(1, 1, 5),
        "readout.weight": output[:, None],
        "readout.bias": np.array([-2.0 / scale]),
    }
    return Transformer(config, tensors)
