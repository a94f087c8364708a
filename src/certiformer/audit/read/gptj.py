"""GPT-J: separate maps (out, in) without biases; attention and hidden units side by side behind one norm."""

from __future__ import annotations

from dataclasses import replace

from certiformer.audit.form import Checkpoint, Layer
from certiformer.audit.read.blocks import Maps, head, hidden, maps_heads, rows_of, separate
from certiformer.audit.read.family import Family
from certiformer.audit.read.names import Names
from certiformer.audit.read.settings import DEPTH, WIDTH, Settings

SIGN = "h.0.attn.q_proj.weight"


def read(names: Names, settings: Settings) -> Checkpoint:
    """The checkpoint below the prefix of `names`."""
    width = names.matrix(SIGN)[1]
    settings.agree(width, "columns", *WIDTH)
    depth = names.count("h.{}.")
    settings.agree(depth, "layers", *DEPTH)
    epsilon = settings.positive("layer_norm_epsilon")
    last = head(names, settings, "lm_head", names.prefix + "wte.weight", usually_tied=False)
    embeddings = names.some(word="wte.weight")
    return Checkpoint(
        "gptj",
        tuple(_layer(names, settings, f"h.{i}", width, epsilon) for i in range(depth)),
        width,
        positions="rope",
        norm_place="parallel",
        embeddings=embeddings,
        head=last.weight,
        head_tied=last.tied,
        head_bias=last.bias,
        final_norm=names.norm("ln_f", "layer", epsilon),
        others=names.root.rest("score.", "qa_outputs."),
        context=settings.whole("n_positions"),
        vocabulary=rows_of(embeddings, "word"),
        config=settings.config,
    )


def _layer(names: Names, settings: Settings, place: str, width: int, epsilon: float | None) -> Layer:
    maps = Maps.below(f"{place}.attn", "q_proj", "k_proj", "v_proj", "out_proj")
    heads = maps_heads(names, settings, maps)
    activation = settings.activation("activation_function", usual="gelu-tanh")
    return Layer(
        place,
        (replace(separate(names, maps, heads, width), causal=True),),
        (hidden(names, f"{place}.mlp.fc_in", f"{place}.mlp.fc_out", width, activation),),
        names.norms({"attention": f"{place}.ln_1"}, "layer", epsilon),
        heads_known=heads.known,
    )


GPTJ = Family("gptj", SIGN, read, ("transformer.",))
