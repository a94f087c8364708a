r"""One head with a table of score biases reverses a sequence, and its error shrinks like e^-sharpness.

The scores do not look at the tokens at all: the table alone says which position to copy.

Statement
---------
Let n >= 1 and lambda a real number. Let one softmax head have query and key weights 0, score biases B_ij = lambda where
i + j = n - 1 and 0 elsewhere (i, j = 0..n-1), values and outputs the identity, and no residual. Then for all tokens
x_0, ..., x_(n-1) with coordinates in [-M, M] and every position i,

    | y_i - x_(n-1-i) |  <=  2 M (n-1) e^-lambda / (1 + (n-1) e^-lambda)    in every coordinate,

and for n >= 2 equality is attained at every i.

Source
------
Classical; the construction is the standard illustration that sharp score biases turn attention into copying.

Differs from the source in
--------------------------
It is usually shown for one length and a very large bias, without a bound. B is a full table B_ij: a Toeplitz table
B[i-j], although often named in this place, cannot do it (`expressivity.toeplitz_cannot_reverse`).

Proof
-----
Row i has one score lambda and n-1 scores 0. The weight off position n-1-i is w = (n-1)/(e^lambda + n-1), so
|y_i - x_(n-1-i)| = |sum_j w_ij (x_j - x_(n-1-i))| <= w * 2M. Tokens M at every position except -M at n-1-i attain it.
For lambda > 0 this is `expressivity.softmax_temperature_limit` with k = 1 and gap lambda, times M.

Assumptions
-----------
- finite-sharpness: **checked** lambda is a finite number (`reversal`, `error_bound`).
- bounded-tokens: **trusted** the tokens lie in [-M, M]; M is the caller's promise, and the bound scales with it.

Certified
---------
`error_bound` encloses the right-hand side (Arb ball). It speaks of the real-number function of the stored weights:
lambda is stored as the double it is.

Not certified
-------------
A floating-point run adds its rounding, of the order n 2^-53 M. Once e^-lambda is that small, rounding is all there is.

Example
-------
>>> model = reversal(6, sharpness=20.0)
>>> model.evaluate([[1, 2, 3, 4, 5, 6]]).round(6)
array([[6., 5., 4., 3., 2., 1.]])
>>> print(error_bound(6, 20.0, largest=6).str(3, radius=False))
1.24e-7

Tests
-----
`tests/theorems/test_reversal.py`
"""

from __future__ import annotations

import numpy as np
from flint import arb

from certiformer.errors import BadInput
from certiformer.expressivity.exact_numbers import Real, ball, exact
from certiformer.expressivity.position_head import position_head
from certiformer.model import Transformer

THEOREM = {
    "id": "expressivity.reversal",
    "title": "One head with a table of score biases reverses a sequence, and its error shrinks like e^-sharpness",
    "kind": "upper bound",
    "sources": ("classical",),
    "verb": "explore",
    "assumptions": (
        ("finite-sharpness", "The bias lambda of the right position is a finite number.", "checked"),
        ("bounded-tokens", "Every coordinate of every token lies in [-M, M].", "trusted"),
    ),
    "uses": ("expressivity.softmax_temperature_limit",),
}


def reversal(length: int, sharpness: float, width: int = 1) -> Transformer:
    """The head of the theorem for `length` tokens of `width` coordinates, with lambda = `sharpness`."""
    return position_head(length, width, score_bias=float(exact(sharpness)) * np.eye(length)[::-1])


def error_bound(length: int, sharpness: Real, largest: Real = 1) -> arb:
    """The bound 2 M (n-1) e^-lambda / (1 + (n-1) e^-lambda) for n = `length`, lambda = `sharpness`, M = `largest`."""
    if type(length) is not int or length < 1:
        raise BadInput(f"a length is a positive integer, not {length!r}")
    leaked = (length - 1) * (-ball(sharpness)).exp()
    return 2 * ball(largest) * leaked / (1 + leaked)
