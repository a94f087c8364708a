r"""RASP programs by their bill: as many functions as their weights can say, and at least as many as their units can hold.

Statement
---------
Let P be the functions of sequences of up to n >= 2 out of V symbols that programs compute whose bill is at most: l
layers, width d, h heads and u hidden units altogether.

(a) Their transformers have at most W = (V + n + 1) d + h (4 d^2 + 3 d) + 2 l d + u (2 d + 1) + (d + 1) V stored
numbers, zeros included. In float32 they compute at most 2^(32 W) functions.

(b) Let l, h >= 1, d >= 7 and q = min(V, floor(sqrt(u + 1))). Every table of a token and the token before it, q x q
symbols, has such a bill. So P has at least q^(q^2) functions.

Source
------
weiss2021 for the language; own derivation. The bill is that of `certiformer compile`.

Differs from the source in
--------------------------
Programs are counted by what their transformers cost, which the source does not ask.

Proof
-----
(a) Rows of symbols, positions and the beginning, d numbers each; a head has four matrices and three biases, its sizes
at most d; a layer two biases of the stream; a unit d numbers in, d out and a bias; the read-out. Each number has 32
bits.

(b) A head that looks at the position before copies a number that stands for the symbol there. With the symbols
numbered x, y = 0, ..., q - 1, the table is a function of s = q x + y, which has q^2 values, so it is piecewise linear
with at most q^2 - 2 knots between them: q^2 - 2 units and one for the first slope, u >= q^2 - 1. On words of two
symbols different tables give different outputs at the second position. QED.

Assumptions
-----------
- bill: **checked** the bill of every compiled program is counted from its weights; that the family of (b) stays
  within the stated one is checked for the tables that the tests compile.

Certified
---------
`weights` and `needed_bits` are exact or rounded down. Every compiled program is proved for all inputs.

Not certified
-------------
That a program could not be compiled with a smaller bill; functions that attention holds, which (b) does not count.

Example
-------
Tables of eight symbols:

>>> weights(8, 16, layers=1, width=7, heads=1, units=63), needed_bits(8, 16, layers=1, width=7, heads=1, units=63)
(1415, 192)

Tests
-----
`tests/theorems/test_programs_of_a_bill.py`
"""

from __future__ import annotations

import math

from certiformer.expressivity.logarithms import log2_below

THEOREM = {
    "id": "expressivity.programs_of_a_bill",
    "title": "RASP programs by their bill: as many functions as their weights say, and as their units hold",
    "kind": "upper bound",
    "sources": ("weiss2021",),
    "verb": "size",
    "assumptions": (("bill", "The bill is counted from the weights of the compiled program.", "checked"),),
    "uses": (),
}
NUMBER_BITS = 32
TABLE_WIDTH = 7  # of the family of (b)


def weights(symbols: int, length: int, *, layers: int, width: int, heads: int, units: int) -> int:
    """W."""
    rows, attention = (symbols + length + 1) * width, heads * (4 * width**2 + 3 * width)
    return rows + attention + 2 * layers * width + units * (2 * width + 1) + (width + 1) * symbols


def needed_bits(symbols: int, length: int, *, layers: int, width: int, heads: int, units: int) -> int:
    """The logarithm of (b), rounded down."""
    if length < 2 or min(layers, heads) < 1 or width < TABLE_WIDTH:
        return 0
    told = min(symbols, math.isqrt(units + 1))
    return math.floor(told**2 * log2_below(told)) if told else 0
