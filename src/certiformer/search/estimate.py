"""`--dry-run`: what a run would make and roughly what it would cost, without running it.

For `build` the size is exact, because a theorem decides it. For `prove` a pilot bounds random boxes of growing depth and
looks at which depth most of them close: a guess, and called one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import jax
import numpy as np

from certiformer.checker.rules.refusal import Refused
from certiformer.construct import voronoi
from certiformer.model import Transformer, tensor_specs
from certiformer.search.build import checked_method, checked_network
from certiformer.search.evidence import ROOM, Case
from certiformer.search.request import Options, read_epsilon, read_target
from certiformer.verify.bounder import bounder_for

CHECKED_PER_SECOND = 200  # leaves of the independent check, on one core
COMPILE_SECONDS = 5.0
PILOT_BOXES, PILOT_DEPTHS = 64, 14


def dry_run(target: str | Callable[..., Any], *, on: str, eps: str | float, method: str = "voronoi") -> dict[str, Any]:
    """What `build` would make: sizes, the a-priori bound, and a rough estimate of boxes and seconds.

    >>> dry_run("sin(x1)", on="[0, 2*pi]", eps="0.01")["prototypes"]
    33
    """
    method = checked_method(method)
    wanted, (_, epsilon) = read_target(target, on), read_epsilon(eps)
    try:
        planned = voronoi.plan(wanted, epsilon)
    except Refused as refusal:
        return {"method": method, "possible": False, "reason": str(refusal)}
    inputs, outputs = wanted.domain.dimension, len(wanted.program.outputs)
    config = voronoi.configuration(planned.grid.size, inputs, outputs)
    parameters = sum(int(np.prod(spec.shape)) for spec in tensor_specs(config).values())
    boxes = int(np.prod([2 * cells for cells in planned.grid.cells]))
    by_theorem = inputs > 3
    return {
        "method": method,
        "possible": planned.grid.size <= voronoi.MAX_PROTOTYPES,
        "theorem": planned.theorem,
        "prototypes": planned.grid.size,
        "parameters": parameters,
        "bytes": 8 * parameters,
        "apriori": planned.apriori,
        "estimated_boxes": 0 if by_theorem else boxes,
        "estimated_seconds": COMPILE_SECONDS + (0 if by_theorem else round(boxes / CHECKED_PER_SECOND, 1)),
    }


def dry_run_prove(
    model: Transformer | str, target: str | Callable[..., Any], *, on: str, eps: str | float
) -> dict[str, Any]:
    """What `prove` would cost, from a pilot on random boxes."""
    wanted, (_, epsilon) = read_target(target, on), read_epsilon(eps)
    network = checked_network(model, wanted)
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
    bounder = bounder_for(case.model, case.target.program, case.domain, None)
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
