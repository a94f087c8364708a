"""Rule *boxes*: an enclosure of A - B on every leaf of an exact cover.

Statement. Let a split tree bisect the domain into leaves. If on every leaf a Taylor form of A - B has all its values in
[-bound, bound], then sup |A - B| <= bound on the domain.

Proof. The leaves of a well-formed split tree cover the domain by construction (`kernel.cover`), each leaf is
contained in the outward box on which the forms are computed, and forms contain the function (`kernel.taylor`). QED.

A leaf whose form is slightly too wide is bisected further by the checker itself, at most `EXTRA` times: the recorded tree
is a proposal, not an assumption. Nothing of what the search computed on the leaves is read. A search that hands over its
tree lets the same walk go on for longer (`Effort`), and records the tree that
came out of it: no leaf is proved twice.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from flint import arb

from certiformer.kernel import cover as splits
from certiformer.kernel.balls import ZERO, ball, exact, larger, smaller
from certiformer.kernel.cover import LEAF, Cell
from certiformer.kernel.problem import Problem, error_upper
from certiformer.kernel.refusal import Refused
from certiformer.kernel.taylor import MAX_ORDER, Form

EXTRA = 5
PRUNE_EVERY = 2  # levels of the tree between two prunings of prototype lists


@dataclass(frozen=True)
class Effort:
    """What a proof may do beyond the recorded tree; a check does what stands here.

    A leaf above `goal` (decimals; none: the bound itself) is bisected up to `EXTRA` times, one above the bound up to
    `deepest` times. At the time `end` of the clock the proof ends with a refusal.
    """

    goal: str | None = None
    deepest: int = EXTRA
    end: float = math.inf


CHECK = Effort()


def prove_piece(
    problem: Problem,
    cell: Cell,
    tree: bytes,
    order: int,
    bound: arb,
    tick: Callable[[int], None],
    effort: Effort = CHECK,
    accepted: bytearray | None = None,
) -> arb:
    """Check every leaf of `tree`, rooted at `cell`; returns the largest leaf bound or raises `Refused`.

    `accepted` is given the tree whose leaves were accepted as they are.
    """
    if not 0 <= order <= MAX_ORDER:
        raise Refused(f"the order {order} of the Taylor forms is outside 0..{MAX_ORDER}")
    ends = splits.subtree_ends(tree, len(cell))
    walk = _Walk(order, bound, effort, bytearray() if accepted is None else accepted)
    stack: list[tuple[Cell, int, int, Problem]] = [(cell, 0, 0, problem)]
    while stack:
        here, start, level, local = stack.pop()
        if tree[start] == LEAF:
            walk.leaf(local, here, 0)
            tick(1)
            continue
        walk.tree.append(tree[start])
        if level % PRUNE_EVERY == 0:
            local = local.restrict(local.domain.box(here))
        low, high = splits.halves(here, tree[start])
        stack.append((high, ends[start + 1], level + 1, local))
        stack.append((low, start + 1, level + 1, local))
    return walk.worst


class _Walk:
    """From leaf to leaf: the largest bound so far and, in preorder, the tree that was accepted."""

    def __init__(self, order: int, bound: arb, effort: Effort, tree: bytearray):
        self.order, self.bound, self.tree = order, bound, tree
        self.goal = bound if effort.goal is None else smaller(bound, ball(exact(effort.goal)).upper())
        self.deepest, self.end, self.worst = effort.deepest, effort.end, ZERO

    def leaf(self, problem: Problem, cell: Cell, level: int) -> None:
        """Bound the error on a cell that was bisected `level` times beyond the recorded tree, or bisect it once more."""
        if time.monotonic() > self.end:
            raise Refused("the time was spent before every leaf was confirmed")
        box = problem.domain.box(cell)
        local = problem.restrict(box)
        upper, forms, singular = error_upper(local, box, self.order)
        # Where one leaf stayed above the goal after all bisections, none is bisected for less.
        if upper <= self.bound and (upper <= self.goal or upper <= self.worst or level >= EXTRA):
            self.worst = larger(self.worst, upper)
            self.tree.append(LEAF)
        elif level < self.deepest and all(m < splits.MAX_DEPTH for m, _ in cell):
            scores = axis_scores(forms, [2.0**-m for m, _ in cell])
            axis = scores.index(max(scores))
            self.tree.append(axis)
            for half in splits.halves(cell, axis):
                self.leaf(local, half, level + 1)
        elif singular:
            raise Refused(f"on the box {box} the function is not defined: {singular}")
        else:
            only = f"about {float(upper):.6g}, not {float(self.bound):.6g}"
            raise Refused(f"on the box {box} the error could only be bounded by {only}")


def axis_scores(forms: list[Form], widths: list[float]) -> list[float]:
    """How much each axis contributes to the width of the forms; the remainder is shared by the relative box widths."""
    scores = [0.0] * len(widths)
    for form in forms:
        for i, c in form.coef.items():
            size = abs(float(c.mid()))
            for axis, power in enumerate(form.table.monomials[i]):
                scores[axis] += power * size
        spread = float(form.rem) / (sum(widths) or 1.0) if form.rem.is_finite() else 1e300
        scores = [score + spread * width for score, width in zip(scores, widths, strict=True)]
    return scores
