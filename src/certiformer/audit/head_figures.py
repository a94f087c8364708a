"""Figures of the heads of one attention: norms, ranks and decay of both products, bounds of the scores, and controls.

`qk` of a head is W_Q^T W_K, `vo` is W_O W_V; both go through their cores (`spectrum.products`). *Raw* means no gains and
no biases; *folded* means W diag(g) for the gain g of the norm that feeds the map."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from certiformer.audit.controls import gaussian_products, largest_of_products, shuffled_heads
from certiformer.audit.feeding_norms import norm_radius
from certiformer.audit.form import Attention
from certiformer.errors import BadInput
from certiformer.spectrum import Decay, Products, Ranks, decay_exponents, products, ranks_of_each

WIDE = 1024  # from this width on the sum |(W_Q^T W_K)_ij| is bounded, not summed

Heads = Float[np.ndarray, "heads width size"]


@dataclass(frozen=True)
class ProductFigures:
    """One product of a head: its norms (by the names of `spectrum.norms`) and ranks, how its singular values fall, and the
    controls' spectral norms; the singular values themselves, largest first. The three sums of sizes are upper bounds
    where `l11_is_exact` is not so."""

    spectral: float
    spectral_error: float
    frobenius: float
    l21_columns: float
    l21_rows: float
    l11: float
    largest_row_l1: float
    largest_column_l1: float
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
    are score biases, which no norm bounds); `key_shift` is an upper end of |s W_K^T b| for the scale s and the bias b of
    the queries, 0 where there is none."""

    qk: ProductFigures
    vo: ProductFigures | None
    score_bound: float | None
    key_shift: float = 0.0


@dataclass(frozen=True)
class Feeding:
    """What the heads of a layer see: tokens of l2 norm up to `radius` (None: not known) behind the gain, whether
    anything besides q . k is added to the scores, and what rotary codes multiply queries and keys by (None: not known)."""

    gain: Float[np.ndarray, " width"] | None
    radius: float | None
    score_biases: bool
    turned: float | None = 1.0


def head_figures(attention: Attention, feeding: Feeding, rng: np.random.Generator, bad: list[str]) -> list[HeadFigures]:
    """The figures of every head; none where a map has entries that are not finite, and its tensor is then in `bad`."""
    maps = (attention.query, attention.key, attention.value, attention.output)
    read = [None if each is None else each.read() for each in maps]
    named = [
        each.source.tensor
        for each, array in zip(maps, read, strict=True)
        if each is not None and array is not None and not np.isfinite(array).all()
    ]
    bad.extend(named)
    query, key, value, output = read
    if named or query is None or key is None or value is None:
        return []
    group = query.shape[0] // key.shape[0]
    if group * key.shape[0] != query.shape[0]:
        raise BadInput(
            f"{query.shape[0]} query heads cannot share the {key.shape[0]} key heads of {attention.key.source.tensor!r}"
        )
    key, value = (np.repeat(each, group, 0) if group > 1 else each for each in (key, value))
    # Raw figures leave the scale of the file aside and divide by the root of the head size, as scores usually do.
    gain = None if attention.cross else feeding.gain
    scores = products(query.swapaxes(1, 2), key.swapaxes(1, 2))
    ways: Sequence[ProductFigures | None] = [None] * len(query)
    if output is not None:
        ways = product_figures(products(output, value.swapaxes(1, 2)), None, gain, 1.0, rng)
    figures = product_figures(scores, gain, gain, query.shape[1] ** -0.5, rng)
    bounds = _score_bounds(attention, feeding, scores)
    return [HeadFigures(*each) for each in zip(figures, ways, bounds, _key_shifts(attention, key), strict=True)]


