r"""Boolean circuits of depth d: a decoder that writes the gates suffices, and so many bits are needed.

Every function of such a circuit is computed by a full binary tree of gates, or by the tree that branches on one input
after the other; polynomials over two elements say how many different functions there are.

Statement
---------
Let C(n, d) be the functions of n >= 1 bits that circuits of depth d >= 1 compute, with gates of at most two operands.

(a) Each is computed by T = min(2^d - 1, S(n)) such gates, S(1) = 1 and S(n) = 2^n - 3 for n >= 2. The decoder of
`compiler.circuits.chain_of_thought_circuit` for them has two heads, 8 hidden units, width 3 B + 8 with
B = ceil(log2(n + T + 1)), and at most 3 B (n + T + 1) + 4 T + 4 B + 49 nonzero weights,
of which T (4 + 2 B) depend on the function.

(b) |C(n, d)| <= 2^K with K = min(2^n, 4 (2^d - 1) + 2^d log2 n).

(c) For every t from 0 to d let M = n for t = 0 and M = sum_{i <= min(2^t, n)} C(n, i) otherwise, and m = 2^(d-t). Then a
family of functions that contains C(n, d) needs at least log2 sum_{i <= m} C(M, i) bits: M if M <= m, and otherwise at
least j (log2 M - log2 j), with j = min(m, floor(M/2)).

For n >= 2^d the bits of (b) and (c) differ by a factor of at most 2 (1 + 4/log2 n); for d >= n +
max(1, ceil(log2 n)) they are equal, 2^n.

Source
------
Classical: Shannon's counting of circuits and his expansion by one input; li2024 for the decoder.

Differs from the source in
--------------------------
Explicit for every n and d; the lower bound counts polynomials instead of truth tables, so that it sees the depth.

Proof
-----
(a) A circuit of depth d, its gates copied wherever they are used twice, is a tree of depth at most d; a leaf that is too
high becomes a gate that passes its left operand on (table 0011). That is a full tree of 2^d - 1 gates. On the other hand,
a function of two bits is one gate, and f = (not x and f_0) or (x and f_1) makes S(n) = 2 S(n-1) + 3, S(2) = 1. The weights
are counted in the construction.

(b) The full tree has 2^d - 1 tables, of 16 each, and 2^d leaves, of n each; and there are 2^(2^n) functions.

(c) A product of at most 2^t variables is a tree of depth t of conjunctions, with variables repeated; for t >= 1 the
constants 0 and 1 are gates without regard to their operands. A sum modulo 2 of m = 2^(d-t) such products is a tree of
depth d; for t = 0 it is a sum of at most 2^d variables, where a gate of the first level may also pass on one of its
operands or be 0. So every set of at most m of the M products gives a function in C(n, d), and different sets give
different functions, because a function has one polynomial over two elements. There are 2^M sets if M <= m, and otherwise
at least C(M, j) >= (M/j)^j. For n >= 2^d take t = 1: M >= n^2/2 and j = 2^(d-1) <= n/2, so that the bits are at least
2^(d-1) (2 log2 n - d) >= 2^(d-1) log2 n. For d >= n + t with t = max(1, ceil(log2 n)) all 2^n products may be summed. QED.

Assumptions
-----------
- fan-in: **checked** gates have at most two operands (the compiler writes larger ones as several).

Certified
---------
`gates`, `weights`, `described_bits` are whole numbers, rounded up; `needed_bits` is rounded down. The transformer of a
circuit is proved when it is compiled, for all inputs at once.

Not certified
-------------
That fewer weights do not suffice where they are read with unlimited precision. That writing the gates is necessary:
no proof is known that a constant number of passes could not do it (TC0 might be all of P).

Example
-------
Depth 3 on 4 inputs; and depth 7 on 3 inputs, where the class has all functions:

>>> gates(4, 3), described_bits(4, 3), needed_bits(4, 3)
(7, 16, 9)
>>> described_bits(3, 7), needed_bits(3, 7)
(8, 8)

Tests
-----
`tests/theorems/test_circuits_of_depth.py`
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

from certiformer.errors import BadInput
from certiformer.expressivity.logarithms import log2_above, log2_below
from certiformer.kernel.meanings.gates import Gate, Gates

THEOREM = {
    "id": "expressivity.circuits_of_depth",
    "title": "Boolean circuits of depth d: a decoder that writes the gates suffices, and so many bits are needed",
    "kind": "upper bound",
    "sources": ("classical", "li2024"),
    "verb": "size",
    "assumptions": (("fan-in", "Gates have at most two operands.", "checked"),),
    "uses": ("compiler.circuits.chain_of_thought_circuit",),
}

LISTED = 512  # products up to which their sets are counted exactly


def gates(inputs: int, depth: int) -> int:
    """T: how many gates with two operands are enough."""
    if inputs < 1 or depth < 1:
        raise BadInput("a circuit of this class has at least one input and one gate")
    every = 1 if inputs == 1 else 2**inputs - 3
    return min(2**depth - 1, every)


def place_bits(inputs: int, depth: int) -> int:
    """B: the digits that tell the places of the decoder apart."""
    return (inputs + gates(inputs, depth)).bit_length()


def weights(inputs: int, depth: int) -> int:
    """At most so many nonzero weights does the decoder have."""
    count, digits = gates(inputs, depth), place_bits(inputs, depth)
    return 3 * digits * (inputs + count + 1) + 4 * count + 4 * digits + 49


def described_bits(inputs: int, depth: int) -> int:
    """K: what describes every function of the class."""
    if depth > 2 * inputs + 4:  # then 2^n is the smaller one, and 2^d may be long
        return 2**inputs
    return min(2**inputs, 4 * (2**depth - 1) + math.ceil(2**depth * log2_above(inputs)))


@cache
def needed_bits(inputs: int, depth: int) -> int:
    """The largest of the lower bounds over t."""
    largest, products, choose, degree = min(inputs, 2**depth), 1, 1, 0
    for t in range(depth + 1):
        while degree < min(2**t, inputs):
            degree += 1
            choose = choose * (inputs - degree + 1) // degree
            products += choose
        count, terms = (inputs if t == 0 else products), 2 ** (depth - t)
        if count <= terms:
            largest = max(largest, count)
        elif count > 1:
            largest = max(largest, _bits_of_sets(count, terms))
        if t and degree == inputs:
            break
    return largest


def _bits_of_sets(count: int, terms: int) -> int:
    """A whole number below log2 of how many sets of at most so many out of `count` things there are."""
    if count <= LISTED:
        return math.floor(log2_below(sum(math.comb(count, size) for size in range(terms + 1))))
    j = min(terms, count // 2)
    return math.floor(j * (log2_below(count) - log2_above(j)))


def full_tree(inputs: Sequence[str], leaves: Sequence[int], tables: Sequence[str]) -> Gates:
    """The full tree of the proof: 2^d leaves, each one of the inputs, and 2^d - 1 tables, the first level first.

    >>> tree = full_tree("ab", [0, 1, 1, 0], ["0001", "0110", "0111"])
    >>> [gate.operands for gate in tree.gates], tree.outputs
    ([('a', 'b'), ('b', 'a'), ('g1', 'g2')], ('g3',))
    """
    if len(leaves) & (len(leaves) - 1) or len(leaves) < 2 or len(tables) != len(leaves) - 1:
        raise BadInput("a full tree has 2^d leaves and 2^d - 1 tables, d at least 1")
    level, made, waiting = [inputs[leaf] for leaf in leaves], [], iter(tables)
    while len(level) > 1:
        pairs = zip(level[::2], level[1::2], strict=True)
        row = [Gate(f"g{number}", next(waiting), pair) for number, pair in enumerate(pairs, len(made) + 1)]
        made += row
        level = [gate.name for gate in row]
    return Gates(tuple(inputs), tuple(made), tuple(level))
