"""One transformer block approximates every Lipschitz function of a whole sequence, with constants: a sound Theorem 1.

Statement
    Let f be Lipschitz on the box X = prod [a_i, b_i] with |df/dx_i| <= L_i (Clarke), D = n d numbers in n tokens. For
    all degrees m_i and nodes N_i with 2 N_i > m_i + 2, and for every choice of knots, there is *one* transformer block
    (softmax attention with n heads of key size 1 and logits log(n + 1), ReLU feed-forward layer, residuals, one-hot
    codes) whose answer T satisfies on X

        |T - f| <= sum_i L_i (b_i - a_i) s(m_i, N_i) + sum_p sup |l_p - g_p|,                                     (*)

        s(m, N) = 1/2 - (4/pi^2) sum_{odd k <= m} rho_k (2/k^2 - (pi/2N)^2 / sin^2(pi k/2N)),

    or v(m) of the proof if that is smaller, so that s <= sin(pi/(2m + 4)). Here g_p are the ridge profiles of the
    Fejer-Korovkin operator P (`axioms.cosine_ridges`) and l_p their bent lines: the block has one hidden unit for each
    bend (for each position, where every token answers for its own row). The first term may be replaced by
    sqrt(D) sup_x (sum_i (|df/dx_i(x)| (b_i - a_i) v(m_i))^2)^(1/2). s(22, 48) = 0.0331, s(60, 124) = 0.0128;
    numerically s is about 0.78/(m + 2). A bent line with J pieces is within O(1/J^2) of its profile. So the bound is as
    small as one likes: one block is a universal approximator.

Source
    gumaan2025 states universality of a single block; the mechanism printed there does not prove it. The operator is
    Korovkin's (1959), its convergence classical; all constants are derived here.

Differs from the source in
    Explicit size and error; no partition, no dormant heads, no limit of infinite scaling. Compared with the textbook
    bound L sqrt(D) sin(pi/(2m+4)) of the operator: the first absolute moment of the weights up to aliasing (half as
    large), samples instead of integrals, a constant for every axis.

Proof
    Attention. The scores of the heads do not depend on x and their mixing matrix is invertible, so every row gets all
    of x exactly (`construct.exact_gather`), and the block computes an affine function plus ReLU units of x, which can be
    switched off at all positions but one (`construct.position_gating`). What the stored weights really compute
    is read off in balls (`kernel.layers`); nothing is assumed about them.
    Operator. Scale to t in [0, 1]^D and extend f evenly and 2-periodically in every variable; |f(y) - f(t)| <= sum_i
    L_i (b_i - a_i) |y_i - t_i| stays true with distances on the circle of length 2 (folding shortens distances). With
    K_m(y) = sum_{|k| <= m} rho_|k| e^{i pi k y} = |sum_j a_j e^{i pi j y}|^2 / sum_j a_j^2 >= 0, P(t) = E f(y), where
    y_i is the node z of the 2N_i equispaced ones with weight w_z = K_m(t_i - z)/2N_i, independently over i (the mirror
    images of the nodes give the cosines and the factors 2). The weights sum to 1 because m < 2N.
    First moment. d(y) = |y| on [-1, 1] has the Fourier coefficients 1/2, -2/(pi j)^2 for odd j, 0 for even j. K_m d
    has the coefficients G_n = sum_k rho_k d_{n-k}, and its mean over a shifted grid of 2N points is the sum of
    G_{2Nl} e^{2 pi i N l u} over integers l. So E|y_i - t_i| <= G_0 + sum_{l != 0} |G_{2Nl}|, where G_0 = 1/2 -
    (4/pi^2) sum_{odd k} rho_k/k^2 and sum_{l != 0} (2Nl - k)^-2 = (pi/2N)^2/sin^2(pi k/2N) - k^-2. This is s(m, N).
    Second moment. With u = 1 - cos(pi y) the series (pi y)^2 = 2 sum_n (2u)^n / (n^2 binom(2n, n)) has positive
    coefficients, so ((pi y)^2 - 2u)/u^2 is largest at u = 2: (pi y)^2 <= 2u + (pi^2 - 4)u^2/4. E u = 1 - rho_1 and
    E u^2 = 3/2 - 2 rho_1 + rho_2/2 hold exactly (degree m + 2 < 2N). So E (y_i - t_i)^2 <= v^2, pi^2 v^2 = 2 E u +
    (pi^2 - 4) E u^2/4 <= (pi^2/2) E u = pi^2 sin^2(pi/(2m+4)) because u <= 2 and rho_1 = cos(pi/(m+2)); the smaller of
    the bound above and v is taken for E|y_i - t_i|. The variant: with the norm |z|^2 = sum (z_i/v_i)^2, f has the
    constant sup (sum (|f_i| v_i)^2)^(1/2) (mean value theorem of Lebourg) and E|y - t| <= (sum E (..)^2/v_i^2)^(1/2)
    <= sqrt D.
    Ridges. P is a sum of the ridges g_p(p . t) by the product formula. On a sub-piece of width h without a knot
    |l - g| is at most its larger end value plus h^2/8 sup |g''|; a direction without units costs at most sum |a_g|.
    The triangle inequality adds everything, and what rounded weights miss is charged: for a unit that is c relu(v . t +
    o), replaced by c alpha relu(p . t - knot), |c| sup |v . t + o - alpha (p . t - knot)|. QED.

Assumptions
    lipschitz (**checked**): f is Lipschitz on the box; Clarke's gradient is enclosed on a partition.
    form (**checked**): the block computes, up to what is charged, units along the directions of the operator.

Certified: sup |T - f| <= bound for the real-number function T of the exact stored weights.

Not certified: Anything outside the box; the rounding of a floating-point run of T.

Example
    >>> from certiformer.kernel.balls import working_precision
    >>> from certiformer.axioms.cosine_ridges import spread
    >>> working_precision()
    >>> [f"{m} * {float(spread(m, 8 * m).absolute):.4f}" for m in (10, 30, 90)]
    ['10 * 0.0657', '30 * 0.0243', '90 * 0.0084']

Tests: tests/theorems/test_korovkin_ridges.py
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import lcm, prod

from flint import arb, fmpq

from certiformer.axioms.cosine_ridges import (
    Cosines,
    Direction,
    Spread,
    bent_line_error,
    coefficients,
    directions,
    first_line,
    reach,
    ridges,
    spread,
)
from certiformer.axioms.derivatives import covering, series
from certiformer.axioms.grid import partition
from certiformer.kernel import Refused
from certiformer.kernel.balls import ZERO, BallDomain, ConstantAlgebra, about, larger, largest, smaller
from certiformer.kernel.certificate import Theorem as TheoremNode
from certiformer.kernel.layers import Unit, UnitSum, units_of
from certiformer.kernel.problem import Problem, ProgramFunction, select
from certiformer.kernel.programs import Program, fold

THEOREM = {
    "id": "axioms.korovkin_ridges",
    "title": "One transformer block approximates every Lipschitz function of a whole sequence, with constants.",
    "kind": "upper bound",
    "sources": ("gumaan2025", "classical"),
    "verb": "build",
    "assumptions": (
        ("lipschitz", "f is Lipschitz on the box; Clarke's gradient is enclosed on a partition", "checked"),
        ("form", "the block computes units along the operator's directions, up to what is charged", "checked"),
    ),
    "uses": ("construct.exact_gather", "construct.position_gating"),
}

MAX_DIMENSION = 3
MAX_DIRECTIONS = 60_000
MAX_NODES = 60_000
MAX_DEGREE = 400


@dataclass(frozen=True)
class Grid:
    """Degrees and nodes of the operator for one output."""

    degrees: tuple[int, ...]
    nodes: tuple[int, ...]

    def refuse_if_unfit(self, dimension: int) -> None:
        """Raise `Refused` unless the theorem speaks of it and it is small enough to check."""
        if dimension > MAX_DIMENSION:
            raise Refused(f"the Korovkin theorem is checked for at most {MAX_DIMENSION} variables, not {dimension}")
        if len(self.degrees) != dimension or len(self.nodes) != dimension:
            raise Refused("the parameters of the theorem node do not have a degree and a node count for every variable")
        if any(not 2 * n > m + 2 for m, n in zip(self.degrees, self.nodes, strict=True)):
            raise Refused("the Korovkin theorem needs more than half as many nodes as its degree plus 2")
        if max(self.degrees) > MAX_DEGREE or directions(self.degrees) > MAX_DIRECTIONS:
            raise Refused(f"the operator has more than {MAX_DIRECTIONS:,} frequencies or a degree above {MAX_DEGREE}")
        if prod(self.nodes) > MAX_NODES:
            raise Refused(f"the operator has more than {MAX_NODES:,} nodes")


class Slopes:
    """Clarke's gradient of every output on a partition of the domain: enclosed once, for all degrees."""

    def __init__(self, program: Program, domain: BallDomain, parts: tuple[int, ...]):
        lengths = [high - low for low, high in domain.ends]
        self.boxes: list[list[tuple[arb, ...]]] = [[] for _ in program.outputs]
        for values in product(*(covering(domain, axis, count) for axis, count in enumerate(parts))):
            for o, jet in enumerate(series(program, list(values), 1)):
                if jet.smooth < 1:
                    where = about([(v.lower(), v.upper()) for v in values])
                    raise Refused(f"the target is not known to be Lipschitz on {where}: {jet.why}")
                self.boxes[o].append(tuple((g.abs_upper() * n).upper() for g, n in zip(jet.grad, lengths, strict=True)))

    def per_axis(self, output: int) -> list[arb]:
        """The constants L_i (b_i - a_i) of one output."""
        return [largest(list(axis)) for axis in zip(*self.boxes[output], strict=True)]

    def operator_bound(self, output: int, spreads: Sequence[Spread]) -> arb:
        """The first term of the statement, or its variant if that is smaller."""
        single = sum((g * s.absolute for g, s in zip(self.per_axis(output), spreads, strict=True)), ZERO).upper()
        joint = ZERO
        for slopes in self.boxes[output]:
            square = sum(((g * s.square) ** 2 for g, s in zip(slopes, spreads, strict=True)), ZERO)
            joint = larger(joint, square.upper())
        return smaller(single, (joint * len(spreads)).sqrt().upper())


