"""OPT: separate maps with biases; the table of positions has two rows more than there are positions.

The smallest but one has narrow tables with maps to and from the layers, and norms behind its parts."""

from __future__ import annotations

from dataclasses import replace

from certiformer.audit.form import Checkpoint, Layer
from certiformer.audit.read.blocks import Maps, head, hidden, maps_heads, positions_of, rows_of, separate
from certiformer.audit.read.family import Family
from certiformer.audit.read.names import Names
from certiformer.audit.read.settings import DEPTH, WIDTH, Settings

SIGN = "layers.0.self_attn.q_proj.weight"
TABLE = "embed_tokens.weight"
EPSILON = 1e-5  # that of torch, which the code does not change
BEFORE_FIRST = 2  # rows of the table of positions


def is_mine(names: Names, settings: Settings) -> bool:
    """BART has the same names, and attention to an encoder; CLIP keeps its hidden units below `mlp`."""
    return (
        names.has("layers.0.fc1.weight")
        and names.has("layers.0.self_attn.out_proj.weight")
        and not names.has("layers.0.encoder_attn.q_proj.weight")
        and names.prefix.endswith("decoder.")
    )


def read(names: Names, settings: Settings) -> Checkpoint:
    """The checkpoint below the prefix of `names`."""
    width = names.matrix(SIGN)[1]
    settings.agree(width, "columns", *WIDTH)
    depth = names.count("layers.{}.")
    settings.agree(depth, "layers", *DEPTH)
    last = head(names, settings, "lm_head", names.prefix + TABLE, usually_tied=True)
    embeddings = names.some(word=TABLE, position="embed_positions.weight", mapping="project_in.weight")
    before = settings.flag("do_layer_norm_before", default=True)
    rows = rows_of(embeddings, "position")
    return Checkpoint(
        "opt",
        tuple(_layer(names, settings, f"layers.{i}", width) for i in range(depth)),
        width,
        positions=positions_of(embeddings, "learned"),
        norm_place="pre" if before else "post",
        embeddings=embeddings,
        head=last.weight,
        head_tied=last.tied,
        head_bias=last.bias,
        final_norm=names.norm("final_layer_norm", "layer", EPSILON),
        others={
            **names.some(project_out="project_out.weight"),
            **names.root.rest("score.", "classifier.", "qa_outputs."),
        },
        context=rows - BEFORE_FIRST if rows is not None and rows > BEFORE_FIRST else None,
        vocabulary=rows_of(embeddings, "word"),
        config=settings.config,
    )


def _layer(names: Names, settings: Settings, place: str, width: int) -> Layer:
    maps = Maps.below(f"{place}.self_attn", "q_proj", "k_proj", "v_proj", "out_proj")
    heads = maps_heads(names, settings, maps)
    return Layer(
        place,
        (replace(separate(names, maps, heads, width), causal=True),),
        (
            hidden(
                names, f"{place}.fc1", f"{place}.fc2", width, settings.activation("activation_function", usual="relu")
            ),
        ),
        names.norms(
            {"attention": f"{place}.self_attn_layer_norm", "ffn": f"{place}.final_layer_norm"}, "layer", EPSILON
        ),
        heads_known=heads.known,
    )


OPT = Family("opt", SIGN, read, ("model.decoder.", "decoder."), is_mine)
