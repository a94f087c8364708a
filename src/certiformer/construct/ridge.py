"""`--method ridge`: ReLU units along the directions in which the target bends, after an exact gather (construction B2).

A target that is written as a sum of ridge functions, f = l . x + sum_i g_i(p_i . x), is built directly: every profile
becomes the piecewise linear function with the fewest pieces (`construct.piecewise_linear`), epsilon is shared among
them so that the total is least (`construct.share_tolerance`), and the proof is one-dimensional, piece by piece.
sin(x1) + sin(x2) on [0, 2 pi]^2 takes 32 units at 0.01 and 106 at 0.001.

Any other target is first fitted: the terms that are ridges stay, the rest becomes polynomials along a few directions
(`construct.polynomial_ridges`). That sum P is again a program; |T - P| is proved piece by piece and |P - f|, both
smooth, by enclosure with Taylor forms of high order. The plan carries P as `through`.

*Separation*: the terms of a target that are ridge functions already, and the rest.

>>> from certiformer.target import formula, parse_formula
>>> exact, rest = separated(parse_formula("[sin(3*x1) + 2*(x1*x2 - abs(x1 - x2)), x1]"))
>>> formula(exact), formula(rest)
(['-2*abs(x1 - x2) + sin(3*x1)', 'x1'], ['2*(x1*x2)', '0'])

*A fit as a program*, written so that `target.ridge_split` reads the ridges off it: P is affine + sum_i sum_j w_ij
T_j(t_i) with t_i = a_i . z / |a_i|_1, which is a rational affine expression of the variables. The constants are exact
rationals: what the float64 coefficients say, without any further rounding.

Chebyshev polynomials are built by doubling, T_{2n} = 2 T_n^2 - 1 and T_{2n+1} = 2 T_n T_{n+1} - t, at depth log2 of
the degree. Horner's scheme in powers of t would have coefficients of size 2^degree, and enclosures of a low order
would lose as many digits.

>>> import numpy as np
>>> from certiformer.construct.ridge_frame import Frame
>>> from certiformer.target import formula
>>> frame = Frame.of(-np.ones(2), np.ones(2))
>>> fit = RidgeFit(frame, np.array([0.0, 0.5, 0.0]), np.array([[1, 1]]), np.array([[0.25]]), 0.0, 1.0)
>>> formula(fitted_program([fit]))
['0.5*x1 + 0.25*(2*(0.5*(x1 + x2))**2 - 1)']
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from threadpoolctl import threadpool_limits

from certiformer.construct.gather_block import gather_size, gather_transformer
from certiformer.construct.method import Construction, Size, Task, with_layout
from certiformer.construct.piecewise_linear import PiecewiseLinear, units
from certiformer.construct.polynomial_ridges import RidgeFit, fit_ridges, spent
from certiformer.construct.program_values import as_numpy
from certiformer.construct.share_tolerance import Profile, shared
from certiformer.kernel import Refused
from certiformer.kernel.balls import BallDomain, working_precision
from certiformer.kernel.programs import extract
from certiformer.target import Builder, Program, RidgeSum, fold, ridge_split
from certiformer.target.split import opened


def fitted_program(fits: Sequence[RidgeFit], exact: Program | None = None) -> Program:
    """One output per fit; `exact` has a term per output that is added (what of the target is a sum of ridges already)."""
    build = Builder()
    inputs = len(fits[0].frame.middle)
    outputs = []
    added = [] if exact is None else _copied(build, exact)
    for position, fit in enumerate(fits):
        total = _affine(build, fit)
        for direction, coefficients in zip(fit.directions.tolist(), fit.coefficients.tolist(), strict=True):
            total = build.add(total, _profile(build, fit, direction, coefficients))
        outputs.append(total if exact is None else build.add(added[position], total))
    return build.program(inputs, outputs)


def _copied(build: Builder, program: Program) -> list[int]:
    return fold(program, [build.var(i) for i in range(program.inputs)], build)


def _affine(build: Builder, fit: RidgeFit) -> int:
    """affine[0] + sum_j affine[j] (x_j - middle_j) / half_j."""
    slopes = [Fraction(a) / h for a, h in zip(fit.affine[1:].tolist(), fit.frame.half, strict=True)]
    shift = sum((s * m for s, m in zip(slopes, fit.frame.middle, strict=True)), Fraction(0))
    total = _combination(build, slopes)
    return build.add(total, build.rational(Fraction(fit.affine[0].item()) - shift))


def _profile(build: Builder, fit: RidgeFit, direction: list[int], coefficients: list[float]) -> int:
    length = sum(abs(a) for a in direction)
    steps = [Fraction(a) / h for a, h in zip(direction, fit.frame.half, strict=True)]
    shift = sum((s * m for s, m in zip(steps, fit.frame.middle, strict=True)), Fraction(0))
    common = next(abs(s) for s in steps if s)
    inner = _combination(build, [s / common for s in steps])
    inner = build.mul(build.rational(common / length), inner)
    t = build.sub(inner, build.rational(shift / length))
    chebyshev = {0: build.rational(1), 1: t}

    def of(j: int) -> int:
        if j not in chebyshev:
            half = of(j // 2)
            if j % 2:
                chebyshev[j] = build.sub(build.mul(build.rational(2), build.mul(half, of(j // 2 + 1))), t)
            else:
                chebyshev[j] = build.sub(build.mul(build.rational(2), build.pow(half, 2)), build.rational(1))
        return chebyshev[j]

    total = build.rational(0)
    for j, w in enumerate(coefficients, start=2):
        if w:
            total = build.add(total, build.mul(build.rational(Fraction(w)), of(j)))
    return total


def _combination(build: Builder, coefficients: list[Fraction]) -> int:
    total = build.rational(0)
    for axis, coefficient in enumerate(coefficients):
        if coefficient:
            total = build.add(total, build.mul(build.rational(coefficient), build.var(axis)))
    return total


def separated(program: Program) -> tuple[Program, Program]:
    """Two programs whose outputs add up to those of the given one; the outputs of the first are sums of ridges."""
    build = Builder()
    numbers = fold(
        Program(program.inputs, program.nodes, tuple(range(len(program.nodes)))),
        [build.var(i) for i in range(program.inputs)],
        build,
    )
    exact, rest = [], []
    for output in program.outputs:
        sides = {True: build.rational(0), False: build.rational(0)}
        for coefficient, node in _terms(program, output):
            nodes, outputs = extract(program.nodes, [node])
            is_ridge = ridge_split(Program(program.inputs, nodes, outputs)) is not None
            term = build.mul(build.rational(coefficient), numbers[node])
            sides[is_ridge] = build.add(sides[is_ridge], term)
        exact.append(sides[True])
        rest.append(sides[False])
    return build.program(program.inputs, exact), build.program(program.inputs, rest)


def _terms(program: Program, output: int) -> list[tuple[Fraction, int]]:
    """The output as a sum of coefficients times nodes that are not sums; each node is opened once, after all its uses."""
    coefficients, terms = {output: Fraction(1)}, []
    for position in range(output, -1, -1):
        factor = coefficients.get(position)
        if factor is None:
            continue
        parts = opened(program, position)
        for share, node in parts:
            coefficients[node] = coefficients.get(node, Fraction(0)) + factor * share
        if not parts:
            terms.append((factor, position))
    return terms


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
