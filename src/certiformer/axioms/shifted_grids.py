"""Soft bins by attention and one AND unit per cell, averaged over shifted grids, approximate every Lipschitz function.

Statement
    Let f be Lipschitz on the box X = prod [a_i, b_i] with |df/dx_i| <= L_i (Clarke), D = dim X, delta_i = (b_i - a_i)/N_i,
    K shifts, sharpness g. For every shift q and axis i take the thresholds and soft bins of `rules.shifted_lattice`; every
    cell c of shift q has the unit w_c = relu(sum_i B_{i, c_i} - (D - 1)) and the clipped centre c. With any number m and

        T(x) = m + (1/K) sum_q sum_{c in q} w_c(x) (f(c) - m)

    holds for every x in X, with sigma(-t) = 1/(1 + e^t) and F = sup_X |f - m|,

        |T(x) - f(x)| <= kappa sum_i L_i delta_i + beta F,
        kappa = 1/4 + log(2)/(K g) + [K odd] 1/(4 K^2),
        beta  = 0 for D = 1, else floor(D/2)/K + 2 sigma(-(2K - 1) g) + 4 (D - 1) sigma(-g).

Source: gumaan2025 for one block that detects regions; the shifted grids and all constants are derived here.

Differs from the source in
    Cells are detected by attention and a ReLU gate together: neither can do it alone. A plain cell detector (K = 1) fails
    where two coordinates change cells at once, whatever its sharpness; that happens on at most floor(D/2) of K shifted
    grids. Averaging over the shifts also halves the first term: the mean distance to a centre is a quarter of a cell.

Proof
    Fix a shift. On every axis the bins are non-negative and sum to one: B_j = P(x_i - xi lies in bin j) for xi logistic,
    P(xi < t) = sigma((2Kg/delta_i) t). Let P be the product measure on cells. For numbers B_i in [0, 1],
    1 - sum (1 - B_i) <= prod B_i, so 0 <= w_c <= P(c), and d := 1 - sum_c w_c >= 0. With T_q = m + sum_c w_c (f(c) - m):

        |T_q - f(x)| = |sum_c w_c (f(c) - f(x)) - d (f(x) - m)| <= sum_i L_i E|c_i - x_i| + d F.

    First term, one axis in units of delta. Let C(y) be the centre of the lattice cell of y without clipping. Then
    |c - x| <= |C(x - xi) - x|: clipping to an interval that contains x brings no point farther away; and where x - xi
    lies beyond the first threshold's cell, that cell's centre C_0 is used instead of C: if x >= C_0 it is between C and x;
    else a <= x < C_0 lies in that cell, |C_0 - x| <= 1/2 and |C - x| >= a - C >= 1/2. So E|c - x| <= E|xi| + E|C(y) - y|,
    y = x - xi, with E|xi| = 2 log(2)/(2Kg). For fixed y the K numbers C_q(y) - y are spaced 1/K apart modulo 1 in [-1/2,
    1/2]. The mean of |t| over such a set is 1/4 for even K (t and t +- 1/2 pair up), and at most 1/4 + 1/(4K^2) for odd K
    (piecewise linear in the offset, largest with a point at 1/2: (1/K)(1/2 + 2 sum_{j<=(K-1)/2} (1/2 - j/K))). This is
    kappa.

    Second term. Call axis i of shift q in transition if x_i is closer than delta_i/(2K) to one of its thresholds (those of
    the whole lattice). Thresholds of all shifts are delta_i/K apart, so an axis is in transition for at most one shift,
    and at most floor(D/2) shifts have two axes or more in transition; there d <= 1. In any other shift every axis not in
    transition has a bin of mass at least 1 - 2 sigma(-g), and one that is has two neighbouring bins of mass together at
    least 1 - 2 sigma(-(2K-1)g), because the other thresholds are at least delta_i (1 - 1/(2K)) away. With U the sum of the
    missing masses of the D - 1 other axes, the units of the two cells give sum w_c >= sum over the two bins of (B - U), so
    d <= 2 sigma(-(2K-1)g) + 2U <= 2 sigma(-(2K-1)g) + 4(D-1) sigma(-g); with no axis in transition d <= 2D sigma(-g),
    which is less for D >= 2. For D = 1 the units are the bins themselves and d = 0. Average over q. QED.

    The rule bounds F by max |f(c) - m| over the centres of the first shift plus (1/2) sum L_i delta_i: every x is within
    half a cell of one of them.

Assumptions
    lipschitz (**checked**): f is Lipschitz on the box; enclosures of Clarke's gradient on a partition.
    form (**checked**): every stored head and unit is the theorem's up to a distance that is charged: sigmoids are within
    tanh(|score difference|/4), ReLU is 1-Lipschitz, the units of a shift sum to at most one.

Certified: sup |T - f| <= bound for the real-number function T of the exact stored weights.

Not certified: Anything outside the box; the rounding of a floating-point run of T.

Example
    >>> from fractions import Fraction
    >>> from certiformer.kernel.balls import working_precision
    >>> from certiformer.axioms.shifted_lattice import ShiftedLattice
    >>> working_precision()
    >>> for shifts in (1, 4, 16):
    ...     kappa, beta = constants(ShiftedLattice((8, 8), shifts, Fraction(8)))
    ...     print(f"{float(kappa):.4f} {float(beta):.4f}")
    0.5866 1.0020
    0.2717 0.2513
    0.2554 0.0638

Tests: tests/theorems/test_shifted_grids.py
"""

