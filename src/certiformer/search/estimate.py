"""`--dry-run`: what a run would make and roughly what it would cost, without running it.

For `build` the size is exact, because a plan decides it. For `prove` a pilot bounds random boxes of growing depth and
looks at which depth most of them close: a guess, and called one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import jax
import numpy as np

from certiformer.construct.method import Task
from certiformer.kernel import Refused
from certiformer.search.box_evidence import ROOM
from certiformer.search.candidates import FIT, Candidate, choose, known_method
from certiformer.search.case import Case
from certiformer.search.job import checked_network, network_of
from certiformer.search.request import Options, read_any, read_epsilon, read_shape, read_target
from certiformer.target import Teacher
from certiformer.verify.bounder import bounder_for

CHECKED_PER_SECOND = 200  # leaves of the check, on one core
COMPILE_SECONDS = 5.0
MAX_WEIGHTS = 2_000_000
PILOT_BOXES, PILOT_DEPTHS = 64, 14


def dry_run(
    target: str | Callable[..., Any],
    *,
    on: str,
    eps: str | float,
    method: str = "auto",
    objective: str = "parameters",
    tokens: int | None = None,
    out_tokens: int | None = None,
    out_width: int | None = None,
    layout: str | None = None,
) -> dict[str, Any]:
    """What `build` would make: sizes, the predicted bound, and a rough estimate of boxes and seconds.

    Nothing is trained: what `fit` would find is not known beforehand, so `auto` may end with something smaller.

    >>> dry_run("sin(x1)", on="[0, 2*pi]", eps="0.01", method="voronoi")["registers"]
    33
    """
    wanted, (_, epsilon) = read_any(target, on, tokens), read_epsilon(eps)
    shape = read_shape(wanted, tokens, out_tokens, out_width, layout)
    if known_method(method) == FIT or isinstance(wanted, Teacher):
        return {"method": FIT, "possible": True, "reason": "", "estimated_seconds": None, "candidates": []}
    try:
        choice = choose(method, Task(wanted, epsilon, shape), objective, 0.0, lambda *_: None)
    except Refused as refusal:
        return {"method": method, "possible": False, "reason": str(refusal), "candidates": []}
    best, rows = choice.candidates[0], choice.rows()
    boxes = _expected_boxes(best, wanted.domain.dimension)
    return {
        **rows[0],
        "possible": rows[0]["nonzero"] <= MAX_WEIGHTS,
        "bytes": 8 * rows[0]["dense"],
        "estimated_boxes": boxes,
        "estimated_seconds": COMPILE_SECONDS + round(boxes / CHECKED_PER_SECOND, 1),
        "candidates": rows,
    }


def _expected_boxes(best: Candidate, dimension: int) -> int:
    """Boxes of a search on prototypes: about two a cell and axis; a theorem or pieces need none."""
    registers = 0 if best.size is None else best.size.registers
    return 0 if dimension > 3 or registers < 2 else 2**dimension * registers


def dry_run_prove(
    model: Any, target: str | Callable[..., Any], *, on: str, eps: str | float, **reading: Any
) -> dict[str, Any]:
    """What `prove` would cost, from a pilot on random boxes."""
    wanted, (_, epsilon) = read_target(target, on), read_epsilon(eps)
    network = checked_network(network_of(model, wanted.domain.dimension, reading), wanted)
    with jax.enable_x64(True):
        depth, rate = _pilot(Case(network, wanted, epsilon, Options()), epsilon)
    boxes = None if depth is None else 2 ** (depth + 1)
    seconds = None if boxes is None else COMPILE_SECONDS + boxes / rate + boxes / 2 / CHECKED_PER_SECOND
    return {
        "parameters": network.parameter_count(),
        "bytes": 8 * network.parameter_count(),
        "boxes_per_second": round(rate),
        "estimated_boxes": boxes,
        "estimated_seconds": None if seconds is None else round(seconds, 1),
    }


def _pilot(case: Case, epsilon: Fraction) -> tuple[int | None, float]:
    """The number of bisections at which nine in ten random boxes close (None if they never do), and boxes a second."""
    bounder = bounder_for(case.model, case.wanted, case.domain, None)
    random, dimension = np.random.default_rng(0), case.domain.dimension
    rate = 1.0
    for level in range(max(bounder.start_depth), PILOT_DEPTHS):
        depth = np.full((PILOT_BOXES, dimension), level)
        began = time.monotonic()
        bounds, _ = bounder(*case.domain.boxes(depth, random.integers(0, 2**level, (PILOT_BOXES, dimension))))
        rate = max(rate, PILOT_BOXES / (time.monotonic() - began))
        if np.mean(bounds <= float(epsilon) * ROOM) >= 0.9:
            return level * dimension, rate
    return None, rate
