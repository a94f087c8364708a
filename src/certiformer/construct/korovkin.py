"""`--method korovkin`: the sound Theorem 1, cosine ridges after an exact gather.

The theorem, its proof and its constants live in `axioms.korovkin_ridges`. Here epsilon is split between the
operator (which fixes the degrees) and the bent lines, whose pieces are shared out so that the number of hidden units is
least: a profile with curvature integral I_p = integral sqrt |g''| and J pieces is missed by about I_p^2/(16 J^2), so
J_p is proportional to I_p^(2/3); a direction whose amplitudes cost less than its pieces would is left out.

`|x1 - x2|` on the unit square at 0.085: degree 36, four directions, 28 units. Everything here is float64; the proved bound
is the checker's own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from certiformer.axioms import korovkin_ridges as rule
from certiformer.axioms.cosine_ridges import directions, spread
from certiformer.construct.cosine_profile import Bent, Profile, float_profiles, share_out
from certiformer.construct.gather_block import gather_size, gather_transformer
from certiformer.construct.method import Construction, Size, Task, with_layout
from certiformer.kernel import Refused
from certiformer.kernel.balls import BallDomain, decimal, working_precision
from certiformer.kernel.certificate import Theorem as TheoremNode
from certiformer.kernel.problem import Network, Problem, ProgramFunction
from certiformer.kernel.weights import read_model
from certiformer.model.store import tensors_to_bytes
from certiformer.target import Program
from certiformer.target.floating import as_jax

LAYOUTS = ("sequence", "token", "output-token")

PARTS = 2_000  # sub-boxes on which the gradient is enclosed, over all axes together
MOST_UNITS = 30_000
# The predicted bound is kept below epsilon by this factor: room for the distance of stored to ideal weights.
ROOM = Fraction(999, 1000)
SHARES = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8)  # of epsilon, for the operator
NODES, NODE_FACTORS = 20_000, (2.0, 1.5, 1.0, 0.75)  # nodes for degree m: factor times m + 2


@dataclass(frozen=True)
class Ridges:
    """What is built for one output: the operator, its constant and its bent lines."""

    grid: rule.Grid
    constant: float
    lines: list[Bent]
    bound: float


@dataclass(frozen=True)
class Plan:
    """Bent lines for every output, before a transformer is made of them."""

    task: Task
    ridges: list[Ridges]
    partition: tuple[int, ...]
    theorem: str = "korovkin_ridges"

    @property
    def bound(self) -> float:
        return max(r.bound for r in self.ridges)

    def size(self) -> Size:
        return gather_size(*self._arrays())

    def realise(self) -> Construction:
        """The weights, and the theorem node with the bound that the checker's own rule proves for them."""
        model = gather_transformer(*self._arrays())
        parameters = {
            "degrees": [list(r.grid.degrees) for r in self.ridges],
            "nodes": [list(r.grid.nodes) for r in self.ridges],
            "partition": list(self.partition),
        }
        target = self.task.target
        network = Network(*read_model(model.config.to_bytes(), tensors_to_bytes(model)))
        problem = Problem(network, ProgramFunction(target.program), BallDomain(target.domain))
        proved = rule.check(TheoremNode("1", self.theorem, parameters), problem)
        return Construction(model, TheoremNode(decimal(proved, up=True), self.theorem, parameters))

    def _arrays(self) -> tuple:
        """The arguments of `gather_transformer`: scaled directions p_i / (b_i - a_i), knots as biases."""
        low, length = _ends(BallDomain(self.task.target.domain))
        outputs = len(self.ridges)
        linear, constant = np.zeros((len(low), outputs)), np.zeros(outputs)
        weights, bias, coefficients = [], [], []
        for o, ridges in enumerate(self.ridges):
            constant[o] = ridges.constant
            for bent in ridges.lines:
                direction = np.array(bent.direction) / length
                corner = float(direction @ low)
                linear[:, o] += bent.slope * direction
                constant[o] += bent.value - bent.slope * (corner + bent.low)
                weights.append(np.tile(direction, (len(bent.knots), 1)))
                bias.append(-bent.knots - corner)
                coefficients.append(bent.changes[:, None] * np.eye(outputs)[o])
        shape = with_layout("korovkin", self.task.shape)
        arrays = np.concatenate(weights), np.concatenate(bias), np.concatenate(coefficients)
        return shape, low, low + length, linear, constant, *arrays


def plan(task: Task) -> Plan:
    """Degrees and bent lines with few hidden units; `Refused` with the reason when the theorem does not apply."""
    working_precision()
    domain, program = BallDomain(task.target.domain), task.target.program
    if domain.dimension > rule.MAX_DIMENSION:
        raise Refused(f"Korovkin ridges are for at most {rule.MAX_DIMENSION} variables, not {domain.dimension}")
    parts = (max(1, int(PARTS ** (1 / domain.dimension) + 1e-9)),) * domain.dimension
    slopes = rule.Slopes(program, domain, parts)
    epsilon = float(task.epsilon * ROOM)
    ridges = [_ridges(program.select(o), domain, _Operator(slopes, o), epsilon) for o in range(len(program.outputs))]
    units = sum(len(bent.knots) for r in ridges for bent in r.lines)
    if not units:
        raise Refused("the target is constant up to epsilon: there is nothing to bend")
    if units > MOST_UNITS:
        raise Refused(f"Korovkin ridges would need {units:,} hidden units, more than {MOST_UNITS:,}")
    return Plan(task, ridges, parts)


