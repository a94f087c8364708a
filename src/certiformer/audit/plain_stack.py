"""The norm-based bounds of the literature, and what of a checkpoint their proofs do not have.

They are proved for bare attention: maps, softmax of a bilinear form, and nothing beside it. What each of them leaves out is
looked up in the checkpoint, thing by thing, so that the sentence names what this model has and never what it might have.
Published families all have residuals; of our own models the config says it."""

from __future__ import annotations

from collections.abc import Iterator

from certiformer.audit.architecture import has_score_biases
from certiformer.audit.form import Attention, Checkpoint
from certiformer.audit.verdict import Verdict

ONE_LAYER, LAYERS, MASKED = "bounds.trauger_one_layer", "bounds.trauger_layers", "bounds.masked_token"
EDELMAN, LOW_RANK = "bounds.edelman_head", "bounds.low_rank_head"
STACKS = (
    (ONE_LAYER, "one attention layer by its l1 norms"),
    (LAYERS, "several attention layers by their l1 and spectral norms"),
    (MASKED, "a predicted token by the norms of its layers and its output table"),
    (EDELMAN, "one head by its (2,1) norm"),
    (LOW_RANK, "one head by its rank"),
)
SINGLE_LAYER = (ONE_LAYER, EDELMAN, LOW_RANK)
SINGLE_HEAD = (LAYERS, EDELMAN)  # the others add up heads
PROJECTED = (LAYERS, MASKED)  # every layer ends in a projection of its tokens, which no model that is read here has
NEEDS = (
    "the number of independent training sequences",
    "a bound on the tokens",
    "embeddings and position codes that were fixed before the data",
)


def plain_stacks(checkpoint: Checkpoint) -> Iterator[Verdict]:
    """The verdicts, in the order of `STACKS`."""
    attentions = [each for layer in checkpoint.layers for each in layer.attention]
    for name, what in STACKS:
        if not attentions:
            yield Verdict(
                name, "does-not-apply", f"The bound on {what} needs attention; no file says where it is here."
            )
            continue
        if not all(layer.heads_known for layer in checkpoint.layers):
            yield Verdict(
                name, "does-not-apply", f"The bound on {what} needs the number of heads, which is in no file."
            )
            continue
        found = [*_own_limits(checkpoint, name), *_beside_attention(checkpoint, attentions)]
        if found:
            sentence = f"The bound on {what} is proved for attention without {_list(found)}, which this model has."
            yield Verdict(name, "does-not-apply", sentence)
        else:
            sentence = (
                f"The bound on {what} is about such a model; `{name}` has the formula, with the norms of its maps."
            )
            yield Verdict(name, "holds-if", sentence, needs=NEEDS)


def _own_limits(checkpoint: Checkpoint, name: str) -> Iterator[str]:
    """What this one of the theorems leaves out and others do not."""
    layers = checkpoint.layers
    if name in SINGLE_LAYER and sum(layer.repeats for layer in layers) > 1:
        yield "a second layer"
    if name in SINGLE_HEAD and any(sum(each.query.shape[0] for each in layer.attention) > 1 for layer in layers):
        yield "a second head in a layer"
    if name != MASKED and _outputs(checkpoint) > 1:
        yield "a second output"
    if name in PROJECTED:
        yield "tokens that no projection keeps in the unit ball"


def _beside_attention(checkpoint: Checkpoint, attentions: list[Attention]) -> Iterator[str]:
    for present, what in (
        (any(each.cross for each in attentions), "attention to another sequence"),
        (any(not each.softmax for each in attentions), "weights that are not softmax"),
        (checkpoint.positions == "rope", "rotary positions"),
        (has_score_biases(checkpoint), "score biases"),
        (any(each.query_norm or each.key_norm for each in attentions), "norms of queries and keys"),
        (any(each.cap is not None for each in attentions), "capped scores"),
        (any(_has_bias(each) for each in attentions), "biases"),
        (_has_norms(checkpoint), _norms(checkpoint)),
        (any(layer.ffn for layer in checkpoint.layers), "hidden units between the layers"),
        (_reads_several(checkpoint), "an output that is read from several tokens"),
        (_has_residuals(checkpoint), "residuals"),
    ):
        if present:
            yield what


def _has_bias(attention: Attention) -> bool:
    """Whether one of the maps has a bias; that of the keys alone would leave the softmax."""
    return any(each is not None for each in (attention.query_bias, attention.value_bias, attention.output_bias))


def _has_norms(checkpoint: Checkpoint) -> bool:
    return bool(checkpoint.norms or checkpoint.final_norm or any(layer.norms for layer in checkpoint.layers))


def _norms(checkpoint: Checkpoint) -> str:
    return "true norms" + (f" ({checkpoint.norm_place}-norm)" if checkpoint.norm_place is not None else "")


def _has_residuals(checkpoint: Checkpoint) -> bool:
    if checkpoint.family != "certiformer":
        return True
    parts = (block[part] for block in checkpoint.config["blocks"] for part in ("attention", "ffn"))
    return any(part is not None and part["residual"] for part in parts)


def _reads_several(checkpoint: Checkpoint) -> bool:
    if checkpoint.family != "certiformer":
        return False
    return checkpoint.config["readout"]["kind"] not in ("token", "register")


def _outputs(checkpoint: Checkpoint) -> int:
    """How many numbers come out for a token; 1 where no file says it."""
    if checkpoint.head is not None:
        return checkpoint.head.shape[0]
    return (checkpoint.vocabulary or 1) if checkpoint.head_tied else 1


def _list(found: list[str]) -> str:
    return ", ".join(found[:-1]) + (" and " if len(found) > 1 else "") + found[-1]
