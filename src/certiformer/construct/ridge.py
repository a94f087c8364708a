"""`--method ridge`: ReLU units along the directions in which the target bends, after an exact gather (construction B2).

A target that is written as a sum of ridge functions, f = l . x + sum_i g_i(p_i . x), is built directly: every profile
becomes the piecewise linear function with the fewest pieces (`construct.piecewise_linear`), epsilon is shared among them
so that the total is least (`construct.share_tolerance`), and the proof is one-dimensional, piece by piece. sin(x1) +
sin(x2) on [0, 2 pi]^2 takes 32 units at 0.01 and 106 at 0.001.

Any other target is first fitted: the terms that are ridges stay, the rest becomes polynomials along a few directions
(`construct.polynomial_ridges`). That sum P is again a program; |T - P| is proved piece by piece and |P - f|, both smooth,
by enclosure with Taylor forms of high order. The plan carries P as `through`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from threadpoolctl import threadpool_limits

from certiformer.construct.gather_block import gather_size, gather_transformer
from certiformer.construct.method import Construction, Size, Task, with_layout
from certiformer.construct.piecewise_linear import PiecewiseLinear, units
from certiformer.construct.polynomial_ridges import RidgeFit, fit_ridges, spent
from certiformer.construct.program_values import as_numpy
from certiformer.construct.ridge_fit_program import fitted_program
from certiformer.construct.ridge_terms import separated
from certiformer.construct.share_tolerance import Profile, shared
from certiformer.kernel import Refused
from certiformer.kernel.balls import BallDomain, working_precision
from certiformer.target import Program, RidgeSum, ridge_split

LAYOUTS = ("sequence", "token", "output-token")

# The predicted bound is kept below epsilon by this factor: proofs by pieces stop within 0.2 % of the error, and stored
# weights are a few units in the last place away from the planned ones.
ROOM = Fraction(997, 1000)
MOST_VARIABLES = 4  # of a target that has to be fitted
MOST_UNITS = 30_000


@dataclass(frozen=True)
class Output:
    """One output: what it is a sum of, and the path for every ridge."""

    ridges: RidgeSum
    paths: list[PiecewiseLinear]
    residual: float  # of the fit, sampled


@dataclass(frozen=True)
class Plan:
    """Paths for every output, before a transformer is made of them."""

    task: Task
    outputs: list[Output]
    through: Program | None  # the fitted sum of ridges, None if the target is one itself
    theorem: str = "piecewise_linear"

    @property
    def bound(self) -> float:
        return max(output.residual + sum(path.error for path in output.paths) for output in self.outputs)

    @property
    def units(self) -> int:
        return sum(path.pieces - 1 for output in self.outputs for path in output.paths)

    def size(self) -> Size:
        return gather_size(*self.gather_arguments())

    def realise(self) -> Construction:
        """The weights; the proof, which needs a search for |P - f|, is put together elsewhere."""
        return Construction(gather_transformer(*self.gather_arguments()), None, through=self.through)

    def gather_arguments(self) -> tuple:
        """The arguments of `gather_transformer`: relu(+-(p . x - knot)), the flattest slopes in the linear part."""
        low, high = _box(self.task)
        count = len(self.outputs)
        linear, constant = np.zeros((len(low), count)), np.zeros(count)
        weights, bias, coefficients = [np.zeros((0, len(low)))], [np.zeros(0)], [np.zeros((0, count))]
        for o, output in enumerate(self.outputs):
            slopes = [Fraction(0)] * len(low)
            for (direction, _), path in zip(output.ridges.ridges, output.paths, strict=True):
                bent = units(path)
                slopes = [s + Fraction(bent.slope) * p for s, p in zip(slopes, direction, strict=True)]
                constant[o] += bent.constant
                weights.append(bent.signs[:, None] * np.array(direction, dtype=float))
                bias.append(-bent.signs * bent.knots)
                coefficients.append(bent.coefficients[:, None] * np.eye(count)[o])
            linear[:, o] = [float(a + b) for a, b in zip(slopes, output.ridges.linear, strict=True)]
        shape = with_layout("ridge", self.task.shape)
        arrays = np.concatenate(weights), np.concatenate(bias), np.concatenate(coefficients)
        return shape, low, high, linear, constant, *arrays


def plan(task: Task) -> Plan:
    """Directions and paths with few hidden units; `Refused` with the reason when the target cannot be fitted."""
    # The matrices are small: several BLAS threads only wait for each other (20 times slower on two busy cores).
    with threadpool_limits(limits=1):
        return _plan(task)


def _plan(task: Task) -> Plan:
    working_precision()
    program, epsilon = task.target.program, float(task.epsilon * ROOM)
    outputs = len(program.outputs)
    sums = [ridge_split(program, o) for o in range(outputs)]
    residuals, through = [0.0] * outputs, None
    if any(each is None for each in sums):
        through, residuals = _fitted(task, epsilon)
        sums = [ridge_split(through, o) for o in range(outputs)]
    found = []
    for each, residual in zip(sums, residuals, strict=True):
        if each is None:
            raise Refused("the fitted sum of ridges is too large to be read back")
        found.append(Output(each, _paths(task, each, epsilon - spent(residual, epsilon)), residual))
    result = Plan(task, found, through)
    if result.units > MOST_UNITS:
        raise Refused(f"ridges would need {result.units:,} hidden units, more than {MOST_UNITS:,}")
    return result


def _fitted(task: Task, epsilon: float) -> tuple[Program, list[float]]:
    """The fitted program with every output, and the sampled residuals."""
    low, high = _box(task)
    if len(low) > MOST_VARIABLES:
        raise Refused(f"polynomial ridges are fitted for at most {MOST_VARIABLES} variables, not {len(low)}")
    exact, rest = separated(task.target.program)
    values = as_numpy(rest)
    fits: list[RidgeFit] = []
    for o in range(len(rest.outputs)):
        fit = fit_ridges(lambda x, o=o: values(x)[:, o], low, high, epsilon)
        if fit is None:
            raise Refused(f"no sum of polynomial ridges was found within {epsilon:.3g} of output {o + 1}")
        if fit.predicted > MOST_UNITS:
            raise Refused(f"ridges would need some {fit.predicted:,.0f} hidden units, more than {MOST_UNITS:,}")
        fits.append(fit)
    return fitted_program(fits, exact), [fit.residual for fit in fits]


def _paths(task: Task, ridges: RidgeSum, tolerance: float) -> list[PiecewiseLinear]:
    domain = BallDomain(task.target.domain)
    known: dict[tuple, Profile] = {}  # equal profiles are equal objects, which remember what has been found for them
    profiles = []
    for direction, program in ridges.ridges:
        low, high = (float(end.mid()) for end in domain.along(direction).ends[0])
        values = as_numpy(program)
        new = Profile(lambda s, f=values: f(s[:, None])[:, 0], low, high)
        profiles.append(known.setdefault((program, low, high), new))
    try:
        return shared(profiles, tolerance)
    except ValueError as error:
        raise Refused(str(error)) from None


def _box(task: Task) -> tuple[np.ndarray, np.ndarray]:
    ends = BallDomain(task.target.domain).ends
    return np.array([float(low.mid()) for low, _ in ends]), np.array([float(high.mid()) for _, high in ends])
