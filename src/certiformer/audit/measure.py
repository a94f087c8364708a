"""Figures of a checkpoint: norms and spectra of every head and map, raw and with the gains of the norms that feed them.

`head_figures` measures heads, `matrix_figures` maps; here the work is shared out. Every tensor is loaded, measured and
dropped; only small ones are looked through a second time, for entries that are not finite.

Controls. The same figures of a Gaussian matrix with the same mean square, and of a copy whose columns are shuffled,
each entry within its column: what training did shows in the difference, and a figure that does not differ says
nothing about training."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from zlib import crc32

import numpy as np

from certiformer.audit.architecture import has_score_biases
from certiformer.audit.feeding_norms import feeding_norms, finite_gain, norm_radius, only
from certiformer.audit.form import Checkpoint, FeedForward, Layer, Weight
from certiformer.audit.head_figures import WIDE, Feeding, HeadFigures, head_figures
from certiformer.audit.matrix_figures import MatrixFigures, matrix_figures
from certiformer.audit.rotary_factor import rotary_factor

Progress = Callable[[int, int, str], None]
# A part of the work: it is given a stream of random numbers and a list for the names of tensors that are not finite.
Task = Callable[[np.random.Generator, list[str]], Any]
Part = tuple[str, str | int]  # what it is, and the name of the table or the number of the layer
SMALL = 1 << 16  # weights up to this size are looked through for NaN whatever they are


@dataclass(frozen=True)
class LayerFigures:
    """One layer; `radius` bounds the tokens that its attention sees (None: no norm feeds it)."""

    name: str
    repeats: int
    heads: tuple[HeadFigures, ...]
    matrices: dict[str, MatrixFigures]
    radius: float | None


@dataclass(frozen=True)
class Measurements:
    """All figures of a checkpoint; `not_finite` names the tensors with NaN or infinite entries, which have no figures.
    `token_box` are the sides of the smallest box that holds every row of the table of tokens, where codes are added."""

    layers: tuple[LayerFigures, ...]
    matrices: dict[str, MatrixFigures]
    not_finite: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())
    token_box: tuple[float, ...] | None = None


def measure(checkpoint: Checkpoint, progress: Progress | None = None, seed: int = 0) -> Measurements:
    """Load every tensor and measure it; `progress(done, total, what)` is called as the tables and then the layers are
    finished. Models that are not wide are measured in several threads; the figures do not depend on that."""
    wide, not_finite = checkpoint.width >= WIDE, []
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows fails in the decomposition, and is refused
        plans = [_Plan(checkpoint, place) for place in range(len(checkpoint.layers))]
    tables = {name: weight for name, weight in _outside(checkpoint) if len(weight.shape) == 2}
    # The longest parts go first, so that no thread is left with one of them in the end.
    boxed = checkpoint.token_table if checkpoint.adds_codes else None
    parts: dict[Part, Task] = {
        ("table", name): partial(_table, weight, name == checkpoint.token_table, name == boxed)
        for name, weight in tables.items()
    }
    parts |= {("unmeasured", 0): lambda rng, bad: bad.extend(unmeasured_not_finite(checkpoint))}
    parts |= {("maps", number): partial(matrix_figures, plan.maps) for number, plan in enumerate(plans)}
    parts |= {("heads", number): plan.head_figures for number, plan in enumerate(plans)}

    def done(part: Part) -> tuple[Any, list[str]]:
        bad: list[str] = []
        # A name of its own for every stream: what else there is in the file does not change the numbers that it draws.
        rng = np.random.default_rng([seed, crc32(repr(part).encode())])
        with np.errstate(over="ignore", invalid="ignore"):
            return parts[part](rng, bad), bad

    with _one_thread_each(not wide), _pool(wide) as pool:
        # Wide models are measured one part after the other: their tensors fill the memory.
        begun = {} if wide else {part: pool.submit(done, part) for part in parts}

        def figures_of(kind: str, which: str | int) -> Any:
            figures, bad = done((kind, which)) if wide else begun[kind, which].result()
            not_finite.extend(bad)
            return figures

        measured: dict[str, _Table] = {name: figures_of("table", name) for name in tables}
        if progress is not None:
            progress(1, len(plans) + 1, "tables")
        layers = []
        for number, plan in enumerate(plans):
            heads, maps = tuple(figures_of("heads", number)), figures_of("maps", number)
            matrices = dict(zip(plan.names, maps, strict=True))
            layers.append(LayerFigures(plan.layer.name, plan.layer.repeats, heads, matrices, plan.radius))
            if progress is not None:
                progress(number + 2, len(plans) + 1, plan.layer.name)
        figures_of("unmeasured", 0)
    return Measurements(
        tuple(layers),
        {name: table.figures for name, table in measured.items()},
        tuple(dict.fromkeys(not_finite)),
        tuple(note for table in measured.values() for note in table.notes),
        measured[boxed].box if boxed in measured else None,
    )


@dataclass(frozen=True)
class _Table:
    """The figures of a table, the sides of the box that holds its rows if they are wanted, and what was left out."""

    figures: MatrixFigures
    box: tuple[float, ...] | None
    notes: tuple[str, ...]


def _table(weight: Weight, tokens: bool, boxed: bool, rng: np.random.Generator, bad: list[str]) -> _Table:
    """Measure a table; in that of `tokens`, rows that are NaN throughout are ids that no input may have."""
    array, notes = weight.load(), ()
    if tokens and (refused := refused_rows(array)).any():
        array = array[~refused]
        notes = (
            f"{refused.sum():,} of {len(refused):,} rows of {weight.source.tensor} are NaN throughout: ids that this model"
            " refuses as inputs; the figures and theorems speak of the others",
        )
    figures = matrix_figures([(replace(weight, load=lambda: array, shape=array.shape), None)], rng, bad)[0]
    if not boxed or not len(array):
        return _Table(figures, None, notes)
    return _Table(figures, tuple((array.max(0).astype(np.float64) - array.min(0)).tolist()), notes)


def refused_rows(table: np.ndarray) -> np.ndarray:
    """Which rows of a table of tokens are NaN throughout, though not all of them: such an id is never an input.

    >>> refused_rows(np.array([[1.0, 2.0], [np.nan, np.nan], [np.nan, 0.0]]))
    array([False,  True, False])
    """
    refused = np.isnan(table[:, 0])  # the rest is looked at where it may matter: such tables are large
    refused[refused] = np.isnan(table[refused]).all(axis=1)
    return refused & ~refused.all()


class _Plan:
    """What is to be measured of one layer."""

    def __init__(self, checkpoint: Checkpoint, place: int) -> None:
        self.layer: Layer = checkpoint.layers[place]
        norms = {part: feeding_norms(checkpoint, place, part) for part in ("attention", "ffn")}
        radii = [norm_radius(norm, checkpoint.width) for norm in norms["attention"]]
        known = [radius for radius in radii if radius is not None]
        self.radius = max(known) if len(known) == len(radii) else None
        gains = {part: finite_gain(only(found)) for part, found in norms.items()}
        turned = rotary_factor(checkpoint.config) if checkpoint.positions == "rope" else 1.0
        self.feeding = Feeding(gains["attention"], self.radius, has_score_biases(checkpoint), turned)
        self.names = [name for name, _, _ in _maps(self.layer)]
        self.maps = [(weight, gains["ffn"] if fed else None) for _, weight, fed in _maps(self.layer)]

    def head_figures(self, rng: np.random.Generator, bad: list[str]) -> list[HeadFigures]:
        """The heads of all attentions. Their many thin matrices are slower on several threads, in wide models too."""
        heads: list[HeadFigures] = []
        for attention in self.layer.attention:
            with _one_thread_each(attention.query.shape[-1] >= WIDE):
                heads += head_figures(attention, self.feeding, rng, bad)
        return heads


def _maps(layer: Layer) -> Iterator[tuple[str, Weight, bool]]:
    """The maps of a layer besides its heads: name, weight, whether the norm of the hidden units feeds it."""
    for number, hidden in enumerate(layer.ffn):
        before = f"expert {number} " if len(layer.ffn) > 1 else ""
        for name, weight in _hidden_maps(hidden):
            yield before + name, weight, name != "down"
    for name, weight in layer.others.items():
        if len(weight.shape) == 2:
            yield name, weight, False


def _hidden_maps(hidden: FeedForward) -> Iterator[tuple[str, Weight]]:
    yield "up", hidden.up
    if hidden.gate is not None:
        yield "gate", hidden.gate
    yield "down", hidden.down


def _outside(checkpoint: Checkpoint) -> Iterator[tuple[str, Weight]]:
    yield from checkpoint.embeddings.items()
    if checkpoint.head is not None:
        yield "head", checkpoint.head
    yield from checkpoint.others.items()


def unmeasured_not_finite(checkpoint: Checkpoint) -> list[str]:
    """The tensors with entries that are not finite among those that have no figures: biases, gains, single vectors."""
    tokens = checkpoint.embeddings.get(checkpoint.token_table or "")
    small = (weight for weight in checkpoint.weights() if weight.count <= SMALL or len(weight.shape) < 2)
    arrays = ((weight, weight.load()) for weight in small)
    read = ((weight, array[~refused_rows(array)] if weight is tokens else array) for weight, array in arrays)
    return [weight.source.tensor for weight, array in read if not np.isfinite(array).all()]


@contextmanager
def _pool(wide: bool) -> Iterator[ThreadPoolExecutor]:
    """Threads that measure; what is not begun when something fails is not done."""
    pool = ThreadPoolExecutor(_workers(wide))
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def _workers(wide: bool) -> int:
    """Threads that measure: one for wide models, whose tensors fill the memory."""
    return 1 if wide else min(4, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2)


def _one_thread_each(limited: bool) -> AbstractContextManager:
    """Small and thin matrices are slower on several threads than on one: up to five times on a busy machine."""
    if not limited:
        return nullcontext()
    from threadpoolctl import threadpool_limits

    return threadpool_limits(limits=1)
