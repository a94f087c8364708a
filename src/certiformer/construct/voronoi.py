"""`--method voronoi`: prototypes on a grid, sized by the two Voronoi theorems.

The theorems, their proofs and their constants live in `axioms.voronoi_first_order` (A1) and
`axioms.voronoi_second_order` (A2). Here the derivatives of the target are enclosed with the checker's own jets, the
smallest grid whose a-priori bound stays below epsilon is chosen, and the ideal values are rounded to float64 weights.
Both theorems give a certificate by themselves; the search may find a tighter one.

A target that neither theorem covers (`sqrt(x1)` on [0, 1] has no Lipschitz constant) gets a grid whose *sampled* error is
comfortably below epsilon, and no theorem node: whether it is good enough is then for the boxes rule to prove.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np

from certiformer.axioms import voronoi_first_order as first_order
from certiformer.axioms import voronoi_second_order as second_order
from certiformer.axioms.grid import Grid
from certiformer.axioms.jets import DerivativeBounds
from certiformer.axioms.lattice import moments
from certiformer.construct.method import Construction, Layout, Size, Task
from certiformer.construct.prototype_attention import configuration, prototype_transformer
from certiformer.errors import BadInput
from certiformer.kernel import Refused
from certiformer.kernel.balls import BallDomain, working_precision
from certiformer.kernel.certificate import Theorem as TheoremNode
from certiformer.kernel.programs import decimal_text
from certiformer.model import Transformer, tensor_specs
from certiformer.target import Target
from certiformer.target.floating import as_jax

MAX_PROTOTYPES = 200_000
PARTS = 2_000  # sub-boxes on which derivatives are enclosed, over all axes together
# The a-priori bound is kept below epsilon by this factor: room for the distance of stored to ideal weights.
ROOM = Fraction(999, 1000)
FIRST_ORDER_SHARPNESS = Fraction(4)
# Without a theorem: the sampled error must be below this share of epsilon. The grid stays so coarse that every cell has
# several sample points, so that a jump cannot hide between them.
MEASURED_SHARE, MEASURED_PROTOTYPES, MEASURED_POINTS = 0.7, 2_048, 16_384
# (sharpness, margin) pairs worth trying: a softer softmax needs more margin and has a smaller drift.
SECOND_ORDER_CHOICES = [
    (Fraction(numerator, 10), margin)
    for numerator in (25, 20, 17, 15, 13, 12, 10, 9, 8, 7, 6, 5)
    for margin in range(1, 7)
]


LAYOUTS: tuple[Layout, ...] = ("token",)  # the query must carry the whole input


@dataclass(frozen=True)
class Plan:
    """A grid of prototypes for a target, and the theorem that proves it good enough (none if it was measured)."""

    target: Target
    theorem: str
    grid: Grid
    bound: float
    partition: tuple[int, ...]

    def size(self) -> Size:
        """Exact but for values and centres that happen to be zero, which are counted."""
        inputs, outputs = self.target.domain.dimension, len(self.target.program.outputs)
        count = self.grid.size
        config = configuration(count, inputs, outputs)
        dense = sum(int(np.prod(spec.shape)) for spec in tensor_specs(config).values())
        nonzero = count * (inputs + 1 + outputs) + 4 * inputs + 4 + 3 * outputs
        return Size(nonzero, dense, 1, 0, count)

    def realise(self) -> Construction:
        return realise(self)


def plan(task: Task) -> Plan:
    """The smallest grid that one of the two theorems proves, or without a theorem one whose sampled error leaves room.

    Raises `Refused` with the reason when there is none.

    >>> from certiformer.target import Target, parse_domain, parse_formula
    >>> target = Target("sin(x1)", parse_formula("sin(x1)"), parse_domain("[0, 2*pi]"))
    >>> planned = plan(Task.of(target, Fraction(1, 100)))
    >>> planned.theorem, planned.grid.cells
    ('voronoi_second_order', (29,))
    """
    try:
        return plan_by_theorem(task.target, task.epsilon)
    except Refused as refusal:
        return _by_measurement(task.target, task.epsilon, str(refusal))


def plan_by_theorem(target: Target, epsilon: Fraction) -> Plan:
    """The smallest grid that one of the two theorems proves; raises `Refused` with the reason when neither applies."""
    working_precision()
    domain = BallDomain(target.domain)
    parts = (max(1, int(PARTS ** (1 / domain.dimension) + 1e-9)),) * domain.dimension
    derivatives = DerivativeBounds(target.program, domain, parts, order=2)
    plans, reasons = [], []
    for propose in (_second_order, _first_order):
        try:
            plans.append(propose(target, domain, derivatives, epsilon * ROOM, parts))
        except Refused as refusal:
            reasons.append(str(refusal))
    if not plans:
        raise Refused(reasons[-1])
    return min(plans, key=lambda p: p.grid.size)


def realise(chosen: Plan) -> Construction:
    """The weights of a planned grid, with its theorem node if it has one."""
    target, grid = chosen.target, chosen.grid
    domain = BallDomain(target.domain)
    if grid.size > MAX_PROTOTYPES:
        raise BadInput(
            f"this target needs {grid.size:,} prototypes at that epsilon, more than {MAX_PROTOTYPES:,}; raise --eps"
        )
    rule = second_order if chosen.theorem == "voronoi_second_order" else first_order
    ideal = rule.ideal_values(target.program, grid, domain)
    values = np.array([[float(v.mid()) for v in row] for row in ideal])
    model = _transformer(grid, domain, values)
    if not chosen.theorem:
        return Construction(model, None)
    parameters = {**grid.parameters(), "partition": list(chosen.partition)}
    # The node claims what `plan` left room for: the checker charges the distance of stored to ideal weights. The other
    # terms are for targets that are (almost) constant, whose a-priori bound is zero but whose values are rounded.
    room = Fraction(float(np.abs(values).max())) / 2**40 + Fraction(1, 10**300)
    bound = decimal_text(Fraction(chosen.bound) / ROOM + room, up=True)
    return Construction(model, TheoremNode(bound, chosen.theorem, parameters))


def _by_measurement(target: Target, epsilon: Fraction, reason: str) -> Plan:
    """The first grid of a doubling sequence whose sampled error leaves room; `Refused` with `reason` if none does."""
    domain, wanted = BallDomain(target.domain), as_jax(target.program)
    ends = np.array([[float(low.mid()), float(high.mid())] for low, high in domain.ends])
    points = np.random.default_rng(0).uniform(ends[:, 0], ends[:, 1], (MEASURED_POINTS, domain.dimension))
    # Trouble sits at the ends of the box more often than inside it.
    points[: MEASURED_POINTS // 4] = np.where(points[: MEASURED_POINTS // 4] < ends.mean(1), ends[:, 0], ends[:, 1])
    with jax.enable_x64(True):
        exact = np.asarray(wanted(jnp.asarray(points)))
    cells = 4
    while (grid := Grid((cells,) * domain.dimension, 0, FIRST_ORDER_SHARPNESS)).size <= MEASURED_PROTOTYPES:
        ideal = first_order.ideal_values(target.program, grid, domain)
        model = _transformer(grid, domain, np.array([[float(v.mid()) for v in row] for row in ideal]))
        measured = float(np.abs(model.evaluate(points) - exact).max())
        if measured <= MEASURED_SHARE * float(epsilon):
            return Plan(target, "", grid, measured, ())
        cells *= 2
    raise Refused(reason)


def _transformer(grid: Grid, domain: BallDomain, values: np.ndarray) -> Transformer:
    middle = np.array([float(((low + high) / 2).mid()) for low, high in domain.ends])
    half = np.array([float(((high - low) / 2).upper()) for low, high in domain.ends])
    spacing = np.array([float(delta.mid()) for delta in grid.spacing(domain)])
    lines = []
    for (low, high), centres in zip(domain.ends, grid.axes(domain), strict=True):
        lines.append([float((c - (low + high) / 2).mid()) for c in centres])
    return prototype_transformer(
        np.array(list(product(*lines))), values, middle, half, 2 * float(grid.sharpness) / spacing**2
    )


def _first_order(
    target: Target, domain: BallDomain, derivatives: DerivativeBounds, epsilon: Fraction, parts: tuple[int, ...]
) -> Plan:
    """Equal shares of the error on every axis: sum_i L_i delta_i is then reached with the fewest cells."""
    weight = [max(float(g[i]) for g in derivatives.gradient) for i in range(domain.dimension)]

    def bound(cells: tuple[int, ...]) -> float:
        grid = Grid(cells, 0, FIRST_ORDER_SHARPNESS)
        return float(max(first_order.apriori(grid, domain, derivatives))) + _rounding(grid, domain, derivatives)

    cells = _smallest(domain, weight, 1, bound, float(epsilon))
    return Plan(target, "voronoi_first_order", Grid(cells, 0, FIRST_ORDER_SHARPNESS), bound(cells), parts)


def _second_order(
    target: Target, domain: BallDomain, derivatives: DerivativeBounds, epsilon: Fraction, parts: tuple[int, ...]
) -> Plan:
    """The (sharpness, margin) pair with the fewest prototypes."""
    best: Plan | None = None
    for sharpness, margin in SECOND_ORDER_CHOICES:
        try:
            moments(sharpness, margin)
        except Refused:
            continue

        def bound(cells: tuple[int, ...], sharpness=sharpness, margin=margin) -> float:
            grid = Grid(cells, margin, sharpness)
            return float(max(second_order.apriori(grid, domain, derivatives))) + _rounding(grid, domain, derivatives)

        bound((1,) * domain.dimension)  # raises Refused once when the target is not smooth
        cells = _smallest(domain, _curvature(derivatives, domain.dimension), 0.5, bound, float(epsilon))
        candidate = Plan(target, "voronoi_second_order", Grid(cells, margin, sharpness), bound(cells), parts)
        if candidate.bound <= epsilon and (best is None or candidate.grid.size < best.grid.size):
            best = candidate
    if best is None:
        raise Refused("no grid of the second-order theorem reaches this epsilon")
    return best


def _rounding(grid: Grid, domain: BallDomain, derivatives: DerivativeBounds) -> float:
    """About what rounding the weights to float64 costs: scores of size b (N/2 + r)^2 carry errors of some 2^-52 of that.

    At 3,600 prototypes this is 3e-9 times the spread of the values: nothing at epsilon 1e-3, a few parts in a thousand
    at 1e-6. An estimate for planning; the checker encloses the true distance.
    """
    scores = sum(float(grid.sharpness) * (cells / 2 + grid.margin) ** 2 for cells in grid.cells)
    lengths = [float((high - low).mid()) for low, high in domain.ends]
    spread = max(
        sum(float(g) * length for g, length in zip(gradient, lengths, strict=True)) for gradient in derivatives.gradient
    )
    return spread * min(1.0, scores * 2.0**-50)


def _curvature(derivatives: DerivativeBounds, dimension: int) -> list[float]:
    """How much each axis contributes to the second-order bound, per squared spacing."""
    result = []
    for i in range(dimension):
        shares = [
            sum(float(h) * (1 if a == b else 0.5) for (a, b), h in hessian.items() if i in (a, b))
            for hessian in derivatives.hessian
        ]
        result.append(max(shares))
    return result


def _smallest(
    domain: BallDomain, weight: list[float], power: float, bound: Callable[[tuple[int, ...]], float], epsilon: float
) -> tuple[int, ...]:
    """Cells proportional to length * weight^power, as few as keep the bound below epsilon."""
    lengths = [float((high - low).mid()) for low, high in domain.ends]
    shape = [length * (w**power if math.isfinite(w) else 1.0) for length, w in zip(lengths, weight, strict=True)]
    top = max(max(shape), 1e-300)
    shape = [max(s / top, 1e-6) for s in shape]

    def cells(scale: float) -> tuple[int, ...]:
        return tuple(max(1, math.ceil(scale * s - 1e-9)) for s in shape)

    low, high = 0, 1
    while not bound(cells(high)) <= epsilon:
        if high > MAX_PROTOTYPES:
            return cells(high)
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if bound(cells(middle)) <= epsilon else (middle, high)
    best = list(cells(high))
    for axis in sorted(range(len(best)), key=lambda i: -best[i]):  # round the proportional choice down where possible
        while best[axis] > 1 and bound(tuple(best[:axis] + [best[axis] - 1] + best[axis + 1 :])) <= epsilon:
            best[axis] -= 1
    return tuple(best)
