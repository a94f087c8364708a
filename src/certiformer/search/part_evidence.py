"""Evidence part by part, in the checker's own arithmetic: directions, groups of variables, sums of units.

Each function appends the trees it found and returns whether there is one.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from certiformer.kernel import Refused
from certiformer.kernel.balls import ball, decimal
from certiformer.kernel.certificate import Boxes
from certiformer.kernel.problem import Problem, error_upper
from certiformer.kernel.programs import decimal_text
from certiformer.kernel.rules import LEAF, root, split
from certiformer.search.box_evidence import ROOM
from certiformer.search.case import Case, Evidence, Progress, Tree, raise_lower, tight_goal
from certiformer.search.ridge_proof import prove_by_ridges
from certiformer.search.split_proposal import by_groups
from certiformer.search.unit_proof import UnitProof
from certiformer.target import Program
from certiformer.verify import Budget, Falsifier, FloatDomain, search
from certiformer.verify.bounder import BallBounder

# Units are searched in the checker's own forms, so recorded bounds are only rounded up.
UNIT_ROOM = 1 + 1e-5
# What the search in balls may cost before boxes in float64 are tried instead, and what tightening may cost.
UNIT_BOXES, UNIT_SECONDS, UNIT_TIGHT_SECONDS = 60_000, 30.0, 45.0
SUM_ORDER = 4
SUM_SECONDS = 15.0  # per term when the sum rule is only one of several; asked for by name it gets the whole budget


def by_one_box(case: Case, found: Evidence) -> bool:
    """The whole box as one leaf, in balls: float64 cannot close what differs by no more than its rounding."""
    cell = root(case.problem.domain.dimension)
    upper, _, singular = error_upper(case.problem, case.problem.domain.box(cell), 1)
    if singular or not upper <= ball(case.epsilon):
        return False
    node = Boxes(decimal_text(case.epsilon, up=False), 1, 0, 1)
    found.trees.append(Tree(node, bytes([LEAF]), Fraction(decimal(upper, up=True))))
    return True


def by_ridges(case: Case, found: Evidence, through: Program | None) -> bool:
    """Direction by direction, in the checker's own arithmetic; True when a tree was found."""
    budget = Budget(case.options.boxes, case.seconds_left)
    try:
        tree = prove_by_ridges(case.problem, budget, through, case.epsilon)
    except Refused as refusal:
        if case.options.rule == "ridges" or through is not None:
            found.reasons.append(str(refusal))
        return False
    if tree.upper > case.epsilon:
        found.reasons.append(f"the directions add up to {float(tree.upper):.6g}")
        return False
    found.trees.append(Tree(tree.proof, tree.leaves, tree.upper))
    return True


def by_units(case: Case, found: Evidence, falsifier: Falsifier, progress: Progress | None) -> bool:
    """Output by output and group by group, in the checker's closed forms for units; True when a tree was found."""
    options, epsilon = case.options, float(case.epsilon)
    budget = Budget(min(options.boxes, UNIT_BOXES), min(case.seconds_left, UNIT_SECONDS))
    try:
        proof = UnitProof(case.problem, options.order, options.seed)
        case.one_part = proof.one_part
        raise_lower(case, found, falsifier, proof.points())
        if found.lower > case.epsilon:
            return False
        if progress is not None:
            progress("search", 0, None, f"{sum(len(o.parts) for o in proof.outputs)} parts, one by one")
        loose = proof.prove(epsilon * (1 - 1e-5), budget)
    except Refused as refusal:
        if options.rule == "sum":
            found.reasons.append(str(refusal))
        return False
    found.trees.append(Tree(loose.proof, loose.leaves, loose.upper))
    goal = tight_goal(found.lower, case.epsilon, options.quality)
    if float(loose.upper) > goal:
        more = Budget(options.boxes, min(case.seconds_left / 2, UNIT_TIGHT_SECONDS))
        try:
            tight = proof.prove(goal / UNIT_ROOM, more)
            found.trees.append(Tree(tight.proof, tight.leaves, tight.upper))
        except Refused as refusal:
            found.reasons.append(f"the bracket stays wide: {refusal}")
    found.boxes += proof.boxes
    return True


def by_sum(case: Case, found: Evidence) -> bool:
    """Group by group, in the checker's own arithmetic; True when a tree was found."""
    try:
        node, _ = by_groups(case.problem)
        problems, spent = split(node, case.problem)
    except Refused as refusal:
        if case.options.rule == "sum":
            found.reasons.append(str(refusal))
        return False
    order = case.options.order or SUM_ORDER
    peaks = [_sampled_error(problem) for problem in problems]
    room = float(case.epsilon) * ROOM - float(spent)
    factor = min(1 + case.options.quality, room / max(sum(peaks), 1e-300))
    # A part that is exact still needs a positive share.
    shares = [peak * factor + 1e-3 * max(room - factor * sum(peaks), room * 1e-6) / len(peaks) for peak in peaks]
    most = case.options.seconds if case.options.rule == "sum" else SUM_SECONDS
    children, leaves = [], b""
    for problem, share in zip(problems, shares, strict=True):
        domain = FloatDomain(problem.domain)
        budget = Budget(case.options.boxes, min(case.seconds_left, most))
        result = search(BallBounder(problem, order), domain, share, budget)
        found.boxes += result.boxes
        if not result.closed:
            found.reasons.append(f"one term of the sum did not close: {result.stopped}")
            return False
        tree = result.tree.to_bytes()
        bound = decimal_text(max(result.tree.upper(), 1e-300) * (1 + 1e-6), up=True)
        children.append(Boxes(bound, order, len(leaves), len(tree)))
        leaves += tree
    total = sum((Fraction(child.bound) for child in children), Fraction(decimal(spent, up=True)))
    if total > case.epsilon:
        found.reasons.append(f"the terms of the sum add up to {float(total):.6g}")
        return False
    found.trees.append(Tree(replace(node, bound=decimal_text(total, up=True), children=tuple(children)), leaves, total))
    return True


def _sampled_error(problem: Problem, points: int = 129) -> float:
    """The largest error on a coarse grid of points (not a bound; it only guides how the budget is shared)."""
    domain = FloatDomain(problem.domain)
    count = max(3, int(points ** (1 / domain.dimension)))
    axes = [np.linspace(low, high, count) for low, high in zip(domain.low, domain.high, strict=True)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, domain.dimension)
    bounds, _ = BallBounder(problem, 0)(grid, np.zeros(grid.shape))
    return float(np.max(bounds[np.isfinite(bounds)], initial=0.0))
