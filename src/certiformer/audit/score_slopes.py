"""The numbers of `bounds.pairwise_attention_lipschitz` for the heads of a checkpoint: how steep scores are in the
tokens.

Where one matrix gives all scores (no rotation, no norm of queries and keys, no cap) the figures of the head are
enough. Else the maps are read again, for their own norms. Tokens behind a norm with gain g and shift b are diag(g) z
+ b with |z| <= sqrt(d), so a map W makes of them nothing longer than |W diag g| sqrt(d) + |W b|, often far less than
|W| times the radius."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from certiformer.audit.feeding_norms import feeding_norms, norm_radius
from certiformer.audit.form import Attention, Checkpoint, Norm, Weight
from certiformer.audit.head_figures import HeadFigures
from certiformer.audit.rotary_factor import rotary_factor
from certiformer.bounds.pairwise_attention_lipschitz import Side, Slopes

UP = 1 + 1e-10  # covers the rounding of sums of up to 10^5 products in float64
TINY = 1e-200  # squared norms between this and its inverse are computed without underflow that matters


@dataclass(frozen=True)
class Tokens:
    """A convex set of tokens: the ball of `radius`, or what the norms let through, which lies in that ball."""

    radius: float
    norms: tuple[Norm, ...] = ()

    def longest(
        self, weights: Float[np.ndarray, "heads size width"], steep: Float[np.ndarray, " heads"], bias: Weight | None
    ) -> Float[np.ndarray, " heads"]:
        """Upper ends of |W x + b| over the tokens, for every head; `steep` are upper ends of |W|."""
        shift = np.zeros(weights.shape[:2]) if bias is None else bias.read().reshape(weights.shape[:2])
        by_radius = (steep * self.radius + np.linalg.norm(shift, axis=1)) * UP
        behind = [self._behind(norm, weights, steep, shift) for norm in self.norms]
        return np.minimum(by_radius, np.max(behind, axis=0)) if behind else by_radius

    @staticmethod
    def _behind(norm: Norm, weights: np.ndarray, steep: np.ndarray, shift: np.ndarray) -> np.ndarray:
        folded = steep if norm.gain is None else largest(weights * norm.gain.read())
        length, moved = np.linalg.norm(shift, axis=1), shift
        if norm.shift is not None:
            own = norm.shift.read()
            moved = shift + weights @ own
            length = length + steep * np.linalg.norm(own)
        # The sum may cancel: its rounding is measured by what went into it.
        return (folded * math.sqrt(weights.shape[2]) + np.linalg.norm(moved, axis=1) + (UP - 1) * length) * UP


def token_sets(checkpoint: Checkpoint, place: int, attention: Attention, radius: float | None) -> list[Tokens | None]:
    """Where the tokens of the queries lie, and those of keys and values; None where no norm bounds them and no radius is
    given."""
    own, width = checkpoint.layers[place].norms, checkpoint.width
    if checkpoint.norm_place == "queries" and not attention.cross:
        return [_behind((own.get("attention"),), width, radius), _behind((None,), width, radius)]
    if not attention.cross:
        return [_behind(feeding_norms(checkpoint, place, "attention"), width, radius)] * 2
    before = own.get({"pre": "cross", "post": "attention"}.get(checkpoint.norm_place or "", ""))
    return [_behind((norm,), width, radius) for norm in (before, checkpoint.norms.get("encoder_final"))]


def _behind(norms: tuple[Norm | None, ...], width: int, given: float | None) -> Tokens | None:
    known = [norm for norm in norms if norm is not None]
    radii = [radius for norm in known if (radius := norm_radius(norm, width)) is not None]
    if len(radii) == len(norms):
        return Tokens(max(radii) * UP, tuple(known))
    return None if given is None else Tokens(given)


def slopes(
    checkpoint: Checkpoint, attention: Attention, found: list[HeadFigures], queries: Tokens, keys: Tokens
) -> list[Slopes | None]:
    """The numbers of every head; None where they are not finite."""
    values, spreads = _values(attention, found, keys)
    if maps_are_read(checkpoint, attention):
        pairs = _rotary(checkpoint, attention, queries, keys)
        return [_finite(Slopes.of_rotary, *each) for each in zip(values, spreads, *pairs, strict=True)]
    # Figures of qk are divided by the root of the head size; the model's own scale goes in here.
    ratio = abs(attention.scale or 0.0) * math.sqrt(attention.query.shape[1]) * UP
    scores = [(head.qk.spectral + head.qk.spectral_error) * ratio for head in found]
    radii = [[max(tokens.radius, 1e-100)] * len(found) for tokens in (queries, keys)]  # a gain of zero leaves one token
    shifts = [head.key_shift * UP for head in found]
    return [_finite(Slopes.of_matrices, *each) for each in zip(values, spreads, scores, *radii, shifts, strict=True)]


def _finite(make: Callable[..., Slopes], *numbers: Any) -> Slopes | None:
    flat = [n for each in numbers for n in ((each.slope, each.longest) if isinstance(each, Side) else (each,))]
    return make(*numbers) if all(map(math.isfinite, flat)) else None


def maps_are_read(checkpoint: Checkpoint, attention: Attention) -> bool:
    """Whether the figures of the head are not enough: scores may be other than one bilinear form of all pairs plus
    constants."""
    normed = attention.query_norm is not None or attention.key_norm is not None
    return normed or attention.cap is not None or checkpoint.positions in ("rope", None)


def _values(attention: Attention, found: list[HeadFigures], keys: Tokens) -> tuple[list[float], list[float]]:
    """|V| of every head, and the radius of a ball that holds V x of all tokens; a shift of the norm moves its centre only.

    The norm with the gains folded in is a root of an eigenvalue, whose error is at most 16 n u (|A|_F |B|_F)^2 for the
    factors A, B and the longer side n. The error bar of the raw norm is at least 16 n u |A|_F |B|_F.
    """
    gain = keys.norms[0].gain if len(keys.norms) == 1 else None
    top, width = 0.0 if gain is None else float(np.abs(gain.read()).max(initial=0.0)), attention.value.shape[2]
    ways = [head.vo for head in found if head.vo is not None]
    if len(ways) < len(found):  # no output map: the values are the outputs
        own = np.repeat(largest(attention.value.read()), len(found) // attention.value.shape[0]).tolist()
        return own, [each * keys.radius * UP for each in own]
    values = [way.spectral + way.spectral_error for way in ways]
    spreads = [value * keys.radius * UP for value in values]
    for number, way in enumerate(ways):
        if gain is not None and way.folded_spectral is not None and not attention.cross:
            bar = way.spectral_error * top / math.sqrt(16 * width * 2.0**-53)
            folded = math.hypot(way.folded_spectral, bar) * math.sqrt(width) * UP
            spreads[number] = min(spreads[number], folded)
    return values, spreads


def _rotary(
    checkpoint: Checkpoint, attention: Attention, queries: Tokens, keys: Tokens
) -> tuple[list[float], list[Side], list[Side]]:
    """For every head the factor of its scores and both sides."""
    turned = rotary_factor(checkpoint.config) if checkpoint.positions == "rope" else 1.0
    factor = abs(attention.scale or 0.0) * max(1.0, math.inf if turned is None else turned) ** 2 * UP
    query = _side(attention.query, attention.query_bias, attention.query_norm, queries)
    key = _side(attention.key, attention.key_bias, attention.key_norm, keys)
    share = len(query) // len(key)
    return [factor] * len(query), query, [key[number // share] for number in range(len(query))]


def _side(weight: Weight, bias: Weight | None, norm: Norm | None, tokens: Tokens) -> list[Side]:
    array = weight.read()
    steep = largest(array)
    if norm is None:
        return [Side(float(a), float(b)) for a, b in zip(steep, tokens.longest(array, steep, bias), strict=True)]
    gain = 1.0 if norm.gain is None else float(np.abs(norm.gain.read()).max(initial=0.0))
    longest = norm_radius(norm, array.shape[1])
    long = math.inf if longest is None else longest * UP
    return [Side(float(a) * gain / math.sqrt(norm.epsilon or 0.0) * UP, long) for a in steep]


def largest(weights: Float[np.ndarray, "heads rows columns"]) -> Float[np.ndarray, " heads"]:
    """Upper ends of the spectral norms, from the eigenvalues of the smaller Gram matrices.

    The rounding of products and eigenvalues is at most 16 times the longer side times 2^-53 of the squared Frobenius norm.

    >>> largest(np.array([[[3.0, 0.0, 0.0], [0.0, 4.0, 0.0]]])).round(9).tolist()
    [4.0]
    """
    if weights.shape[1] > weights.shape[2]:
        weights = weights.swapaxes(1, 2)
    size = np.ones(len(weights))
    with np.errstate(over="ignore", invalid="ignore"):
        gram = weights @ weights.swapaxes(1, 2)
        squares = np.trace(gram, axis1=1, axis2=2)
    if not ((squares > TINY) & (squares < 1 / TINY)).all():
        # Squares overflow or vanish: every head is brought to entries of at most one.
        size = np.abs(weights).max(axis=(1, 2), initial=0.0)
        weights = weights / np.where(size > 0, size, 1.0)[:, None, None]
        gram = weights @ weights.swapaxes(1, 2)
        squares = np.trace(gram, axis1=1, axis2=2)
    bar = 16 * max(weights.shape[1:]) * 2.0**-53 * squares
    return np.sqrt(np.linalg.eigvalsh(gram)[:, -1].clip(min=0.0) + bar) * size * UP
