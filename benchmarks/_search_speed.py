"""How fast the float64 search is, and how fast the hardware would let it be.

The yardstick is a measured matrix product in float64: the operations that one box needs (counted by XLA in the compiled
kernel) times boxes a second, as a share of that peak. A search is not a matrix product, so a few per cent is usual.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from fractions import Fraction

import jax
import numpy as np

from certiformer.checker.balls import BallDomain, working_precision
from certiformer.construct import voronoi
from certiformer.model import Transformer
from certiformer.search.evidence import ROOM
from certiformer.search.request import read_epsilon, read_target
from certiformer.target import Target
from certiformer.verify import Budget, FloatDomain, search
from certiformer.verify.bounder import CompiledBounder, bounder_for

target_of = read_target
REPEATS = 3


def built(formula: str, box: str, eps: str) -> tuple[Transformer, Target]:
    """The transformer that `build` constructs, and its target."""
    target = read_target(formula, box)
    return voronoi.construct(target, read_epsilon(eps)[1]).model, target


def search_twice(model: Transformer, target: Target, eps: str, clock: Callable[[], float] = time.perf_counter):
    """Seconds of the search by boxes after compilation (None if it does not close), and a word on its speed.

    The first run compiles and counts nothing; of the others the fastest counts. Thresholds are those of `build`.
    """
    working_precision()
    with jax.enable_x64(True):
        began = clock()
        domain = FloatDomain(BallDomain(target.domain))
        bounder = bounder_for(model, target.program, domain, None)
        threshold = float(read_epsilon(eps)[1]) * ROOM
        times = []
        for _ in range(1 + REPEATS):
            start = clock()
            result = search(bounder, domain, threshold, Budget(5_000_000, 300.0))
            times.append(clock() - start)
            if not result.closed:
                return None, result.stopped
            first = times[0] + start - began if len(times) == 1 else first
        seconds, leaves = min(times[1:]), len(result.tree.leaves())
        speed = result.boxes / seconds
        share = flops_per_box(bounder, domain.dimension) * speed / peak_flops()
    note = f"{result.boxes:,} boxes, {leaves:,} leaves, order {bounder.order}, {speed:,.0f} boxes/s"
    return seconds, f"{note}, {share:.1%} of matmul peak; {first:.1f} s with lists and compilation"


def flops_per_box(bounder: CompiledBounder, dimension: int) -> float:
    """Arithmetic operations per box in the compiled kernel, as XLA counts them (an exponential counts as one)."""
    boxes = np.zeros((bounder.batch, dimension))
    analysis = bounder._bound.lower(boxes, boxes).compile().cost_analysis()
    return (analysis["flops"] + analysis.get("transcendentals", 0.0)) / bounder.batch


def peak_flops(size: int = 1024) -> float:
    """Operations a second of a float64 matrix product on the cores of this process."""
    a = jax.numpy.ones((size, size))
    product = jax.jit(lambda x: x @ x)
    product(a).block_until_ready()
    times = []
    for _ in range(5):
        began = time.perf_counter()
        product(a).block_until_ready()
        times.append(time.perf_counter() - began)
    return 2 * size**3 / min(times)


def lower_end(model: Transformer, target: Target, factor: float) -> tuple[str, str]:
    """`factor` times the proved lower end of the error, rounded down to nine decimals, and the lower end."""
    from certiformer.search import prove

    run = prove(model, target.source, on=str(target.domain), eps="1e6", rule="theorem", level=1)
    lower = run.certificate.lower
    scaled = Fraction(lower) * Fraction(repr(factor)) if lower else Fraction(1)
    return f"{float(int(scaled * 10**9)) / 10**9:.9f}", str(lower)
