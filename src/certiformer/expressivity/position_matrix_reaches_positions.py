r"""A position matrix behind the softmax (URPE) computes the position of every token, where a bias inside cannot.

Statement
---------
Let n >= 1 and let one head have the weights  softmax(X W_Q (X W_K)^T + B) * C  (entry by entry,
no renormalisation) with W_Q = 0, B = 0 and the Toeplitz matrix C_ij = c_(i-j), c_k = 1 for k >= 0 and 0 for k < 0 (i,
j = 1, ..., n). With the constant value 1 its output at token i is i/n for every input: the position target, exactly.
With the double w nearest to 1/n stored in the place of 1/n the output is i w, and

    max_i |i w - i/n|  =  n |w - 1/n|  <=  2^-53   (0 when n is a power of two).

So for every eps >= 2^-53 a single head is within eps of the target that no transformer with biases inside the softmax
approaches better than (n-1)/(2n) (`expressivity.relative_bias_not_universal`).

Source
------
Luo et al. 2022 (arXiv 2205.13401): universal relative position encoding (URPE), Theorem 3 with its condition
"position-aware", that A(X) 1 has different entries.

Differs from the source in
--------------------------
c is chosen such that the row sums are the target itself, i/n
instead of (n-i+1)/n, and the error of the stored weights is counted. The model has no separate option for a matrix
behind the softmax. Where no score depends on a token, softmax is the constant 1/n and  softmax(0) * C = C/n, which is
*linear* attention with the Toeplitz score bias c/n: the same weights, hence the same function. That is the head built
here; a general URPE head, whose softmax depends on the tokens, is not in the model.

Proof
-----
All n scores of a row are 0, so every softmax weight is 1/n, and row i keeps the weights of j <= i: i of
them. Their sum is i/n. |w - 1/n| <= 2^-53 / n, because the doubles next to 1/n are at most 2^-52 / n apart when 1/n
is not a double (1/n lies in [2^-k, 2^(1-k)) with spacing 2^(-k-52) <= 2^-52 / n). QED.

Assumptions
-----------
- stored-length: **checked** n is a positive integer below 2^53.

Certified
---------
`position_error` is the exact rational max_i |i w - i/n| of the stored weights. `certiformer
prove` certifies the model too.

Not certified
-------------
A run in floating point adds up w i times, with its rounding. Universality of URPE
transformers is not built here: with the position in the stream the constructions for absolute codes apply.

Example
-------
>>> model = position_matrix_head(5)
>>> model.evaluate([[0.3, 0.3, 0.3, 0.3, 0.3]]).round(12)
array([[0.2, 0.4, 0.6, 0.8, 1. ]])
>>> 0 < position_error(5) < Fraction(1, 2**53), position_error(8)
(True, Fraction(0, 1))

Tests
-----
`tests/theorems/test_position_matrix_reaches_positions.py`
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from certiformer.errors import BadInput
from certiformer.model import Attention, Block, Config, Heads, Input, Readout, Transformer

THEOREM = {
    "id": "expressivity.position_matrix_reaches_positions",
    "title": "A position matrix behind the softmax (URPE) computes the position of every token, where a bias inside cannot",
    "kind": "upper bound",
    "sources": ("luo2022, Theorem 3",),
    "verb": "explore",
    "assumptions": (("stored-length", "The length is a positive integer below 2^53.", "checked"),),
    "uses": ("expressivity.relative_bias_not_universal",),
}


def position_matrix_head(length: int, width: int = 1) -> Transformer:
    """The head of the theorem for `length` tokens of `width` numbers: i/n at token i, whatever the tokens hold."""
    share = _share(length)
    attention = Attention(
        (Heads(1, 1, 1),), kind="linear", bias=True, scale="unit", score_bias="toeplitz", residual=False
    )
    config = Config(Input("continuous", length, width=width), 1, 1, Readout("all"), blocks=(Block(attention),))
    head = "blocks.0.attention.groups.0"
    zero = np.zeros((1, 1, 1))
    tensors = {
        "embed.weight": np.zeros((width, 1)),
        "embed.bias": np.zeros(1),
        f"{head}.query": zero,
        f"{head}.key": zero,
        f"{head}.value": zero,
        f"{head}.output": np.ones((1, 1, 1)),
        f"{head}.query_bias": np.zeros((1, 1)),
        f"{head}.key_bias": np.zeros((1, 1)),
        f"{head}.value_bias": np.ones((1, 1)),
        # Entry i - j + (n - 1) is c_(i-j) / n.
        f"{head}.score_bias": np.where(np.arange(2 * length - 1) >= length - 1, share, 0.0)[None],
        "blocks.0.attention.output_bias": np.zeros(1),
        "readout.weight": np.ones((1, 1)),
        "readout.bias": np.zeros(1),
    }
    return Transformer(config, tensors)


def position_error(length: int) -> Fraction:
    """The exact sup distance of the stored head to the position target: n |w - 1/n|."""
    return length * abs(Fraction(_share(length)) - Fraction(1, length))


def _share(length: int) -> float:
    if type(length) is not int or not 0 < length < 2**53:
        raise BadInput(f"a length is a positive integer below 2^53, not {length!r}")
    return 1.0 / length
