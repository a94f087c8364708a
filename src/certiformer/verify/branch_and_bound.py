"""Branch and bound: bisect until every leaf's enclosure of |T - f| is below a threshold.

Breadth first, in batches. A leaf is closed only by a finite bound at most the threshold; infinite and not-a-number stay
open. The tree is an exact cover at every moment, so stopping early loses nothing: what is left open is reported, and the
checkpoint continues where it stopped. What comes out is a proposal for the checker, never a proof by itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from jaxtyping import Float, Int

from certiformer.verify.bounder import FloatDomain
from certiformer.verify.tree import SplitTree

CHECKPOINT_SECONDS = 5.0


class Bounder(Protocol):
    """A batched upper bound of max |T - f| on boxes (`certiformer.enclose`)."""

    def __call__(
        self, centre: Float[np.ndarray, "n D"], radius: Float[np.ndarray, "n D"]
    ) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, "n D"]]:
        """Bounds, and per axis a score: the axis with the largest one is bisected."""
        ...

    @property
    def start_depth(self) -> tuple[int, ...]:
        """Boxes are not worth bounding before every axis was bisected this often."""
        ...

    @property
    def batch(self) -> int:
        """How many boxes are bounded at once."""
        ...


@dataclass(frozen=True)
class Budget:
    """When to stop: boxes bounded, and seconds on the clock."""

    boxes: int
    seconds: float


@dataclass
class Search:
    """A search under way: its tree, what it has cost, and why it stopped ('' when every leaf is closed)."""

    tree: SplitTree
    boxes: int = 0
    seconds: float = 0.0
    stopped: str = ""

    @property
    def closed(self) -> bool:
        return not self.stopped


def start(bounder: Bounder, domain: FloatDomain) -> SplitTree:
    """A fresh tree, bisected uniformly down to the bounder's start depth."""
    tree = SplitTree(domain.dimension)
    for axis, depth in enumerate(bounder.start_depth):
        for _ in range(depth):
            leaves = tree.leaves()
            tree.split(leaves, np.full(len(leaves), axis))
    return tree


def search(
    bounder: Bounder,
    domain: FloatDomain,
    threshold: float,
    budget: Budget,
    *,
    tree: SplitTree | None = None,
    checkpoint: tuple[Path, str] | None = None,
    progress: Callable[[int, int, SplitTree], bool] | None = None,
) -> Search:
    """Bisect until every leaf is bounded by `threshold` or the budget is spent.

    Arguments: `tree` to continue from; `checkpoint`, a file and the seal of this search; `progress(boxes, open, tree)` is
    called after every batch and returns True to stop (for instance because a counterexample was found).
    """
    run = Search(start(bounder, domain) if tree is None else tree)
    began = saved = time.monotonic()
    leaves = run.tree.leaves()
    queue = leaves[run.tree.bounds(leaves) > threshold]
    while len(queue):
        nodes, queue = queue[: bounder.batch], queue[bounder.batch :]
        queue = np.concatenate([queue, _bound_and_split(run, bounder, domain, nodes, threshold)])
        now = time.monotonic()
        run.seconds = now - began
        if checkpoint is not None and now - saved > CHECKPOINT_SECONDS:
            run.tree.save(*checkpoint)
            saved = now
        if progress is not None and progress(run.boxes, len(queue), run.tree):
            run.stopped = "stopped by the caller"
        elif run.boxes >= budget.boxes and len(queue):
            run.stopped = f"the budget of {budget.boxes:,} boxes is spent; raise --boxes"
        elif run.seconds >= budget.seconds and len(queue):
            run.stopped = f"the budget of {budget.seconds:.3g} seconds is spent; raise --seconds"
        elif len(queue) and not run.tree.splittable(queue[:1]):
            run.stopped = "a box could not be closed at the largest depth"
        if run.stopped:
            break
    # A tree that took long is kept when it is closed, too: whoever is interrupted afterwards need not grow it again.
    if checkpoint is not None and (run.stopped or run.seconds > CHECKPOINT_SECONDS):
        run.tree.save(*checkpoint)
    return run


def _bound_and_split(
    run: Search, bounder: Bounder, domain: FloatDomain, nodes: Int[np.ndarray, " n"], threshold: float
) -> Int[np.ndarray, " m"]:
    """Bound the nodes; bisect those that stay above the threshold. Returns the new leaves to look at."""
    bounds, scores = bounder(*domain.boxes(*run.tree.cells(nodes)))
    run.boxes += len(nodes)
    run.tree.set_bounds(nodes, np.minimum(np.where(np.isnan(bounds), np.inf, bounds), run.tree.bounds(nodes)))
    open_ = ~(bounds <= threshold)  # written so that not-a-number stays open
    if not open_.any():
        return np.zeros(0, np.int64)
    depth, _ = run.tree.cells(nodes[open_])
    # Where the scores say nothing (not finite, all zero) the axis that was bisected least is taken.
    wanted = np.where(np.isfinite(scores[open_]), scores[open_], 0.0)
    axes = np.argmax(np.where(wanted.max(1, keepdims=True) > 0, wanted, -depth.astype(float)), axis=1)
    return run.tree.split(nodes[open_], axes)
