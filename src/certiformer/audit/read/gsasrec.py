"""gSASRec: no map behind the heads, whose outputs are put side by side and added to the queries.

Only queries are made of tokens behind a norm; keys and values are made of the tokens themselves, so no norm bounds the
scores."""

from __future__ import annotations

from dataclasses import replace

from certiformer.audit.form import Checkpoint, Layer
from certiformer.audit.read.blocks import Maps, hidden, maps_heads, rows_of, separate
from certiformer.audit.read.family import Family
from certiformer.audit.read.names import Names
from certiformer.audit.read.settings import Settings

SIGN = "transformer_blocks.0.multihead_attention.query_proj.weight"
EPSILON = 1e-5  # that of torch, which the code does not change


def read(names: Names, settings: Settings) -> Checkpoint:
    """The checkpoint below the prefix of `names`."""
    width = names.matrix(SIGN)[1]
    settings.agree(width, "columns", "embedding_dim")
    depth = names.count("transformer_blocks.{}.")
    settings.agree(depth, "layers", "num_blocks")
    embeddings = names.some(item="item_embedding.weight", position="position_embedding.weight")
    last = names.maybe("output_embedding.weight")
    return Checkpoint(
        "gsasrec",
        tuple(_layer(names, settings, f"transformer_blocks.{i}", width) for i in range(depth)),
        width,
        positions="learned" if "position" in embeddings else "none",
        norm_place="queries",
        embeddings=embeddings,
        head=last,
        head_tied=last is None and "item" in embeddings,
        final_norm=names.norm("seq_norm", "layer", EPSILON),
        context=rows_of(embeddings, "position"),
        vocabulary=rows_of(embeddings, "item"),
        config=settings.config,
        notes=("the residual of attention is the normed query",),
    )


def _layer(names: Names, settings: Settings, place: str, width: int) -> Layer:
    maps = Maps.below(f"{place}.multihead_attention", "query_proj", "key_proj", "val_proj", None)
    heads = maps_heads(names, settings, maps)
    return Layer(
        place,
        (replace(separate(names, maps, heads, width), causal=True),),
        (hidden(names, f"{place}.dense1", f"{place}.dense2", width, "relu"),),
        names.norms({"attention": f"{place}.first_norm", "ffn": f"{place}.second_norm"}, "layer", EPSILON),
        heads_known=heads.known,
    )


GSASREC = Family("gsasrec", SIGN, read)
