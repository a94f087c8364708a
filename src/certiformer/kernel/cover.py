"""Rule *boxes*: an enclosure of A - B on every leaf of an exact cover.

Statement. Let a split tree bisect the domain into leaves. If on every leaf a Taylor form of A - B has all its values in
[-bound, bound], then sup |A - B| <= bound on the domain.

Proof. A tree is stored in preorder, one byte a node: `LEAF`, or the axis that is bisected (then the lower half's tree and
the upper half's tree follow). Whatever the bytes are, the leaves of a well-formed tree cover the root box exactly: a cover
cannot be faked by a wrong sum of areas, and cutting a leaf makes the tree malformed or moves a bisection. A leaf is a
*cell*: per axis the pair (m, k) meaning the real interval a + (b - a) [k, k + 1] / 2^m. It is contained in the outward box
on which the forms are computed, and forms contain the function (`kernel.taylor`). QED.

A leaf whose form is slightly too wide is bisected further by the checker itself, at most `EXTRA` times: the recorded tree
is a proposal, not an assumption. Nothing of what the search computed on the leaves is read. A search that hands over its
tree lets the same walk go on for longer (`Effort`), and records the tree that came out of it: no leaf is proved twice.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from flint import arb

from certiformer.errors import BadInput
from certiformer.kernel.balls import ZERO, Cell, ball, exact, larger, smaller
from certiformer.kernel.problem import Problem, error_upper
from certiformer.kernel.refusal import Refused
from certiformer.kernel.taylor import MAX_ORDER, Form

LEAF = 255
MAX_DEPTH = 60  # per axis; (b - a) / 2^60 is far below any useful box


def root(dimension: int) -> Cell:
    """The cell that is the whole box.

    >>> root(2)
    ((0, 0), (0, 0))
    """
    return ((0, 0),) * dimension


def halves(cell: Cell, axis: int) -> tuple[Cell, Cell]:
    """The lower and the upper half of `cell` along `axis`."""
    m, k = cell[axis]
    if m >= MAX_DEPTH:
        raise BadInput(f"the split tree bisects an axis more than {MAX_DEPTH} times")
    low = (*cell[:axis], (m + 1, 2 * k), *cell[axis + 1 :])
    high = (*cell[:axis], (m + 1, 2 * k + 1), *cell[axis + 1 :])
    return low, high


def leaves(tree: bytes, dimension: int) -> Iterator[Cell]:
    """The leaf cells of `tree` in preorder; raises `BadInput` if the bytes are not one well-formed tree.

    >>> list(leaves(bytes([0, 255, 255]), 1))
    [((1, 0),), ((1, 1),)]
    """
    for cell, _ in subtrees(tree, dimension, 0):
        yield cell


def subtrees(tree: bytes, dimension: int, largest: int) -> Iterator[tuple[Cell, bytes]]:
    """Cut `tree` into (cell, subtree) pieces of at most `largest` bytes each (single leaves if 0).

    Together the pieces are the whole tree: their cells cover the root box exactly.
    """
    ends = subtree_ends(tree, dimension)
    stack: list[tuple[Cell, int]] = [(root(dimension), 0)]
    while stack:
        cell, start = stack.pop()
        if tree[start] == LEAF or ends[start] - start <= largest:
            yield cell, tree[start : ends[start]]
            continue
        low, high = halves(cell, tree[start])
        stack.append((high, ends[start + 1]))
        stack.append((low, start + 1))


def subtree_ends(tree: bytes, dimension: int) -> list[int]:
    """For every node the position after its subtree; raises when the bytes are not exactly one tree."""
    ends = [0] * len(tree)
    for position in range(len(tree) - 1, -1, -1):
        byte = tree[position]
        if byte == LEAF:
            ends[position] = position + 1
        elif byte < dimension and position + 1 < len(tree) and ends[position + 1] < len(tree):
            ends[position] = ends[ends[position + 1]]
        else:
            raise BadInput("the split tree is malformed: a bisection lacks a half or names an axis that does not exist")
    if not tree or ends[0] != len(tree):
        raise BadInput("the split tree is malformed: it is empty or has bytes left over")
    return ends


def encode(dimension: int, axes: dict[Cell, int]) -> bytes:
    """The preorder bytes of the tree whose inner nodes are the keys of `axes` (cell -> bisected axis).

    >>> encode(1, {root(1): 0})
    b'\\x00\\xff\\xff'
    """
    result = bytearray()
    stack = [root(dimension)]
    while stack:
        cell = stack.pop()
        axis = axes.get(cell)
        if axis is None:
            result.append(LEAF)
        else:
            result.append(axis)
            stack.extend(reversed(halves(cell, axis)))
    return bytes(result)


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
    ends = subtree_ends(tree, len(cell))
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
        low, high = halves(here, tree[start])
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
        elif level < self.deepest and all(m < MAX_DEPTH for m, _ in cell):
            scores = axis_scores(forms, [2.0**-m for m, _ in cell])
            axis = scores.index(max(scores))
            self.tree.append(axis)
            for half in halves(cell, axis):
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
