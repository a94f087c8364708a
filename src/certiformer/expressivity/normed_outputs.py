r"""Behind a layer norm all token vectors lie in one hyperplane: without an affine read-out no weights leave it.

A layer norm subtracts the mean. Its gain and its shift move the hyperplane of vectors with mean 0, and it stays a
hyperplane, the same for all tokens of all inputs.

Statement
---------
Let the output of a model at every token be g * v + b, with v in R^d of mean 0, and g and b the same for all tokens:
what a layer norm lets through. Then for all weights, all g and all b

(a) there are a with |a|_1 = 1 and t with a . y = t for every output y;
(b) for a target that takes all 2^d values in {-1, 1}^d, some output misses its target by at least 1 in some coordinate.
    The constant output 0 has the error 1, too.
(c) an affine map behind it lifts this: see `expressivity.words_in_normed_blocks`. So does an RMS norm, which subtracts
    nothing: with epsilon > 0 its outputs fill an open ball.

Source
------
Own; that layer norm projects onto a hyperplane is well known.

Differs from the source in
--------------------------
The number, and the quantifier over gains and shifts.

Proof
-----
(a) If some g_i = 0, take a = e_i and t = b_i. Otherwise sum_i (y_i - b_i) / g_i = sum v_i = 0; divide by sum |1 / g_i|.
(b) Let y(s) be the output where the target is s in {-1, 1}^d, and take s_i = the sign of a_i, 1 where a_i = 0. Then a .
s = 1 and a . (-s) = -1, while both outputs have a . y = t. So 1 - t <= |a|_1 max |s - y(s)| and 1 + t <= max |-s -
y(-s)|; one of the two is at least 1. QED.

Assumptions
-----------
- layer-norm: **checked** the outputs are those of a layer norm, and nothing is behind it (`is_normed_output`).
- corners: **trusted** the inputs are many enough: 2^d contexts, as the words of d / log2(V) tokens are.

Certified
---------
Nothing numerical is needed: the bound is 1.

Not certified
-------------
Pooled outputs: a mean of token vectors lies in the hyperplane, a normed mean does not.

Example
-------
>>> import numpy as np
>>> rng = np.random.default_rng(0)
>>> g, b = np.array([1.0, -2.0, 0.5]), np.array([0.1, 0.2, 0.3])
>>> a, t = hyperplane(g, b)
>>> v = rng.normal(size=(5, 3))
>>> outputs = (v - v.mean(1, keepdims=True)) * g + b
>>> bool(np.allclose(outputs @ a, t)), float(abs(a).sum())
(True, 1.0)

Tests
-----
`tests/theorems/test_normed_outputs.py`
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

THEOREM = {
    "id": "expressivity.normed_outputs",
    "title": "Behind a layer norm all token vectors lie in one hyperplane: without an affine read-out no weights leave it",
    "kind": "lower bound",
    "sources": ("classical",),
    "verb": "audit",
    "assumptions": (
        ("layer-norm", "The outputs are those of a layer norm, and nothing is behind it.", "checked"),
        ("corners", "There are as many contexts as corners of the cube.", "trusted"),
    ),
    "uses": (),
}

MISSED = 1.0  # by every model at some corner

Vector = Float[np.ndarray, " width"]


def is_normed_output(norm: str | None, affine_behind: bool) -> bool:
    """Whether the theorem speaks of outputs behind a norm of this kind: `layer`, `rms` or None.

    >>> is_normed_output("layer", False), is_normed_output("layer", True), is_normed_output("rms", False)
    (True, False, False)
    """
    return norm == "layer" and not affine_behind


def hyperplane(gain: Vector, shift: Vector) -> tuple[Vector, float]:
    """The a and t of part (a)."""
    if not gain.all():
        normal = np.zeros(len(gain))
        normal[int(np.flatnonzero(gain == 0)[0])] = 1.0
    else:
        normal = 1 / gain
        normal = normal / np.abs(normal).sum()
    return normal, float(normal @ shift)
