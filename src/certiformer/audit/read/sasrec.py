"""SASRec.pytorch: torch's attention, hidden units as convolutions of length one, items multiplied by sqrt(d).

Whether norms stand before or behind the parts is an argument of the training script, and older copies of the code norm
only the queries; so their place is unknown unless the config says `norm_first`."""

from __future__ import annotations

import math
from dataclasses import replace

from certiformer.audit.form import Checkpoint, FeedForward, Layer, Weight
from certiformer.audit.read.blocks import rows_of
from certiformer.audit.read.family import Family
from certiformer.audit.read.names import Names
from certiformer.audit.read.settings import Settings
from certiformer.audit.read.torch_attention import multihead

SIGN = "attention_layers.0.in_proj_weight"
EPSILON = 1e-8  # written in the code of the model


def read(names: Names, settings: Settings) -> Checkpoint:
    """The checkpoint below the prefix of `names`."""
    width = names.matrix(SIGN)[1]
    settings.agree(width, "columns", "hidden_units")
    depth = names.count("attention_layers.{}.")
    settings.agree(depth, "layers", "num_blocks")
    embeddings = names.some(item="item_emb.weight", position="pos_emb.weight")
    first, rows = settings.flag("norm_first"), rows_of(embeddings, "position")
    return Checkpoint(
        "sasrec",
        tuple(_layer(names, settings, i, width) for i in range(depth)),
        width,
        positions="learned" if "position" in embeddings else "none",
        norm_place=None if first is None else "pre" if first else "post",
        embeddings=embeddings,
        embedding_scale=math.sqrt(width),
        head_tied="item" in embeddings,
        final_norm=names.norm("last_layernorm", "layer", EPSILON),
        context=None if rows is None else max(rows - 1, 1),  # row 0 is for padding
        vocabulary=rows_of(embeddings, "item"),
        config=settings.config,
        notes=() if first is not None else ("no file says where the norms stand; say it with --norm-first",),
    )


def _layer(names: Names, settings: Settings, index: int, width: int) -> Layer:
    attention, heads = multihead(names, settings, f"attention_layers.{index}", width)
    return Layer(
        f"attention_layers.{index}",
        (replace(attention, causal=True),),
        (_hidden(names, f"forward_layers.{index}", width),),
        names.norms(
            {"attention": f"attention_layernorms.{index}", "ffn": f"forward_layernorms.{index}"}, "layer", EPSILON
        ),
        heads_known=heads.known,
    )


def _hidden(names: Names, place: str, width: int) -> FeedForward:
    def map_of(name: str) -> Weight:
        shape = (width, width)
        return names.take(f"{place}.{name}.weight", shape, whole=(*shape, 1), part="convolution of length 1")

    return FeedForward(
        map_of("conv1"),
        map_of("conv2"),
        up_bias=names.maybe(f"{place}.conv1.bias", whole=(width,)),
        down_bias=names.maybe(f"{place}.conv2.bias", whole=(width,)),
        activation="relu",
    )


SASREC = Family("sasrec", SIGN, read)
