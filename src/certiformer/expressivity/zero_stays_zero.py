r"""Without biases the sequence of zero vectors has the output zero, and norms without epsilon forget the size.

Large language models of today have RMS norms and no biases. For words that is no limit, because every word has a vector
of its own. For vectors as inputs it is one.

Statement
---------
Let the tokens be vectors x_i in R^m, let embedding, attention, hidden units and read-out have no biases, norms no
shifts and an epsilon > 0, activations (gated or not) the value 0 at 0, and let there be no position codes that are
added and no tokens of the model's own (rotary codes, score biases and any mask are allowed). Then for all weights

(a) T(0, ..., 0) = 0. So a target F on a domain with the sequence of zeros is missed by max |F(0, ..., 0)| at least.
(b) If all epsilons are 0, a norm stands right behind the embedding, and the residual stream begins behind it, then
    T(s x) = T(x) for all s > 0 and all x without zero tokens. So a target is missed by half of max |F(s x) - F(x)|.

Source
------
Own.

Differs from the source in
--------------------------
There is none.

Proof
-----
(a) The embedding of 0 is 0, a norm gives 0 / sqrt(epsilon) = 0, values are 0, hence their averages, hidden units have
arguments 0, and a read-out without bias gives 0. By induction all sub-layers add 0. (b) With epsilon 0 the norm of s y
is the norm of y for s > 0, layer norm and RMS norm alike, and everything else sees only what is behind it. Both outputs
are equal, so one is at least half the distance of the two targets away from its own. QED.

Assumptions
-----------
- bias-free: **checked** nothing is added that is not a product with the input (`zero_limit`).
- zero-at-zero: **checked** the activations are 0 at 0 (`zero_limit`).
- vectors: **checked** the inputs are vectors, and 0 is one of them (`zero_limit`).

Certified
---------
The bound is the exact |F(0)| that the caller gives.

Not certified
-------------
Words: a word may have any vector.

Example
-------
>>> zero_limit(BiasFree(inputs="vectors", activation="silu"), at_zero=1.0)
1.0
>>> zero_limit(BiasFree(inputs="words", activation="silu"), at_zero=1.0) is None
True

Tests
-----
`tests/theorems/test_zero_stays_zero.py`
"""

from __future__ import annotations

from dataclasses import dataclass

THEOREM = {
    "id": "expressivity.zero_stays_zero",
    "title": "Without biases the sequence of zero vectors has the output zero, and norms without epsilon forget the size",
    "kind": "lower bound",
    "sources": ("classical",),
    "verb": "audit",
    "assumptions": (
        ("bias-free", "Nothing is added that is not a product with the input.", "checked"),
        ("zero-at-zero", "The activations are 0 at 0.", "checked"),
        ("vectors", "The inputs are vectors, and 0 is one of them.", "checked"),
    ),
    "uses": (),
}

ZERO_AT_ZERO = frozenset({"relu", "gelu", "gelu-tanh", "gelu-sigmoid", "silu", "tanh", "identity"})


@dataclass(frozen=True)
class BiasFree:
    """What the theorem asks of an architecture: what inputs are, the activation, and what is added besides products."""

    inputs: str  # "vectors" | "words"
    activation: str | None
    added: tuple[str, ...] = ()  # biases, shifts, codes, tokens of its own: by name


def zero_limit(shape: BiasFree, at_zero: float) -> float | None:
    """How far every model of the shape is from a target with this value at zero; None where the theorem is silent."""
    if shape.inputs != "vectors" or shape.added or shape.activation not in ZERO_AT_ZERO:
        return None
    return abs(at_zero)
