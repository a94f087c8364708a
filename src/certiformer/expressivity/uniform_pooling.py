r"""A head with equal scores computes the mean of its tokens exactly, and n times that their sum.

The aggregation that a special query token is used for: every token gets the same weight, whatever it holds.

Statement
---------
Let one softmax head have query and key weights 0, values and outputs the identity, and no residual. For every length
n >= 1 and all tokens x_1, ..., x_n in R^d, every token of its output is (x_1 + ... + x_n)/n. With the read-out matrix
n I instead of I the output is x_1 + ... + x_n.

Source
------
Classical: equal scores give equal weights.

Differs from the source in
--------------------------
The factor n stands in the read-out, not in a feed-forward layer.

Proof
-----
All scores are 0, so every weight is e^0/(n e^0) = 1/n. The factor n is a 53-bit integer, hence stored exactly.

Assumptions
-----------
- stored-length: **checked** the length and the width are positive integers below 2^53 (`position_head`).

Certified
---------
Equality, in real arithmetic on the stored weights: they are 0, 1 and n, all exact.

Not certified
-------------
A floating-point run rounds 1/n and the sum: its error is of the order n 2^-53 max|x| and not zero. The
factor n is a weight, so a sum model serves one length only.

Example
-------
>>> mean_pooling(5).evaluate([[1, 2, 3, 4, 5]]).round(12)
array([[3.]])
>>> sum_pooling(5).evaluate([[1, 2, 3, 4, 5]]).round(12)
array([[15.]])

Tests
-----
`tests/theorems/test_uniform_pooling.py`
"""

from __future__ import annotations

from certiformer.expressivity.position_head import position_head
from certiformer.model import Readout, Transformer

THEOREM = {
    "id": "expressivity.uniform_pooling",
    "title": "A head with equal scores computes the mean of its tokens exactly, and n times that their sum",
    "kind": "exact",
    "sources": ("classical",),
    "verb": "explore",
    "assumptions": (("stored-length", "The length and the width are positive integers below 2^53.", "checked"),),
    "uses": (),
}


def mean_pooling(length: int, width: int = 1) -> Transformer:
    """A one-head transformer whose output is the mean of its `length` tokens."""
    return position_head(length, width, readout=Readout("token", 0))


def sum_pooling(length: int, width: int = 1) -> Transformer:
    """A one-head transformer whose output is the sum of its `length` tokens."""
    return position_head(length, width, readout=Readout("token", 0), factor=length)
