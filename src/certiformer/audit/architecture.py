"""A checkpoint's architecture in the words of `model.Config`, so that theorems about configurations can be asked.

Only what these theorems look at is carried over: position codes, masks, score biases, the kind of attention. Rotary
positions turn queries and keys by the position. On a sequence of equal tokens that makes the scores a table of
positions and nothing else, which is why they stand here as a table of score biases: it is right for every statement
about such a sequence, and no other statement is made of it. Masks of n tokens are n x n, so n is kept small: none of
the answers depends on n from 2 on, except through windows, and those are said with the n."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Bool

from certiformer.audit.form import Attention, Checkpoint
from certiformer.model import Attention as ModelAttention
from certiformer.model import Block, Code, Config, Heads, Input, Readout

# Tokens that a mask is written out for.
SHOWN = 32
OWN_TOKENS = ("registers", "class_token", "distillation_token")
INSIDE = ("rope", "alibi", "relative")  # schemes that act on the scores, inside the softmax


def self_attentions(checkpoint: Checkpoint) -> list[Attention]:
    """The attentions whose keys and values are of the same sequence, layer by layer."""
    return [each for layer in checkpoint.layers for each in layer.attention if not each.cross]


def length_of(checkpoint: Checkpoint, given: int | None) -> int | None:
    """The length that statements are made for: the given one, else the longest that the model was made for."""
    return given if given is not None else checkpoint.context


def mask_of(attention: Attention, tokens: int) -> Bool[np.ndarray, "tokens tokens"]:
    """Which of `tokens` tokens a token attends to: no later ones where it is causal, and near ones where it has a window.

    >>> from certiformer.audit.form import Source, Weight
    >>> none = Weight(Source("", ""), (1, 1, 1), "F32", lambda: np.zeros((1, 1, 1)))
    >>> mask_of(Attention(none, none, none, None, causal=True, window=2), 3).astype(int).tolist()
    [[1, 0, 0], [1, 1, 0], [0, 1, 1]]
    """
    distance = np.subtract.outer(np.arange(tokens), np.arange(tokens))
    mask = distance >= 0 if attention.causal else np.ones((tokens, tokens), bool)
    return mask if attention.window is None else mask & (abs(distance) < attention.window)


def has_score_biases(checkpoint: Checkpoint) -> bool:
    """Whether something that depends on the positions alone is added to the scores."""
    return checkpoint.positions in ("alibi", "relative") or any(
        name.startswith(("score_bias", "relative_bias")) for layer in checkpoint.layers for name in layer.others
    )


def registers_of(checkpoint: Checkpoint) -> int:
    """How many tokens of the model's own stand before those of the input: registers, class tokens."""
    own = (checkpoint.embeddings[name] for name in OWN_TOKENS if name in checkpoint.embeddings)
    return sum(weight.count // checkpoint.width for weight in own)


def has_maps_between(checkpoint: Checkpoint) -> bool:
    """Whether maps stand between the layers and the tables: BERT's head for masked words, or what ALBERT's layers read."""
    behind = (".transform.", "lm_head.dense.", "vocab_transform.", "predictions.dense.", "project_out")
    read = checkpoint.head is not None or checkpoint.head_tied
    after = read and any(mark in name for name in checkpoint.others for mark in behind)
    return after or "mapping" in checkpoint.embeddings


def readout_of(checkpoint: Checkpoint) -> Readout:
    """Where outputs are read: our own configs say it, other models have one at every token."""
    return Readout(**checkpoint.config["readout"]) if checkpoint.family == "certiformer" else Readout("all")


def architecture(checkpoint: Checkpoint, tokens: int) -> tuple[Config, dict[str, np.ndarray]] | None:
    """The configuration for so many tokens and the tables it needs; None where positions or masks are not known."""
    attentions = self_attentions(checkpoint)
    if checkpoint.positions is None or any(each.causal is None for each in attentions) or not attentions:
        return None
    bias = "table" if checkpoint.positions in INSIDE or has_score_biases(checkpoint) else "none"
    registers = registers_of(checkpoint)
    length = registers + tokens
    blocks, tables = [], {}
    for attention in {(each.causal, each.window, each.softmax): each for each in attentions}.values():
        place = f"blocks.{len(blocks)}.attention"
        tables[f"{place}.mask"] = mask_of(attention, length)
        # Any table that tells the positions apart: no theorem asked here looks at its numbers.
        tables[f"{place}.groups.0.score_bias"] = np.arange(length**2, dtype=float).reshape(1, length, length)
        mask = "table" if attention.window is not None else "causal" if attention.causal else "none"
        kind = "softmax" if attention.softmax else "linear"  # any kind whose weights need not sum to one
        blocks.append(Block(ModelAttention((Heads(1, 1, 1),), kind=kind, mask=mask, score_bias=bias)))
    code, stored = Code("none"), checkpoint.embeddings.get("position")
    if stored is not None and len(stored.shape) == 2:
        code, tables["code.table"] = Code("table"), stored.read()[:tokens]
    elif checkpoint.adds_codes:
        code = Code("sinusoidal", offset=0, width=2)
    inputs = Input("continuous", tokens, width=1)
    readout = readout_of(checkpoint)
    readout = replace(readout, token=min(readout.token or 0, tokens - 1)) if readout.kind == "token" else readout
    return Config(inputs, 2, 1, readout, tuple(blocks), registers=registers, code=code), tables
