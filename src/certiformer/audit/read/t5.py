"""T5: an encoder and a decoder, RMS norms before the parts, scores that are not divided by sqrt(e).

Positions are a table of biases of the scores by distance and head; it is stored in the first block of each stack and
used by all. The decoder attends to itself and then to the encoder. Hidden units are `wi`, `wo`, or in version 1.1 `wi_0`
(the gate), `wi_1` and `wo`."""

from __future__ import annotations

from dataclasses import replace

from certiformer.audit.form import Attention, Checkpoint, FeedForward, Layer
from certiformer.audit.read.blocks import Head, Maps, head, hidden, maps_heads, rows_of, separate
from certiformer.audit.read.family import Family
from certiformer.audit.read.heads import Heads
from certiformer.audit.read.names import Names
from certiformer.audit.read.settings import WIDTH, Settings

SIGN = "encoder.block.0.layer.0.SelfAttention.q.weight"
TABLE = "shared.weight"


def read(names: Names, settings: Settings) -> Checkpoint:
    """The checkpoint below the prefix of `names`."""
    width = names.matrix(SIGN)[1]
    settings.agree(width, "columns", "d_model", *WIDTH)
    epsilon = settings.positive("layer_norm_epsilon")
    encoder, decoder = names.count("encoder.block.{}."), names.count("decoder.block.{}.")
    settings.agree(encoder, "layers in the encoder", "num_layers")
    if decoder:
        settings.agree(decoder, "layers in the decoder", "num_decoder_layers")
    layers = [_layer(names, settings, "encoder", i, width, epsilon) for i in range(encoder)]
    layers += [_layer(names, settings, "decoder", i, width, epsilon) for i in range(decoder)]
    table = names.first(TABLE, "encoder.embed_tokens.weight")
    if table is not None:
        for copy in ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight"):
            if copy != table and names.has(copy):
                names.counted_as_copy(copy, names.prefix + table)
    embeddings = names.some(**({} if table is None else {"word": table}))
    last = Head()
    if table is not None and decoder:
        last = head(names, settings, "lm_head", names.prefix + table, usually_tied=True)
    return Checkpoint(
        "t5",
        tuple(layers),
        width,
        positions="relative",
        norm_place="pre",
        embeddings=embeddings,
        head=last.weight,
        head_tied=last.tied,
        head_bias=last.bias,
        final_norm=names.norm("decoder.final_layer_norm" if decoder else "encoder.final_layer_norm", "rms", epsilon),
        norms=names.norms({"encoder_final": "encoder.final_layer_norm"} if decoder else {}, "rms", epsilon),
        others=names.rest("classification_head.", "qa_outputs.", "classifier.", "transformer.classifier."),
        context=settings.whole("n_positions"),
        vocabulary=rows_of(embeddings, "word"),
        config=settings.config,
    )


def _layer(names: Names, settings: Settings, stack: str, index: int, width: int, epsilon: float | None) -> Layer:
    place = f"{stack}.block.{index}"
    attention, heads = _attention(names, settings, f"{place}.layer.0.SelfAttention", width)
    parts: list[Attention] = [replace(attention, causal=stack == "decoder")]
    norms = {"attention": f"{place}.layer.0.layer_norm"}
    if stack == "decoder":
        cross, _ = _attention(names, settings, f"{place}.layer.1.EncDecAttention", width)
        parts.append(replace(cross, causal=False, cross=True))
        norms["cross"] = f"{place}.layer.1.layer_norm"
    last = len(parts)
    norms["ffn"] = f"{place}.layer.{last}.layer_norm"
    return Layer(
        place,
        tuple(parts),
        (_hidden(names, settings, f"{place}.layer.{last}.DenseReluDense", width),),
        names.norms(norms, "rms", epsilon),
        names.some(
            relative_bias=f"{place}.layer.0.SelfAttention.relative_attention_bias.weight",
            # Old files have a table that no code has ever used.
            unused_relative_bias=f"{place}.layer.1.EncDecAttention.relative_attention_bias.weight",
        ),
        heads_known=heads.known,
    )


def _attention(names: Names, settings: Settings, place: str, width: int) -> tuple[Attention, Heads]:
    maps = Maps.below(place, "q", "k", "v", "o")
    heads = maps_heads(names, settings, maps)
    return replace(separate(names, maps, heads, width), scale=1.0), heads


def _hidden(names: Names, settings: Settings, place: str, width: int) -> FeedForward:
    kind = settings.get("feed_forward_proj")
    said = settings.get("dense_act_fn") or (kind.rpartition("-")[2] if isinstance(kind, str) else kind)
    # The gated kind calls its activation gelu and computes it by tanh.
    if kind == "gated-gelu":
        said = "gelu_new"
    activation = None if said is None else settings.named_activation(said, "dense_act_fn", "feed_forward_proj")
    if names.has(f"{place}.wi_0.weight"):
        return hidden(names, f"{place}.wi_1", f"{place}.wo", width, activation, f"{place}.wi_0")
    return hidden(names, f"{place}.wi", f"{place}.wo", width, activation or "relu")


T5 = Family("t5", SIGN, read)
