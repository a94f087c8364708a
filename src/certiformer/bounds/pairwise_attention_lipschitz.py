"""How much an attention head can stretch when its scores depend on positions: rotary codes, score biases, soft caps.

Statement
---------
Let f(X)_i = V sum_j p_ij x_j + c_i, p_i the softmax of S_ij(x_i, x_j) over all j that i may see. All tokens lie in a
convex set K, V maps K into a ball of radius r, s = |V| (spectral). Each S_ij is continuously differentiable on K x K.
For each i its gradients in the first argument lie in a ball of radius a (any centre, the same for all j); those in
the second are at most b long. No token is seen by more than m tokens. Then f is Lipschitz

(a) from sequences to sequences in the Euclidean norm of all entries, with

    r a + sqrt(m (s + r b) h),   h = the largest p (s + 2 r b (1 - p)) for p in [0, 1]
                                   = s where 2 r b <= s, else (s + 2 r b)^2 / (8 r b);

(b) in the largest Euclidean norm of a token, with s + r (a + b), which does not depend on n.

Keys and values may come from another sequence in a convex set of its own, which V then maps into the ball; the norms
are those of both sequences together. Several heads, V_h the product of value and output matrix: the sum; without an
output matrix, outputs side by side: the root of the sum of squares. The slopes a, b:

- Scores x_i^T A_ij x_j + b_ij, |A_ij| <= q, biases that do not depend on tokens (ALiBi, T5), tokens within R: a = b =
  q R.
- One matrix A for all pairs and a query bias that adds k . x_j: a = |A| R, b = |A| R + |k|. A key bias adds nothing.
- Rotary: t (W_Q x_i + b_Q)^T P_ij (W_K x_j + b_K), P_ij orthogonal, on all coordinates of a head or on some, times at
  most g: a = g t |W_Q| max |W_K x + b_K|, b = g t |W_K| max |W_Q x + b_Q|. A key bias does not leave the softmax
  here.
- Norms of queries and keys, with gain G and epsilon e: |W| is replaced by |W| max |G| / sqrt e, the longest query or
  key by sqrt(size) max |G| + |shift|. Without the epsilon there is no constant.
- A soft cap, c tanh(S / c), has a slope of at most 1 and leaves lengths of gradients as they are. It bends what is the
  same for all j, so that under a cap the centre of the first ball is 0 and a key bias counts.

Source
------
Derived here. That constants on a ball grow with sqrt n for one score matrix was shown by Castin, Ablin and Peyre 2024
(castin2024), of which the abstract could be read. The rotary code is that of Su et al. 2021, arXiv 2104.09864.

Differs from the source in
--------------------------
Scores may differ from pair to pair, and with one matrix (a) is below every constant of `bounds.attention_lipschitz`,
where sequences are long and scores large by about sqrt 2.

Proof
-----
Fix i and drop it. The derivative of f in direction E is V sum_j p_j e_j + sum_j p_j v_j ds_j with v_j = V(x_j - m), m
the mean of the tokens under p, as sum_j p_j v_j = 0; ds_j = u_j . e_i + w_j . e_j with u_j, w_j the two gradients.
Facts: (1) sum_j p_j |v_j|^2 <= r^2, a variance in a ball of radius r; so sum_j p_j |v_j| <= r. (2) p_j |v_j| <= 2 r
p_j (1 - p_j): x_j - m is 1 - p_j times the difference of x_j and the mean of the others, both of which V maps into
the ball.

First term, u: as sum_j p_j v_j = 0, a centre of the u_j may be taken away, and for a unit vector y, by
Cauchy-Schwarz, y . sum_j p_j v_j (u_j . e_i) <= sqrt(sum_j p_j (y . v_j)^2) a |e_i| <= r a |e_i|. Second term, V e_j
and w: it is sum_j G_ij e_j with |G_ij| <= g_ij = p_ij (s + b |v_ij|). Rows of g sum up to s + r b at most, by (1).
Columns have at most m entries that are not zero, each at most p (s + 2 r b (1 - p)) <= h, by (2). So |G| <= |g| <=
sqrt(rows * columns) = sqrt((s + r b) m h), the test of Schur. The first term is block diagonal, which gives (a); (b)
adds the rows. In (b) and (a) a segment between two sequences of K stays in K, and f is continuously differentiable on
it. A parabola p (s + 2 r b (1 - p)) has its top at (s + 2 r b) / (4 r b), which is in [0, 1] where 2 r b >= s.

Slopes. The gradient of x^T A y in x is A y, in y it is A^T x. With one A the part of a score that does not depend on
j leaves the softmax. |W_Q^T P k| <= |W_Q| |k|. A norm z / sqrt(|z|^2 / size + e) has the derivative (1 - z z^T /
(size rho^2)) / rho, rho >= sqrt e the root, whose eigenvalues are in [0, 1 / sqrt e]; taking the mean away is a
projection. QED.

Assumptions
-----------
- tokens: **trusted** all tokens that may come lie in the set; behind a norm with gain g and shift b it is the
  ellipsoid of diag(g) z + b with |z| <= sqrt d, so that r = |V diag g| sqrt d.
- positions: **trusted** whatever positions add to the scores does not depend on the tokens, and what they multiply
  queries and keys by is orthogonal up to the stated factor.
- finite: **checked** s, r, a and b are finite and not negative, and m is positive.

Certified
---------
The constants, rounded up, for real arithmetic.

Not certified
-------------
That they are attained by given weights; over all weights little is lost: where weights and tokens are moved uphill,
rotary heads come to more than 0.85 of (b) and 0.8 of (a), as the tests see. Nor anything about a run in floating point,
where rotations are rounded.

Example
-------
>>> head = Slopes.of_matrices(value=1.0, spread=2.0, scores=0.5, query_radius=2.0, key_radius=2.0)
>>> above(token_lipschitz(head)), round(above(sequence_lipschitz(head, 50)), 3)
(5.0, 17.309)

Tests
-----
`tests/theorems/test_pairwise_attention_lipschitz.py`
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from flint import arb

from certiformer.bounds.numbers import Number, ball, require_positive
from certiformer.bounds.numbers import above as above
from certiformer.errors import BadInput

THEOREM = {
    "id": "bounds.pairwise_attention_lipschitz",
    "title": "An attention head whose scores depend on positions has an explicit Lipschitz constant",
    "kind": "upper bound",
    "sources": ("castin2024",),
    "verb": "audit",
    "assumptions": (
        ("tokens", "All tokens that may come lie in the stated convex set.", "trusted"),
        ("positions", "What positions do to scores is an addition or a rotation.", "trusted"),
        ("finite", "All numbers are finite, none is negative, and a token is seen by some.", "checked"),
    ),
    "uses": (),
}


@dataclass(frozen=True)
class Side:
    """Queries or keys of a head as functions of tokens: how steep they are, and how long they get."""

    slope: Number
    longest: Number


@dataclass(frozen=True)
class Slopes:
    """The four numbers of a head: s, r, a and b of the statement."""

    value: Number
    spread: Number
    query_slope: Number
    key_slope: Number

    def __post_init__(self) -> None:
        for each in fields(self):
            number = ball(getattr(self, each.name))
            if not (number.is_finite() and number >= 0):
                raise BadInput(
                    f"the {each.name.replace('_', ' ')} of a head is a finite number that is not negative, not {number}"
                )

    @staticmethod
    def of_matrices(
        value: Number, spread: Number, scores: Number, query_radius: float, key_radius: float, shift: Number = 0
    ) -> Slopes:
        """Scores x^T A_ij y + k . y + b_ij with |A_ij| at most `scores` and |k| at most `shift`, k the same for all pairs,
        on queries' tokens x and keys' tokens y within their radii."""
        require_positive(radius_of_the_queries=query_radius, radius_of_the_keys=key_radius)
        moved = ball(scores) * ball(query_radius) + ball(shift)
        return Slopes(value, spread, ball(scores) * ball(key_radius), moved)

    @staticmethod
    def of_rotary(value: Number, spread: Number, factor: Number, query: Side, key: Side) -> Slopes:
        """Scores factor q_i^T P_ij k_j with P_ij orthogonal; norms of queries and keys are in their sides."""
        steep, wide = ball(factor) * ball(query.slope), ball(factor) * ball(key.slope)
        return Slopes(value, spread, steep * ball(key.longest), wide * ball(query.longest))


def token_lipschitz(head: Slopes) -> arb:
    """The constant of (b)."""
    return ball(head.value) + ball(head.spread) * (ball(head.query_slope) + ball(head.key_slope))


def sequence_lipschitz(head: Slopes, seen_by: int) -> arb:
    """The constant of (a); `seen_by` is the largest number of tokens that see one token, at most their number."""
    require_positive(number_of_tokens_that_see_one=seen_by)
    s, moved = ball(head.value), ball(head.spread) * ball(head.key_slope)
    # Where balls cannot decide, the top of the whole parabola is an upper bound too.
    column = s if 2 * moved <= s else (s + 2 * moved) ** 2 / (8 * moved)
    return ball(head.spread) * ball(head.query_slope) + (seen_by * (s + moved) * column).sqrt()
