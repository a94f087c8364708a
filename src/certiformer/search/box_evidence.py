"""Evidence by the rule *boxes*: branch and bound on T - f, first below epsilon, then towards the lower end."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np

from certiformer.interval import run_canaries
from certiformer.kernel.certificate import Boxes
from certiformer.kernel.programs import decimal_text
from certiformer.search.case import Case, Evidence, Progress, Tree, raise_lower, tight_goal
from certiformer.search.watching import show
from certiformer.verify import Budget, Falsifier, SplitTree, search
from certiformer.verify.bounder import bounder_for

# Level 1 closes a leaf a little below the stated bound: room for the checker, whose Taylor forms differ (seen: 2.5e-4).
ROOM = 1 - 6e-4
# A general leaf costs the checker about this many seconds on one core. What boxes would cost it beyond the seconds of the
# search is not worth a tighter bracket.
LEAF_SECONDS = 0.003
# What boxes may cost when a theorem has already proved the claim and they would only tighten it.
TIGHTEN_BOXES, TIGHTEN_SECONDS = 6_000, 20.0
TIGHT_QUALITY = 0.02
TIGHTENINGS = 3  # rounds of raising the lower end and lowering the upper one


def by_boxes(
    case: Case,
    found: Evidence,
    falsifier: Falsifier,
    checkpoint: tuple[Path, str] | None,
    progress: Progress | None,
) -> None:
    """Branch and bound on T - f: first below epsilon, then, with what is left of the budget, towards the lower end."""
    options = case.options
    bounder = bounder_for(case.model, case.wanted, case.domain, options.order)
    canaries = run_canaries(bounder.batch)
    if not canaries.sound:
        found.reasons.append(f"the float64 search is refused on this machine: {'; '.join(canaries.failures)}")
        return
    budget = Budget(options.boxes, case.seconds_left)
    if options.rule == "auto" and found.trees:
        budget = Budget(min(options.boxes, TIGHTEN_BOXES), min(case.seconds_left, TIGHTEN_SECONDS))
    tree = SplitTree.restore(*checkpoint, case.domain.dimension) if checkpoint else None
    report = _Reporter(case, found, falsifier, progress)
    threshold = float(case.epsilon) * ROOM
    first = search(bounder, case.domain, threshold, budget, tree=tree, checkpoint=checkpoint, progress=report)
    found.boxes += first.boxes
    if found.lower > case.epsilon:
        return
    if not first.closed:
        found.reasons.append(f"{first.stopped} (the best bound so far is {first.tree.upper():.6g})")
        return
    upper, leaves = first.tree.upper(), first.tree.to_bytes()
    # Tightening is worth about as much effort as the proof itself, and more where a tight bracket was asked for; a
    # half-tightened tree would only cost the kernel. It leaves the kernel at least half of the time.
    effort = 3 if options.quality > TIGHT_QUALITY else 30
    cores = options.workers or os.cpu_count() or 1
    checkable = max(len(first.tree.leaves()), int(case.seconds_left / 2 * cores / LEAF_SECONDS))
    more_boxes, more_seconds = effort * (first.boxes + 1000), effort * (first.seconds + 1)
    last = time.monotonic() + case.seconds_left / 2
    tree = first.tree
    for _ in range(TIGHTENINGS):
        # What is hard to close is often where the error is largest: then the lower end has to rise.
        raise_lower(case, found, falsifier, _hardest(case, tree))
        goal = tight_goal(found.lower, case.epsilon, options.quality) * ROOM
        more = Budget(min(budget.boxes, more_boxes), min(budget.seconds, more_seconds, last - time.monotonic()))
        if upper <= goal or more.seconds <= 0:
            break
        second = search(bounder, case.domain, goal, more, tree=tree, progress=report)
        found.boxes += second.boxes
        if second.closed and len(second.tree.leaves()) <= checkable:
            upper, leaves = second.tree.upper(), second.tree.to_bytes()
            break
        tree = second.tree
    bound = min(Fraction(decimal_text(upper / ROOM, up=True)), case.epsilon)
    found.trees.append(_boxes(case, bounder.order, bound, leaves))


def _boxes(case: Case, order: int, bound: Fraction, leaves: bytes) -> Tree:
    """The tree of a cover by boxes; a block that is one sum of units is read as such, whose forms are cheaper to check.

    For the kernel the node states epsilon, and the tighter bound is its goal. Level 1 claims what the search saw.
    """
    stated = bound if case.options.level == 1 else case.epsilon
    if case.one_part is None:
        node = Boxes(decimal_text(stated, up=False), order, 0, len(leaves))
        return Tree(node, leaves, bound, decimal_text(bound, up=True))
    share = 1 - Fraction(1, 10**6)  # the rest is for reading the weights, which costs about 1e-15
    inner = Boxes(decimal_text(stated * share, up=False), order, 0, len(leaves))
    proof = replace(case.one_part, bound=decimal_text(stated, up=False), children=(inner,))
    return Tree(proof, leaves, bound, decimal_text(bound * share, up=True))


def _hardest(case: Case, tree: SplitTree) -> np.ndarray:
    """The centres of the leaves with the largest bounds."""
    leaves = tree.leaves()
    hardest = leaves[np.argsort(-tree.bounds(leaves))[:512]]
    return case.domain.boxes(*tree.cells(hardest))[0]


class _Reporter:
    """Reports progress of the search, and looks for a counterexample now and then while it runs."""

    def __init__(self, case: Case, found: Evidence, falsifier: Falsifier, progress: Progress | None):
        self.case, self.found, self.falsifier, self.progress = case, found, falsifier, progress
        self.next_look = time.monotonic() + 5.0

    def __call__(self, boxes: int, still_open: int, tree: SplitTree) -> bool:
        if self.progress is not None:
            note = f"{boxes:,} boxes, {still_open:,} open, deepest {tree.deepest()}"
            self.progress("search", boxes, boxes + still_open, note)
        show("boxes", lambda: (tree, float(self.case.epsilon) * ROOM))
        if time.monotonic() > self.next_look:
            self.next_look = time.monotonic() + 15.0
            raise_lower(self.case, self.found, self.falsifier, _hardest(self.case, tree))
        return self.found.lower > self.case.epsilon