class _Operator:
    """The first term of the theorem for one output as a function of the degrees, in float64."""

    def __init__(self, slopes: rule.Slopes, output: int):
        self.boxes = np.array([[float(g) for g in box] for box in slopes.boxes[output]])
        self.per_axis = self.boxes.max(axis=0).tolist()
        self._spreads: dict[tuple[int, int], tuple[float, float]] = {}
        if not all(map(math.isfinite, self.per_axis)):
            raise Refused("the target is not known to be Lipschitz: its slopes are not bounded on the box")

    def bound(self, grid: rule.Grid) -> float:
        found = [self._spread(*key) for key in zip(grid.degrees, grid.nodes, strict=True)]
        absolute, square = (np.array(moment) for moment in zip(*found, strict=True))
        joint = math.sqrt(len(found) * float(((self.boxes * square) ** 2).sum(axis=1).max()))
        return min(float(self.per_axis @ absolute), joint)

    def _spread(self, degree: int, nodes: int) -> tuple[float, float]:
        if (degree, nodes) not in self._spreads:
            found = spread(degree, nodes)
            self._spreads[degree, nodes] = float(found.absolute), float(found.square)
        return self._spreads[degree, nodes]

    def smallest(self, limit: float) -> rule.Grid:
        """Degrees proportional to the slopes of their axes, as small as keep the bound below `limit`."""
        top = max(self.per_axis)
        if not top:
            return _grid([0] * len(self.per_axis))

        def grid(scale: int) -> rule.Grid:
            return _grid([0 if not g else max(1, math.ceil(scale * g / top)) for g in self.per_axis])

        low, high = 0, 1
        while not self.bound(grid(high)) <= limit:
            low, high = high, 2 * high
            degrees = grid(low).degrees
            if max(degrees) > rule.MAX_DEGREE or directions(degrees) > rule.MAX_DIRECTIONS:
                raise Refused("Korovkin ridges would need a degree too high to check at this epsilon")
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.bound(grid(middle)) <= limit else (middle, high)
        found = grid(high)
        found.refuse_if_unfit(len(self.per_axis))
        return found


def _grid(degrees: Sequence[int]) -> rule.Grid:
    """The degrees with as many nodes as are cheap: more nodes make the operator's spread a little smaller."""
    for factor in NODE_FACTORS:
        nodes = [max(2, math.ceil(factor * (m + 2))) for m in degrees]
        if math.prod(nodes) <= NODES:
            break
    return rule.Grid(tuple(degrees), tuple(nodes))


def _ridges(program: Program, domain: BallDomain, operator: _Operator, epsilon: float) -> Ridges:
    """The share of the operator that leads to the fewest hidden units."""
    best: tuple[int, rule.Grid, float, float, list[Profile]] | None = None
    reason: Refused | None = None
    for share in SHARES:
        try:
            grid = operator.smallest(share * epsilon)
        except Refused as refusal:
            reason = refusal
            continue
        if best is not None and grid == best[1]:
            continue
        left = epsilon - operator.bound(grid)
        constant, profiles = float_profiles(_samples(program, domain, grid), grid.degrees)
        units = sum(pieces - 1 for pieces in share_out(profiles, left).values())
        if best is None or units < best[0]:
            best = units, grid, left, constant, profiles
    if best is None:
        raise reason or Refused("no degree reaches this epsilon")
    units, grid, left, constant, profiles = best
    if units > 2 * MOST_UNITS:
        raise Refused(f"Korovkin ridges would need some {units:,} hidden units, more than {MOST_UNITS:,}")
    lines, missed = _bent(profiles, left)
    return Ridges(grid, constant, lines, operator.bound(grid) + missed)


def _bent(profiles: list[Profile], tolerance: float) -> tuple[list[Bent], float]:
    """Bent lines that miss the profiles by at most `tolerance` together; what sharing out predicted is corrected."""
    aim, best = tolerance, None
    for _ in range(6):
        pieces = share_out(profiles, aim, exactly=True)
        lines = [profiles[i].bent(count) for i, count in sorted(pieces.items())]
        missed = sum(line.error for line in lines) + sum(p.size for i, p in enumerate(profiles) if i not in pieces)
        units = sum(len(line.knots) for line in lines)
        if missed <= tolerance and (best is None or units < best[0]):
            best = units, lines, missed
        if best is not None and 0.97 * tolerance <= missed <= tolerance:
            break
        aim *= 0.985 * tolerance / max(missed, 1e-3 * tolerance)
    if best is None:
        raise Refused("the pieces of the Korovkin ridges could not be shared out at this epsilon")
    return best[1], best[2]


def _samples(program: Program, domain: BallDomain, grid: rule.Grid) -> Float[np.ndarray, ...]:
    low, length = _ends(domain)
    lines = [a + n * (np.arange(count) + 0.5) / count for a, n, count in zip(low, length, grid.nodes, strict=True)]
    points = np.stack(np.meshgrid(*lines, indexing="ij"), -1).reshape(-1, len(lines))
    # Filled up to one size, so that every choice of nodes uses the same compiled operations.
    filled = np.concatenate([points, np.repeat(points[-1:], max(0, NODES - len(points)), axis=0)])
    with jax.enable_x64(True):
        values = np.asarray(as_jax(program)(jnp.asarray(filled)), dtype=np.float64)[: len(points), 0]
    return values.reshape(grid.nodes)


def _ends(domain: BallDomain) -> tuple[Float[np.ndarray, " inputs"], Float[np.ndarray, " inputs"]]:
    low = np.array([float(a.mid()) for a, _ in domain.ends])
    return low, np.array([float((b - a).mid()) for a, b in domain.ends])
