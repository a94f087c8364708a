"""Attention with fixed weights brings every number of the sequence to every token, exactly.

Statement
    Let n tokens x_1, ..., x_n of width d carry one-hot codes e_1, ..., e_n, beside m - n tokens with value and key
    zero. Take n heads with key size 1, constant query lambda, key <e_h, code> and value x. Then head h gives, at every
    token that asks, the same mixture a x_h + c (x_1 + ... + x_n) with

        a = (e^lambda - 1) / (e^lambda + m - 1),   c = 1 / (e^lambda + m - 1).

    A = a I + c 11^T is invertible for every lambda > 0 with A^{-1} = (I - c/(a + n c) 11^T) / a, so output weights
    A^{-1} write x_1, ..., x_n themselves. For lambda = log(n + 1): a = n/(n + m), A^{-1} = (I - 11^T/2n) (n + m)/n, and
    no output weight exceeds 2. Hence every affine map of the whole sequence is one attention layer with a linear
    read-out.

Source
    The mixture of vaswani2017's attention at constant scores; the lemma and its inverse are derived here.

Differs from the source in
    Attention is usually sharpened towards a one-hot choice of token, which is never exact. Here the softmax stays soft (the
    condition number of A is at most 2) and the mixture is undone by the output weights.

Proof
    The score of token j at head h is lambda [j = h], whatever x is. Its exponentials are e^lambda once and 1 at the
    other m - 1 keys, which gives a + c for token h and c for the others; the extra tokens have value zero. Sherman and
    Morrison: (a I + c 11^T)(I - k 11^T)/a = I + (c - a k - n c k) 11^T / a = I for k = c/(a + n c). With
    e^lambda = n + 1 the eigenvalues of A are a (n - 1 times) and a + n c = 2a. The stream after this attention is
    affine in x, and so is a read-out of it. An affine difference T - f on a box is largest at a corner:
    |value at the centre| + sum_i |slope_i| radius_i. QED.

Assumptions
    form (**checked**): one block of softmax attention without feed-forward part; no query and no key depends on the input,
    weight by weight.
    affine (**checked**): every output of the target is written as an affine function.

Certified
    sup |T - f| <= bound for the exact stored weights, whatever their mixture is: lambda and A^{-1} are rounded to
    float64, and the difference is enclosed, not estimated.

Not certified
    Anything outside the box; the rounding of a floating-point run.

Example
    >>> inverse_mixing(2, 2)
    (Fraction(3, 2), Fraction(-1, 2))
    >>> diagonal, other = inverse_mixing(3, 4)  # one special token beside three
    >>> a, c = Fraction(3, 7), Fraction(1, 7)
    >>> (a + c) * diagonal + 2 * c * other, (a + c) * other + c * diagonal + c * other
    (Fraction(1, 1), Fraction(0, 1))

Tests
    tests/theorems/test_exact_gather.py
"""

from __future__ import annotations

from fractions import Fraction

from flint import arb

from certiformer.axioms.affine import affine_error, require_constant_scores
from certiformer.kernel.affine_softmax import Prototypes
from certiformer.kernel.network import Network
from certiformer.kernel.problem import Problem
from certiformer.kernel.refusal import Refused
from certiformer.kernel.steps import Theorem as TheoremNode

THEOREM = {
    "id": "axioms.exact_gather",
    "title": "Attention with fixed weights brings every number of the sequence to every token, exactly.",
    "kind": "exact",
    "sources": ("vaswani2017",),
    "verb": "build",
    "assumptions": (
        ("form", "one block of softmax attention whose scores do not depend on the input", "checked"),
        ("affine", "every output of the target is written as an affine function", "checked"),
    ),
    "uses": (),
}


def inverse_mixing(tokens: int, keys: int) -> tuple[Fraction, Fraction]:
    """The entries of A^{-1} on and off the diagonal, at lambda = log(tokens + 1)."""
    scale = Fraction(tokens + keys, tokens)
    return scale * (1 - Fraction(1, 2 * tokens)), -scale * Fraction(1, 2 * tokens)


def check(node: TheoremNode, problem: Problem) -> arb:
    """The distance of the stored affine map to the target's."""
    if node.parameters:
        raise Refused("the theorem exact_gather has no parameters")
    left = problem.left
    if isinstance(left, Prototypes):
        # A head that adds nothing has become a prototype head without values; then only the affine part is left.
        if any(not value.is_zero() for head in left.heads for row in head.values for value in row):
            raise Refused("the transformer attends to prototypes and does not gather")
    elif isinstance(left, Network):
        require_constant_scores(left)
        if left.config["blocks"][0]["ffn"] is not None:
            raise Refused("the theorem exact_gather speaks of attention without a feed-forward part")
    else:
        raise Refused("the theorem exact_gather needs a transformer on its left-hand side")
    return affine_error(problem)
