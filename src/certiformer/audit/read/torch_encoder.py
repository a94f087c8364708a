"""torch's `nn.TransformerEncoder`, `nn.TransformerDecoder` and `nn.Transformer`.

Their files say neither how many heads there are, nor whether norms stand before or behind the parts, nor whether tokens
see later ones: what the user does not say stays unknown. A model around them has tables and heads of its own, which
are taken where their names say what they are."""

from __future__ import annotations

from dataclasses import replace

from certiformer.audit.form import Attention, Checkpoint, Layer
from certiformer.audit.read.blocks import hidden
from certiformer.audit.read.family import ANY, Family
from certiformer.audit.read.heads import Heads
from certiformer.audit.read.names import Names
from certiformer.audit.read.settings import Settings
from certiformer.audit.read.torch_attention import multihead

SIGN = "layers.0.self_attn.out_proj.weight"


def is_mine(names: Names, settings: Settings) -> bool:
    """Others call a map `out_proj` too; what tells torch's attention is how the three maps before it are stored. Of an
    encoder beside a decoder, the encoder is where both are read from."""
    mine = names.has("layers.0.self_attn.in_proj_weight") or names.has("layers.0.self_attn.q_proj_weight")
    return mine and not (names.prefix.endswith("decoder.") and names.at(_beside(names)).has(SIGN))


def _beside(names: Names) -> str:
    """The prefix of the encoder that would stand beside a decoder."""
    return names.prefix.removesuffix("decoder.") + "encoder."


def read(names: Names, settings: Settings) -> Checkpoint:
    """The checkpoint below the prefix of `names`."""
    width = names.matrix(SIGN)[0]
    epsilon = settings.positive("layer_norm_eps")
    root = names.root
    layers = _stack(names, settings, width, epsilon)
    other = names.at(root.prefix + "decoder.")
    both = names.prefix.endswith("encoder.") and other.has(SIGN)
    if both:
        layers += _stack(other, settings, width, epsilon)
    first = settings.flag("norm_first")
    tables = root.rest("embedding.", "embed.", "embeddings.", "token_embedding.", "tok_emb.", "pos_emb", "pos_embed")
    ends = {"encoder_final": names.norm("norm", "layer", epsilon)} if both else {}
    return Checkpoint(
        "torch-encoder",
        tuple(layers),
        width,
        positions=None,
        norm_place=None if first is None else "pre" if first else "post",
        embeddings=tables,
        final_norm=(other if both else names).norm("norm", "layer", epsilon),
        norms={key: norm for key, norm in ends.items() if norm is not None},
        others=root.rest(
            "head.", "fc.", "classifier.", "lm_head.", "output.", "out.", "linear.", "generator.", "proj."
        ),
        config=settings.config,
    )


def _stack(names: Names, settings: Settings, width: int, epsilon: float | None) -> list[Layer]:
    return [_layer(names, settings, f"layers.{i}", width, epsilon) for i in range(names.count("layers.{}."))]


def _layer(names: Names, settings: Settings, place: str, width: int, epsilon: float | None) -> Layer:
    cross = names.has(f"{place}.multihead_attn.out_proj.weight")
    attention, heads = multihead(names, settings, f"{place}.self_attn", width)
    parts: list[Attention] = [replace(attention, causal=settings.flag("causal"))]
    norms = {"attention": f"{place}.norm1", "ffn": f"{place}.norm3" if cross else f"{place}.norm2"}
    if cross:
        found: tuple[Attention, Heads] = multihead(names, settings, f"{place}.multihead_attn", width)
        parts.append(replace(found[0], causal=False, cross=True))
        norms["cross"] = f"{place}.norm2"
    return Layer(
        names.prefix + place,
        tuple(parts),
        (hidden(names, f"{place}.linear1", f"{place}.linear2", width, settings.activation("activation")),),
        names.norms(norms, "layer", epsilon),
        heads_known=heads.known,
    )


TORCH_ENCODER = Family("torch-encoder", SIGN, read, ANY, is_mine)
