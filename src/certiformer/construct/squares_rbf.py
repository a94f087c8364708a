"""`--method squares-rbf`: squares by attention, radial bumps by the feed-forward part, for functions of few variables.

The theorem, its proof and its constants live in `axioms.squares_rbf`. Here the derivatives of the target are
enclosed, an affine function is taken off it, and the bump and the grid with the fewest hidden units are chosen whose bound
stays below epsilon. The bumps were found by minimising defect + drift numerically over thresholds and heights, for reaches
of at most 1.48, 2.47 and 3.47 cells (1, 2 and 3 margin cells); the constants that count are enclosed by the checker's code.
Two thresholds give a defect of about one percent where an exponential, interpolated linearly, needs eight; two such
exponentials are there for small epsilon in one and two dimensions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product

import numpy as np
from flint import arb

from certiformer.axioms.grid import Grid
from certiformer.axioms.jets import jets
from certiformer.axioms.radial_lattice import Bump, Constants, constants
from certiformer.axioms.squares_rbf import MAX_LEVELS, Bounds, Layer, apriori, ideal_values, less_affine
from certiformer.construct.method import Construction, Size, Task
from certiformer.construct.square_attention import configuration, fit_squares, square_transformer
from certiformer.kernel import Refused
from certiformer.kernel.balls import BallDomain, working_precision
from certiformer.kernel.certificate import Theorem as TheoremNode
from certiformer.kernel.programs import decimal_text
from certiformer.target import Program

LAYOUTS = ("token",)
MAX_DIMENSION = 3
MAX_UNITS = 20_000
PARTS = 1_000  # sub-boxes on which derivatives are enclosed, over all axes together
# The a-priori bound is kept below epsilon by this factor: room for the distance of stored to ideal weights.
ROOM = Fraction(999, 1000)
TOLERANCE = Fraction(1, 2000)  # of the squares; it adds about as much to the defect
SLICES = {1: 256, 2: 32, 3: 10}

# Thresholds (squared radii in cells) and heights, by dimension, from small and rough to wide and accurate.
_FOUND = {
    1: [
        ("0.93424 2.1904", "0.2544 0.16049"),
        ("0.62852 1.2565 2.184", "0.27771 0.1414 0.12779"),
        ("2.2295 3.9795", "0.081155 0.060443"),
        ("0.36121 1.7022 3.4543 4.2877", "0.20934 0.05831 0.041302 0.034905"),
    ],
    2: [
        ("1.4482 2.1904", "0.1166 0.081718"),
        ("0.45541 1.12671 1.87902", "0.47704 0.2372 0.067"),
        ("2.09127 3.71181", "0.04835 0.03086"),
        ("2.0725 3.2353 4.5255", "0.036836 0.019187 0.013553"),
        ("3.0843 4.30381 5.84004", "0.01409 0.0164 0.00583"),
        ("5.3533 7.5408", "0.0091964 0.0065609"),
    ],
    3: [
        ("2.172", "0.085842"),
        ("0.64366 1.4392 1.9015", "0.38922 0.10333 0.04226"),
        ("4.5944", "0.013191"),
        ("0.29725 5.30023", "0.14939 0.00912"),
        ("1.4052 1.9157 2.9457", "0.027345 0.035832 0.023556"),
    ],
}


def exponential(pieces: int, dimension: int, sharpness: float = 1.3) -> Bump:
    """exp(-sharpness t) interpolated at t = -2 log(i/pieces)/sharpness, i = 1..pieces, then down to zero; sum about one.

    The mean of the sum over the lattice is the integral: a term (theta - t)+ has 2 omega theta^(d/2 + 1)/(d + 2), with
    omega the volume of the unit ball.
    """
    knots = np.array([2 * math.log(pieces / i) / sharpness for i in range(pieces, 0, -1)])
    knots = np.append(knots, knots[-1] + 1.5 / sharpness)
    values = np.append((np.arange(pieces, 0, -1) / pieces) ** 2, 0.0)
    slopes = np.append((values[:-1] - values[1:]) / np.diff(knots), 0.0)
    heights, thresholds = slopes[:-1] - slopes[1:], knots[1:]
    volume = math.pi ** (dimension / 2) / math.gamma(dimension / 2 + 1)
    heights /= (heights * 2 * volume * thresholds ** (dimension / 2 + 1) / (dimension + 2)).sum()
    return Bump(tuple(Fraction(f"{x:.6g}") for x in thresholds), tuple(Fraction(f"{x:.6g}") for x in heights))


def _bump(thresholds: str, heights: str) -> Bump:
    return Bump(tuple(map(Fraction, thresholds.split())), tuple(map(Fraction, heights.split())))


BUMPS = {
    dimension: (
        *(_bump(*entry) for entry in entries),
        *((exponential(8, dimension), exponential(16, dimension)) if dimension < 3 else ()),
    )
    for dimension, entries in _FOUND.items()
}


@dataclass(frozen=True)
class Plan:
    """A grid and a bump that the theorem proves good enough."""

    task: Task
    layer: Layer
    program: Program
    partition: tuple[int, ...]
    bound: float
    room: float
    theorem: str = "squares_rbf"

    def size(self) -> Size:
        """The exact size, but for weights that happen to be zero."""
        inputs, outputs = len(self.layer.slopes[0]), len(self.layer.slopes)
        heads = sum(len(s.places) for s in _squares(self.layer.grid))
        units = self.layer.grid.size * len(self.layer.bump.heights)
        width = configuration(heads, units, inputs, outputs).width
        slopes = sum(map(bool, (a for row in self.layer.slopes for a in row)))
        nonzero = 5 * heads + units * (inputs + 2 + outputs) + inputs + 2 + 2 * outputs + slopes
        dense = 4 * width * heads + 2 * width * units + units + (inputs + outputs + 3) * width + outputs
        return Size(nonzero, dense, heads, units, 1)

    def realise(self) -> Construction:
        working_precision()
        domain, layer = BallDomain(self.task.target.domain), self.layer
        values = np.array([[float(v.mid()) for v in row] for row in ideal_values(self.program, layer, domain)])
        heights = np.array([float(h) for h in layer.bump.heights])
        axes = [[k + 0.5 - n / 2 for k in range(-layer.grid.margin, n + layer.grid.margin)] for n in layer.grid.cells]
        model = square_transformer(
            _squares(layer.grid),
            np.array([float(((low + high) / 2).mid()) for low, high in domain.ends]),
            np.array([float(delta.mid()) for delta in layer.grid.spacing(domain)]),
            np.array(list(product(*axes))),
            np.array([float(x) for x in layer.bump.thresholds]),
            (values[:, None, :] * heights[None, :, None]).reshape(-1, values.shape[1]),
            np.array(layer.slopes, float).T,
            np.array(layer.constants, float),
        )
        bound = decimal_text(Fraction(self.bound) + Fraction(self.room), up=True)
        parameters = {**layer.parameters(), "partition": list(self.partition)}
        return Construction(model, TheoremNode(bound, self.theorem, parameters))


def _squares(grid: Grid) -> list:
    """The heads of every axis; each may use up its share of the tolerance, less room for the enclosure."""
    return [fit_squares(n / 2, float(TOLERANCE) * 0.8 / len(grid.cells)) for n in grid.cells]


def plan(task: Task) -> Plan:
    """The fewest hidden units found that the theorem proves; raises `Refused` with the reason when it does not apply.

    >>> from certiformer.target import Target, parse_domain, parse_formula
    >>> target = Target("", parse_formula("x1*x2"), parse_domain("[0, 1]^2"))
    >>> chosen = plan(Task.of(target, Fraction(1, 20)))
    >>> chosen.layer.grid.cells, chosen.size().units, chosen.bound < 0.05
    ((4, 4), 72, True)
    """
    working_precision()
    target = task.target
    domain, dimension = BallDomain(target.domain), target.domain.dimension
    if dimension > MAX_DIMENSION:
        raise Refused(f"squares and bumps are for at most {MAX_DIMENSION} variables, not {dimension}")
    parts = (max(1, int(PARTS ** (1 / dimension) + 1e-9)),) * dimension
    slopes, shifts = _affine_part(target.program, domain)
    program = less_affine(target.program, slopes, shifts)
    bounds = Bounds(program, domain, parts, 2)
    order = 2 if bounds.smooth == 2 else 1
    if bounds.smooth < 1:
        raise Refused(f"the target is not known to be Lipschitz on {bounds.where}: {bounds.why}")
    if order == 1:
        bounds = Bounds(program, domain, parts, 1)
    choose = _Choice(domain, bounds, order, slopes, shifts, float(task.epsilon * ROOM))
    layer, bound = choose.fewest_units()
    bound, room = math.nextafter(bound, math.inf), _rounding(layer, domain, bounds)
    if bound + room > task.epsilon:
        raise Refused("epsilon is below what float64 weights of this method can carry")
    return Plan(task, layer, program, parts, bound, room)


def _rounding(layer: Layer, domain: BallDomain, bounds: Bounds) -> float:
    """An estimate of the distance of stored to ideal weights, rather too large; the checker encloses the true one.

    Pre-activations are sums of numbers of the size of the squared cells, each off by 2^-53 of that, and the distances of
    all hidden units add up with their output weights; the affine part is off by 2^-53 of its size.
    """
    largest = max(float(size) for size in bounds.size) * max(float(h) for h in layer.bump.heights)
    scores = 1.0 + sum(n * n for n in layer.grid.cells) + float(layer.bump.thresholds[-1])
    for n, (low, high) in zip(layer.grid.cells, domain.ends, strict=True):
        scores += n * n * abs(float(low + high)) / float(high - low)
    ends = [max(abs(float(a)), abs(float(b))) for a, b in domain.ends]
    affine = 1.0 + max(
        abs(float(c)) + sum(abs(float(a)) * e for a, e in zip(row, ends, strict=True))
        for row, c in zip(layer.slopes, layer.constants, strict=True)
    )
    return 2.0**-50 * (affine + largest * scores * _units(layer))


class _Choice:
    """Grids for every bump, by constants that are sampled (to rank the bumps) or enclosed (to decide)."""

    def __init__(self, domain: BallDomain, bounds: Bounds, order: int, slopes, shifts, epsilon: float):
        self.domain, self.bounds, self.order, self.epsilon = domain, bounds, order, epsilon
        self.affine, self.dimension = (slopes, shifts), domain.dimension

    def fewest_units(self) -> tuple[Layer, float]:
        """The layer with the fewest units and its bound; a bump is enclosed only if it may still be the best."""
        ranked = []
        for bump in BUMPS[self.dimension]:
            layer = self.smallest(bump, sampled_constants(bump, self.dimension), MAX_UNITS + 1)
            if layer is not None:
                ranked.append((_units(layer), bump))
        best, limit = None, MAX_UNITS + 1
        for estimate, bump in sorted(ranked, key=lambda pair: pair[0]):
            if estimate >= limit:
                break
            sums = constants(bump, self.dimension, TOLERANCE, SLICES[self.dimension])
            layer = self.smallest(bump, sums, limit)
            if layer is not None:
                best, limit = (layer, self.bound(layer, sums)), _units(layer)
        if best is None:
            raise Refused(f"no grid of at most {MAX_UNITS:,} hidden units reaches this epsilon")
        return best

    def bound(self, layer: Layer, sums: Constants) -> float:
        return float(max(apriori(layer, self.domain, self.bounds, sums)))

    def smallest(self, bump: Bump, sums: Constants, limit: int) -> Layer | None:
        """The first grid of growing size with fewer than `limit` units that is good enough.

        Cells on an axis are in proportion to what it contributes to the bound.
        """
        shares = self._shares()
        margin = math.ceil(math.sqrt(float(bump.thresholds[-1] + TOLERANCE)) - 0.5)
        longest = 1
        while True:
            cells = tuple(max(1, math.ceil(longest * share / max(max(shares), 1e-300))) for share in shares)
            grid = Grid(cells, margin, Fraction(1))
            layer = Layer(grid, bump, TOLERANCE, self.order, SLICES[self.dimension], _levels(grid), *self.affine)
            if _units(layer) >= limit:
                return None
            if self.bound(layer, sums) <= self.epsilon:
                return layer
            longest += 1

    def _shares(self) -> list[float]:
        lengths = [float((high - low).mid()) for low, high in self.domain.ends]
        if self.order == 1:
            return [max(float(g[i]) for g in self.bounds.gradient) * length for i, length in enumerate(lengths)]
        bent = [
            max(sum(float(h) for pair, h in hessian.items() if i in pair) for hessian in self.bounds.hessian)
            for i in range(self.dimension)
        ]
        return [math.sqrt(b) * length for b, length in zip(bent, lengths, strict=True)]


def _levels(grid: Grid) -> int:
    """How often an axis is halved to enclose the squares: eight pieces a cell, whose Taylor forms are accurate enough."""
    return min(MAX_LEVELS, math.ceil(math.log2(max(grid.cells))) + 3)


def _units(layer: Layer) -> int:
    return layer.grid.size * len(layer.bump.heights)


@lru_cache(maxsize=32)
def sampled_constants(bump: Bump, dimension: int) -> Constants:
    """The lattice constants at sample positions: a little below the true ones."""
    line = np.linspace(0, 0.5, {1: 41, 2: 13, 3: 7}[dimension])
    z = np.array(list(product(line, repeat=dimension)))
    wide = int(math.sqrt(bump.thresholds[-1])) + 1
    c = np.array(list(product(range(-wide, wide + 2), repeat=dimension)))
    y = z[:, None] - c[None]
    gaps = np.array(bump.thresholds, float) - (y**2).sum(-1, keepdims=True)
    phi = np.maximum(gaps, 0) @ np.array(bump.heights, float)
    sums = [
        np.abs(phi.sum(1) - 1),
        np.abs((phi * y[..., 0]).sum(1)),
        (phi * np.abs(y[..., 0])).sum(1),
        (phi * y[..., 0] ** 2).sum(1),
        (phi * np.abs(y[..., 0] * y[..., -1])).sum(1) if dimension > 1 else np.zeros(1),
    ]
    return Constants(*(arb(float(s.max())) for s in sums))


def _affine_part(program: Program, domain: BallDomain) -> tuple[tuple[tuple[Fraction, ...], ...], tuple[Fraction, ...]]:
    """Slopes amid the enclosed gradients and the middle of the enclosed values, an output each; zeros if unbounded."""
    pieces = 5 if domain.dimension < 3 else 3
    gradients, values = _ranges(program, domain, pieces)
    slopes = tuple(tuple(_middle(ends) for ends in row) for row in gradients)
    flat = less_affine(program, slopes, (Fraction(0),) * len(slopes))
    _, values = _ranges(flat, domain, pieces)
    return slopes, tuple(_middle(ends) for ends in values)


def _ranges(program: Program, domain: BallDomain, pieces: int):
    """The ends of all partial derivatives and of the values, over a coarse partition."""
    gradients = [[[math.inf, -math.inf] for _ in domain.ends] for _ in program.outputs]
    values = [[math.inf, -math.inf] for _ in program.outputs]
    ends = [np.linspace(float(low.mid()), float(high.mid()), 2 * pieces + 1) for low, high in domain.ends]
    for point in product(*ends):
        for o, jet in enumerate(jets(program, [arb(float(x)) for x in point], 1)):
            for pair, ball in [*zip(gradients[o], jet.grad, strict=True), (values[o], jet.value)]:
                pair[0], pair[1] = min(pair[0], float(ball.lower())), max(pair[1], float(ball.upper()))
    return gradients, values


def _middle(ends: list[float]) -> Fraction:
    middle = (ends[0] + ends[1]) / 2
    return Fraction(middle) if math.isfinite(middle) else Fraction(0)
