"""Lipschitz constants of the attention of every layer, whatever positions do to its scores.

`bounds.attention_lipschitz` needs one score matrix for each head, which rotary codes do not have. Here scores may
differ from pair to pair (`bounds.pairwise_attention_lipschitz`): rotations, score biases, soft caps, norms of queries
and keys, and keys from another sequence. Heads add up; self- and cross-attention of a layer stand for themselves."""

from __future__ import annotations

import math
from dataclasses import dataclass

from certiformer.audit.architecture import registers_of
from certiformer.audit.form import Attention, Checkpoint, Layer
from certiformer.audit.measure import Measurements, Progress
from certiformer.audit.read.settings import WIDTH
from certiformer.audit.rotary_factor import rotary_factor
from certiformer.audit.score_slopes import maps_are_read, slopes, token_sets
from certiformer.audit.verdict import Factor, Given, Verdict
from certiformer.bounds.pairwise_attention_lipschitz import Slopes, above, sequence_lipschitz, token_lipschitz

PAIRS = "bounds.pairwise_attention_lipschitz"


@dataclass
class _Part:
    """The self- or the cross-attention of a layer: its constants, and how long the tokens of its keys can be."""

    name: str
    token: float = 0.0
    sequence: float | None = 0.0
    radius: float = 0.0


def pairwise(checkpoint: Checkpoint, figures: Measurements, given: Given, progress: Progress | None = None) -> Verdict:
    """The verdict, with a constant for each attention. `progress(done, total, what)` is called after layers whose maps have
    been read again."""
    reason = next((r for layer in checkpoint.layers if (r := _unfit(checkpoint, layer)) is not None), None)
    if reason is not None:
        return Verdict(PAIRS, "does-not-apply", f"The constant needs smooth scores of known scale; {reason}.")
    parts: list[_Part] = []
    for place, layer in enumerate(checkpoint.layers):
        found = _parts(checkpoint, figures, given, place, layer)
        if found is None:
            needs = ("--radius: how long tokens can be where no norm bounds them",)
            return Verdict(PAIRS, "holds-if", "Attention has a Lipschitz constant on bounded tokens only.", needs=needs)
        parts += found
        if progress is not None and any(maps_are_read(checkpoint, attention) for attention in layer.attention):
            progress(place + 1, len(checkpoint.layers), f"scores of {layer.name}")
    if not parts:
        return Verdict(PAIRS, "does-not-apply", "There is no attention.")
    worst = max(parts, key=lambda part: part.token)
    if not math.isfinite(worst.token):
        return Verdict(PAIRS, "does-not-apply", f"The weights of {worst.name} are so large that no constant is finite.")
    needs = _unsaid(checkpoint)
    return Verdict(
        PAIRS,
        "holds-if" if needs else "holds",
        f"With tokens within {worst.radius:.4g}, the attention of {worst.name} moves no token more than {worst.token:.4g}"
        " times as far as its input moves (largest change of a token), whatever the positions; no other attention moves"
        " it more.",
        worst.token,
        needs=needs,
        factors=tuple(Factor(part.name, part.token) for part in parts),
        details={
            "layers": [part.token for part in parts],
            "of_sequences": [part.sequence for part in parts],
            "radii": [part.radius for part in parts],
        },
    )


def _parts(checkpoint: Checkpoint, figures: Measurements, given: Given, place: int, layer: Layer) -> list[_Part] | None:
    """The attentions of a layer; None where a radius is missing."""
    parts: dict[bool, _Part] = {}
    heads = iter(figures.layers[place].heads)
    tokens = given.length or checkpoint.context
    total = None if tokens is None else tokens + registers_of(checkpoint)
    for attention in layer.attention:
        own = [next(heads) for _ in range(attention.query.shape[0])]
        queries, keys = token_sets(checkpoint, place, attention, given.radius)
        if queries is None or keys is None:
            return None
        part = parts.setdefault(attention.cross, _Part(f"{layer.name} (cross)" if attention.cross else layer.name))
        part.radius = max(part.radius, keys.radius)
        numbers = slopes(checkpoint, attention, own, queries, keys)
        part.token += _together(attention, [_constant(each, None) for each in numbers])
        if total is None or part.sequence is None:
            part.sequence = None
            continue
        seen_by = _seen_by(attention, total)
        part.sequence += _together(attention, [_constant(each, seen_by) for each in numbers])
    return list(parts.values())


def _constant(numbers: Slopes | None, seen_by: int | None) -> float:
    if numbers is None:
        return math.inf
    return above(token_lipschitz(numbers) if seen_by is None else sequence_lipschitz(numbers, seen_by))


def _together(attention: Attention, constants: list[float]) -> float:
    """Heads add up behind an output map; without one their outputs stand side by side. Rounding is below 1e-12."""
    return (math.hypot(*constants) if attention.output is None else math.fsum(constants)) * (1 + 1e-12)


def _seen_by(attention: Attention, tokens: int) -> int:
    """How many tokens see one token, at most."""
    if attention.window is None or attention.cross:
        return tokens
    return min(tokens, attention.window if attention.causal else 2 * attention.window - 1)


def _unfit(checkpoint: Checkpoint, layer: Layer) -> str | None:
    if not layer.heads_known:
        return "how many heads there are is in no file"
    if "distance" in layer.others or (checkpoint.positions == "relative" and checkpoint.family != "t5"):
        return "its relative positions are multiplied with the queries"
    if checkpoint.positions == "rope" and rotary_factor(checkpoint.config) is None:
        return "its rotary code is scaled by a factor that the config does not say"
    for attention in layer.attention:
        norms = [norm for norm in (attention.query_norm, attention.key_norm) if norm is not None]
        checks = (
            (not attention.softmax, "attention is not softmax"),
            (attention.scale is None, "the score scale is in no file"),
            (any(not norm.epsilon for norm in norms), "queries or keys are normed, and the epsilon is in no file"),
        )
        for found, reason in checks:
            if found:
                return reason
    return None


def _unsaid(checkpoint: Checkpoint) -> tuple[str, ...]:
    """What has to be taken on trust where there is no config, which would speak of the rotary code."""
    silent = checkpoint.positions == "rope" and not any(name in checkpoint.config for name in WIDTH)
    return ("a rotary code that turns and does not scale: no config says so",) if silent else ()
