"""How much a model of ours can stretch on a box or ball: a Lipschitz constant proved there, far below products of norms.

The global constants (`bounds.attention_lipschitz`) multiply the worst cases of all layers. Here the Jacobian is enclosed
on small boxes (`enclose.derivative`) and the boxes with the largest norms are bisected until the budget is spent. For
any two points of the box |f(x) - f(y)|_2 <= `upper` |x - y|_2. `lower` is the largest slope that was seen: the true
constant lies between them. The arithmetic is that of level 1: float64 rounded outward, "proved (numerical)".

A ball lies in the box around it. Parts of the box that are further from the centre than its radius are dropped: what is
left covers the ball, and with it every segment between two of its points.

Loads JAX, so it is imported when it is asked for and not by the rest of `audit`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from certiformer.enclose import enclosed_range
from certiformer.enclose.derivative import enclose_jacobian
from certiformer.errors import BadInput
from certiformer.interval import rigorous_jit, run_canaries
from certiformer.model import Transformer

BATCH = 64  # boxes at a time, fewer where the numbers of so many would fill the memory
MEMORY = 2**31  # bytes that may be in use for one step of a batch
UP = 1 + 2.0**-40  # covers sums of up to a thousand squares, a root and a product


@dataclass(frozen=True)
class LocalLipschitz:
    """The constant there is at least `lower` (a slope that was seen, in float64) and at most `upper` (proved)."""

    lower: float
    upper: float
    boxes: int


def local_lipschitz(
    model: Transformer,
    low: Sequence[float],
    high: Sequence[float],
    boxes: int = 2048,
    order: int = 2,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> LocalLipschitz:
    """The constant of all outputs in the Euclidean norms, on the box from `low` to `high`; `boxes` bounds the work.
    `progress` is called as (boxes done, boxes at most)."""
    start, end = np.asarray(low, np.float64), np.asarray(high, np.float64)
    return _bisected(model, _Region(start, end), boxes, order, progress)


def ball_lipschitz(
    model: Transformer,
    centre: Sequence[float],
    radius: float,
    boxes: int = 2048,
    order: int = 2,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> LocalLipschitz:
    """The same on the Euclidean ball around `centre`."""
    middle = np.asarray(centre, np.float64)
    start, end = np.nextafter(middle - radius, -np.inf), np.nextafter(middle + radius, np.inf)
    return _bisected(model, _Region(start, end, middle, radius), boxes, order, progress)


@dataclass(frozen=True)
class _Region:
    """A box, or the ball in it."""

    start: np.ndarray
    end: np.ndarray
    centre: np.ndarray | None = None
    radius: float = np.inf

    def meets(self, lows: np.ndarray, highs: np.ndarray) -> np.ndarray:
        """Which boxes have points of the region, as far as float64 can tell: in doubt they have."""
        if self.centre is None:
            return np.ones(len(lows), bool)
        away = np.maximum(np.maximum(lows - self.centre, self.centre - highs), 0.0)
        return (away**2).sum(1) <= self.radius**2 * UP**2 + 1e-300

    def nearest(self, points: np.ndarray) -> np.ndarray:
        """The points of the region that are nearest to points of the box."""
        if self.centre is None:
            return points
        away = points - self.centre
        far = np.linalg.norm(away, axis=1, keepdims=True)
        return self.centre + away * np.minimum(1.0, self.radius / np.maximum(far, 1e-300))


def _bisected(
    model: Transformer,
    region: _Region,
    boxes: int,
    order: int,
    progress: Callable[[int, int], None] | None,
) -> LocalLipschitz:
    start, end = region.start, region.end
    size = model.config.tokens * (model.config.input.width or 0)
    if start.shape != (size,) or end.shape != (size,):
        raise BadInput(f"the box has two ends with one number for each of the {size} inputs of the model")
    if not (np.isfinite(start).all() and np.isfinite(end).all() and (start < end).all()):
        raise BadInput("every side of the box runs from a finite number to a larger one")
    with jax.enable_x64(True):
        enclose = enclose_jacobian(model, order)
        if run_canaries(BATCH).failures:
            raise BadInput("this machine does not compute as the enclosures assume; `certiformer prove` says how")
        bound = rigorous_jit(jax.vmap(lambda c, r: enclosed_range(enclose(c, r)).magnitude), optimise=boxes > 4096)
        bound, batch = _compiled(bound, size)
        lows, highs = start[None], end[None]
        sizes, done = _sizes(bound, lows, highs, batch), 1
        while done + 1 < boxes and sizes.max() > 0:
            chosen = np.argsort(-sizes, kind="stable")[: max(min(batch, boxes - done) // 2, 1)]
            left, right = _halves(lows[chosen], highs[chosen])
            rest = np.setdiff1d(np.arange(len(sizes)), chosen)
            new_lows, new_highs = np.concatenate([left[0], right[0]]), np.concatenate([left[1], right[1]])
            # A part stretches no more than the box it is from.
            new = np.minimum(_sizes(bound, new_lows, new_highs, batch), np.tile(sizes[chosen], 2))
            kept = region.meets(new_lows, new_highs)
            lows, highs = np.concatenate([lows[rest], new_lows[kept]]), np.concatenate([highs[rest], new_highs[kept]])
            sizes, done = np.concatenate([sizes[rest], new[kept]]), done + len(new)
            if progress is not None:
                progress(done, boxes)
        worst = np.argsort(-sizes, kind="stable")[:batch]
        lower = _seen(model, region.nearest((lows[worst] + highs[worst]) / 2))
    return LocalLipschitz(lower, float(sizes.max()), done)


def matrix_size(entries: Float[np.ndarray, "n D outputs"]) -> Float[np.ndarray, " n"]:
    """A bound of the spectral norms of all matrices with |J_ij| at most these: Frobenius, or sqrt(|.|_1 |.|_inf).

    >>> matrix_size(np.array([[[3.0, 4.0]], [[1.0, 1.0]]])).round(6).tolist()
    [5.0, 1.414214]
    """
    frobenius = np.sqrt((entries**2).sum((1, 2)))
    return np.minimum(frobenius, np.sqrt(entries.sum(1).max(1) * entries.sum(2).max(1))) * UP


def _compiled(bound: Any, inputs: int) -> tuple[Any, int]:
    """The bound for as many boxes at a time as the compiler, by its own count, holds in `MEMORY`; and how many that is."""
    batch = BATCH
    while True:
        box = jax.ShapeDtypeStruct((batch, inputs), np.float64)
        compiled = bound.lower(box, box).compile()
        used = compiled.memory_analysis().temp_size_in_bytes
        if used <= MEMORY:
            return compiled, batch
        if batch * MEMORY < used:
            raise BadInput(f"the derivatives by {inputs} inputs take {used / batch / 2**30:,.0f} GiB for one box")
        batch = min(batch - 1, batch * MEMORY // used)


def _sizes(bound, lows: np.ndarray, highs: np.ndarray, batch: int) -> np.ndarray:
    """Bounds of |J| on boxes, `batch` at a time; infinite where nothing is known."""
    centre = (lows + highs) / 2
    radius = np.maximum(highs - centre, centre - lows) * UP + 1e-300
    fill = [(0, -len(centre) % batch), (0, 0)]
    centre_all, radius_all = np.pad(centre, fill, mode="edge"), np.pad(radius, fill, mode="edge")
    parts = [
        np.asarray(bound(centre_all[i : i + batch], radius_all[i : i + batch]))
        for i in range(0, len(centre_all), batch)
    ]
    sizes = matrix_size(np.concatenate(parts))[: len(centre)]
    return np.where(np.isnan(sizes), np.inf, sizes)


def _halves(lows: np.ndarray, highs: np.ndarray) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Both halves of every box along its longest side; they share the middle, so nothing is lost."""
    rows, axis = np.arange(len(lows)), np.argmax(highs - lows, axis=1)
    middle = (lows[rows, axis] + highs[rows, axis]) / 2
    upper_low, lower_high = lows.copy(), highs.copy()
    upper_low[rows, axis] = lower_high[rows, axis] = middle
    return (lows, lower_high), (upper_low, highs)


def _seen(model: Transformer, points: np.ndarray) -> float:
    """The largest spectral norm of the Jacobian at these points, in plain float64."""
    shape = (model.config.tokens, model.config.input.width)
    jacobian = jax.jit(jax.vmap(jax.jacfwd(lambda x: model(x.reshape(shape)))))(points)
    return float(np.linalg.norm(np.asarray(jacobian), 2, axis=(1, 2)).max())
