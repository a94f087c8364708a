"""Eight mistakes that are often made about what transformers can do, each with the numbers of this model.

A diagnostic is a warning where this model is in the case that the mistake is about, else a note. `docs/diagnostics.md`
has an entry for each, under its id."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from certiformer.audit.architecture import length_of, self_attentions
from certiformer.audit.cost import cost
from certiformer.audit.form import Checkpoint
from certiformer.audit.generalization import BITS
from certiformer.audit.limits import known_scores, left_over
from certiformer.audit.measure import Measurements
from certiformer.audit.verdict import Given, Verdict

# exp(x) is infinite above, and 0 below, these; the largest finite number.
FLOATS = {
    "float16": (math.log(65504.0), math.log(2.0**-25), 65504.0),
    "bfloat16": (math.log(3.39e38), math.log(2.0**-134), 3.39e38),
    "float32": (math.log(3.4028e38), math.log(2.0**-150), 3.4028e38),
}


@dataclass(frozen=True)
class Diagnostic:
    """One of the eight; `level` is "warning" or "note", `numbers` are those of the sentence."""

    id: str
    name: str
    level: str
    sentence: str
    numbers: Mapping[str, float | int | None] = field(default_factory=dict)


def diagnostics(
    checkpoint: Checkpoint, figures: Measurements, verdicts: Sequence[Verdict], given: Given
) -> tuple[Diagnostic, ...]:
    """All eight, in their order."""
    tokens = length_of(checkpoint, given.length)
    scores = known_scores(figures)
    largest = max(scores, default=None)
    return (
        _trainability(figures),
        _positions(checkpoint),
        _soft_and_hard(largest, tokens),
        _length(checkpoint, given),
        _precision(largest, checkpoint),
        _attribution(checkpoint, verdicts, given),
        _cost(checkpoint, tokens),
        _capacity(checkpoint, figures, tokens),
    )


def _trainability(figures: Measurements) -> Diagnostic:
    ratios = [
        part.spectral / part.gaussian_spectral
        for layer in figures.layers
        for head in layer.heads
        for part in (head.qk, head.vo)
        if part is not None and part.gaussian_spectral > 0
    ]
    name, start = "taking expressiveness for trainability", "That weights exist does not say that training finds them."
    if not ratios:
        return Diagnostic("E1", name, "note", start)
    middle = median(ratios)
    like = sum(0.8 <= ratio <= 1.25 for ratio in ratios)
    level = "warning" if like == len(ratios) else "note"
    text = (
        f"{start} What training did here: the products of a head have, in the middle, {middle:.3g} times the spectral norm"
        f" of random ones of the same size; {like} of {len(ratios)} cannot be told from random ones by their norm."
    )
    return Diagnostic("E1", name, level, text, {"median_ratio": middle, "like_random": like, "products": len(ratios)})


def _positions(checkpoint: Checkpoint) -> Diagnostic:
    name, scheme = "ignoring positions", checkpoint.positions
    causal = any(each.causal for each in self_attentions(checkpoint))
    if scheme is None:
        return Diagnostic(
            "E2", name, "warning", "No file says how positions enter; without any, the order is invisible."
        )
    if scheme == "none":
        only = "only its causal mask shows the order" if causal else "permuting the input permutes the output"
        return Diagnostic("E2", name, "warning", f"There are no positions: {only}.")
    equal = (
        "equal tokens still get equal outputs"
        if scheme in ("rope", "alibi", "relative")
        else "every position has a code"
    )
    return Diagnostic("E2", name, "note", f"Positions are {scheme}: {equal}.")


def _soft_and_hard(largest: float | None, tokens: int | None) -> Diagnostic:
    name = "taking soft attention for hard attention"
    if largest is None or tokens is None or tokens < 2:
        return Diagnostic(
            "E3", name, "note", "Softmax is never one-hot; without a score bound and a length there is no number."
        )
    rest, shown = left_over(largest, tokens)
    text = (
        f"Scores are within S = {largest:.4g}, so the largest weight on {tokens:,} tokens is at most 1/(1 + (n-1) e^(-2S)):"
        f" at least {shown} of it goes to other tokens."
    )
    level = "warning" if rest > 1e-3 else "note"
    return Diagnostic("E3", name, level, text, {"score_bound": largest, "left_over": rest, "tokens": tokens})


def _length(checkpoint: Checkpoint, given: Given) -> Diagnostic:
    name, made = "overlooking the length it was made for", checkpoint.context
    if made is None:
        return Diagnostic("E4", name, "warning", "No file says how long an input may be; theorems hold up to a length.")
    if given.length is not None and given.length > made:
        effect = (
            "there is no code for the rest" if checkpoint.positions == "learned" else "nothing is known of the rest"
        )
        text = f"It was made for {made:,} tokens and is asked about {given.length:,}: {effect}."
        return Diagnostic("E4", name, "warning", text, {"context": made, "length": given.length})
    return Diagnostic(
        "E4",
        name,
        "note",
        f"It was made for up to {made:,} tokens; nothing here is about longer inputs.",
        {"context": made},
    )


def _precision(largest: float | None, checkpoint: Checkpoint) -> Diagnostic:
    name = "neglecting precision"
    if largest is None:
        return Diagnostic("E5", name, "note", "There is no bound of the scores, so none on what floats do to them.")
    effects: dict[str, list[str]] = {"scores overflow": [], "e^score overflows unless the largest is subtracted": []}
    scores, powers = effects.values()
    zeros = effects["weights may round to 0"] = []
    for kind, (over, under, top) in FLOATS.items():
        if largest > over:
            (scores if largest > top else powers).append(kind)
        if -2 * largest < under:
            zeros.append(kind)
    found = [f"{effect} in {', '.join(kinds)}" for effect, kinds in effects.items() if kinds]
    stored = sorted({weight.stored for weight in checkpoint.weights()})
    start = f"Scores can reach {largest:.4g} as far as norms tell (weights are stored as {', '.join(stored)})"
    text = f"{start}: {'; '.join(found)}." if found else f"{start}: no float type overflows, no weight rounds to 0."
    return Diagnostic("E5", name, "warning" if found else "note", text, {"score_bound": largest})


def _attribution(checkpoint: Checkpoint, verdicts: Sequence[Verdict], given: Given) -> Diagnostic:
    bounds = [each for each in verdicts if each.id.startswith("bounds.") and "lipschitz" not in each.id]
    useful = sum(each.verdict == "holds" for each in bounds)
    parameters = sum(weight.count for weight in checkpoint.weights())
    seen = given.tokens or given.samples
    data = (
        "how much data it saw is in no file"
        if seen is None
        else f"it saw {seen:,} ({seen / max(parameters, 1):.3g} for each)"
    )
    text = (
        f"It has {parameters:,} parameters, and {data}. {useful} of {len(bounds)} generalization bounds say something about"
        " it: how well it does is a matter of data and training, not of what its architecture could express."
    )
    numbers = {"parameters": parameters, "useful_bounds": useful, "bounds": len(bounds)}
    return Diagnostic("E6", "crediting the architecture", "note", text, numbers)


def _cost(checkpoint: Checkpoint, tokens: int | None) -> Diagnostic:
    name = "underestimating quadratic cost"
    if tokens is None or not any(layer.attention for layer in checkpoint.layers):
        return Diagnostic("E7", name, "note", "Attention costs n^2 in the length n; there is no length to count with.")
    found = cost(checkpoint, tokens)
    text = (
        f"At {tokens:,} tokens, scores and mixing take {found.attention:.3g} operations, the maps {found.maps:.3g}; all"
        f" scores together are {found.scores:,} numbers ({4 * found.scores / 2**30:.3g} GiB in float32). Both cost the same"
        f" at about {found.equal:,.0f} tokens."
    )
    numbers = {"tokens": tokens, "attention": found.attention, "maps": found.maps, "scores": found.scores}
    return Diagnostic("E7", name, "warning" if found.attention > found.maps else "note", text, numbers)


def _capacity(checkpoint: Checkpoint, figures: Measurements, tokens: int | None) -> Diagnostic:
    name, attentions = "forgetting what capacity is made of", self_attentions(checkpoint)
    known = all(layer.heads_known for layer in checkpoint.layers)
    if not attentions or not known:
        return Diagnostic(
            "E8", name, "warning", "How many heads there are is in no file, so neither is what a head can route."
        )
    count, size = max((each.query.shape[0], each.query.shape[1]) for each in attentions)
    ranks = [head.qk.ranks.participation for layer in figures.layers for head in layer.heads]
    used = f"; in the middle they use {median(ranks):.3g} of these" if ranks else ""
    width = checkpoint.width
    text = f"A layer routes through {count} heads whose score matrices have rank at most {size} of {width}{used}."
    numbers: dict[str, float | int | None] = {"heads": count, "rank": size, "width": width}
    bits = max((BITS.get(weight.stored, 64) for weight in checkpoint.weights()), default=32)
    if tokens is not None and checkpoint.vocabulary is not None and checkpoint.vocabulary > 1:
        holds, contexts = width * bits, tokens * math.log2(checkpoint.vocabulary)
        numbers |= {"stream_bits": holds, "context_bits": contexts}
        verb = "less than" if holds < contexts else "no less than"
        text += f" One token carries at most {holds:,} bits, {verb} the {contexts:,.0f} of {tokens:,} tokens."
        return Diagnostic("E8", name, "warning" if holds < contexts else "note", text, numbers)
    return Diagnostic("E8", name, "note", text, numbers)
