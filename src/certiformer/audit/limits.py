"""Two limits of any weights like these: how sharp attention can be, and what so many bits can tell apart."""

from __future__ import annotations

import math
from fractions import Fraction

from flint import arb

from certiformer.audit.architecture import self_attentions
from certiformer.audit.form import Checkpoint, Coverage
from certiformer.audit.generalization import stored_bits
from certiformer.audit.measure import Measurements
from certiformer.audit.verdict import Verdict
from certiformer.expressivity import bits_lower_bound, softmax_temperature_limit

SHARPNESS, FEW_BITS = "expressivity.softmax_temperature_limit", "expressivity.bits_lower_bound"
ROUNDED = 2.0**-24  # of a weight, what float32 may round away

HUGE = 1e15  # scores beyond which no exponent is worth printing


def sharpness(checkpoint: Checkpoint, figures: Measurements, tokens: int | None) -> Verdict:
    """How far the sharpest head can be from selecting one of n tokens; vacuous where float32 could not tell."""
    if any(not each.softmax for each in self_attentions(checkpoint)):
        return Verdict(SHARPNESS, "does-not-apply", "The limit is about softmax, and some attention here is another.")
    windows = [each.window for each in self_attentions(checkpoint) if each.window is not None]
    tokens = None if tokens is None else min([tokens, *windows])
    bounds = known_scores(figures)
    if not bounds or tokens is None or tokens < 2:
        needs = ("--length: how many tokens there are",) if bounds else ("a norm that bounds the scores",)
        return Verdict(
            SHARPNESS, "holds-if", "Softmax never selects: how near it comes depends on scores and length.", needs=needs
        )
    largest = max(bounds)
    left, text = left_over(largest, tokens)
    sentence = (
        f"Scores stay below {largest:.4g} in size, so on {tokens:,} tokens in sight even the sharpest head keeps at least"
        f" {text} of its weight off the best token"
    )
    details: dict[str, object] = {"score_bound": largest, "largest_weight": 1 - left, "tokens": tokens}
    if left < ROUNDED:
        return Verdict(
            SHARPNESS, "vacuous", f"vacuous: {sentence}, which float32 rounds away.", left, ROUNDED, details=details
        )
    return Verdict(SHARPNESS, "holds", f"{sentence}.", left, ROUNDED, details=details)


def known_scores(figures: Measurements) -> list[float]:
    """The score bounds of all heads; none where one of them has no finite one."""
    found = [head.score_bound for layer in figures.layers for head in layer.heads]
    known = [each for each in found if each is not None and math.isfinite(each)]
    return known if len(known) == len(found) else []


def left_over(largest_score: float, tokens: int) -> tuple[float, str]:
    """1 - 1/(1 + (n-1) e^(-2S)), the least weight off the best of n tokens when scores are within S; and its text.

    Half of `softmax_temperature_limit.bound` at the gap 2S, which is the widest there can be and where it is attained.

    >>> left_over(0.0, 4), left_over(2.0, 10)[1], left_over(2539.0, 512)[1]
    ((0.75, '0.75'), '0.142', '1e-2203')
    """
    if largest_score <= 0:
        return 1 - 1 / tokens, f"{1 - 1 / tokens:.3g}"
    if largest_score > HUGE:
        return 0.0, "0"
    half = softmax_temperature_limit.bound(tokens, Fraction(2 * largest_score)) / 2
    number = max(0.0, math.nextafter(float(half.lower()), 0.0))
    if number > 1e-300:
        return number, f"{number:.3g}"
    return number, f"1e{math.floor(float((half.log() / arb(10).log()).lower()))}"


def few_bits(checkpoint: Checkpoint, coverage: Coverage) -> Verdict:
    """What no model of as many bits can do, whatever its weights: the error on some 1-Lipschitz function of one token."""
    stored = stored_bits(checkpoint, coverage)
    width = checkpoint.width
    if width < 1:
        return Verdict(FEW_BITS, "does-not-apply", "How wide a token is could not be told from the tensors.")
    # Just below the tolerance 1/(2N) the bits are N^D; the first N with more bits than there are is near the root.
    cells = max(1, int(stored ** (1 / width)) - 1)
    while bits_lower_bound.bits(1, Fraction(1, 2 * cells) - Fraction(1, 2**64), width) <= stored:
        cells += 1
    error = Fraction(1, 2 * cells)
    return Verdict(
        FEW_BITS,
        "holds",
        f"The weights are {stored:,} bits. No family of models of so many bits comes nearer than {float(error):.3g} to"
        f" every function of the {width:,} coordinates of one token in [0, 1] with slope 1; a constant reaches 0.5.",
        float(error),
        0.0,
        details={"bits": stored},
    )
