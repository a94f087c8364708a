"""What a proof speaks of: two functions on a box, or a transformer at the rows of a list.

Both sides of a claim about a box offer the same three things, whatever they are (a network, a sum of prototype heads, a
target program): `outputs`, `forms(box, order)` and `restrict(box)`, which may return a cheaper object that is valid on that
box only.

At a row, numbers or token ids, `PointNetwork` is the forward pass of `kernel.network` with two additions: it embeds token
ids, and it adds up ReLU units that look in the same direction w without visiting each of them. For units relu(s - t_i) with
s = w . h and outgoing weights d_i, sorted by threshold,

    sum_i d_i relu(s - t_i) = s sum_{i < k} d_i - sum_{i < k} d_i t_i + (the units whose sign at s is not certain),

where the first k thresholds are certainly at most s: two table look-ups instead of thousands of products. Both sides
are the same real number; the sums are kept in balls.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Protocol

from flint import arb, arb_mat

from certiformer.kernel import stream, taylor
from certiformer.kernel.arrays import Apply, ArrayProgram, Linear, arguments
from certiformer.kernel.balls import ZERO, BallDomain, Box, ball, larger
from certiformer.kernel.forward import node_value
from certiformer.kernel.functions import target_forms
from certiformer.kernel.network import Network
from certiformer.kernel.programs import Program
from certiformer.kernel.refusal import Refused
from certiformer.kernel.stream import Stream
from certiformer.kernel.target import Row, Rows
from certiformer.kernel.taylor import Form, table, value_ball


class Function(Protocol):
    """A vector function on a box that can be enclosed by Taylor forms."""

    @property
    def outputs(self) -> int: ...

    def forms(self, box: Box, order: int) -> list[Form]: ...

    def restrict(self, box: Box) -> Function: ...


@dataclass(frozen=True)
class ProgramFunction:
    """A target program as a function."""

    program: Program

    @property
    def outputs(self) -> int:
        return len(self.program.outputs)

    def forms(self, box: Box, order: int) -> list[Form]:
        return target_forms(self.program, box, order)

    def restrict(self, box: Box) -> ProgramFunction:
        return self


@dataclass(frozen=True)
class SelectedOutput:
    """One output of a function."""

    function: Function
    output: int

    @property
    def outputs(self) -> int:
        return 1

    def forms(self, box: Box, order: int) -> list[Form]:
        return [self.function.forms(box, order)[self.output]]

    def restrict(self, box: Box) -> SelectedOutput:
        return SelectedOutput(self.function.restrict(box), self.output)


def select(function: Function, output: int) -> Function:
    """One output of a function, as simply as it can be had."""
    if isinstance(function, ProgramFunction):
        return ProgramFunction(function.program.select(output))
    return SelectedOutput(function, output)


@dataclass(frozen=True)
class Problem:
    """The statement `sup over domain, max over outputs, |left - right| <= bound` for a bound still to be proved."""

    left: Function
    right: Function
    domain: BallDomain

    def restrict(self, box: Box) -> Problem:
        return Problem(self.left.restrict(box), self.right.restrict(box), self.domain)


def error_upper(problem: Problem, box: Box, order: int) -> tuple[arb, list[Form], str]:
    """An upper bound of max |left - right| on `box`: the difference is one form before its range is taken.

    Returns the bound, the forms of both sides (for choosing where to bisect) and why a side may be undefined there.
    """
    left, right = problem.left.forms(box, order), problem.right.forms(box, order)
    worst, singular = ZERO, ""
    for a, b in zip(left, right, strict=True):
        difference = taylor.add(a, b, -1)
        worst = larger(worst, taylor.magnitude(difference))
        singular = singular or difference.singular
    return worst, left + right, singular


class PointNetwork(Network):
    """A stored transformer as a function of single points; boxes are for `Network`."""

    def values(self, point: tuple[Fraction, ...]) -> list[arb]:
        """Balls around all outputs at `point`; raises `Refused` when one cannot be enclosed."""
        if len(point) != self.dimension:
            raise Refused(f"the transformer reads {self.dimension} inputs, not {len(point)}")
        values: dict[int, Stream] = {0: stream.constants(table(1, 0), self._tokens(point))}
        for position, bundles in self._steps:
            node = self.program.nodes[position]
            values[position] = node_value(node, values, table(1, 0)) if bundles is None else bundles.value(values)
        result = values[len(self.program.nodes) - 1]
        balls = [value_ball(result.form(r, c)) for r in range(result.shape[0]) for c in range(result.shape[1])]
        if not all(value.is_finite() for value in balls):
            raise Refused(f"the transformer's output at ({', '.join(map(str, point))}) could not be enclosed")
        return balls

    def _tokens(self, point: tuple[Fraction, ...]) -> arb_mat:
        """The value of the program's input: the point itself, or the embedded ids."""
        if self.config["input"]["kind"] == "continuous":
            return arb_mat(self.tokens, self.token_width, [ball(x) for x in point])
        for t, letter in enumerate(point):
            if letter.denominator != 1 or not 0 <= letter < self.config["input"]["vocabulary"]:
                raise Refused(f"token {t + 1} of a row is not an id of the transformer's vocabulary")
        return self.embedded_ids([int(letter) for letter in point])

    @cached_property
    def _steps(self) -> list[tuple[int, Bundles | None]]:
        """The nodes that have to be computed, in order; units that are added up in bundles need no node of their own."""
        nodes = self.program.nodes
        bundled = {position: bundles_of(self.program, position) for position in range(1, len(nodes))}
        needed = {len(nodes) - 1}
        for position in range(len(nodes) - 1, 0, -1):
            if position in needed:
                bundles = bundled[position]
                needed.update(arguments(nodes[position]) if bundles is None else (bundles.source,))
        return [(position, bundled[position]) for position in sorted(needed - {0})]


