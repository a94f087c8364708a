"""Proof trees for blocks of units: outputs, then groups of variables, then boxes in the few variables of a group.

The rules *outputs* and *split* take the claim apart, and every part is searched in the checker's own closed forms
(`kernel.layers`): what closes here closes there. A part is searched twice: first down to its share of epsilon, then down
to its share of the goal, which is a little above the proved lower end; the shares follow the sampled errors.
Nothing here is trusted.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from jaxtyping import Float
from scipy.special import erf

from certiformer.construct.program_values import as_numpy
from certiformer.kernel import Refused
from certiformer.kernel.balls import decimal
from certiformer.kernel.certificate import Boxes, Node, Outputs, Split
from certiformer.kernel.layers import UnitSum
from certiformer.kernel.problem import Problem, ProgramFunction
from certiformer.kernel.programs import decimal_text
from certiformer.kernel.rules import outputs, split
from certiformer.search.ridge_proof import RidgeProof
from certiformer.search.split_proposal import by_groups
from certiformer.verify import Budget, FloatDomain, Search, search
from certiformer.verify.bounder import BallBounder

# Orders of the forms by dimension, for kinked and for smooth units (11 gelu units, four inputs: 3,357 leaves at order 4, in
# 10 s; the general forms of order 3 left 100,000).
ORDERS = {"relu": {1: 4, 2: 3, 3: 2}, "gelu": {1: 8, 2: 6, 3: 5, 4: 4}}
OTHER_DIMENSIONS = 2
SAMPLES, CLIMBERS, ROUNDS = 20_000, 64, 40
# What a part with a sampled error of zero is given of the room that is left, relative to the goal.
LEAST_SHARE = 1e-3
ROUNDING = 1 + 1e-6  # recorded bounds are this much above the search's, which bounds boxes padded by 2^-47


@dataclass
class Part:
    """One group of variables of one output: its problem, and where its error was found highest and lowest."""

    variables: tuple[int, ...]
    problem: Problem
    high: Float[np.ndarray, " k"]
    low: Float[np.ndarray, " k"]
    peak: float
    order: int
    run: Search | None = None


@dataclass
class Output:
    """The parts of one output, the node that takes it apart, and what the rule *split* charges."""

    parts: list[Part]
    node: Split
    charge: Fraction

    @property
    def peak(self) -> float:
        return sum(part.peak for part in self.parts) + float(self.charge)

    def thresholds(self, goal: float) -> list[float]:
        """The bounds of the parts that make the bound of the output the goal."""
        room, share = goal - self.peak, [part.peak + LEAST_SHARE * goal for part in self.parts]
        if not room > 0:
            raise Refused(f"the sampled errors of the parts add up to {self.peak:.6g}, more than {goal:.6g}")
        return [part.peak + room * own / sum(share) for part, own in zip(self.parts, share, strict=True)]


class UnitProof:
    """The search for a proof of one claim about a block of units; `Refused` when the claim does not fall into parts."""

    def __init__(self, problem: Problem, order: int | None, seed: int):
        self.dimension = problem.domain.dimension
        self.middle = (FloatDomain(problem.domain).low + FloatDomain(problem.domain).high) / 2
        single = [problem] if problem.left.outputs == 1 else outputs(problem)
        generator = np.random.default_rng(seed)
        self.outputs = [_output(part, order, generator) for part in single]
        self.boxes = 0

    @property
    def one_part(self) -> Split | None:
        """The node of a claim that is one part in all variables, if reading the weights costs next to nothing."""
        parts = [part for output in self.outputs for part in output.parts]
        small = all(output.charge <= Fraction(output.peak) / 10**7 for output in self.outputs)
        return self.outputs[0].node if len(parts) == 1 and len(parts[0].variables) == self.dimension and small else None

    def points(self) -> Float[np.ndarray, "points inputs"]:
        """Where the error is large: the highest, and the lowest, points of all parts of an output together."""
        found = []
        for output in self.outputs:
            for end in ("high", "low"):
                point = self.middle.copy()
                for part in output.parts:
                    point[list(part.variables)] = getattr(part, end)
                found.append(point)
        return np.array(found)

    def prove(self, goal: float, budget: Budget) -> RidgeProof:
        """Continue the search until every output is bounded by the goal; `Refused` when the budget is spent before."""
        began, spent = time.monotonic(), self.boxes
        for output in self.outputs:
            for part, threshold in zip(output.parts, output.thresholds(goal), strict=True):
                left = Budget(budget.boxes - (self.boxes - spent), budget.seconds - (time.monotonic() - began))
                bounder = BallBounder(part.problem, part.order)
                tree = None if part.run is None else part.run.tree
                part.run = search(bounder, FloatDomain(part.problem.domain), threshold, left, tree=tree)
                self.boxes += part.run.boxes
                if not part.run.closed:
                    raise Refused(f"{part.run.stopped} (the best bound so far is {part.run.tree.upper():.6g})")
        return self._tree()

    def _tree(self) -> RidgeProof:
        nodes, bounds, leaves = [], [], b""
        for output in self.outputs:
            children = []
            for part in output.parts:
                tree = part.run.tree if part.run is not None else None
                if tree is None:
                    raise Refused("a part was not searched")
                data = tree.to_bytes()
                bound = decimal_text(max(tree.upper(), 1e-300) * ROUNDING, up=True)
                children.append(Boxes(bound, part.order, len(leaves), len(data)))
                leaves += data
            total = decimal_text(sum((Fraction(child.bound) for child in children), output.charge), up=True)
            nodes.append(replace(output.node, bound=total, children=tuple(children)))
            bounds.append(Fraction(total))
        proof: Node = nodes[0]
        if len(nodes) > 1:
            proof = Outputs(decimal_text(max(bounds), up=True), tuple(nodes))
        return RidgeProof(proof, leaves, max(bounds))


def _output(problem: Problem, order: int | None, generator: np.random.Generator) -> Output:
    right = problem.right
    if not isinstance(right, ProgramFunction):
        raise Refused("the sum rule needs a target program")
    node, groups = by_groups(problem)
    problems, charge = split(node, problem)
    parts = [_part(variables, part, order, generator) for variables, part in zip(groups, problems, strict=True)]
    return Output(parts, node, Fraction(decimal(charge, up=True)))


def _part(variables: tuple[int, ...], problem: Problem, order: int | None, generator: np.random.Generator) -> Part:
    left, right = problem.left, problem.right
    if not (isinstance(left, UnitSum) and isinstance(right, ProgramFunction)):
        raise Refused("the parts of the claim are not sums of units")
    orders = ORDERS["gelu" if left.kind == "gelu" else "relu"]
    order = order or orders.get(len(variables), OTHER_DIMENSIONS)
    domain = FloatDomain(problem.domain)
    units, wanted = _as_numpy(left), as_numpy(right.program)

    def error(points: Float[np.ndarray, "n k"]) -> Float[np.ndarray, " n"]:
        return units(points) - wanted(points)[:, 0]

    found = [_highest(error, sign, domain, generator) for sign in (1.0, -1.0)]
    peak = max(value for value, _ in found)
    if not np.isfinite(peak):
        raise Refused("the target or the transformer is not finite at a sampled point")
    return Part(variables, problem, found[0][1], found[1][1], max(peak, 0.0), order)


def _as_numpy(units: UnitSum):
    """The values of a sum of units at rows of points, in floating point."""
    slopes = np.array([[float(s.mid()) for s in unit.slope] for unit in units.units]).reshape(-1, len(units.linear))
    offsets = np.array([float(unit.offset.mid()) for unit in units.units])
    outer = np.array([float(unit.coefficient.mid()) for unit in units.units])
    linear, constant = np.array([float(a.mid()) for a in units.linear]), float(units.constant.mid())

    def values(points: Float[np.ndarray, "n k"]) -> Float[np.ndarray, " n"]:
        inner = points @ slopes.T + offsets
        hidden = np.maximum(inner, 0.0) if units.kind == "relu" else 0.5 * inner * (1 + erf(inner / np.sqrt(2)))
        return hidden @ outer + points @ linear + constant

    return values


def _highest(error, sign: float, domain: FloatDomain, generator: np.random.Generator):
    """The largest sampled value of sign * error and its place: random points and corners, the best of them moved uphill."""
    size = domain.dimension
    shares = (1 - np.cos(np.pi * generator.uniform(0, 1, (SAMPLES, size)))) / 2
    # On a third of the points some coordinates are at an end, where errors of trained networks are often largest.
    third = shares[: SAMPLES // 3]
    third[:] = np.where(generator.uniform(size=third.shape) < 0.5, np.round(third), third)
    width = domain.inner_high - domain.inner_low
    points = np.clip(domain.inner_low + width * shares, domain.inner_low, domain.inner_high)
    values = sign * error(points)
    order = np.argsort(-values)[: 8 * CLIMBERS : 8]
    best, heights = points[order], values[order]
    first = int(np.argmax(values))
    best[0], heights[0] = points[first], values[first]
    moves = np.concatenate([np.eye(size), -np.eye(size)])
    steps = np.full(len(best), 2.0 / SAMPLES ** (1 / size))
    for _ in range(ROUNDS):
        tried = best[:, None] + steps[:, None, None] * moves * width
        tried = np.clip(tried, domain.inner_low, domain.inner_high)
        there = (sign * error(tried.reshape(-1, size))).reshape(len(best), -1)
        move = there.argmax(1)
        better = there.max(1) > heights
        best = np.where(better[:, None], tried[np.arange(len(best)), move], best)
        heights = np.where(better, there.max(1), heights)
        steps = np.where(better, steps, steps / 2)
    place = int(np.argmax(heights))
    return float(heights[place]), best[place]