def product_figures(
    found: Products,
    left_gain: np.ndarray | None,
    right_gain: np.ndarray | None,
    factor: float,
    rng: np.random.Generator,
) -> list[ProductFigures]:
    """The figures of `factor` left right^T for every head."""
    left, right, values = found.left, found.right, found.values * factor
    one, other = (shuffled_heads(np.asarray(w, np.float32), rng) for w in (left, right))  # seven digits are enough
    pairs = [(one, other)]
    if left_gain is not None or right_gain is not None:
        pairs.append((_folded(left, left_gain), _folded(right, right_gain)))
    mixed, *gained = ((largest * factor).tolist() for largest in largest_of_products(pairs))
    folded: Sequence[float | None] = gained[0] if gained else [None] * len(left)
    gaussian = (gaussian_products(left, right) * factor).tolist()
    side = max(left.shape[1], right.shape[1])
    columns, rows = ((each.sum(1) * factor).tolist() for each in (found.column_lengths, found.row_lengths))
    used, decays = ranks_of_each(values, side), decay_exponents(values)
    errors, frobenius = (found.errors * factor).tolist(), np.linalg.norm(values, axis=1).tolist()
    figures = []
    for head, (whole, in_row, in_column) in enumerate((sizes(left, right) * factor).tolist()):
        own = values[head]
        figures.append(
            ProductFigures(
                spectral=float(own[0]),
                spectral_error=errors[head],
                frobenius=frobenius[head],
                l21_columns=columns[head],
                l21_rows=rows[head],
                l11=whole,
                largest_row_l1=in_row,
                largest_column_l1=in_column,
                l11_is_exact=side < WIDE,
                ranks=used[head],
                decay=decays[head],
                folded_spectral=folded[head],
                gaussian_spectral=gaussian[head],
                shuffled_spectral=mixed[head],
                values=tuple(own.tolist()),
            )
        )
    return figures


def _folded(w: Heads, gain: np.ndarray | None) -> Heads:
    return w if gain is None else w * gain[:, None]


def _score_bounds(attention: Attention, feeding: Feeding, scores: Products) -> Sequence[float | None]:
    """By q and k norms where there are any, else by the norm that feeds the head; a soft cap holds anyway."""
    count, _, size = scores.left.shape
    cap = math.inf if attention.cap is None else attention.cap
    known = None if attention.scale is None or feeding.turned is None else attention.scale * feeding.turned**2
    normed = [norm_radius(each, size) for each in (attention.query_norm, attention.key_norm)]
    if feeding.score_biases:
        return [None] * count
    if known is None or (feeding.radius is None and None in normed) or attention.cross:
        return [cap if cap < math.inf else None] * count
    lengths = []
    for largest, bias, own in zip(
        (scores.left_norms, scores.right_norms), (attention.query_bias, attention.key_bias), normed, strict=True
    ):
        if own is not None:
            lengths.append(np.full(count, own))
            continue
        shifts = np.zeros(count) if bias is None else np.linalg.norm(bias.read().reshape(-1, size), axis=1)
        lengths.append(largest * (feeding.radius or 0.0) + np.repeat(shifts, count // len(shifts)))
    return [min(cap, float(abs(known) * q * k)) for q, k in zip(*lengths, strict=True)]


def _key_shifts(attention: Attention, key: Float[np.ndarray, "heads size width"]) -> list[float]:
    if attention.query_bias is None or attention.scale is None:
        return [0.0] * len(key)
    bias = attention.query_bias.read().reshape(len(key), -1)
    # The product may cancel: its rounding is measured by what went into it.
    rounding = 1e-12 * np.linalg.norm(bias, axis=1) * np.linalg.norm(key.reshape(len(key), -1), axis=1)
    moved = np.matmul(bias[:, None], key)[:, 0]
    return (abs(attention.scale) * (np.linalg.norm(moved, axis=1) + rounding)).tolist()


def sizes(left: Heads, right: Float[np.ndarray, "heads width2 size"]) -> Float[np.ndarray, "heads 3"]:
    """sum |P_ij|, the largest sum of a row and the largest sum of a column of |P|, P = left right^T, for every head; where
    P is large, bounds of these, by |P_ij| <= sum_k |left_ik| |right_jk|.

    >>> sizes(np.array([[[1.0], [-2.0]]]), np.array([[[3.0], [4.0], [0.0]]])).tolist()
    [[21.0, 14.0, 12.0]]
    """
    if max(left.shape[1], right.shape[1]) >= WIDE:
        a, b = np.abs(left), np.abs(right)
        in_rows, in_columns = np.matmul(a, b.sum(1)[:, :, None])[:, :, 0], np.matmul(b, a.sum(1)[:, :, None])[:, :, 0]
        return np.stack([in_rows.sum(1), in_rows.max(1), in_columns.max(1)], axis=1)
    found = np.empty((len(left), 3))
    # The same memory for every head: fresh pages would cost half as much as the products.
    product = np.empty((left.shape[1], right.shape[1]))
    along, across = (np.ones(side) for side in product.shape)
    for head, (a, b) in enumerate(zip(left, right, strict=True)):
        np.abs(np.matmul(a, b.T, out=product), out=product)
        in_rows = product @ across
        found[head] = in_rows.sum(), in_rows.max(), (along @ product).max()
    return found
