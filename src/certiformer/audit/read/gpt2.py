"""GPT-2 and nanoGPT: the same names, opposite orientations.

GPT-2 stores (in, out) and nanoGPT (out, in). The square map `attn.c_proj` looks alike in both, so the shape of the
fused map decides: (d, 3 d) or (3 d, d) with d the width of the table of words. Queries, keys and values are one block
each."""

from __future__ import annotations

from dataclasses import replace

from certiformer.audit.form import Checkpoint, Layer
from certiformer.audit.read.blocks import fused, head, hidden, rows_of
from certiformer.audit.read.family import Family
from certiformer.audit.read.heads import fused_heads
from certiformer.audit.read.names import Names
from certiformer.audit.read.settings import CONTEXT, DEPTH, WIDTH, Settings
from certiformer.errors import BadInput

SIGN = "h.0.attn.c_attn.weight"


def read(names: Names, settings: Settings) -> Checkpoint:
    """The checkpoint below the prefix of `names`."""
    width = names.matrix("wte.weight")[1]
    settings.agree(width, "columns", *WIDTH)
    transposed = _is_transposed(names, width)
    depth = names.count("h.{}.")
    settings.agree(depth, "layers", *DEPTH)
    nano = not transposed and names.files.kind != "gguf"  # the converter to GGUF turns the maps of GPT-2
    epsilon = 1e-5 if nano else settings.positive("layer_norm_epsilon")  # nanoGPT has it in its code
    embeddings = names.some(word="wte.weight", position="wpe.weight")
    last = head(names, settings, "lm_head", names.prefix + "wte.weight", usually_tied=True)
    return Checkpoint(
        "nanogpt" if nano else "gpt2",
        tuple(_layer(names, settings, i, width, epsilon, transposed) for i in range(depth)),
        width,
        positions="learned" if "position" in embeddings else None,
        norm_place="pre",
        embeddings=embeddings,
        head=last.weight,
        head_tied=last.tied,
        head_bias=last.bias,
        final_norm=names.norm("ln_f", "layer", epsilon),
        others=names.root.rest("score.", "multiple_choice_head.", "classifier."),
        context=rows_of(embeddings, "position") or settings.whole(*CONTEXT),
        vocabulary=rows_of(embeddings, "word"),
        config=settings.config,
    )


def _is_transposed(names: Names, width: int) -> bool:
    shape = names.matrix(SIGN)
    if shape == (width, 3 * width):
        return True
    if shape == (3 * width, width):
        return False
    raise BadInput(
        f"the tensor {names.prefix + SIGN!r} has the shape {shape}; with tokens of width {width} it should be"
        f" {(width, 3 * width)} (GPT-2) or {(3 * width, width)} (nanoGPT)"
    )


def _layer(names: Names, settings: Settings, index: int, width: int, epsilon: float | None, transposed: bool) -> Layer:
    place = f"h.{index}"
    name = f"{place}.attn.c_attn.weight"
    heads = fused_heads(settings, 3 * width, names.prefix + name, groups=None, layout="blocks")
    attention = fused(
        names, name, f"{place}.attn.c_attn.bias", f"{place}.attn.c_proj", heads, width, "blocks", transposed
    )
    scale = 1.0 if settings.flag("scale_attn_weights", default=True) is False else heads.scale
    if scale is not None and settings.flag("scale_attn_by_inverse_layer_idx", default=False):
        scale /= index + 1
    activation = settings.activation("activation_function", usual="gelu-tanh" if transposed else "gelu")
    return Layer(
        place,
        (replace(attention, scale=scale, causal=True),),
        (hidden(names, f"{place}.mlp.c_fc", f"{place}.mlp.c_proj", width, activation, transposed=transposed),),
        names.norms({"attention": f"{place}.ln_1", "ffn": f"{place}.ln_2"}, "layer", epsilon),
        heads_known=heads.known,
    )


GPT2 = Family("gpt2", SIGN, read, ("transformer.",))
