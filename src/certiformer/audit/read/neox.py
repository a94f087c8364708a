"""GPT-NeoX and Pythia: one fused matrix, head by head: the query, key and value of head 0, then those of head 1.

Read as three blocks it has every shape right and every head wrong."""

from __future__ import annotations

from dataclasses import replace

from certiformer.audit.form import Checkpoint, Layer
from certiformer.audit.read.blocks import fused, head, hidden, rows_of
from certiformer.audit.read.family import Family
from certiformer.audit.read.heads import fused_heads
from certiformer.audit.read.names import Names
from certiformer.audit.read.settings import DEPTH, WIDTH, Settings

SIGN = "layers.0.attention.query_key_value.weight"
TABLE = "embed_in.weight"


def read(names: Names, settings: Settings) -> Checkpoint:
    """The checkpoint below the prefix of `names`."""
    width = names.matrix(SIGN)[1]
    settings.agree(width, "columns", *WIDTH)
    depth = names.count("layers.{}.")
    settings.agree(depth, "layers", *DEPTH)
    epsilon = settings.positive("layer_norm_eps")
    last = head(names, settings, "embed_out", names.prefix + TABLE, usually_tied=False)
    embeddings = names.some(word=TABLE)
    parallel = settings.flag("use_parallel_residual", default=None if not settings.config else True)
    return Checkpoint(
        "gpt_neox",
        tuple(_layer(names, settings, f"layers.{i}", width, epsilon) for i in range(depth)),
        width,
        positions="rope",
        norm_place=None if parallel is None else "parallel" if parallel else "pre",
        embeddings=embeddings,
        head=last.weight,
        head_tied=last.tied,
        head_bias=last.bias,
        final_norm=names.norm("final_layer_norm", "layer", epsilon),
        others=names.root.rest("score.", "classifier.", "qa_outputs."),
        context=settings.whole("max_position_embeddings"),
        vocabulary=rows_of(embeddings, "word"),
        config=settings.config,
    )


def _layer(names: Names, settings: Settings, place: str, width: int, epsilon: float | None) -> Layer:
    name = f"{place}.attention.query_key_value"
    rows = names.matrix(f"{name}.weight")[0]
    layout = "blocks" if names.files.kind == "gguf" else "groups"  # the converter to GGUF sorts the rows
    heads = fused_heads(settings, rows, f"{names.prefix}{name}.weight", groups=None, layout=layout)
    attention = fused(names, f"{name}.weight", f"{name}.bias", f"{place}.attention.dense", heads, width, layout)
    up, down = f"{place}.mlp.dense_h_to_4h", f"{place}.mlp.dense_4h_to_h"
    return Layer(
        place,
        (replace(attention, causal=True),),
        (hidden(names, up, down, width, settings.activation("hidden_act")),),
        names.norms(
            {"attention": f"{place}.input_layernorm", "ffn": f"{place}.post_attention_layernorm"}, "layer", epsilon
        ),
        heads_known=heads.known,
    )


NEOX = Family("gpt_neox", SIGN, read, ("gpt_neox.",))
