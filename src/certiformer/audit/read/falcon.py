"""Falcon, in its three layouts of one fused matrix, which only the config tells apart.

New: for each group its queries, its key and its value, so (G, H / G + 2, e, d). Multi-query: H queries, one key, one
value. Old without multi-query: head by head, (H, 3, e, d). Attention and hidden units read the same tokens unless the
config says otherwise."""

from __future__ import annotations

from dataclasses import replace

from certiformer.audit.form import Checkpoint, Layer
from certiformer.audit.read.blocks import fused, head, hidden, rows_of
from certiformer.audit.read.family import Family
from certiformer.audit.read.heads import Heads, Layout, fused_heads
from certiformer.audit.read.names import Names
from certiformer.audit.read.settings import DEPTH, KEY_VALUE_HEADS, WIDTH, Settings
from certiformer.errors import BadInput

SIGN = "h.0.self_attention.query_key_value.weight"
TABLE = "word_embeddings.weight"


def is_mine(names: Names, settings: Settings) -> bool:
    """BLOOM has the same names and a norm behind the table."""
    return not names.has("word_embeddings_layernorm.weight")


def read(names: Names, settings: Settings) -> Checkpoint:
    """The checkpoint below the prefix of `names`."""
    width = names.matrix(SIGN)[1]
    settings.agree(width, "columns", *WIDTH)
    depth = names.count("h.{}.")
    settings.agree(depth, "layers", *DEPTH)
    epsilon = settings.positive("layer_norm_epsilon")
    parallel = settings.flag("parallel_attn", default=True) or _is_new(names, settings)
    last = head(names, settings, "lm_head", names.prefix + TABLE, usually_tied=True)
    embeddings = names.some(word=TABLE)
    return Checkpoint(
        "falcon",
        tuple(_layer(names, settings, f"h.{i}", width, epsilon) for i in range(depth)),
        width,
        positions="alibi" if settings.flag("alibi") else "rope",
        norm_place="parallel" if parallel else "pre",
        embeddings=embeddings,
        head=last.weight,
        head_tied=last.tied,
        head_bias=last.bias,
        final_norm=names.norm("ln_f", "layer", epsilon),
        others=names.root.rest("score.", "classifier.", "qa_outputs."),
        context=settings.whole("max_position_embeddings"),
        vocabulary=rows_of(embeddings, "word"),
        config=settings.config,
    )


def _is_new(names: Names, settings: Settings) -> bool:
    return bool(settings.flag("new_decoder_architecture", default=names.has("h.0.ln_attn.weight")))


def _heads(names: Names, settings: Settings, name: str) -> tuple[Heads, Layout]:
    rows, full = names.matrix(name)[0], names.prefix + name
    sorted_rows = names.files.kind == "gguf"  # the converter to GGUF sorts the rows into blocks
    if _is_new(names, settings):
        groups = settings.whole(*KEY_VALUE_HEADS)
        if groups is None:
            raise BadInput(
                f"the rows of {full!r} stand by groups, and no file says how many there are; say it with --key-value-heads"
            )
        layout: Layout = "blocks" if sorted_rows else "groups"
        return fused_heads(settings, rows, full, groups=groups, layout=layout), layout
    if settings.flag("multi_query", default=True):
        return fused_heads(settings, rows, full, groups=1, layout="blocks"), "blocks"
    layout = "blocks" if sorted_rows else "groups"
    return fused_heads(settings, rows, full, groups=None, layout=layout), layout


def _layer(names: Names, settings: Settings, place: str, width: int, epsilon: float | None) -> Layer:
    name = f"{place}.self_attention.query_key_value"
    heads, layout = _heads(names, settings, f"{name}.weight")
    attention = fused(names, f"{name}.weight", f"{name}.bias", f"{place}.self_attention.dense", heads, width, layout)
    up, down = f"{place}.mlp.dense_h_to_4h", f"{place}.mlp.dense_4h_to_h"
    found = {
        "attention": names.first(f"{place}.ln_attn.weight", f"{place}.input_layernorm.weight"),
        "ffn": names.first(f"{place}.ln_mlp.weight", f"{place}.post_attention_layernorm.weight"),
    }
    places = {part: norm.removesuffix(".weight") for part, norm in found.items() if norm is not None}
    return Layer(
        place,
        (replace(attention, causal=True),),
        (hidden(names, up, down, width, settings.activation("activation", usual="gelu")),),
        names.norms(places, "layer", epsilon),
        heads_known=heads.known,
    )


FALCON = Family("falcon", SIGN, read, ("transformer.",), is_mine)
