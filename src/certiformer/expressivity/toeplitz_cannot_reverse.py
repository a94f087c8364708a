r"""A head whose scores depend only on the distance i-j cannot reverse sequences of length 4 or more.

"Relative position biases implement reversal" is often said. They do not: i + j = n-1 is no statement about i - j.

Statement
---------
Let n >= 2, B any 2n-1 real numbers B[-(n-1)], ..., B[n-1], and w_ij = e^B[i-j] / sum_k e^B[i-k] (i, j, k = 0..n-1).
The tokens x_0, ..., x_(n-1) range over [-1, 1].

(a) The head itself, y_i = sum_j w_ij x_j, has an error of at least

    max_i sup_x | y_i - x_(n-1-i) |  >=  2 - 2/floor(n/2),

    and for even n, and for n = 3, no larger number can stand here: there are B that come as near to it as one likes.
(b) For n >= 4 no value weight, residual weight or constants help: for all real a, r, c_i and
    y_i = a sum_j w_ij x_j + r x_i + c_i,

    max_i sup_x | y_i - x_(n-1-i) |  >=  1,

    which is what the output 0 achieves.
(c) For n = 2 and n = 3 reversal is possible: the error tends to 0 for suitable B.

Tokens of any width, with value, output and residual matrices, reduce to (b): feed tokens along the first coordinate and
read that coordinate. Position codes added to the tokens only change the constants c_i.

Source
------
Own. The claim that it is possible is found in teaching material; Luo et al. 2022 (arXiv 2205.13401) show another
limit of relative biases inside the softmax, the one that equal tokens get equal outputs.

Differs from the source in
--------------------------
Nothing to differ from: the statement, its constants and the proof are new here.

Proof
-----
Write i* = n-1-i and p_i = w_(i,i*), the weight on the right token, and b_i = e^B[i-i*] > 0. Row i sees the distances
i-n+1, ..., i; the right one is i-i* = 2i-n+1. The right distance of row l, 2l-n+1, is seen in row i when and only when
i/2 <= l <= (n-1+i)/2; call this set of l S_i. It contains i. Since the sum over all distances is at least that over
S_i,

    p_i <= b_i / sum_{l in S_i} b_l.                                                                            (1)

(a) For x in [-1,1]^n, sup |y_i - x_i*| = (1 - p_i) + sum_{j != i*} w_ij = 2 (1 - p_i). S_i has floor((n-1+i)/2) -
ceil(i/2) + 1 elements: n/2 for even n; for odd n, (n+1)/2 when i is even and (n-1)/2 when it is odd. So |S_i| >= s :=
floor(n/2) for all i. Let p = min p_i and beta = min b_i. By (1), b_i >= p sum_{l in S_i} b_l >= p s beta for all i;
putting this lower bound into the sum again, b_i >= (p s)^2 beta, and so on: b_i >= (p s)^t beta for every t. As b_i is
finite, p s <= 1. Hence some row has p_i <= 1/s, and its error is at least 2 - 2/s.
For even n let B be lambda at the distances of the parity of n-1 and 0 elsewhere: each row sees n/2 of either parity, so
p_i = (2/n) / (1 + e^-lambda), and the error 2 - (4/n)/(1 + e^-lambda) tends to 2 - 4/n.

(b) Suppose every error is below 1. sup_x |y_i - x_i*| >= sum_j |a w_ij + r [j=i] - [j=i*]|, with equality when c_i = 0.
First, n != 5; rows 1 and 2. Their right tokens n-2 and n-3 are not themselves, so the term of j = i* gives
|a p_i - 1| < 1, hence a > 0. Row 1 also sees the right distance 5-n of row 2, at j = n-4 (which is neither 1 nor n-2),
with weight q_1; so 1 - a p_1 + a q_1 <= |a p_1 - 1| + a q_1 < 1, that is q_1 < p_1, that is b_2 < b_1. Row 2 sees the
right distance 3-n of row 1 at j = n-1 (neither 2 nor n-3), and in the same way b_1 < b_2. Contradiction.
Now n = 5; rows 1 and 2, with right tokens 3 and 2 (row 2's is itself). Row 1: |a p_1 - 1| < 1 gives a > 0, and with the
weight w_11 on itself, 1 - a p_1 + a (1 - p_1 - w_11) + (a w_11 + r) < 1, that is r < a (2 p_1 - 1). Row 2:
1 - a p_2 - r + a (1 - p_2) < 1, that is r > a (1 - 2 p_2). Together p_1 + p_2 > 1. But S_1 and S_2 both contain 1 and
2, so by (1) p_1 <= b_1/(b_1+b_2) and p_2 <= b_2/(b_1+b_2), and p_1 + p_2 <= 1. Contradiction.

(c) n = 2: the bias of (a) with error 2 - 2/(1 + e^-lambda). n = 3: B[-2] = B[2] = 2 lambda, B[0] = lambda, B[-1] = B[1]
= 0. Rows 0 and 2 put 1/(1 + e^-lambda + e^-2lambda) on the right token, row 1 puts 1/(1 + 2 e^-lambda).

Assumptions
-----------
- toeplitz: **checked** the bias is a list of 2n-1 finite numbers, one for each distance i-j (`sup_error`).
- one-head: **trusted** there is a single head without feed-forward layer and its scores do not depend on the tokens;
  this is what the statement speaks of.

Certified
---------
`sup_error` encloses the exact supremum over all tokens for given B, a, r (Arb ball), and `lower_bound` is the exact
rational of (a).

Not certified
-------------
Nothing about several heads, feed-forward layers, registers, masks or scores that depend on the tokens. For odd n >= 5
the bound of (a) holds but is not the best possible one.

Example
-------
>>> lower_bound(4), lower_bound(8)
(Fraction(1, 1), Fraction(3, 2))
>>> print(sup_error(near_optimal_bias(4, sharpness=30)).str(10, radius=False))
1.000000000
>>> print(sup_error(near_optimal_bias(3, sharpness=30)).str(3, radius=False))
3.74e-13

Tests
-----
`tests/theorems/test_toeplitz_cannot_reverse.py`
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from flint import arb

from certiformer.errors import BadInput
from certiformer.expressivity.exact_numbers import Real, ball, exact

THEOREM = {
    "id": "expressivity.toeplitz_cannot_reverse",
    "title": "A head whose scores depend only on the distance i-j cannot reverse sequences of length 4 or more",
    "kind": "impossibility",
    "sources": (
        "classical",
        "luo2022",
    ),
    "verb": "explore",
    "assumptions": (
        ("toeplitz", "The scores are 2n-1 finite numbers B[i-j], one for each distance.", "checked"),
        ("one-head", "There is one head, no feed-forward layer, and no score depends on a token.", "trusted"),
    ),
    "uses": (),
}


def lower_bound(length: int) -> Fraction:
    """The bound 2 - 2/floor(n/2) of (a); 0 for a single token, whose reversal is itself."""
    _check_length(length)
    return Fraction(2) - Fraction(2, length // 2) if length > 1 else Fraction(0)


def sup_error(bias: Sequence[Real], value: Real = 1, residual: Real = 0) -> arb:
    """max_i sup_x |a sum_j w_ij x_j + r x_i - x_(n-1-i)| over tokens in [-1, 1], for a = `value` and r = `residual`.

    `bias` is B[-(n-1)], ..., B[n-1]. A linear form c.x has the supremum sum |c_j|.
    """
    if len(bias) % 2 == 0:
        raise BadInput(f"a Toeplitz bias of length n has 2n-1 entries, an odd number, not {len(bias)}")
    length = (len(bias) + 1) // 2
    errors = [_row_error(_weights(bias, row, length), row, ball(value), ball(residual)) for row in range(length)]
    worst = errors[0]
    for error in errors[1:]:
        worst = worst.max(error)
    return worst


def _weights(bias: Sequence[Real], row: int, length: int) -> list[arb]:
    """The softmax weights of one row, shifted by the largest score so that nothing overflows."""
    scores = [exact(bias[row - column + length - 1]) for column in range(length)]
    powers = [ball(score - max(scores)).exp() for score in scores]
    total = sum(powers, arb(0))
    return [power / total for power in powers]


def _row_error(weights: list[arb], row: int, value: arb, residual: arb) -> arb:
    right = len(weights) - 1 - row
    total = arb(0)
    for column, weight in enumerate(weights):
        coefficient = value * weight
        if column == row:
            coefficient += residual
        if column == right:
            coefficient -= 1
        total += abs(coefficient)
    return total


def near_optimal_bias(length: int, sharpness: float) -> list[float]:
    """A bias whose error tends to the infimum as `sharpness` grows: for even lengths and for 3.

    For other odd lengths it is the same parity pattern, with an error near 2 - 4/(n+1).

    >>> near_optimal_bias(3, 1.0)
    [2.0, 0.0, 1.0, 0.0, 2.0]
    >>> near_optimal_bias(4, 1.0)
    [1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0]
    """
    _check_length(length)
    distances = range(1 - length, length)
    if length == 3:
        return [{0: 1.0, 1: 0.0, 2: 2.0}[abs(distance)] * sharpness for distance in distances]
    return [sharpness if (distance - length) % 2 else 0.0 for distance in distances]


def _check_length(length: int) -> None:
    if type(length) is not int or length < 1:
        raise BadInput(f"a length is a positive integer, not {length!r}")
