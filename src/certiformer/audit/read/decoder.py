"""What Llama and its kin share: RMS norms before the parts, rotary positions, a table, a head, and names for all of it.

What differs between them is in `Kin`: how the maps of attention and the hidden units are stored, what the gains mean, and
where norms stand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from certiformer.audit.form import Attention, Checkpoint, FeedForward, Layer, Norm
from certiformer.audit.read.blocks import Maps, head, hidden, maps_heads, rows_of, separate
from certiformer.audit.read.heads import Heads
from certiformer.audit.read.names import Names
from certiformer.audit.read.settings import DEPTH, WIDTH, Settings

TABLE = "embed_tokens.weight"
SEPARATE = "layers.0.self_attn.q_proj.weight"
# Norms before the parts; in Gemma 2 and 3 also behind them, and the second name then means something else.
BEFORE = {"attention": "input_layernorm", "ffn": "post_attention_layernorm"}
AROUND = {
    "attention": "input_layernorm",
    "attention_post": "post_attention_layernorm",
    "ffn": "pre_feedforward_layernorm",
    "ffn_post": "post_feedforward_layernorm",
}

ReadAttention = Callable[[Names, Settings, str, int], tuple[Attention, Heads]]
ReadHidden = Callable[[Names, Settings, str, int], tuple[FeedForward, ...]]


def separate_maps(names: Names, settings: Settings, place: str, width: int) -> tuple[Attention, Heads]:
    """q_proj, k_proj, v_proj and o_proj, each (out, in)."""
    maps = Maps.below(f"{place}.self_attn", "q_proj", "k_proj", "v_proj", "o_proj")
    heads = maps_heads(names, settings, maps)
    return separate(names, maps, heads, width), heads


def gated(names: Names, settings: Settings, place: str, width: int) -> tuple[FeedForward, ...]:
    """gate_proj, up_proj and down_proj."""
    activation = settings.activation("hidden_activation", "hidden_act")
    mlp = f"{place}.mlp"
    return (hidden(names, f"{mlp}.up_proj", f"{mlp}.down_proj", width, activation, f"{mlp}.gate_proj"),)


@dataclass(frozen=True)
class Kin:
    """One member: `offset` is added to stored gains, `scale` of the scores replaces the usual one where it is given."""

    name: str
    attention: ReadAttention = separate_maps
    hidden: ReadHidden = gated
    tied: bool = False
    offset: float = 0.0
    embedding_scale: float = 1.0
    scale: float | None = None
    cap: float | None = None
    around: bool = False
    full_every: int = 0  # every so many layers one has no window


def read_decoder(names: Names, settings: Settings, kin: Kin) -> Checkpoint:
    """The checkpoint below the prefix of `names`."""
    width = names.length("layers.0.input_layernorm.weight")
    settings.agree(width, "columns", *WIDTH)
    depth = names.count("layers.{}.")
    settings.agree(depth, "layers", *DEPTH)
    epsilon = settings.positive("rms_norm_eps")
    layers = tuple(_layer(names, settings, kin, i, width, epsilon) for i in range(depth))
    last = head(names, settings, "lm_head", names.prefix + TABLE, usually_tied=kin.tied)
    embeddings = names.some(word=TABLE)
    return Checkpoint(
        kin.name,
        layers,
        width,
        positions="rope",
        norm_place="sandwich" if kin.around else "pre",
        embeddings=embeddings,
        embedding_scale=kin.embedding_scale,
        head=last.weight,
        head_tied=last.tied,
        head_bias=last.bias,
        final_norm=names.norm("norm", "rms", epsilon, kin.offset),
        others=names.root.rest("score."),
        context=settings.whole("max_position_embeddings"),
        vocabulary=rows_of(embeddings, "word"),
        config=settings.config,
    )


def _layer(names: Names, settings: Settings, kin: Kin, index: int, width: int, epsilon: float | None) -> Layer:
    place = f"layers.{index}"
    attention, heads = kin.attention(names, settings, place, width)

    def inner_norm(name: str) -> Norm | None:
        return names.norm(f"{place}.self_attn.{name}", "rms", epsilon, kin.offset)

    attention = replace(
        attention,
        query_norm=inner_norm("q_norm"),
        key_norm=inner_norm("k_norm"),
        scale=kin.scale or attention.scale,
        cap=kin.cap,
        causal=True,
        window=_window(settings, index, kin.full_every),
    )
    norms = {key: f"{place}.{name}" for key, name in (AROUND if kin.around else BEFORE).items()}
    return Layer(
        place,
        (attention,),
        kin.hidden(names, settings, place, width),
        names.norms(norms, "rms", epsilon, kin.offset),
        names.some(router=f"{place}.block_sparse_moe.gate.weight"),
        heads_known=heads.known,
    )


def _window(settings: Settings, index: int, full_every: int) -> int | None:
    """How many tokens back a layer sees, where the config says so for this layer."""
    kinds, width = settings.get("layer_types"), settings.whole("sliding_window")
    if isinstance(kinds, list) and index < len(kinds):
        return width if kinds[index] == "sliding_attention" else None
    # Qwen2 carries the number without using it.
    if settings.flag("use_sliding_window", default=True) is False:
        return None
    every = settings.whole("sliding_window_pattern") or full_every
    return None if every and (index + 1) % every == 0 else width