def bundles_of(program: ArrayProgram, position: int) -> Bundles | None:
    """The relu layer whose last step is the node at `position`; None where bundles would not help."""
    last = program.nodes[position]
    middle = program.nodes[last.x] if isinstance(last, Linear) else None
    first = program.nodes[middle.x] if isinstance(middle, Apply) and middle.name == "relu" else None
    if not isinstance(last, Linear) or not isinstance(first, Linear):
        return None
    columns, rows = first.weight.matrix.transpose().tolist(), last.weight.matrix.tolist()
    groups: dict[tuple[float, ...], list[int]] = {}
    for unit, column in enumerate(columns):  # stored weights are float64 numbers, so that this is exact
        groups.setdefault(tuple(float(entry) for entry in column), []).append(unit)
    if 4 * len(groups) > len(columns):
        return None
    shifts = first.bias or [ZERO] * len(columns)
    bundles = [Bundle(direction, [(-shifts[u], rows[u]) for u in own]) for direction, own in groups.items()]
    return Bundles(first.x, bundles, last.bias or [ZERO] * last.weight.matrix.ncols())


@dataclass(frozen=True)
class Bundles:
    """A relu layer that reads the node `source`, its units sorted by direction."""

    source: int
    bundles: list[Bundle]
    bias: list[arb]

    def value(self, values: Mapping[int, Stream]) -> Stream:
        source, sums = values[self.source], []
        for r in range(source.shape[0]):
            row = [value_ball(source.form(r, c)) for c in range(source.shape[1])]
            out = list(self.bias)
            for bundle in self.bundles:
                bundle.add(row, out)
            sums.append(out)
        return stream.constants(source.table, arb_mat(sums))


class Bundle:
    """Units relu(w . h - t_i) with outgoing rows d_i, summed by prefix sums over increasing t_i."""

    def __init__(self, direction: tuple[float, ...], units: list[tuple[arb, list[arb]]]):
        self.direction = [(c, arb(w)) for c, w in enumerate(direction) if w]
        units = sorted(units, key=lambda unit: unit[0])
        self.thresholds = [t for t, _ in units]
        used = [c for c in range(len(units[0][1])) if any(not row[c].is_zero() for _, row in units)]
        self.columns = []
        for c in used:
            slopes, offsets = [ZERO], [ZERO]
            for t, row in units:
                slopes.append(slopes[-1] + row[c])
                offsets.append(offsets[-1] + row[c] * t)
            self.columns.append((c, [row[c] for _, row in units], slopes, offsets))

    def add(self, row: list[arb] | Mapping[int, arb], out: list[arb]) -> None:
        """Add the units' contribution at the residual row to `out`."""
        s = sum((row[c] * w for c, w in self.direction), ZERO)
        if not s.is_finite():
            raise Refused("a hidden unit of the transformer could not be enclosed")
        sure, possible = bisect_right(self.thresholds, s.lower()), bisect_left(self.thresholds, s.upper())
        for c, weights, slopes, offsets in self.columns:
            out[c] = out[c] + s * slopes[sure] - offsets[sure]
            for i in range(sure, possible):
                out[c] = out[c] + weights[i] * (s - self.thresholds[i]).nonnegative_part()


@dataclass(frozen=True)
class FiniteProblem:
    """The statement `max over rows and outputs of |T(row) - y| <= bound` for a bound still to be proved."""

    network: PointNetwork
    target: Rows

    def errors(self, inputs: Row, outputs: Row) -> list[arb]:
        """Balls around T - y at one row."""
        return [t - ball(y) for t, y in zip(self.network.values(inputs), outputs, strict=True)]

    def error_lower(self, point: Row, output: int) -> arb:
        """A lower bound of the error of one output at a point, which must be a row."""
        self.network.require_room(1)  # a row of a sequence map has as many numbers as the outputs
        wanted = self.target.find(point)
        if wanted is None:
            raise Refused("the recorded witness is not a row of the claim")
        if not 0 <= output < len(wanted):
            raise Refused("the recorded witness names an output that does not exist")
        return larger(self.errors(point, wanted)[output].abs_lower(), ZERO)
