"""Figures of a checkpoint: norms and spectra of every head and map, raw and with the gains of the norms that feed them.

`qk` of a head is W_Q^T W_K times the score scale, `vo` is W_O W_V; both go through their cores (`spectrum.products`).
*Raw* means no gains and no biases; *folded* means W diag(g) for the gain g of the norm that feeds the map. A score of
tokens behind a norm is bounded by what the norm lets through, whatever the weights: |x| <= sqrt(d) max |g| + |b|.

Controls. The same figures of a Gaussian matrix with the same mean square, and of a copy whose columns are shuffled,
each entry within its column: what training did shows in the difference, and a figure that does not differ says
nothing about training."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Float

from certiformer.audit.architecture import has_score_biases
from certiformer.audit.controls import (
    gaussian_products,
    largest_of_products,
    root_mean_square,
    shuffled_heads,
    shuffled_sample,
)
from certiformer.audit.form import Attention, Checkpoint, FeedForward, Layer, Norm, Weight
from certiformer.errors import BadInput
from certiformer.spectrum import (
    Decay,
    Norms,
    Ranks,
    decay_exponent,
    largest_by_lanczos,
    largest_value,
    norms,
    product_values,
    ranks,
    singular_values,
)

Progress = Callable[[int, int, str], None]
WIDE = 1024  # from this width on the sum |(W_Q^T W_K)_ij| is bounded, not summed, and all cores multiply
SMALL = 1 << 16  # weights up to this size are looked through for NaN whatever they are
MANY_VALUES = 2048  # matrices with a shorter side above this have their norms measured, not their ranks
FEW_STEPS = 24  # of Lanczos, for comparisons: within 0.2 % on Gaussian matrices of 11,008 x 4,096


@dataclass(frozen=True)
class ProductFigures:
    """One product of a head: its norms and ranks, how its singular values fall, and the controls' spectral norms; the
    singular values themselves, largest first."""

    spectral: float
    spectral_error: float
    frobenius: float
    l11: float
    l11_is_exact: bool
    ranks: Ranks
    decay: Decay | None
    folded_spectral: float | None
    gaussian_spectral: float
    shuffled_spectral: float
    values: tuple[float, ...] = ()


@dataclass(frozen=True)
class HeadFigures:
    """One head; `score_bound` bounds |scores| behind the norm (None: no norm feeds it, the scale is not known, or there
    are score biases, which no norm bounds)."""

    qk: ProductFigures
    vo: ProductFigures | None
    score_bound: float | None


@dataclass(frozen=True)
class MatrixFigures:
    """One map: where it is from, its norms, ranks and decay, and the controls' spectral norms."""

    tensor: str
    shape: tuple[int, int]
    norms: Norms
    ranks: Ranks | None
    decay: Decay | None
    folded_spectral: float | None
    gaussian_spectral: float
    shuffled_spectral: float


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
    """All figures of a checkpoint; `not_finite` names the tensors with NaN or infinite entries, which have no figures."""

    layers: tuple[LayerFigures, ...]
    matrices: dict[str, MatrixFigures]
    not_finite: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())


def measure(checkpoint: Checkpoint, progress: Progress | None = None, seed: int = 0) -> Measurements:
    """Read every tensor once and measure it; `progress(done, total, what)` is called as the tables and then the layers are
    finished. Models that are not wide are measured in several threads; the figures do not depend on that."""
    tables = {name: weight for name, weight in _outside(checkpoint) if len(weight.shape) == 2}
    total = len(checkpoint.layers) + 1

    def table(name: str) -> tuple[MatrixFigures, list[str]]:
        bad: list[str] = []
        rng = np.random.default_rng([seed, 1, list(tables).index(name)])
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows fails in the decomposition, and is refused
            return matrix_figures(tables[name], None, rng, bad), bad

    def layer(place: int) -> tuple[LayerFigures, list[str]]:
        bad: list[str] = []
        rng = np.random.default_rng([seed, 0, place])
        with np.errstate(over="ignore", invalid="ignore"):
            return _Layer(checkpoint, place, checkpoint.layers[place], rng, bad).figures(), bad

    matrices, layers, not_finite = {}, [], []
    with _threads(checkpoint.width), ThreadPoolExecutor(_workers(checkpoint.width)) as pool:
        # Tables are the longest tasks: they go first.
        waiting = [*pool.map(table, tables)] if checkpoint.width >= WIDE else pool.map(table, tables)
        found = map(layer, range(total - 1)) if checkpoint.width >= WIDE else pool.map(layer, range(total - 1))
        for name, (figures, bad) in zip(tables, waiting, strict=True):
            matrices[name] = figures
            not_finite += bad
        if progress is not None:
            progress(1, total, "tables")
        for place, (figures, bad) in enumerate(found):
            layers.append(figures)
            not_finite += bad
            if progress is not None:
                progress(place + 2, total, checkpoint.layers[place].name)
    not_finite += unmeasured_not_finite(checkpoint)
    return Measurements(tuple(layers), matrices, tuple(dict.fromkeys(not_finite)))


