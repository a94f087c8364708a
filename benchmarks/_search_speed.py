"""How fast the float64 search is, and how fast the hardware would let it be.

The yardstick is a measured matrix product in float64: the operations that one box needs (counted by XLA in the compiled
kernel) times boxes a second, as a share of that peak. A search is not a matrix product, so a few per cent is usual.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import jax
import numpy as np

from certiformer.construct import voronoi
from certiformer.construct.method import Task
from certiformer.kernel.balls import BallDomain, working_precision
from certiformer.model import Transformer
from certiformer.search.box_evidence import ROOM
from certiformer.search.request import read_epsilon, read_target
from certiformer.target import Target
from certiformer.verify import Budget, FloatDomain, search
from certiformer.verify.bounder import CompiledBounder, bounder_for

REPEATS = 3


def built(formula: str, box: str, eps: str) -> tuple[Transformer, Target]:
    """The transformer that `build` constructs, and its target."""
    target = read_target(formula, box)
    return voronoi.plan(Task.of(target, read_epsilon(eps)[1])).realise().model, target


@dataclass(frozen=True)
class Speed:
    """A search that closed: its seconds without compilation, its size, and how it compares with the hardware."""

    seconds: float
    boxes: int
    leaves: int
    order: int
    compiling: float
    share_of_peak: float

    def __str__(self) -> str:
        size = f"{self.boxes:,} boxes, {self.leaves:,} leaves, order {self.order}, {self.boxes / self.seconds:,.0f} boxes/s"
        return f"{size}, {self.share_of_peak:.1%} of matmul peak; lists and compilation {self.compiling:.1f} s more"


def search_speed(
    model: Transformer, target: Target, eps: str, clock: Callable[[], float] = time.perf_counter
) -> Speed | None:
    """The search by boxes after compilation, or None if it does not close. Thresholds and kernels are those of `build`.

    The first run compiles and counts as that; of the others the fastest counts.
    """
    working_precision()
    with jax.enable_x64(True):
        times, start = [], clock()
        domain = FloatDomain(BallDomain(target.domain))
        bounder = bounder_for(model, target.program, domain, None)
        for _ in range(1 + REPEATS):
            result = search(bounder, domain, float(read_epsilon(eps)[1]) * ROOM, Budget(5_000_000, 300.0))
            if not result.closed:
                return None
            times.append(clock() - start)
            start = clock()
        seconds = min(times[1:])
        share = flops_per_box(bounder, domain.dimension) * result.boxes / seconds / peak_flops()
    return Speed(seconds, result.boxes, len(result.tree.leaves()), bounder.order, times[0] - seconds, share)


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
    for _ in range(20):  # the best of many: other work on the machine only makes it slower
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
