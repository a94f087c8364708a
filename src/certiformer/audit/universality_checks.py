"""Universality of the shape that a checkpoint has, and three limits of shapes, with the numbers of this checkpoint.

`model_shape` turns what files say into the facts that `expressivity.universality` asks about; nothing is decided here."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from certiformer.audit.architecture import (
    has_maps_between,
    has_score_biases,
    readout_of,
    registers_of,
    self_attentions,
)
from certiformer.audit.form import Checkpoint, Norm
from certiformer.audit.verdict import Verdict
from certiformer.expressivity.normed_outputs import MISSED, is_normed_output
from certiformer.expressivity.score_rank import score_limit
from certiformer.expressivity.universality import ModelShape, judge
from certiformer.expressivity.zero_stays_zero import BiasFree, zero_limit

WORDS, RANK = "expressivity.words_in_normed_blocks", "expressivity.score_rank"
OUTPUTS, ZERO = "expressivity.normed_outputs", "expressivity.zero_stays_zero"
IDS = (WORDS, RANK, OUTPUTS, ZERO)
TRIVIAL = 1.0  # what a constant reaches on the targets of these limits


def universality_checks(checkpoint: Checkpoint, tokens: int | None) -> Iterator[Verdict]:
    """The verdicts, in the order of `IDS`."""
    shape = model_shape(checkpoint, tokens)
    if checkpoint.token_table is None:
        sentence = "The theorem is about words, and the inputs of this model are vectors: open."
        yield Verdict(WORDS, "open", sentence)
    elif readout_of(checkpoint).kind != "all":
        sentence = "The theorem is about an output at every token, and this model has one for the whole sequence: open."
        yield Verdict(WORDS, "open", sentence)
    else:
        answer = judge(shape)
        details: dict[str, object] = {} if answer.because is None else {"because": answer.because}
        yield Verdict(WORDS, answer.verdict, answer.sentence, answer.missed, 0.0, answer.needs, details=details)
    yield _rank(checkpoint, shape)
    yield _outputs(shape)
    yield _zero(checkpoint, shape)


def model_shape(checkpoint: Checkpoint, tokens: int | None) -> ModelShape:
    """What files say of the shape, in the words of `expressivity.universality`."""
    attentions, layers = self_attentions(checkpoint), checkpoint.layers
    units = [ffn for layer in layers for ffn in layer.ffn]
    norms = list(_norms(checkpoint))
    causal = {attention.causal for attention in attentions}
    known = bool(layers) and all(layer.heads_known for layer in layers)
    read_out = "own" if checkpoint.head is not None else "tied" if checkpoint.head_tied else "none"
    last = _last_norm(checkpoint)
    return ModelShape(
        "none" if not norms else checkpoint.norm_place,
        frozenset(norm.kind for norm in norms),
        frozenset(unit.activation for unit in units),
        causal.pop() if len(causal) == 1 else None,
        checkpoint.positions,
        sum(layer.repeats for layer in layers),
        checkpoint.width,
        min((one.query.shape[1] for one in attentions), default=None) if known else None,
        min((one.value.shape[1] for one in attentions), default=None) if known else None,
        read_out,
        checkpoint.width if read_out == "none" else _outputs_of(checkpoint),
        None if last is None else last.kind,
        checkpoint.vocabulary,
        tokens,
        tuple(one.window for one in attentions),
        _repeats(checkpoint),
        all(one.output is not None for one in attentions),
        _start(checkpoint),
        has_score_biases(checkpoint),
        tuple(_oddities(checkpoint)),
    )


def _start(checkpoint: Checkpoint) -> bool | None:
    """Whether every input begins with one token: what the user says, or what follows from a config of ours."""
    said = checkpoint.config.get("start_token")
    softmax = all(one.softmax for one in self_attentions(checkpoint))
    if said is True:
        return True
    denied = said is False or checkpoint.family == "certiformer"
    return False if denied and softmax and not registers_of(checkpoint) else None


def _repeats(checkpoint: Checkpoint) -> int:
    return max((layer.repeats for layer in checkpoint.layers), default=1)


def _norms(checkpoint: Checkpoint) -> Iterator[Norm]:
    for layer in checkpoint.layers:
        yield from layer.norms.values()
    yield from checkpoint.norms.values()
    if checkpoint.final_norm is not None:
        yield checkpoint.final_norm


def _last_norm(checkpoint: Checkpoint) -> Norm | None:
    """The norm that every token vector has gone through last, if there is one."""
    if checkpoint.final_norm is not None:
        return checkpoint.final_norm
    if checkpoint.norm_place == "post" and checkpoint.layers:
        return checkpoint.layers[-1].norms.get("ffn")
    return None


def _outputs_of(checkpoint: Checkpoint) -> int | None:
    return checkpoint.head.shape[0] if checkpoint.head is not None else checkpoint.vocabulary


def _oddities(checkpoint: Checkpoint) -> Iterator[str]:
    """What the proof does not have, thing by thing."""
    layers, attentions = checkpoint.layers, [one for layer in checkpoint.layers for one in layer.attention]
    config = checkpoint.config
    blocks = config.get("blocks", ()) if checkpoint.family == "certiformer" else ()
    parts = (block[part] for block, part in itertools.product(blocks, ("attention", "ffn")))
    for present, what in (
        (any(not layer.ffn for layer in layers), "layers without hidden units"),
        (any(len(layer.ffn) > 1 for layer in layers), "experts"),
        (any(not layer.attention for layer in layers), "layers without attention"),
        (any(one.cross for one in attentions), "attention to another sequence"),
        (any(not one.softmax for one in attentions), "weights that are not softmax"),
        (any(one.query_norm or one.key_norm for one in attentions), "norms of queries and keys"),
        (any(one.cap is not None for one in attentions), "capped scores"),
        (any(layer.repeats > 1 for layer in layers), "layers that share their weights"),
        (has_score_biases(checkpoint) and checkpoint.positions != "alibi", "trained score biases"),
        (registers_of(checkpoint) > 0, "tokens of the model's own"),
        (any(part is not None and not part["residual"] for part in parts), "parts without a residual"),
        (has_maps_between(checkpoint), "maps between layers and tables"),
    ):
        if present:
            yield what


def _rank(checkpoint: Checkpoint, shape: ModelShape) -> Verdict:
    items = _outputs_of(checkpoint)
    if shape.read_out == "none" or items is None:
        return Verdict(RANK, "does-not-apply", "The limit is about scores of items, and the files hold no read-out.")
    if checkpoint.config.get("final_logit_softcapping", checkpoint.family == "gemma2"):
        return Verdict(RANK, "does-not-apply", "The limit is about products, and here a soft cap is behind them.")
    biased = checkpoint.head_bias is not None
    limit = score_limit(checkpoint.width, items, biased)
    if limit is None:
        sentence = f"A table of {items:,} items is no wider than its rank of {checkpoint.width + biased:,} allows."
        return Verdict(RANK, "does-not-apply", f"The limit is silent: {sentence}")
    tied = "tied" if shape.read_out == "tied" else "own"
    return Verdict(
        RANK,
        "holds",
        f"Scores of {items:,} items by the {tied} table have rank {limit.rank:,} or less. Whatever the weights, some"
        f" target of scores in {{-1, 1}} on {limit.items:,} contexts is missed by {limit.error:.4g} (0 misses it by 1); no"
        " training mends it, only a wider table.",
        limit.error,
        TRIVIAL,
    )


def _outputs(shape: ModelShape) -> Verdict:
    if is_normed_output(shape.last_norm, affine_behind=shape.read_out != "none"):
        return Verdict(
            OUTPUTS,
            "holds",
            f"All token vectors lie in one hyperplane of the {shape.width:,} dimensions, as nothing is behind the last"
            f" layer norm: some corner of the cube is missed by {MISSED:g}. An affine read-out behind it mends it.",
            MISSED,
            TRIVIAL,
        )
    reason = "an affine read-out is behind the last norm" if shape.read_out != "none" else "no layer norm is behind all"
    return Verdict(OUTPUTS, "does-not-apply", f"Token vectors need not lie in a hyperplane: {reason}.")


def _zero(checkpoint: Checkpoint, shape: ModelShape) -> Verdict:
    words = checkpoint.token_table is not None
    facts = BiasFree("words" if words else "vectors", next(iter(shape.units), None), tuple(_added(checkpoint)))
    missed = zero_limit(facts, at_zero=1.0)
    if missed is not None:
        return Verdict(
            ZERO,
            "holds",
            "Without biases the sequence of zeros has the output 0: a target with the value 1 there is missed by 1.",
            missed,
            0.0,
        )
    reason = (
        "every word has a vector of its own" if words else f"the model has {', '.join(facts.added) or 'other units'}"
    )
    return Verdict(ZERO, "does-not-apply", f"The zero input is no limit here: {reason}.")


def _added(checkpoint: Checkpoint) -> Iterator[str]:
    """What is added besides products with the input."""
    biases = ("_bias", "shift")
    roles = (weight.source.tensor.rpartition(".")[2] for weight in checkpoint.weights())
    if any(role.endswith(biases) or role == "bias" for role in roles):
        yield "biases"
    if checkpoint.adds_codes:
        yield "codes of positions"
    if registers_of(checkpoint):
        yield "tokens of its own"