def _workers(width: int) -> int:
    """Threads that measure: one for wide models, whose tensors fill the memory."""
    return 1 if width >= WIDE else min(4, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2)


def unmeasured_not_finite(checkpoint: Checkpoint) -> list[str]:
    """The tensors with entries that are not finite among those that have no figures: biases, gains, single vectors."""
    small = (weight for weight in checkpoint.weights() if weight.count <= SMALL or len(weight.shape) < 2)
    return [weight.source.tensor for weight in small if not np.isfinite(weight.read()).all()]


def _outside(checkpoint: Checkpoint) -> Iterator[tuple[str, Weight]]:
    yield from checkpoint.embeddings.items()
    if checkpoint.head is not None:
        yield "head", checkpoint.head
    yield from checkpoint.others.items()


def norm_radius(norm: Norm | None, width: int) -> float | None:
    """The largest l2 norm that a token can have behind the norm, or None where there is none.

    Before gain and shift a token has l2 norm at most sqrt(width), for layer norm and RMS norm alike.
    """
    if norm is None:
        return None
    gain = 1.0 if norm.gain is None else float(np.abs(norm.gain.read()).max(initial=0.0))
    shift = 0.0 if norm.shift is None else float(np.linalg.norm(norm.shift.read()))
    radius = math.sqrt(width) * gain + shift
    return radius if math.isfinite(radius) else None


def feeding_norms(checkpoint: Checkpoint, place: int, part: str) -> tuple[Norm | None, ...]:
    """Every norm whose output the attention or the hidden units of a layer may read; None among them where it is none or
    not known.

    Behind the residual ("post") attention reads what the layer before has normed. Where layers are applied several times
    that may be any layer of the model, the own one included, and the embeddings in the first application.
    """
    layer = checkpoint.layers[place]
    if checkpoint.norm_place in ("pre", "sandwich"):
        return (layer.norms.get(part),)
    if checkpoint.norm_place == "parallel":
        return (layer.norms.get(part) or layer.norms.get("attention"),)
    if checkpoint.norm_place != "post":
        return (None,)
    if part == "ffn":
        return (layer.norms.get("cross") or layer.norms.get("attention"),)
    before = checkpoint.layers[place - 1].norms.get("ffn") if place else checkpoint.norms.get("embeddings")
    if all(each.repeats == 1 for each in checkpoint.layers):
        return (before,)
    return (before, *(each.norms.get("ffn") for each in checkpoint.layers))


def _one(norms: tuple[Norm | None, ...]) -> Norm | None:
    """The norm where there is exactly one: only then its gain can be folded into what it feeds."""
    return norms[0] if len(norms) == 1 else None


