"""Proof trees by the rule *split*, direction by direction: one dimension at a time, in the checker's own arithmetic.

The affine part of a transformer belongs to all directions together. It is shared among them by a small linear program on
sampled errors: the shares that make the sum of the largest errors smallest. A poor choice would make the bound large, never
wrong; nothing here is trusted.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from flint import arb
from scipy.optimize import linprog

from certiformer.axioms.piecewise_linear import largest_gap
from certiformer.construct.program_values import as_numpy
from certiformer.kernel import Refused
from certiformer.kernel.balls import ZERO, ball, decimal
from certiformer.kernel.certificate import Boxes, Node, Outputs, Split, Theorem, Triangle
from certiformer.kernel.layers import UnitSum, units_of
from certiformer.kernel.problem import Problem, ProgramFunction
from certiformer.kernel.programs import decimal_text
from certiformer.kernel.rules import outputs, split
from certiformer.search.split_proposal import Piece, propose, with_constants
from certiformer.target import Program, RidgeSum, ridge_split
from certiformer.verify import Budget, FloatDomain, search
from certiformer.verify.bounder import BallBounder

SAMPLES = 400  # points on a direction for sharing the affine part
PIECE_ORDER = 4  # of the Taylor forms on one linear piece
SMOOTH_ORDER = 6  # of the forms for smooth units along one direction
# Orders of the forms for |P - f| by dimension: high, because both sides are smooth.
THROUGH_ORDER = {1: 10, 2: 8, 3: 5, 4: 4}
PEAK_SAMPLES = 6_000
# How close to the sampled error a bound by boxes along one direction is tried, and what each try may cost.
ROOMS, LINE_BOXES, LINE_SECONDS = (1.004, 1.02, 1.1, 1.5), 20_000, 15.0
TIGHT = 1.002  # a piece is bisected until its bound is this close to the sampled error


@dataclass
class RidgeProof:
    """A proof tree with its leaves and the bound it gives."""

    proof: Node
    leaves: bytes
    upper: Fraction


def prove_by_ridges(
    problem: Problem, budget: Budget, through: Program | None = None, limit: Fraction | None = None
) -> RidgeProof:
    """sup |left - right| direction by direction and output by output.

    `through` is an intermediate sum of ridges for the outputs that are none themselves, `limit` the bound that is wanted.
    Raises `Refused` with the reason when the transformer or the target is not of that form, or a part does not close.
    """
    if problem.left.outputs == 1:
        return _one_output(problem, budget, b"", through, limit)
    children, leaves = [], b""
    for output, part in enumerate(outputs(problem)):
        own = None if through is None else through.select(output)
        found = _one_output(part, budget, leaves, own, limit)
        children.append(found)
        leaves = found.leaves
    upper = max(child.upper for child in children)
    return RidgeProof(Outputs(decimal_text(upper, up=True), tuple(c.proof for c in children)), leaves, upper)


def _one_output(
    problem: Problem, budget: Budget, leaves: bytes, through: Program | None, limit: Fraction | None
) -> RidgeProof:
    """Directly if the target is a sum of ridges, otherwise through one."""
    right = problem.right
    if through is None or (isinstance(right, ProgramFunction) and ridge_split(right.program) is not None):
        return _sum_of_ridges(problem, budget, leaves)
    middle = ProgramFunction(through)
    first = _sum_of_ridges(Problem(problem.left, middle, problem.domain), budget, leaves)
    if limit is None or first.upper >= limit:
        raise Refused(f"the pieces alone leave an error of {float(first.upper):.6g}")
    room = float(limit - first.upper) * (1 - 1e-6)
    second = _boxes(Problem(middle, right, problem.domain), _order(problem), room, budget, first.leaves)
    bound = decimal_text(first.upper + second.upper, up=True)
    proof = Triangle(bound, through.to_json(), (first.proof, second.proof))
    return RidgeProof(proof, second.leaves, Fraction(bound))


def _order(problem: Problem) -> int:
    """High for smooth targets; at a kink the forms are wide whatever their order, so there it is low."""
    kinked = {"abs", "max", "min", "where", "sqrt"}
    if isinstance(problem.right, ProgramFunction) and any(node[0] in kinked for node in problem.right.program.nodes):
        return 2
    return THROUGH_ORDER.get(problem.domain.dimension, 3)


def _sum_of_ridges(problem: Problem, budget: Budget, leaves: bytes) -> RidgeProof:
    wanted = _target_ridges(problem)
    slopes, shifts = _shares(problem, wanted, split(_proposal(problem, wanted, None), problem)[0])
    node = with_constants(_proposal(problem, wanted, slopes), [arb(x) for x in shifts])
    parts, charge = split(node, problem)
    children, upper = [], Fraction(decimal(charge, up=True))
    began = time.monotonic()
    for place, part in enumerate(parts):
        left = budget.seconds - (time.monotonic() - began)
        if left <= 0:
            raise Refused(f"{place} of {len(parts)} directions took the {budget.seconds:g} seconds; raise --seconds")
        found = _one_direction(part, replace(budget, seconds=left), leaves)
        children.append(found.proof)
        leaves, upper = found.leaves, upper + found.upper
    bound = decimal_text(upper + Fraction(1, 10**30), up=True)
    return RidgeProof(replace(node, bound=bound, children=tuple(children)), leaves, Fraction(bound))


def _target_ridges(problem: Problem) -> RidgeSum:
    """The right-hand side as a sum of ridge functions."""
    right = problem.right
    wanted = ridge_split(right.program) if isinstance(right, ProgramFunction) and right.outputs == 1 else None
    if wanted is None:
        raise Refused("the target is not written as a sum of functions of one direction each")
    return wanted


def _proposal(problem: Problem, wanted: RidgeSum, slopes: list[float] | None) -> Split:
    """The node for the directions of the target; without slopes the affine part stays with the transformer."""
    pieces = [Piece((direction,), profile) for direction, profile in wanted.ridges]
    node = propose(problem, wanted.linear, pieces, [[arb(x)] for x in slopes or [0.0] * len(pieces)])
    return node if slopes else with_constants(node, [ZERO] * len(pieces))


def _one_direction(problem: Problem, budget: Budget, leaves: bytes) -> RidgeProof:
    peak = _peak(problem)
    if isinstance(problem.left, UnitSum) and problem.left.kind == "relu":
        return _by_pieces(problem, peak, leaves)
    reason = Refused("no threshold was tried")
    for room in ROOMS:
        part = Budget(min(budget.boxes, LINE_BOXES), min(budget.seconds, LINE_SECONDS))
        try:
            return _boxes(problem, SMOOTH_ORDER, peak * room + 1e-15, part, leaves)
        except Refused as refusal:
            reason = refusal
    raise reason


def _by_pieces(problem: Problem, peak: float, leaves: bytes) -> RidgeProof:
    reason = Refused("no piece was tried")
    # Samples in floating point do not see an error at the level of rounding, so there is some absolute room as well.
    for room, digits in ((TIGHT, 20), (TIGHT, 15), (1.05, 13), (2.0, 10)):
        # The limit is what the node claims: the checker repeats the same bisections with it.
        limit = decimal_text(Fraction(peak * room) + Fraction(1, 10**digits), up=True)
        try:
            largest_gap(problem, PIECE_ORDER, ball(Fraction(limit)).lower())
        except Refused as refusal:
            reason = refusal
            continue
        return RidgeProof(Theorem(limit, "piecewise_linear", {"order": PIECE_ORDER}), leaves, Fraction(limit))
    raise reason


def _boxes(problem: Problem, order: int, threshold: float, budget: Budget, leaves: bytes) -> RidgeProof:
    result = search(BallBounder(problem, order), FloatDomain(problem.domain), threshold, budget)
    if not result.closed:
        raise Refused(f"{result.stopped} (the best bound so far is {result.tree.upper():.6g})")
    tree = result.tree.to_bytes()
    bound = decimal_text(max(result.tree.upper(), 1e-300) * (1 + 1e-6), up=True)
    return RidgeProof(Boxes(bound, order, len(leaves), len(tree)), leaves + tree, Fraction(bound))


def _peak(problem: Problem) -> float:
    """The largest sampled error of a one-dimensional problem; samples are dense near the ends, where errors are steep."""
    low, high = (float(end.mid()) for end in problem.domain.ends[0])
    shares = (1 - np.cos(np.pi * np.linspace(0, 1, PEAK_SAMPLES))) / 2
    points = np.unique(np.concatenate([_points(problem), low + (high - low) * shares]))
    errors = np.abs(_errors(problem, points))
    place = int(errors.argmax())
    around = points[max(place - 1, 0) : place + 2]
    finer = np.linspace(around[0], around[-1], 201)
    return float(max(errors.max(), np.abs(_errors(problem, finer)).max()))


def _points(problem: Problem) -> np.ndarray:
    """Points of the range of one direction: evenly spaced, and around the knots of the units."""
    low, high = (float(end.mid()) for end in problem.domain.ends[0])
    points = [np.linspace(low, high, SAMPLES)]
    if isinstance(problem.left, UnitSum):
        knots = np.array([float((-u.offset / u.slope[0]).mid()) for u in problem.left.units if u.slope[0] != 0])
        knots = np.sort(np.concatenate([knots[(knots > low) & (knots < high)], [low, high]]))
        points += [knots, (knots[1:] + knots[:-1]) / 2]
    return np.unique(np.concatenate(points))


def _errors(problem: Problem, points: np.ndarray) -> np.ndarray:
    """left - right at points of a one-dimensional problem, in floating point."""
    bounds = []
    left = problem.left
    if isinstance(left, UnitSum):
        value = float(left.linear[0].mid()) * points + float(left.constant.mid())
        for unit in left.units:
            inner = float(unit.slope[0].mid()) * points + float(unit.offset.mid())
            value = value + float(unit.coefficient.mid()) * _activation(left.kind, inner)
        bounds.append(value)
    if not isinstance(problem.right, ProgramFunction) or not bounds:
        raise Refused("the parts of the split are not profiles and programs")
    return bounds[0] - as_numpy(problem.right.program)(points[:, None])[:, 0]


def _activation(kind: str, x: np.ndarray) -> np.ndarray:
    if kind == "relu":
        return np.maximum(x, 0.0)
    if kind == "gelu":
        from scipy.special import erf

        return 0.5 * x * (1 + erf(x / np.sqrt(2)))
    return 0.5 * (1 + np.tanh(x / 2))


def _shares(problem: Problem, wanted, bare: list[Problem]) -> tuple[list[float], list[float]]:
    """Slopes and shifts of the directions: the linear program of the module docstring."""
    if not bare:
        return [], []
    found = units_of(problem.left, problem.domain)
    box = problem.domain.box(((0, 0),) * problem.domain.dimension)
    directions = np.array([direction for direction, _ in wanted.ridges], dtype=float).reshape(len(bare), -1)
    count, dimension = len(bare), problem.domain.dimension
    rest = np.array(
        [float((own - ball(theirs)).mid()) for own, theirs in zip(found.linear, wanted.linear, strict=True)]
    )
    centre = np.array([float(c) for c in box.centre])
    constant = float(found.constant.mid()) - float(np.array([float(slope) for slope in wanted.linear]) @ centre)
    # Work in centred variables t = s - p.c, so that shifts are values at the middle: k_i = h_i - mu_i p_i.c.
    middles = directions @ centre
    rows, sides = [], []
    for place, part in enumerate(bare):
        points = _points(part)
        if len(points) > 2 * SAMPLES:
            points = points[np.linspace(0, len(points) - 1, 2 * SAMPLES).astype(int)]
        errors = _errors(part, points)
        for sign in (1.0, -1.0):
            block = np.zeros((len(points), 3 * count))
            block[:, place] = sign * (points - middles[place])
            block[:, count + place] = sign
            block[:, 2 * count + place] = -1.0
            rows.append(block)
            sides.append(-sign * errors)
    equal = np.zeros((dimension + 1, 3 * count))
    equal[:dimension, :count] = directions.T
    equal[dimension, count : 2 * count] = 1.0
    goal = np.concatenate([np.zeros(2 * count), np.ones(count)])
    bounds = [(None, None)] * (2 * count) + [(0, None)] * count
    # Slopes outside the span of the directions cannot be shared: they are charged.
    spanned = directions.T @ np.linalg.lstsq(directions.T, rest, rcond=None)[0]
    solved = linprog(
        goal,
        np.concatenate(rows),
        np.concatenate(sides),
        equal,
        np.concatenate([spanned, [constant]]),
        bounds,
        method="highs",
    )
    if solved.x is None:
        raise Refused(f"the affine part could not be shared among the directions: {solved.message}")
    slopes, heights = solved.x[:count], solved.x[count : 2 * count]
    # Repair the rounding of the solver, which would be charged: the shortest correction that satisfies the equalities.
    slopes = slopes + np.linalg.lstsq(directions.T, spanned - directions.T @ slopes, rcond=None)[0]
    heights = heights + (constant - heights.sum()) / count
    shifts = heights - slopes * middles
    return [float(x) for x in slopes], [float(x) for x in shifts]
