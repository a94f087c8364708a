"""One attention layer whose score matrix has low rank: the complexity grows as the square root of the rank.

Statement
---------
As in `bounds.trauger_one_layer`, with a score matrix A of rank at most r and Frobenius norm at most F. The maps x ->
A x, |x|_2 <= B_x, have covers log N(eps) <= r (2 d + 1) log(9 F B_x / eps) for eps <= F B_x, so

    Rad <= 2 L b_w b_c b_v chain(B_x, log N', m),   log N'(eps) = log(2 d) + r (2 d + 1) log(9 c_s F B_x^3 / eps),

which is O(sqrt(r d / m)), without a logarithm of m. If A has a larger rank, its best approximation of rank r leaves the
singular value t = sigma_(r+1), and the outputs of the layer are off by at most L b_w b_c b_v c_s B_x^3 t.

Source
------
Candes and Plan 2011 (candes2011), Lemma 3.1, for the net; otherwise own derivation.

Differs from the source in
--------------------------
A substitute for the rank-dependent bound of Truong 2024 (arXiv 2410.11500), whose theorem could not be read: its abstract
promises a logarithm of the rank, this has the square root.

Proof
-----
Matrices of rank at most r with |A|_F <= 1 have an eps-net of at most (9 / eps)^(r (d1 + d2 + 1)) members in the
Frobenius norm; scale by F, and |A x - A' x| <= |A - A'|_F B_x. For eps >= F B_x one map suffices. The rest is
`bounds.trauger_one_layer`. An error of t in the spectral norm of A moves scores by t B_x^2, hence the mean of the
tokens by c_s B_x^3 t. QED.

Assumptions
-----------
- net: **trusted** the lemma of the source.
- architecture: **trusted** as in `bounds.trauger_one_layer`.
- independent: **trusted** the sample consists of independent sequences.

Certified
---------
The right side, in balls.

Not certified
-------------
A logarithmic dependence on the rank.

Example
-------
>>> head = Head(width=64, l11=1.0, value_rows=1.0, output_rows=1.0, readout=1.0)
>>> [round(above(complexity(head, frobenius=5.0, rank=r, sequences=10**8)), 3) for r in (1, 4, 16)]
[0.031, 0.062, 0.124]

Tests
-----
`tests/theorems/test_low_rank_head.py`
"""

from __future__ import annotations

from flint import arb

from certiformer.bounds.chaining import chain
from certiformer.bounds.numbers import above as above
from certiformer.bounds.numbers import ball, require_positive
from certiformer.bounds.trauger_one_layer import SHARP, Head, trivial

THEOREM = {
    "id": "bounds.low_rank_head",
    "title": "One attention layer whose score matrix has low rank generalizes with the square root of the rank",
    "kind": "upper bound",
    "sources": (
        "candes2011, Lemma 3.1",
        "classical",
    ),
    "verb": "audit",
    "assumptions": (
        ("net", "Low-rank matrices have the net of the source.", "trusted"),
        ("architecture", "One head without residual, bias or norm, an entrywise s with s(0) = 0.", "trusted"),
        ("independent", "The sample consists of independent sequences.", "trusted"),
    ),
    "uses": (
        "bounds.chaining",
        "bounds.trauger_one_layer",
    ),
}


def complexity(head: Head, frobenius: float, rank: int, sequences: int, softmax: int = SHARP, left: float = 0.0) -> arb:
    """The bound of the Rademacher complexity; `left` is sigma_(rank+1) of a matrix that was cut."""
    require_positive(number_of_sequences=sequences, rank=rank, width_of_a_token=head.width)
    size = softmax * ball(frobenius) * ball(head.inputs) ** 3

    def log_cover(eps: arb) -> arb:
        maps = rank * (2 * head.width + 1) * (9 * size / eps).log() if eps < size else arb(0)
        return ball(2 * head.width).log() + maps

    whole = 2 * head.factor * chain(head.inputs, log_cover, sequences)
    return (whole + head.factor * softmax * ball(head.inputs) ** 3 * ball(left)).min(trivial(head))
