"""Vision transformers of timm: one fused map in three blocks, norms before the parts.

timm writes no config with the number of heads; its models have heads of size 64, but this is a habit, not a rule."""

from __future__ import annotations

from dataclasses import replace

from certiformer.audit.form import Checkpoint, Layer
from certiformer.audit.read.blocks import fused, hidden, rows_of
from certiformer.audit.read.family import Family
from certiformer.audit.read.heads import fused_heads
from certiformer.audit.read.names import Names
from certiformer.audit.read.settings import Settings

SIGN = "blocks.0.attn.qkv.weight"
EPSILON = 1e-6  # the default of the library


def read(names: Names, settings: Settings) -> Checkpoint:
    """The checkpoint below the prefix of `names`."""
    width = names.matrix(SIGN)[1]
    depth = names.count("blocks.{}.")
    settings.agree(depth, "layers", "depth")
    embeddings = names.some(
        patch="patch_embed.proj.weight",
        patch_bias="patch_embed.proj.bias",
        position="pos_embed",
        class_token="cls_token",
        distillation_token="dist_token",
        registers="reg_token",
    )
    return Checkpoint(
        "timm-vit",
        tuple(_layer(names, settings, f"blocks.{i}", width) for i in range(depth)),
        width,
        positions="learned" if "position" in embeddings else None,
        norm_place="pre",
        embeddings=embeddings,
        head=names.maybe("head.weight"),
        head_bias=names.maybe("head.bias"),
        final_norm=names.norm("norm", "layer", EPSILON),
        norms=names.norms({"head": "fc_norm", "before_layers": "norm_pre"}, "layer", EPSILON),
        others=names.rest("pre_logits.", "head_dist.", "attn_pool."),
        context=rows_of(embeddings, "position", axis=1),
        config=settings.config,
    )


def _layer(names: Names, settings: Settings, place: str, width: int) -> Layer:
    name = f"{place}.attn.qkv"
    rows = names.matrix(f"{name}.weight")[0]
    heads = fused_heads(settings, rows, f"{names.prefix}{name}.weight", groups=None, layout="blocks")
    attention = replace(
        fused(names, f"{name}.weight", f"{name}.bias", f"{place}.attn.proj", heads, width, "blocks"),
        query_norm=names.norm(f"{place}.attn.q_norm", "layer", EPSILON),
        key_norm=names.norm(f"{place}.attn.k_norm", "layer", EPSILON),
        causal=False,
    )
    return Layer(
        place,
        (attention,),
        (hidden(names, f"{place}.mlp.fc1", f"{place}.mlp.fc2", width, settings.activation("act_layer", usual="gelu")),),
        names.norms({"attention": f"{place}.norm1", "ffn": f"{place}.norm2"}, "layer", EPSILON),
        names.some(attention_gain=f"{place}.ls1.gamma", ffn_gain=f"{place}.ls2.gamma"),
        heads_known=heads.known,
    )


TIMM_VIT = Family("timm-vit", SIGN, read)
