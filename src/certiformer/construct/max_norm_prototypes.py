r"""One softmax head over a grid is as good as nearest-centre interpolation for functions that are Lipschitz in the
max norm.

Values at the centres of N^D cells with a hard choice of the nearest miss a function of constant L by L/(2N) at most.
The softmax head keeps that constant: what it adds falls like 1/b in the sharpness b, which costs no weights.

Statement
---------
Let |f(x) - f(y)| <= L max_i |x_i - y_i| on [0,1]^D, N >= 1 and b >= 2. Take one register per centre c of the N^D
cells of side 1/N, with value f(c), and scores -b N^2 |x - c|_2^2 (up to a term common to all). Then for every x in
[0,1]^D

    |T(x) - f(x)| <= (L/N) (1/2 + D t(b)),    t(b) = 0.13924/b + 0.64 e^-b;    L/2 if N = 1.

T has N^D (D + 2) + 4 D + 7 nonzero weights, of which the N^D values alone depend on f; with o outputs they are N^D (D + 1
+ o) + 4 D + 4 + 3 o and o N^D. If moreover the values of f
lie in an interval of length L that is known, then for every eta > 0 one of 2^B such heads has an error of at most
that bound plus eta/2, with

    B <= log2(L/eta + 2) + (N^D - 1) log2(2 m + 1) + 1,    m = ceil(L/(N eta)).

Source
------
nadaraya1964, watson1964 for the estimator, petrov2024 for attention over prefix tokens; the statement is derived here.

Differs from the source in
--------------------------
The max norm, in which `axioms.voronoi_first_order` would pay L/(2N) for every axis; every constant is explicit.

Proof
-----
T(x) = E f(c) for c drawn with the softmax weights, which factorise over the axes. With y_i = N (c_i - x_i),
|f(c) - f(x)| <= (L/N) max |y_i| <= (L/N) (1/2 + sum_i (|y_i| - 1/2)_+), so E (|y| - 1/2)_+ <= t(b) on one axis is
enough. Let u in [0, 1/2] be the distance to the nearest centre, which contributes nothing (mirror the axis if need
be). The centre m steps further has |y| = |m - u| and the weight e^{-b g_m} relative to the nearest, g_m = m^2 - 2 u
m; the sum of all is >= 1.
m = 1: g = 1 - 2u, |y| - 1/2 = g/2, with the nearest at most (g/2)/(e^{bg} + 1) <= 0.27847/(2b), because s/(e^s + 1)
has the maximum 0.278465.
The others are largest at u = 0 (m < 0) or u = 1/2 (m > 1), as b >= 2: e^-b/2 for m = -1, e^{-2b} for 2, (3/2) e^{-4b}
for -2, 2 e^{-6b} for 3, (5/2) e^{-9b} for -3, ..., together at most e^-b (0.5 + 0.1354 + 0.0038 + ...) <= 0.64 e^-b.

Bits: round the values to multiples of eta, halves up, which moves their averages by eta/2 at most. Reach every cell from
a neighbour that was reached before; f changes by at most L/N on that step, the rounded value by less than L/N + eta
and by a multiple of eta: one of 2 m + 1. The first value is one of at most L/eta + 2. QED.

Assumptions
-----------
- sharpness: **checked** b is a whole number of at least 2 (`overshoot`).
- lipschitz: **trusted** L is the caller's; `build --method max-norm` encloses slopes along all directions of signs.

Certified
---------
`bound` is an exact rational above the right-hand side, `fewest_cells` the least N for it. A transformer that was
built is proved afterwards, by rule *boxes*, from its stored weights.

Not certified
-------------
The rounding of the centres to floats, before that proof is made.

Example
-------
At epsilon 0.01 in four variables the hard choice needs 50 cells an axis, the head 51 and the sharpness 56:

>>> fewest_cells(Fraction(1), Fraction(1, 100), dimension=4)
(51, 56)

Tests
-----
`tests/theorems/test_max_norm_prototypes.py`
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product

from certiformer.axioms.grid import Grid
from certiformer.axioms.jets import Jet, JetAlgebra
from certiformer.construct.method import Layout, Task
from certiformer.construct.voronoi import PARTS, ROOM, Plan
from certiformer.errors import BadInput
from certiformer.expressivity.logarithms import log2_above
from certiformer.kernel import Refused
from certiformer.kernel.balls import BallDomain, ball, decimal, hull, working_precision
from certiformer.kernel.programs import Program, fold

THEOREM = {
    "id": "construct.max_norm_prototypes",
    "title": "One softmax head over a grid is as good as the nearest centre for functions Lipschitz in the max norm",
    "kind": "upper bound",
    "sources": ("nadaraya1964", "watson1964", "petrov2024"),
    "verb": "size",
    "assumptions": (
        ("sharpness", "b is a whole number of at least 2.", "checked"),
        ("lipschitz", "L is the caller's; build encloses it on a partition.", "trusted"),
    ),
    "uses": (),
}

LAYOUTS: tuple[Layout, ...] = ("token",)  # the query must carry the whole input
SHARPEST = 256  # a sharper head saves less than D/1800 of the cells of an axis and makes the proof by boxes harder
MOST_AXES = 8  # of a target whose constant is enclosed, along 2^(D-1) directions
INVERSE_E = Fraction(36_788, 100_000)  # above 1/e = 0.367879...


def overshoot(sharpness: int) -> Fraction:
    """t(b), rounded up."""
    if sharpness < 2:
        raise BadInput(f"the sharpness is at least 2, not {sharpness}")
    return Fraction(13_924, 100_000) / sharpness + Fraction(64, 100) * INVERSE_E**sharpness


def bound(constant: Fraction, cells: int, sharpness: int, dimension: int) -> Fraction:
    """The bound of the statement.

    >>> float(bound(Fraction(1), cells=10, sharpness=8, dimension=2))
    0.0535239...
    """
    beyond = overshoot(sharpness) * dimension if cells > 1 else Fraction(0)
    return constant / cells * (Fraction(1, 2) + beyond)


def fewest_cells(constant: Fraction, epsilon: Fraction, dimension: int) -> tuple[int, int]:
    """The least N whose bound is at most epsilon, and the least sharpness that serves it."""
    if bound(constant, 1, 2, dimension) <= epsilon:
        return 1, 2
    # The bound is (a number without N)/N, and the sharpest head has the least of them.
    cells = max(2, -(-bound(constant, 2, SHARPEST, dimension) * 2 // epsilon))
    low, high = 1, SHARPEST
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if bound(constant, cells, middle, dimension) <= epsilon else (middle, high)
    return cells, high


def weights(cells: int, dimension: int, outputs: int = 1) -> int:
    """How many nonzero weights the head over N^D cells has."""
    return cells**dimension * (dimension + 1 + outputs) + 4 * dimension + 4 + 3 * outputs


def described_bits(
    constant: Fraction, epsilon: Fraction, dimension: int, numbers: Callable[[int], int] | None = None
) -> int:
    """B for the best of some grids: how many bits choose a head within epsilon.

    `numbers(N)` says how many of the values of N cells an axis are free, N^D unless it is given; each of them but one
    must have a neighbour that comes before it.

    >>> described_bits(Fraction(1), Fraction(1, 100), dimension=1)
    167
    """
    if constant <= 2 * epsilon:
        return 0  # one constant serves all
    least = fewest_cells(constant, epsilon, dimension)[0]
    found = []
    for finer in range(1, 64):
        cells = least + -(-least // finer)
        eta = 2 * (epsilon - bound(constant, cells, SHARPEST, dimension))
        steps = 2 * math.ceil(constant / (cells * eta)) + 1
        free = cells**dimension if numbers is None else numbers(cells)
        rest = (free - 1) * log2_above(steps)
        found.append(math.ceil(log2_above(math.ceil(constant / eta) + 2) + rest))
    return min(found)


def plan(task: Task) -> Plan:
    """The grid of the theorem for the target's own constant; the proof is then by boxes."""
    working_precision()
    target, domain = task.target, BallDomain(task.target.domain)
    constant = enclosed_constant(target.program, domain)
    cells, sharpness = fewest_cells(constant, task.epsilon * ROOM, domain.dimension)
    grid = Grid((cells,) * domain.dimension, 0, Fraction(sharpness))
    return Plan(target, "", grid, float(bound(constant, cells, sharpness, domain.dimension)), ())