def operator_ridges(program: Program, domain: BallDomain, grid: Grid) -> tuple[arb, dict[Direction, Cosines]]:
    """The constant and the profiles of P for a program with one output, from samples in balls."""
    axes = [
        [low + (high - low) * arb(fmpq(2 * q + 1, 2 * n)) for q in range(n)]
        for (low, high), n in zip(domain.ends, grid.nodes, strict=True)
    ]
    algebra = ConstantAlgebra()
    samples = [fold(program, list(point), algebra)[0] for point in product(*axes)]
    constant, found = ridges(coefficients(samples, grid.degrees, grid.nodes), grid.degrees)
    return constant, {p: Cosines(amplitudes) for p, amplitudes in found.items()}  # type: ignore[arg-type]


def check(node: TheoremNode, problem: Problem) -> arb:
    """The proved bound of a theorem node; the units of the stored block are compared with the operator's ridges."""
    if not isinstance(problem.right, ProgramFunction):
        raise Refused("the theorem needs a target program on its right-hand side")
    program, domain = problem.right.program, problem.domain
    grids = _grids(node, problem.right.outputs, domain.dimension)
    slopes = Slopes(program, domain, partition(node.parameters, domain.dimension))
    bounds = []
    for o, grid in enumerate(grids):
        spreads = [spread(m, n) for m, n in zip(grid.degrees, grid.nodes, strict=True)]
        left = problem.left if problem.left.outputs == 1 else select(problem.left, o)
        constant, profiles = operator_ridges(program.select(o), domain, grid)
        distance = ridge_distance(units_of(left, domain), domain, constant, profiles, max(grid.degrees))
        bounds.append((slopes.operator_bound(o, spreads) + distance).upper())
    return largest(bounds)


