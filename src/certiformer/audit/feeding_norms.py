"""The norms that feed attention and hidden units, and what they let through.

A score of tokens behind a norm is bounded by what the norm lets through, whatever the weights: |x| <= sqrt(d) max |g| +
|b| for the gain g and the shift b."""

from __future__ import annotations

import math

import numpy as np

from certiformer.audit.form import Checkpoint, Norm


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
    if checkpoint.norm_place in ("pre", "sandwich", "late"):
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


def only(norms: tuple[Norm | None, ...]) -> Norm | None:
    """The norm where there is exactly one: only then its gain can be folded into what it feeds."""
    return norms[0] if len(norms) == 1 else None


def finite_gain(norm: Norm | None) -> np.ndarray | None:
    """The gain; none where it has entries that are not finite, which `measure.unmeasured_not_finite` names."""
    gain = None if norm is None or norm.gain is None else norm.gain.read()
    return gain if gain is not None and np.isfinite(gain).all() else None
