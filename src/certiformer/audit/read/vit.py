"""Vision transformers of the Hugging Face library: BERT's maps, norms before the parts, patches instead of words."""

from __future__ import annotations

from dataclasses import replace

from certiformer.audit.form import Checkpoint, Layer
from certiformer.audit.read.blocks import Maps, hidden, maps_heads, positions_of, rows_of, separate
from certiformer.audit.read.family import Family
from certiformer.audit.read.names import Names
from certiformer.audit.read.settings import DEPTH, WIDTH, Settings

SIGN = "encoder.layer.0.attention.attention.query.weight"


def read(names: Names, settings: Settings) -> Checkpoint:
    """The checkpoint below the prefix of `names`."""
    width = names.matrix(SIGN)[1]
    settings.agree(width, "columns", *WIDTH)
    epsilon = settings.positive("layer_norm_eps")
    depth = names.count("encoder.layer.{}.")
    settings.agree(depth, "layers", *DEPTH)
    embeddings = names.some(
        patch="embeddings.patch_embeddings.projection.weight",
        patch_bias="embeddings.patch_embeddings.projection.bias",
        position="embeddings.position_embeddings",
        class_token="embeddings.cls_token",
        distillation_token="embeddings.distillation_token",
        mask_token="embeddings.mask_token",
    )
    root = names.root
    return Checkpoint(
        "vit",
        tuple(_layer(names, settings, f"encoder.layer.{i}", width, epsilon) for i in range(depth)),
        width,
        positions=positions_of(embeddings, "learned"),
        norm_place="pre",
        embeddings=embeddings,
        head=root.maybe("classifier.weight"),
        head_bias=root.maybe("classifier.bias"),
        final_norm=names.norm("layernorm", "layer", epsilon),
        others={**names.rest("pooler."), **root.rest("cls_classifier.", "distillation_classifier.", "decoder.")},
        context=rows_of(embeddings, "position", axis=1),
        config=settings.config,
    )


def _layer(names: Names, settings: Settings, place: str, width: int, epsilon: float | None) -> Layer:
    maps = Maps.below(f"{place}.attention", "attention.query", "attention.key", "attention.value", "output.dense")
    heads = maps_heads(names, settings, maps)
    activation = settings.activation("hidden_act")
    return Layer(
        place,
        (replace(separate(names, maps, heads, width), causal=False),),
        (hidden(names, f"{place}.intermediate.dense", f"{place}.output.dense", width, activation),),
        names.norms({"attention": f"{place}.layernorm_before", "ffn": f"{place}.layernorm_after"}, "layer", epsilon),
        heads_known=heads.known,
    )


VIT = Family("vit", SIGN, read, ("vit.", "deit."))
