"""One attention layer generalizes independently of the length of its input: explicit constants.

Statement
---------
Tokens x_t have |x_t|_2 <= B_x. Let a layer with one head and a scalar output read at one token be

    f(X) = w . W_c s(W_v X softmax(X^T A x)),      A = W_Q^T W_K with the score scale folded in,

x being that token, s applied entrywise with s(0) = 0 and Lipschitz constant L, |w|_1 <= b_w, every row of W_c and of
W_v (the l1 norm of what enters one output) at most b_c and b_v. Let the maps x -> A x have covers log N(eps) <= C /
eps^2 + c in the l2 norm for |x|_2 <= B_x. Then, with softmax constant c_s = 1 (the papers use 2),

    Rad <= 2 L b_w b_c b_v chain(B_x, log N', m),   log N'(eps) = log(2 d) + C (c_s B_x^2 / eps)^2 + c,

and always Rad <= L b_w b_c b_v B_x. With sum |A_ij| <= l11: C = (B_x l11)^2 log(2 d^2 + 1), c = log(2 d^2 + 1). The
length of the sequence does not occur. Several heads: the sum of their bounds.

Source
------
Trauger and Tewari 2024 (trauger2024), Theorem 4.1 and Corollary 4.1.1.

Differs from the source in
--------------------------
Constants are explicit (`bounds.chaining`) where the source has O(.). The printed Corollary 4.1.1 is smaller by sqrt 2
than what the theorem gives; `as_printed` keeps it. The proof needs the l1 norms of the rows of W_c and W_v in the
layout (out, in), which the source writes as those of the transposed matrices. The softmax is 1-Lipschitz from the max
norm to the l1 norm, not 2: its Jacobian maps h to p_i (h_i - p . h), whose l1 norm is a mean absolute deviation of
numbers in [-1, 1]. The cover of a linear map carries the summand c.

Proof
-----
The l1-constrained outer maps cost factors (a linear function on an l1 ball is largest at a corner: this gives the
factor b_w b_c b_v, the 2 d signed coordinates of a token with their log(2 d), and a factor 2 for the signs), s costs
L by contraction. What is left is the class X -> e . X softmax(X^T A x) over coordinates e. If |A x - A' x|_2 <= eps',
every score moves by at most B_x eps', the softmax by c_s B_x eps' in the l1 norm, and the mean of the tokens by c_s
B_x^2 eps' in the l2 norm; so a cover of the maps at eps / (c_s B_x^2) is one of the class at eps. Its members are at
most B_x. QED.

Assumptions
-----------
- architecture: **trusted** one head, no residual, bias or norm, an entrywise s with s(0) = 0; `audit` says where a
  model differs.
- tokens: **trusted** |x_t|_2 <= B_x for all inputs that may come.
- independent: **trusted** the sample unit is a sequence; m sequences are independent.

Certified
---------
`complexity` is the right side, in balls, never above the trivial bound.

Not certified
-------------
`as_printed` is the leading term with a constant that the source does not name: a comparison, not a bound.

Example
-------
>>> head = Head(width=8, l11=13.753358, value_rows=2.717646, output_rows=2.066688, readout=1.932822)
>>> round(above(complexity(head, 10**10)), 3), round(above(trivial(head)), 6)
(0.398, 10.855746)

Tests
-----
`tests/theorems/test_trauger_one_layer.py`
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from flint import arb

from certiformer.bounds.chaining import Cover, chain, linear_cover
from certiformer.bounds.numbers import above as above
from certiformer.bounds.numbers import ball, require_positive

THEOREM = {
    "id": "bounds.trauger_one_layer",
    "title": "One attention layer generalizes independently of the length of its input",
    "kind": "upper bound",
    "sources": ("trauger2024, Theorem 4.1",),
    "verb": "audit",
    "assumptions": (
        ("architecture", "One head without residual, bias or norm, an entrywise s with s(0) = 0.", "trusted"),
        ("tokens", "Every token that may come has l2 norm at most B_x.", "trusted"),
        ("independent", "The sample consists of independent sequences.", "trusted"),
    ),
    "uses": ("bounds.chaining",),
}

SHARP, PRINTED = 1, 2  # the constant of the softmax: what holds, and what the papers use


@dataclass(frozen=True)
class Head:
    """The norms of one head: `l11` = sum |A_ij|, `value_rows` and `output_rows` the largest l1 norms of rows of W_v and W_c
    (out, in), `readout` = |w|_1, `inputs` = B_x, `lipschitz` = L of the activation."""

    width: int
    l11: float
    value_rows: float
    output_rows: float
    readout: float
    inputs: float = 1.0
    lipschitz: float = 1.0

    @property
    def factor(self) -> arb:
        return ball(self.lipschitz) * ball(self.readout) * ball(self.output_rows) * ball(self.value_rows)


def trivial(head: Head) -> arb:
    """L b_w b_c b_v B_x, the largest output."""
    return head.factor * ball(head.inputs)


def complexity(head: Head, sequences: int, softmax: int = SHARP, cover: Cover | None = None) -> arb:
    """The bound of the Rademacher complexity; `cover` of the maps x -> A x, by default that of the l11 norm."""
    require_positive(number_of_sequences=sequences, width_of_a_token=head.width, bound_of_the_tokens=head.inputs)
    scores = linear_cover(head.inputs, head.l11, head.width, head.width) if cover is None else cover
    stretch = softmax * ball(head.inputs) ** 2

    def log_cover(eps: arb) -> arb:
        return ball(2 * head.width).log() + scores(eps / stretch)

    return (2 * head.factor * chain(head.inputs, log_cover, sequences)).min(trivial(head))


def several_heads(heads: Sequence[Head], sequences: int, softmax: int = SHARP) -> arb:
    """The bound for a layer that adds up these heads: the supremum of a sum is at most the sum of the suprema."""
    return sum((complexity(head, sequences, softmax) for head in heads), arb(0))


def as_printed(head: Head, sequences: int, corollary: bool = False) -> float:
    """What stands inside O(.) in Theorem 4.1, or in Corollary 4.1.1; the trivial bound where its logarithm is negative."""
    size = head.inputs**2 * head.l11**2 * math.log(2 * head.width**2 + 1)
    root, noise = math.sqrt(sequences), head.inputs * math.sqrt(math.log(2 * head.width) / sequences)
    factor, most = head.lipschitz * head.readout * head.output_rows * head.value_rows, above(trivial(head))
    if corollary:
        slope = head.l11 * math.sqrt(2 * math.log(2 * head.width**2 + 1))
        ratio, first = root / (head.inputs**2 * slope), head.inputs**3 * slope / root
    else:
        ratio, first = root / (2 * head.inputs * math.sqrt(size)), 2 * head.inputs**2 * math.sqrt(size) / root
    return min(most, factor * (first * (1 + math.log(ratio)) + noise)) if ratio > 1 else most