class _Layer:
    """The figures of one layer; tensors are read once and dropped."""

    def __init__(
        self, checkpoint: Checkpoint, place: int, layer: Layer, rng: np.random.Generator, bad: list[str]
    ) -> None:
        self.layer, self.rng, self.bad = layer, rng, bad
        feeding = {part: feeding_norms(checkpoint, place, part) for part in ("attention", "ffn")}
        self.norms = {part: _one(found) for part, found in feeding.items()}
        radii = [norm_radius(norm, checkpoint.width) for norm in feeding["attention"]]
        known = [radius for radius in radii if radius is not None]
        self.radius = max(known) if len(known) == len(radii) else None
        # What these add to the scores is bounded by no norm.
        self.biased = has_score_biases(checkpoint)
        self.wide = checkpoint.width >= WIDE

    def figures(self) -> LayerFigures:
        with _threads(0) if self.wide else nullcontext():
            heads = tuple(head for attention in self.layer.attention for head in self._heads(attention))
        gain = _gain(self.norms["ffn"])
        matrices = {}
        for number, hidden in enumerate(self.layer.ffn):
            before = f"expert {number} " if len(self.layer.ffn) > 1 else ""
            for name, weight in _maps(hidden):
                fed = gain if name != "down" else None
                matrices[before + name] = matrix_figures(weight, fed, self.rng, self.bad)
        for name, weight in self.layer.others.items():
            if len(weight.shape) == 2:
                matrices[name] = matrix_figures(weight, None, self.rng, self.bad)
        return LayerFigures(self.layer.name, self.layer.repeats, heads, matrices, self.radius)

    def _heads(self, attention: Attention) -> Iterator[HeadFigures]:
        query, key, value = (_finite(weight, self.bad) for weight in (attention.query, attention.key, attention.value))
        output = None if attention.output is None else _finite(attention.output, self.bad)
        if query is None or key is None or value is None:
            return
        group = query.shape[0] // key.shape[0]
        if group * key.shape[0] != query.shape[0]:
            raise BadInput(f"{query.shape[0]} query heads cannot share {key.shape[0]} key heads in {self.layer.name}")
        key, value = (np.repeat(each, group, 0) for each in (key, value))
        # Raw figures leave the scale of the file aside and divide by the root of the head size, as scores usually do.
        gain = None if attention.cross else _gain(self.norms["attention"])
        scores = products(query.swapaxes(1, 2), key.swapaxes(1, 2), gain, gain, query.shape[1] ** -0.5, self.rng)
        mixed: list[ProductFigures | None] = [None] * len(query)
        if output is not None:
            mixed = [*products(output, value.swapaxes(1, 2), None, gain, 1.0, self.rng)]
        bounds = self._score_bounds(attention, query, key)
        for figures, mix, bound in zip(scores, mixed, bounds, strict=True):
            yield HeadFigures(figures, mix, bound)

    def _score_bounds(self, attention: Attention, query: np.ndarray, key: np.ndarray) -> list[float | None]:
        """By q and k norms where there are any, else by the norm that feeds the head; a soft cap holds anyway."""
        count, size = query.shape[:2]
        cap = math.inf if attention.cap is None else attention.cap
        known = attention.scale
        normed = [norm_radius(each, size) for each in (attention.query_norm, attention.key_norm)]
        if self.biased:
            return [None] * count
        if known is None or (self.radius is None and None in normed) or attention.cross:
            return [cap if cap < math.inf else None] * count
        lengths = []
        for weight, bias, own in zip((query, key), (attention.query_bias, attention.key_bias), normed, strict=True):
            if own is not None:
                lengths.append(np.full(count, own))
                continue
            shifts = np.zeros(count) if bias is None else np.linalg.norm(bias.read().reshape(-1, size), axis=1)
            largest = np.linalg.norm(weight, ord=2, axis=(1, 2))
            lengths.append(largest * (self.radius or 0.0) + np.repeat(shifts, count // len(shifts)))
        return [min(cap, float(abs(known) * q * k)) for q, k in zip(*lengths, strict=True)]


def products(
    left: Float[np.ndarray, "heads width size"],
    right: Float[np.ndarray, "heads width2 size"],
    left_gain: np.ndarray | None,
    right_gain: np.ndarray | None,
    factor: float,
    rng: np.random.Generator,
) -> list[ProductFigures]:
    """The figures of `factor` left right^T for every head."""
    values = product_values(left, right) * factor
    folded = None
    if left_gain is not None or right_gain is not None:
        ends = [w if g is None else w * g[:, None] for w, g in ((left, left_gain), (right, right_gain))]
        folded = product_values(*ends)[:, 0] * factor
    gaussian = gaussian_products(left, right) * factor
    mixed = largest_of_products(*(shuffled_heads(w, rng) for w in (left, right))) * factor
    sums = _l11(left, right) * factor
    exact = max(left.shape[1], right.shape[1]) < WIDE
    side = max(left.shape[1], right.shape[1])
    figures = []
    for head in range(len(left)):
        own = values[head]
        bar = 16 * side * 2.0**-53 * factor * float(np.linalg.norm(left[head]) * np.linalg.norm(right[head]))
        figures.append(
            ProductFigures(
                float(own[0]),
                bar,
                float(np.linalg.norm(own)),
                float(sums[head]),
                exact,
                ranks(own, side),
                _decay(own),
                None if folded is None else float(folded[head]),
                float(gaussian[head]),
                float(mixed[head]),
                tuple(map(float, own)),
            )
        )
    return figures


def matrix_figures(weight: Weight, gain: np.ndarray | None, rng: np.random.Generator, bad: list[str]) -> MatrixFigures:
    """The figures of one map; NaN where it has entries that are not finite."""
    rows, columns = weight.shape
    array = _finite(weight, bad)
    if array is None:
        nothing = Norms(*[math.nan] * 9)
        return MatrixFigures(weight.source.tensor, (rows, columns), nothing, None, None, None, math.nan, math.nan)
    # Of a Gaussian matrix the spectral norm is known well enough without drawing it: within a few percent, from above.
    gaussian = root_mean_square(array) * (math.sqrt(rows) + math.sqrt(columns))
    found = _large if min(rows, columns) > MANY_VALUES else _decomposed
    return MatrixFigures(weight.source.tensor, (rows, columns), *found(array, gain, rng, gaussian))


def _decomposed(
    array: np.ndarray, gain: np.ndarray | None, rng: np.random.Generator, gaussian: float
) -> tuple[Norms, Ranks, Decay | None, float | None, float, float]:
    """Norms, ranks, decay and comparisons by all singular values."""
    values = singular_values(array)
    folded = None if gain is None else largest_value(array * gain)
    copy, grown = shuffled_sample(array, rng)
    shuffled = grown * largest_value(copy)
    return norms(array, values), ranks(values, max(array.shape)), _decay(values), folded, gaussian, shuffled


def _large(
    array: np.ndarray, gain: np.ndarray | None, rng: np.random.Generator, gaussian: float
) -> tuple[Norms, None, None, float | None, float, float]:
    """The same without ranks and decay; the spectral norm by Lanczos steps, a few of them for the comparisons."""
    # float32 holds what float16, bfloat16 and float32 files hold exactly, and halves what has to be moved.
    single = array.astype(np.float32)
    value, bar = largest_by_lanczos(single)
    measured = replace(norms(array, np.array([value])), spectral_error=bar)
    folded = None if gain is None else largest_by_lanczos(single * gain.astype(np.float32), FEW_STEPS)[0]
    copy, grown = shuffled_sample(single, rng)
    shuffled = grown * largest_by_lanczos(copy, FEW_STEPS)[0]
    return measured, None, None, folded, gaussian, shuffled


def _maps(hidden: FeedForward) -> Iterator[tuple[str, Weight]]:
    yield "up", hidden.up
    if hidden.gate is not None:
        yield "gate", hidden.gate
    yield "down", hidden.down


def _l11(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """sum |(left right^T)_ij| of every head; where that is long, the bound sum_k |left_k|_1 |right_k|_1."""
    if max(left.shape[1], right.shape[1]) >= WIDE:
        return (np.abs(left).sum(1) * np.abs(right).sum(1)).sum(1)
    return np.array([np.abs(a @ b.T).sum() for a, b in zip(left, right, strict=True)])


def _decay(values: np.ndarray) -> Decay | None:
    try:
        return decay_exponent(values)
    except BadInput:
        return None


def _finite(weight: Weight, bad: list[str]) -> np.ndarray | None:
    array = weight.read()
    if np.isfinite(array).all():
        return array
    bad.append(weight.source.tensor)
    return None


def _gain(norm: Norm | None) -> np.ndarray | None:
    """The gain; none where it has entries that are not finite, which `unmeasured_not_finite` names."""
    gain = None if norm is None or norm.gain is None else norm.gain.read()
    return gain if gain is not None and np.isfinite(gain).all() else None


def _threads(width: int) -> AbstractContextManager:
    """Small and thin matrices are slower on several threads than on one: up to five times on a busy machine."""
    from threadpoolctl import threadpool_limits

    return threadpool_limits(limits=1 if width < WIDE else None)
