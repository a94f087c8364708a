"""Attention by distances has a Lipschitz constant on all of space.

Statement
---------
Let N tokens attend by -|q_i - k_j|^2 / sqrt e with tied maps q = W_Q x, k = W_Q x, heads of size e, values W_V (W_Q^T
W_Q / sqrt e) x, every token seeing itself, and W_O on the heads side by side. Then the Euclidean Lipschitz constant
of the layer is at most

    sqrt(N / e) (4 t + 1) sqrt(sum_h |W_Q,h|^4 |W_V,h|^2) |W_O|,    t e^(t+1) = N - 1.

Source
------
Kim, Papamakarios and Mnih 2021 (kim2021).

Differs from the source in
--------------------------
The paper could not be read beyond its abstract; the structure is that of public code. The form usually remembered has
|W_Q|^2 in the place of |W_Q|^4: it does not scale as the map does, and is violated by factors up to 14.

Assumptions
-----------
- form: **trusted** queries and keys are tied, every token attends to itself, values carry the factor above.
- theorem: **trusted** the bound of the source in the form above; it was compared with Jacobians, not re-proved.

Certified
---------
The right side, rounded up.

Not certified
-------------
The theorem.

Example
-------
>>> [round(above(fixed_point(n)), 3) for n in (50, 200, 512, 1000)]
[2.134, 3.147, 3.88, 4.421]

Tests
-----
`tests/theorems/test_l2_attention_lipschitz.py`
"""

from __future__ import annotations

from collections.abc import Sequence

from flint import arb

from certiformer.bounds.numbers import Number, ball, require_positive
from certiformer.bounds.numbers import above as above

THEOREM = {
    "id": "bounds.l2_attention_lipschitz",
    "title": "Attention by distances has a Lipschitz constant on all of space",
    "kind": "upper bound",
    "sources": ("kim2021",),
    "verb": "audit",
    "assumptions": (
        ("form", "Queries and keys are tied and every token attends to itself.", "trusted"),
        ("theorem", "The bound of the source in the form stated.", "trusted"),
    ),
    "uses": (),
}


def fixed_point(tokens: int) -> arb:
    """t with t e^(t+1) = N - 1: the Lambert function of (N - 1) / e."""
    require_positive(number_of_tokens=tokens)
    return (ball(tokens - 1) / arb.const_e()).lambertw()


def lipschitz(queries: Sequence[Number], values: Sequence[Number], output: Number, head_size: int, tokens: int) -> arb:
    """The bound from the spectral norms of W_Q,h, W_V,h and W_O."""
    require_positive(size_of_a_head=head_size)
    total = arb(0)
    for query, value in zip(queries, values, strict=True):
        total += ball(query) ** 4 * ball(value) ** 2
    return (ball(tokens) / head_size).sqrt() * (4 * fixed_point(tokens) + 1) * total.sqrt() * ball(output)