def _grids(node: TheoremNode, outputs: int, dimension: int) -> list[Grid]:
    degrees, nodes = node.parameters.get("degrees"), node.parameters.get("nodes")
    for rows in (degrees, nodes):
        if not isinstance(rows, list) or len(rows) != outputs:
            raise Refused("the parameters of the theorem node do not have degrees and nodes for every output")
        for row in rows:
            if not isinstance(row, list) or any(type(n) is not int or n < 0 for n in row):
                raise Refused("the degrees and nodes of the theorem node are not lists of natural numbers")
    grids = [Grid(tuple(m), tuple(n)) for m, n in zip(degrees or [], nodes or [], strict=True)]
    for grid in grids:
        grid.refuse_if_unfit(dimension)
    return grids


def ridge_distance(
    found: UnitSum, domain: BallDomain, constant: arb, profiles: dict[Direction, Cosines], degree: int
) -> arb:
    """An upper bound of |T - P| on the domain for one output T and the operator P with these profiles."""
    if found.kind != "relu":
        raise Refused("the Korovkin theorem needs a feed-forward part of ReLU units")
    lengths = [high - low for low, high in domain.ends]
    centre = domain.box(((0, 0),) * domain.dimension).centre
    corner = [low - c for (low, _), c in zip(domain.ends, centre, strict=True)]
    bends: dict[Direction, list[tuple[arb, arb]]] = {}
    total = found.slack
    for unit in found.units:
        p, bend, charge = _bend(unit, lengths, corner, degree)
        if p not in profiles:
            raise Refused(f"a hidden unit looks in the direction {p}, which the operator does not have")
        bends.setdefault(p, []).append(bend)
        total = (total + charge).upper()
    # What is left of the affine part once every direction has taken its first line, in the coordinates t.
    rest = found.constant + _dot(found.linear, corner) - constant
    slopes = [m * n for m, n in zip(found.linear, lengths, strict=True)]
    for p, profile in profiles.items():
        if p not in bends:
            total = (total + profile.size).upper()
            continue
        low, high = (arb(end) for end in reach(p))
        inside = [knot for knot, _ in bends[p] if low < knot and knot < high]
        line = first_line(profile, low, min(inside, default=high, key=lambda knot: knot.mid()))
        total = (total + bent_line_error(profile, p, line, bends[p])).upper()
        rest = rest - line[0] + line[1] * low
        slopes = [m - line[1] * n for m, n in zip(slopes, p, strict=True)]
    return (total + abs(rest) + sum((abs(m) for m in slopes), ZERO)).upper()


