"""DistilBERT: BERT without token types, under names of its own."""

from __future__ import annotations

from dataclasses import replace

from certiformer.audit.form import Checkpoint, Layer
from certiformer.audit.read.blocks import Head, Maps, head, hidden, maps_heads, positions_of, rows_of, separate
from certiformer.audit.read.family import Family
from certiformer.audit.read.names import Names
from certiformer.audit.read.settings import DEPTH, WIDTH, Settings

SIGN = "transformer.layer.0.attention.q_lin.weight"
WORDS = "embeddings.word_embeddings.weight"
EPSILON = 1e-12  # written in the code of the model, not in its config


def read(names: Names, settings: Settings) -> Checkpoint:
    """The checkpoint below the prefix of `names`."""
    width = names.matrix(SIGN)[1]
    settings.agree(width, "columns", *reversed(WIDTH))
    depth = names.count("transformer.layer.{}.")
    settings.agree(depth, "layers", "n_layers", *DEPTH)
    last = Head()
    if names.root.has("vocab_projector.bias"):
        last = head(names, settings, "vocab_projector", names.prefix + WORDS, usually_tied=True)
    embeddings = names.some(word=WORDS, position="embeddings.position_embeddings.weight")
    return Checkpoint(
        "distilbert",
        tuple(_layer(names, settings, f"transformer.layer.{i}", width) for i in range(depth)),
        width,
        positions=positions_of(embeddings, "sinusoidal" if settings.flag("sinusoidal_pos_embds") else "learned"),
        norm_place="post",
        embeddings=embeddings,
        head=last.weight,
        head_tied=last.tied,
        head_bias=last.bias,
        norms={
            **names.norms({"embeddings": "embeddings.LayerNorm"}, "layer", EPSILON),
            **names.root.norms({"vocab_layer_norm": "vocab_layer_norm"}, "layer", EPSILON),
        },
        others=names.root.rest("vocab_transform.", "pre_classifier.", "classifier.", "qa_outputs."),
        context=settings.whole("max_position_embeddings"),
        vocabulary=rows_of(embeddings, "word"),
        config=settings.config,
    )


def _layer(names: Names, settings: Settings, place: str, width: int) -> Layer:
    maps = Maps.below(f"{place}.attention", "q_lin", "k_lin", "v_lin", "out_lin")
    heads = maps_heads(names, settings, maps)
    return Layer(
        place,
        (replace(separate(names, maps, heads, width), causal=False),),
        (hidden(names, f"{place}.ffn.lin1", f"{place}.ffn.lin2", width, settings.activation("activation")),),
        names.norms({"attention": f"{place}.sa_layer_norm", "ffn": f"{place}.output_layer_norm"}, "layer", EPSILON),
        heads_known=heads.known,
    )


DISTILBERT = Family("distilbert", SIGN, read, ("distilbert.",))