from __future__ import annotations

from flint import arb

from certiformer.axioms.derivatives import DerivativeBounds
from certiformer.axioms.grid import partition
from certiformer.axioms.shifted_lattice import ShiftedLattice, Unit
from certiformer.axioms.sink_heads import Affine, Block, Vector, others
from certiformer.kernel import Refused
from certiformer.kernel.balls import HALF, ONE, ZERO, BallDomain, Box, ConstantAlgebra, ball, larger, largest
from certiformer.kernel.certificate import Theorem as TheoremNode
from certiformer.kernel.problem import Network, Problem, ProgramFunction
from certiformer.kernel.programs import Program, fold

THEOREM = {
    "id": "axioms.shifted_grids",
    "title": "Soft bins by attention and one AND unit per cell, averaged over shifted grids, approximate "
    "Lipschitz functions.",
    "kind": "upper bound",
    "sources": ("gumaan2025",),
    "verb": "build",
    "assumptions": (
        ("lipschitz", "f is Lipschitz on the box; Clarke's gradient is enclosed on a partition", "checked"),
        ("form", "every stored head and unit is the theorem's up to a distance that is charged", "checked"),
    ),
}


def constants(lattice: ShiftedLattice) -> tuple[arb, arb]:
    """kappa and beta of the statement."""
    shifts, g, dimension = lattice.shifts, ball(lattice.sharpness), len(lattice.cells)
    kappa = ONE / 4 + arb(2).log() / (shifts * g) + (ONE / (4 * shifts * shifts) if shifts % 2 else ZERO)
    if dimension == 1:
        return kappa.upper(), ZERO
    leak = 2 / (1 + ((2 * shifts - 1) * g).exp()) + 4 * (dimension - 1) / (1 + g.exp())
    return kappa.upper(), (arb(dimension // 2) / shifts + leak).upper()


def apriori(lattice: ShiftedLattice, domain: BallDomain, gradient: list[arb], farthest: arb) -> arb:
    """The bound of the statement for one output, given max |f(c) - m| over the centres of the first shift."""
    kappa, beta = constants(lattice)
    steps = sum((g * delta for g, delta in zip(gradient, lattice.spacing(domain), strict=True)), ZERO)
    return (kappa * steps + beta * (farthest + HALF * steps)).upper()


def values(program: Program, lattice: ShiftedLattice, domain: BallDomain) -> list[list[arb]]:
    """f at the centre of every unit, in stored order."""
    algebra = ConstantAlgebra()
    return [fold(program, lattice.centre(domain, unit), algebra) for unit in lattice.units()]


def check(node: TheoremNode, problem: Problem) -> arb:
    """The proved bound of a theorem node, hypotheses checked, distance to the ideal weights charged."""
    if not isinstance(problem.right, ProgramFunction) or not isinstance(problem.left, Network):
        raise Refused("the theorem needs a transformer with a feed-forward part and a target program")
    program, domain = problem.right.program, problem.domain
    if problem.left.outputs != problem.right.outputs:
        raise Refused("transformer and target differ in their number of outputs")
    if problem.left.dimension != domain.dimension:
        raise Refused("transformer and domain differ in their number of variables")
    lattice = ShiftedLattice.from_parameters(node.parameters, domain.dimension)
    block = Block(problem.left)
    count, blocks = lattice.unit_count(), len(block.rows)
    if block.units != count * blocks:
        raise Refused(f"the transformer has {block.units} units, the theorem speaks of {count * blocks}")
    derivatives = DerivativeBounds(program, domain, partition(node.parameters, domain.dimension), order=1)
    if derivatives.smooth < 1:
        raise Refused(f"the target is not known to be Lipschitz on {derivatives.where}: {derivatives.why}")
    wanted, box = values(program, lattice, domain), domain.box(((0, 0),) * domain.dimension)
    first = sum(1 for unit in lattice.units() if unit.shift == 0)
    bounds = []
    for place in range(blocks):
        row = _Row(block, lattice, domain, box, place)
        for o in range(len(block.read)):
            output = place * len(block.read) + o
            column = [line[output] for line in wanted]
            level = row.level(o)
            farthest = largest([abs(value - level).upper() for value in column[:first]])
            ideal = apriori(lattice, domain, derivatives.gradient[output], farthest)
            bounds.append((ideal + row.charge(o, column, level)).upper())
    return largest(bounds)


class _Row:
    """What one read row computes, compared with the theorem."""

    def __init__(self, block: Block, lattice: ShiftedLattice, domain: BallDomain, box: Box, place: int):
        self.block, self.lattice, self.box, self.place = block, lattice, box, place
        self.row = block.rows[place]
        self.moved: list[arb] = []  # per head: how far its sigmoid may be from the ideal one
        self.writes: dict[int, list[tuple[int, arb]]] = {}  # coordinate -> heads that move it, and by how much
        self.leak: Vector = {}  # coordinate -> what tokens that should have no weight may add
        self.base: Vector = {}
        self._read_heads(domain)
        self.errors = self._unit_errors()

    def _read_heads(self, domain: BallDomain) -> None:
        wanted, found = self.lattice.heads(), self.block.heads(self.row)
        if len(wanted) != len(found):
            raise Refused(f"the transformer has {len(found)} heads, the theorem speaks of {len(wanted)}")
        steep = [self.lattice.steepness(domain, axis) for axis in range(domain.dimension)]
        for h, ((axis, _, number), head) in enumerate(zip(wanted, found, strict=True)):
            token = axis // self.block.network.token_width
            score, at = head.scores[token], self.lattice.position(domain, axis, number)
            slopes = {**score.slopes, axis: score.slopes.get(axis, ZERO) - steep[axis]}
            gap = Affine(score.constant + steep[axis] * at, slopes).farthest(self.box)
            self.moved.append((gap / 4).tanh().upper())
            weight, sizes = others(head, token, self.box)
            for c, size in sizes.items():
                self.leak[c] = (self.leak.get(c, ZERO) + weight * size).upper()
            for c, value in head.moves[token].items():
                self.writes.setdefault(c, []).append((h, value))
            for c, value in head.base.items():
                self.base[c] = self.base.get(c, ZERO) + value

    def _moves(self, column: Vector) -> dict[int, arb]:
        """How much every head moves column . stream."""
        total: dict[int, arb] = {}
        for c, weight in column.items():
            for h, value in self.writes.get(c, ()):
                total[h] = total.get(h, ZERO) + weight * value
        return total

    def _leaked(self, column: Vector) -> arb:
        return sum((abs(weight) * self.leak[c] for c, weight in column.items() if c in self.leak), ZERO)

    def _unit_errors(self) -> list[arb]:
        """For every unit an upper bound of |its input - the input of the theorem|."""
        numbers = {key: h for h, key in enumerate(self.lattice.heads())}
        cuts = [
            [self.lattice.thresholds(axis, shift) for shift in range(self.lattice.shifts)]
            for axis in range(len(self.lattice.cells))
        ]
        units, errors = list(self.lattice.units()), []
        columns, biases = self.block.up, self.block.up_bias
        for position, (column, bias) in enumerate(zip(columns, biases, strict=True)):
            owner, index = divmod(position, len(units))
            constant, moves = self._ideal_unit(units[index], cuts, numbers)
            if owner != self.place:  # units that answer for another position are shut by the code: minus one
                constant = constant - 1
            error = self.block.stream(self.row, column, self.base, bias).farthest(self.box, arb(constant))
            stored = self._moves(column)
            for h in stored.keys() | moves.keys():
                error = error + abs(stored.get(h, ZERO) - moves.get(h, 0)) + abs(moves.get(h, 0)) * self.moved[h]
            errors.append((error + self._leaked(column)).upper())
        return errors

    @staticmethod
    def _ideal_unit(unit: Unit, cuts: list, numbers: dict) -> tuple[int, dict[int, int]]:
        """sum of the bins - (D - 1) as a constant and +-1 per head."""
        constant, moves = 1 - len(unit.bins), {}
        for axis, j in enumerate(unit.bins):
            inside = cuts[axis][unit.shift]
            if j:
                moves[numbers[axis, unit.shift, inside[j - 1]]] = 1
            else:
                constant += 1
            if j < len(inside):
                moves[numbers[axis, unit.shift, inside[j]]] = -1
        return constant, moves

    def _direct(self, o: int) -> Affine:
        """What the read-out sees besides the units, heads at rest."""
        return self.block.stream(self.row, self.block.read[o], self.base, self.block.read_bias[o])

    def level(self, o: int) -> arb:
        """The number m of the theorem: any would do, this one is what the transformer adds to its units."""
        return self._direct(o).middle(self.box)

    def charge(self, o: int, wanted: list[arb], level: arb) -> arb:
        """An upper bound of |stored output - T of the theorem| over the domain."""
        column = self.block.read[o]
        total = self._direct(o).farthest(self.box, level) + self._leaked(column)
        for move in self._moves(column).values():
            total = total + abs(move)
        worst = [ZERO] * self.lattice.shifts
        outputs, units = self.block.unit_outputs, list(self.lattice.units())
        for position, (line, error) in enumerate(zip(outputs, self.errors, strict=True)):
            total = total + abs(line[o]) * error
            owner, index = divmod(position, len(units))
            if owner == self.place:
                # The units of a shift sum to at most one, so only the worst of its values counts.
                distance = abs(line[o] - (wanted[index] - level) / self.lattice.shifts).upper()
                worst[units[index].shift] = larger(worst[units[index].shift], distance)
        return (total + sum(worst, ZERO)).upper()
