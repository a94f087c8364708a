"""BLOOM: fused head by head as in GPT-NeoX, ALiBi instead of positions, a norm behind the table."""

from __future__ import annotations

from dataclasses import replace

from certiformer.audit.form import Checkpoint, Layer
from certiformer.audit.read.blocks import fused, head, hidden, rows_of
from certiformer.audit.read.family import Family
from certiformer.audit.read.heads import fused_heads
from certiformer.audit.read.names import Names
from certiformer.audit.read.settings import DEPTH, WIDTH, Settings

SIGN = "h.0.self_attention.query_key_value.weight"
TABLE = "word_embeddings.weight"


def is_mine(names: Names, settings: Settings) -> bool:
    """Falcon has the same names without a norm behind the table."""
    return names.has("word_embeddings_layernorm.weight")


def read(names: Names, settings: Settings) -> Checkpoint:
    """The checkpoint below the prefix of `names`."""
    width = names.matrix(SIGN)[1]
    settings.agree(width, "columns", *WIDTH)
    depth = names.count("h.{}.")
    settings.agree(depth, "layers", "n_layer", *DEPTH)
    epsilon = settings.positive("layer_norm_epsilon")
    last = head(names, settings, "lm_head", names.prefix + TABLE, usually_tied=True)
    embeddings = names.some(word=TABLE)
    # There the residual is what the norm gives, so that nothing passes a layer unchanged.
    late = settings.flag("apply_residual_connection_post_layernorm", default=False)
    return Checkpoint(
        "bloom",
        tuple(_layer(names, settings, f"h.{i}", width, epsilon) for i in range(depth)),
        width,
        positions="alibi",
        norm_place="late" if late else "pre",
        embeddings=embeddings,
        head=last.weight,
        head_tied=last.tied,
        head_bias=last.bias,
        final_norm=names.norm("ln_f", "layer", epsilon),
        norms=names.norms({"embeddings": "word_embeddings_layernorm"}, "layer", epsilon),
        others=names.root.rest("score.", "classifier.", "qa_outputs."),
        context=settings.whole("seq_length"),
        vocabulary=rows_of(embeddings, "word"),
        config=settings.config,
        notes=("residuals are taken behind the norms",) if late else (),
    )


def _layer(names: Names, settings: Settings, place: str, width: int, epsilon: float | None) -> Layer:
    name = f"{place}.self_attention.query_key_value"
    rows = names.matrix(f"{name}.weight")[0]
    layout = "blocks" if names.files.kind == "gguf" else "groups"  # the converter to GGUF sorts the rows
    heads = fused_heads(settings, rows, f"{names.prefix}{name}.weight", groups=None, layout=layout)
    attention = fused(names, f"{name}.weight", f"{name}.bias", f"{place}.self_attention.dense", heads, width, layout)
    up, down = f"{place}.mlp.dense_h_to_4h", f"{place}.mlp.dense_4h_to_h"
    return Layer(
        place,
        (replace(attention, causal=True),),
        (hidden(names, up, down, width, "gelu-tanh"),),
        names.norms(
            {"attention": f"{place}.input_layernorm", "ffn": f"{place}.post_attention_layernorm"}, "layer", epsilon
        ),
        heads_known=heads.known,
    )


BLOOM = Family("bloom", SIGN, read, ("transformer.",), is_mine)
