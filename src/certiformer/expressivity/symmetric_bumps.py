r"""Functions that respect no order of their numbers need one number for each multiset of cells, and have no more.

A bump and its mirror images carry one sign together: the packing of `expressivity.bits_lower_bound` keeps one bit for
each orbit of cubes, and the grid of `construct.max_norm_prototypes` one free value for each orbit of cells.

Statement
---------
Let f on [0,1]^D be symmetric, f(P x) = f(x) for all permutations P, or equivariant, f(P x) = P f(x) with D outputs, and
let each output change by at most L max_i |x_i - y_i|. Write K(N) = binom(N + D - 1, D) in the symmetric case and
K(N) = N binom(N + D - 2, D - 1) in the equivariant one.

(a) The values of f at the centres of N^D cells are K(N) different numbers at most, one for each orbit, and the head of
`construct.max_norm_prototypes` with these values is symmetric or equivariant, too. Its bits are those of that theorem with
K(N) in the place of N^D.

(b) A finite family that comes within eps of every such f, in the sup norm, has at least 2^K(N) members, and numbers that
depend continuously on f are at least K(N), for N = ceil(L/(2 eps)) - 1.

Source
------
Classical for all functions; the count of orbits is derived here.

Differs from the source in
--------------------------
Orbits of cubes instead of cubes, about D! times fewer (symmetric) or (D - 1)! times fewer (equivariant).

Proof
-----
An equivariant f is f_i(x) = g(x_i; all other numbers) with one g that is symmetric in all but its first argument, and any
such g gives one. So both cases are one function of one output under a group G of permutations of the axes: all of
them, or all that leave the first alone. G permutes the cells; the orbits are multisets of D indices out of N, or an index
and a multiset of D - 1: K(N).

(a) f takes one value on the centres of an orbit; softmax weights of permuted centres at permuted points agree. The orbits
are reached from their neighbours as that theorem needs it: order the indices of a multiset and lower the first positive
one, which keeps the order, until all are 0.

(b) Give all cubes of an orbit the same sign c. The sum of c times the pyramids of that theorem is a special case of its
f_c, so it is in the class; it is invariant under G, because distances in the max norm are. Two sign patterns differ at the
centre of a cube by L/N > 2 eps, so there are 2^K functions no two of which share an approximant. For continuous numbers the
bump of an orbit is the sum of its pyramids, and `expressivity.continuous_selection` counts K of them. QED.

Assumptions
-----------
- positive: **checked** L and eps are positive, D is a positive integer.

Certified
---------
`orbits` is the exact integer K(N).

Not certified
-------------
That fewer registers do not suffice: the head keeps one for every cell, although K(N) of their values are free.

Example
-------
Five numbers in any order, 9 cells an axis: 1,287 values instead of 59,049:

>>> orbits(9, 5, "symmetric"), orbits(9, 5, "equivariant"), 9**5
(1287, 4455, 59049)

Tests
-----
`tests/theorems/test_symmetric_bumps.py`
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from certiformer.errors import BadInput

THEOREM = {
    "id": "expressivity.symmetric_bumps",
    "title": "Functions that respect no order of their numbers need one number for each multiset of cells",
    "kind": "lower bound",
    "sources": ("classical",),
    "verb": "size",
    "assumptions": (("positive", "L and eps are positive, D is a positive integer.", "checked"),),
    "uses": (
        "expressivity.bits_lower_bound",
        "expressivity.continuous_selection",
        "construct.max_norm_prototypes",
    ),
}

Symmetry = Literal["symmetric", "equivariant"]


def orbits(cells: int, dimension: int, symmetry: Symmetry) -> int:
    """K(N): the orbits of N^D cells; none of no cells."""
    if cells < 0 or dimension < 1:
        raise BadInput("orbits are counted of cells of a cube with at least one axis")
    if cells == 0:
        return 0
    if symmetry == "symmetric":
        return math.comb(cells + dimension - 1, dimension)
    return cells * math.comb(cells + dimension - 2, dimension - 1)


def orbit(cell: Sequence[int], symmetry: Symmetry) -> tuple[int, ...]:
    """The name of the orbit of a cell: its indices in order, or the first one and the others in order.

    >>> orbit((2, 0, 1), "symmetric"), orbit((2, 1, 0), "equivariant")
    ((0, 1, 2), (2, 0, 1))
    """
    if symmetry == "symmetric":
        return tuple(sorted(cell))
    return (cell[0], *sorted(cell[1:]))
