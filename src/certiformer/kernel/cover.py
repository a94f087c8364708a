"""Rule *boxes*: an enclosure of A - B on every leaf of an exact cover.

Statement. Let a split tree bisect the domain into leaves. If on every leaf a Taylor form of A - B has all its values in
[-bound, bound], then sup |A - B| <= bound on the domain.

Proof. The leaves of a well-formed split tree cover the domain by construction (`kernel.splits`), each leaf is
contained in the outward box on which the forms are computed, and forms contain the function (`kernel.taylor`). QED.

A leaf whose form is slightly too wide is bisected further by the checker itself, at most `EXTRA` times: the recorded tree
is a proposal, not an assumption. Nothing of what the search computed on the leaves is read.
"""

from __future__ import annotations

from collections.abc import Callable

from flint import arb

from certiformer.kernel import splits
from certiformer.kernel.balls import ZERO, larger
from certiformer.kernel.problem import Problem, error_upper
from certiformer.kernel.refusal import Refused
from certiformer.kernel.splits import LEAF, Cell
from certiformer.kernel.taylor import MAX_ORDER, Form

EXTRA = 5
PRUNE_EVERY = 2  # levels of the tree between two prunings of prototype lists


def prove_piece(problem: Problem, cell: Cell, tree: bytes, order: int, bound: arb, tick: Callable[[int], None]) -> arb:
    """Check every leaf of `tree`, rooted at `cell`; returns the largest leaf bound or raises `Refused`."""
    if not 0 <= order <= MAX_ORDER:
        raise Refused(f"the order {order} of the Taylor forms is outside 0..{MAX_ORDER}")
    ends = splits.subtree_ends(tree, len(cell))
    worst = ZERO
    stack: list[tuple[Cell, int, int, Problem]] = [(cell, 0, 0, problem)]
    while stack:
        here, start, level, local = stack.pop()
        if tree[start] == LEAF:
            worst = larger(worst, _leaf(local, here, order, bound, EXTRA))
            tick(1)
            continue
        if level % PRUNE_EVERY == 0:
            local = local.restrict(local.domain.box(here))
        low, high = splits.halves(here, tree[start])
        stack.append((high, ends[start + 1], level + 1, local))
        stack.append((low, start + 1, level + 1, local))
    return worst


def _leaf(problem: Problem, cell: Cell, order: int, bound: arb, extra: int) -> arb:
    box = problem.domain.box(cell)
    local = problem.restrict(box)
    upper, forms, singular = error_upper(local, box, order)
    if upper <= bound:
        return upper
    if extra and all(m < splits.MAX_DEPTH for m, _ in cell):
        scores = axis_scores(forms, [2.0**-m for m, _ in cell])
        low, high = splits.halves(cell, scores.index(max(scores)))
        return larger(_leaf(local, low, order, bound, extra - 1), _leaf(local, high, order, bound, extra - 1))
    if singular:
        raise Refused(f"on the box {box} the function is not defined: {singular}")
    raise Refused(
        f"on the box {box} the error could only be bounded by about {float(upper):.6g}, not {float(bound):.6g}"
    )


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
