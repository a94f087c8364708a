"""How much an attention head can stretch: Lipschitz constants on a ball of tokens.

Statement
---------
Let n tokens lie in the ball |x_t|_2 <= R and let f(X)_i = V sum_j p_ij x_j, p_i the softmax of (A x_i) . x_j over all
j that i may see; s = |V|, q = |A| spectral norms. Then f is Lipschitz, with or without a mask,

(a) from sequences to sequences in the Euclidean norm of all entries, with the smallest of

    sqrt 3 s sqrt(q^2 R^4 (4 n + 1) + n),   sqrt 3 s sqrt(q^2 R^4 (n + 1) + n),   s (sqrt n + q R^2 (1 + sqrt n));

(b) in the largest Euclidean norm of a token, with s (1 + 2 R^2 q), which does not depend on n.

Several heads: the sum, with V_h the product of value and output matrix of the head. On all of R^d there is no constant.

Source
------
Castin, Ablin and Peyre 2024 (castin2024) for the growth with sqrt n and the first number of (a); Edelman et al. 2022
(edelman2022), Lemma A.14, for (b) with R = 1 and 4 in place of 2; Kim, Papamakarios and Mnih 2021 (kim2021) for the
last sentence.

Differs from the source in
--------------------------
The paper of the first number could not be read beyond its abstract; the constant is derived here. The second and
third number of (a) and the constant 2 of (b) are our own.

Proof
-----
The derivative of f(X)_i in direction E is V times the sum of three terms: (1) sum_j p_ij e_j; (2)
the scores move by (A e_i) . x_j, which gives Cov_i A e_i with Cov_i the covariance of the tokens under p_i, |Cov_i|
<= R^2; (3) and by (A x_i) . e_j, which gives sum_j p_ij (x_j - m_i) (A x_i) . e_j, m_i the mean. In the Euclidean
norm over all i: (1) is at most sqrt n |E|, as sum_i |sum_j p_ij e_j|^2 <= sum_i sum_j p_ij |e_j|^2 and p_ij <= 1; (2)
at most q R^2 |E|; (3) with |x_j - m_i| <= 2 R at most 2 q R^2 sqrt n |E|, and with Cauchy-Schwarz, sum_j p_ij |x_j -
m_i|^2 <= R^2, at most q R^2 sqrt n |E|. Adding squares of three terms costs the factor 3. (b): the terms are at most
1, q R^2 and q R^2 times the largest |e_j|, the last because sum_j p_ij |x_j - m_i| <= R. A masked p_i has the same
properties. Segments stay in the ball. QED.

Assumptions
-----------
- ball: **trusted** all tokens that may come are in the ball; behind a norm with gain g and shift b, R = sqrt d max
  |g| + |b| will do.
- positive: **checked** R and n are positive.

Certified
---------
The constants, rounded up.

Not certified
-------------
That they are attained; on random weights the true constant was at most half of (a).

Example
-------
>>> round(above(token_lipschitz(1.171060, 0.372585, 8**0.5)), 3)
8.152
>>> [round(above(each), 2) for each in sequence_lipschitz(1.171060, 0.372585, 8**0.5, 50)]
[86.91, 45.5, 36.45]

Tests
-----
`tests/theorems/test_attention_lipschitz.py`
"""

from __future__ import annotations

from flint import arb

from certiformer.bounds.numbers import Number, ball, require_positive
from certiformer.bounds.numbers import above as above

THEOREM = {
    "id": "bounds.attention_lipschitz",
    "title": "An attention head on a ball of tokens has an explicit Lipschitz constant",
    "kind": "upper bound",
    "sources": (
        "castin2024",
        "edelman2022, Lemma A.14",
        "kim2021",
    ),
    "verb": "audit",
    "assumptions": (
        ("ball", "All tokens that may come lie in the ball of radius R.", "trusted"),
        ("positive", "The radius and the number of tokens are positive.", "checked"),
    ),
    "uses": (),
}


def sequence_lipschitz(value: Number, scores: Number, radius: float, tokens: int) -> tuple[arb, arb, arb]:
    """The three constants of (a); the smallest may be used."""
    require_positive(radius_of_the_tokens=radius, number_of_tokens=tokens)
    s, q, n = ball(value), ball(scores) * ball(radius) ** 2, ball(tokens)
    root = arb(3).sqrt()
    paper = root * s * (q**2 * (4 * n + 1) + n).sqrt()
    variance = root * s * (q**2 * (n + 1) + n).sqrt()
    return paper, variance, s * (n.sqrt() + q * (1 + n.sqrt()))


def token_lipschitz(value: Number, scores: Number, radius: float) -> arb:
    """The constant of (b)."""
    require_positive(radius_of_the_tokens=radius)
    return ball(value) * (1 + 2 * ball(radius) ** 2 * ball(scores))
