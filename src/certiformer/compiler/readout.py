"""How the output leaves the transformer: one logit for each value, or one number."""

from __future__ import annotations

from certiformer.compiler.draft import Draft, Feature
from certiformer.compiler.features import entries

MAX_LOGITS = 256  # more values than this are read out as one number
MAX_FEATURE = 1_024  # squares of larger features would need more digits than float32 has


def choose_readout(draft: Draft) -> str:
    """`logits` while the values are few and their codes small integers once centred, else `number`.

    Logit a is 2 f x - f^2 for the feature f of value a, so the largest belongs to the feature nearest to x. Features
    are moved so that zero is in their middle: the squares are what has to be represented.
    """
    feature = draft.output_feature
    if feature.numbers is None or len(feature.numbers) >= MAX_LOGITS:
        return "number"
    held = entries(feature)
    if any(f.denominator != 1 for f in held):
        return "number"
    middle = (int(min(held)) + int(max(held))) // 2
    if max(abs(f - middle) for f in held) > MAX_FEATURE:
        return "number"
    undefined = None if feature.undefined is None else feature.undefined - middle
    draft.output_feature = Feature(tuple(f - middle for f in feature.numbers), undefined)
    draft.output = draft.output.scaled(1, -middle)
    return "logits"