def _dot(a: Sequence[arb], b: Sequence[arb]) -> arb:
    return sum((x * y for x, y in zip(a, b, strict=True)), ZERO)


def _bend(unit: Unit, lengths: list[arb], corner: list[arb], degree: int) -> tuple[Direction, tuple[arb, arb], arb]:
    """The direction of a unit, its (knot, change of slope) along it, and what replacing the unit by them costs."""
    scaled = [m * n for m, n in zip(unit.slope, lengths, strict=True)]
    base = unit.offset + _dot(unit.slope, corner)
    if not all(v.is_finite() for v in scaled):
        raise Refused("the slopes of a hidden unit are not enclosed")
    p = primitive_direction([float(v.mid()) for v in scaled], max(degree, 1))
    main = max(range(len(p)), key=lambda i: abs(p[i]))
    steep = (scaled[main] / p[main]).mid()
    if not steep > 0:
        raise Refused("a hidden unit has no direction, or looks backwards along it")
    knot = (-base / steep).mid()
    gap = abs(base + steep * knot) + unit.error
    for v, n in zip(scaled, p, strict=True):
        gap = gap + abs(v - steep * n)
    return p, (knot, unit.coefficient * steep), (abs(unit.coefficient) * gap).upper()


def primitive_direction(slopes: Sequence[float], largest_entry: int) -> Direction:
    """The primitive integer vector nearest to a multiple of `slopes`, its first nonzero entry positive.

    >>> primitive_direction([0.5, -0.75], 10), primitive_direction([0.0, 3.7], 10)
    ((2, -3), (0, 1))
    """
    top = max(slopes, key=abs)
    if not top:
        raise Refused("a hidden unit does not depend on the input")
    ratios = [Fraction(v / top).limit_denominator(largest_entry) for v in slopes]
    whole = lcm(*(r.denominator for r in ratios))
    p = [int(r * whole) for r in ratios]
    first = next(n for n in p if n)
    return tuple(p) if first > 0 else tuple(-n for n in p)
