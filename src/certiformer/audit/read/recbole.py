"""RecBole's SASRec and BERT4Rec: BERT under other names; items are scored by their table.

BERT4Rec has a map, a norm and a bias before the scores and sees later items; SASRec does not."""

from __future__ import annotations

from dataclasses import replace

from certiformer.audit.form import Checkpoint, Layer
from certiformer.audit.read.blocks import Maps, hidden, maps_heads, rows_of, separate
from certiformer.audit.read.family import Family
from certiformer.audit.read.names import Names
from certiformer.audit.read.settings import WIDTH, Settings

SIGN = "trm_encoder.layer.0.multi_head_attention.query.weight"


def read(names: Names, settings: Settings) -> Checkpoint:
    """The checkpoint below the prefix of `names`."""
    width = names.matrix(SIGN)[1]
    settings.agree(width, "columns", *WIDTH)
    epsilon = settings.positive("layer_norm_eps")
    depth = names.count("trm_encoder.layer.{}.")
    settings.agree(depth, "layers", "n_layers")
    both_ways = names.has("output_ffn.weight")
    embeddings = names.some(item="item_embedding.weight", position="position_embedding.weight")
    return Checkpoint(
        "recbole-bert4rec" if both_ways else "recbole-sasrec",
        tuple(_layer(names, settings, f"trm_encoder.layer.{i}", width, epsilon, not both_ways) for i in range(depth)),
        width,
        positions="learned" if "position" in embeddings else "none",
        norm_place="post",
        embeddings=embeddings,
        head_tied="item" in embeddings,
        head_bias=names.maybe("output_bias"),
        norms=names.norms({"embeddings": "LayerNorm", "output": "output_ln"}, "layer", epsilon),
        others=names.some(output="output_ffn.weight", output_bias="output_ffn.bias"),
        context=rows_of(embeddings, "position"),
        vocabulary=rows_of(embeddings, "item"),
        config=settings.config,
    )


def _layer(names: Names, settings: Settings, place: str, width: int, epsilon: float | None, causal: bool) -> Layer:
    maps = Maps.below(f"{place}.multi_head_attention", "query", "key", "value", "dense")
    heads = maps_heads(names, settings, maps)
    up, down = f"{place}.feed_forward.dense_1", f"{place}.feed_forward.dense_2"
    norms = {"attention": f"{place}.multi_head_attention.LayerNorm", "ffn": f"{place}.feed_forward.LayerNorm"}
    return Layer(
        place,
        (replace(separate(names, maps, heads, width), causal=causal),),
        (hidden(names, up, down, width, settings.activation("hidden_act")),),
        names.norms(norms, "layer", epsilon),
        heads_known=heads.known,
    )


RECBOLE = Family("recbole", SIGN, read)
