"""What has to be fitted: every output as an affine part plus functions of few variables.

The reading of the target as a sum of ridge functions or of terms in disjoint variables is exact and syntactic
(`target.ridges`, `target.split`), and a proof can follow it: each component is then bounded by itself, in its own
few variables.
A component is seen on [-1, 1]^k and with values in about [-1, 1]; `Component` knows the way back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from certiformer.kernel import Refused
from certiformer.model import Transformer
from certiformer.search.fit.architecture import Units
from certiformer.search.request import teacher_model
from certiformer.target import Builder, Program, Target, Teacher, additive_split, fold
from certiformer.target.floating import as_jax
from certiformer.target.ridges import ridge_split

KINKS = ("abs", "max", "min", "where")
PERHAPS_KINKS = ("sqrt",)
SCALE_POINTS = 4_096
# Inner weights keep this many bits, so that their products with small integers (the directions of ridges) are exact.
INNER_BITS = 40


@dataclass(frozen=True)
class Component:
    """A function g of the k numbers `directions` x, part of one output.

    With u = (directions x - middle) / half in [-1, 1]^k, what is fitted is (g - shift) / scale as a function of u.
    """

    output: int
    program: Program | Transformer
    directions: Float[np.ndarray, "k inputs"]
    middle: Float[np.ndarray, " k"]
    half: Float[np.ndarray, " k"]
    shift: float
    scale: float

    @property
    def inputs(self) -> int:
        return len(self.middle)

    @property
    def key(self) -> tuple:
        """Components with equal keys are the same function of u."""
        function = self.program if isinstance(self.program, Program) else (id(self.program), self.output)
        return function, self.middle.tobytes(), self.half.tobytes()

    def values_of(self) -> Callable[[np.ndarray], np.ndarray]:
        """The function of u that is fitted, at many points."""
        function = rows_of(self.program)
        column = 0 if isinstance(self.program, Program) else self.output

        def values(u: np.ndarray) -> np.ndarray:
            return (function(self.middle + self.half * u)[:, column] - self.shift) / self.scale

        return values

    def in_inputs(self, units: Units) -> Units:
        """A network in u as one in x that approximates g."""
        inner = _rounded(units.weights / self.half)
        linear = self.scale * units.linear / self.half
        return Units(
            inner @ self.directions,
            units.bias - inner @ self.middle,
            self.scale * units.coefficients,
            linear @ self.directions,
            float(self.shift + self.scale * units.constant - linear @ self.middle),
        )


@dataclass(frozen=True)
class Parts:
    """All components of a target, and the affine part of every output that belongs to none."""

    components: list[Component]
    linear: Float[np.ndarray, "inputs outputs"]
    low: Float[np.ndarray, " inputs"]
    high: Float[np.ndarray, " inputs"]

    def reads(self, names: tuple[str, ...]) -> bool:
        """Whether a component has one of these operations."""
        programs = [c.program for c in self.components if isinstance(c.program, Program)]
        return any(node[0] in names for program in programs for node in program.nodes)


def rows_of(function: Program | Transformer) -> Callable[[np.ndarray], np.ndarray]:
    """A program or a transformer in float64, at rows of points."""
    if isinstance(function, Transformer):
        return function.evaluate
    compiled = as_jax(function)

    def rows(points: np.ndarray) -> np.ndarray:
        with jax.enable_x64(True):
            return np.asarray(compiled(jnp.asarray(points)))

    return rows


def whole(target: Target | Teacher) -> Program | Transformer:
    """The target with all its outputs."""
    return teacher_model(target) if isinstance(target, Teacher) else target.program


def components(target: Target | Teacher) -> Parts:
    """The components of a target; `Refused` when it has no finite value somewhere on the box."""
    ends = np.array([[_constant(low), _constant(high)] for low, high in target.domain.ends()])
    low, high = ends[:, 0], ends[:, 1]
    inputs, outputs = len(low), target.outputs
    found, linear = [], np.zeros((inputs, outputs))
    if isinstance(target, Teacher):
        model = teacher_model(target)
        found = [_component(output, model, np.eye(inputs), low, high) for output in range(outputs)]
        return Parts(found, linear, low, high)
    for output in range(outputs):
        ridges = ridge_split(target.program, output)
        if ridges is not None:
            linear[:, output] = [float(c) for c in ridges.linear]
            pieces = [(np.array([direction], float), profile) for direction, profile in ridges.ridges]
        else:
            groups = additive_split(target.program, output) or [_variables_alone(target.program.select(output))]
            pieces = [(np.eye(inputs)[list(variables)], program) for variables, program in groups]
        found += [_component(output, program, directions, low, high) for directions, program in pieces]
    return Parts(found, linear, low, high)


def _variables_alone(program: Program) -> tuple[tuple[int, ...], Program]:
    """The variables that the program reads, and the program in those alone."""
    variables = tuple(sorted({node[1] for node in program.nodes if node[0] == "var"}))
    build = Builder()
    inputs = [build.var(variables.index(i)) if i in variables else None for i in range(program.inputs)]
    return variables, build.program(len(variables), fold(program, inputs, build))


def _component(
    output: int, program: Program | Transformer, directions: np.ndarray, low: np.ndarray, high: np.ndarray
) -> Component:
    least = np.minimum(directions * low, directions * high).sum(1)
    most = np.maximum(directions * low, directions * high).sum(1)
    middle, half = (least + most) / 2, (most - least) / 2
    raw = Component(output, program, directions, middle, half, 0.0, 1.0)
    points = np.random.default_rng(0).uniform(-1, 1, (SCALE_POINTS, len(middle)))
    points[: SCALE_POINTS // 4] = np.sign(points[: SCALE_POINTS // 4])
    values = raw.values_of()(points)
    if not np.isfinite(values).all():
        raise Refused("the target is not finite at some sampled point of the box")
    shift, scale = float(values.max() + values.min()) / 2, float(values.max() - values.min()) / 2
    return Component(output, program, directions, middle, half, shift, scale if scale > 0 else 1.0)


def _constant(program: Program) -> float:
    with jax.enable_x64(True):
        return float(as_jax(program)(jnp.zeros((1, program.inputs)))[0, 0])


def _rounded(values: np.ndarray) -> np.ndarray:
    """The numbers with INNER_BITS significant bits."""
    fractions, exponents = np.frexp(values)
    return np.ldexp(np.round(np.ldexp(fractions, INNER_BITS)), exponents - INNER_BITS)