def enclosed_constant(program: Program, domain: BallDomain) -> Fraction:
    """An upper bound of L for the program on the box as a unit cube, from enclosures on a partition.

    L is the largest sum of |slopes|, that is the largest slope along a direction of signs: where max(x1, x2) bends,
    the single slopes are anything from 0 to 1, but their sum is 1.
    """
    dimension = domain.dimension
    if dimension > MOST_AXES:
        raise Refused(f"the slopes of {dimension} variables are too many to be enclosed; at most {MOST_AXES}")
    directions = [(1, *signs) for signs in product((1, -1), repeat=dimension - 1)]
    parts = max(1, int(PARTS ** (1 / dimension) + 1e-9))
    lengths = [high - low for low, high in domain.ends]
    algebra, constant = JetAlgebra(len(directions), 1), Fraction(0)
    for corner in product(range(parts), repeat=dimension):
        variables = []
        for axis, ((low, _), length, k) in enumerate(zip(domain.ends, lengths, corner, strict=True)):
            ends = [low + length * ball(Fraction(k + step, parts)) for step in (0, 1)]
            variables.append(Jet(hull(ends[0].lower(), ends[1].upper()), [length * d[axis] for d in directions], {}))
        for jet in fold(program, variables, algebra):
            slopes = [slope.abs_upper() for slope in jet.grad]
            if jet.smooth < 1 or not all(slope.is_finite() for slope in slopes):
                raise Refused(
                    f"the target is not known to be Lipschitz on the box: {jet.why or 'its slopes have no bound'}"
                )
            constant = max(constant, *(Fraction(decimal(slope, up=True)) for slope in slopes))
    return constant
