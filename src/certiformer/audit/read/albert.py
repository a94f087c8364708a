"""ALBERT: one layer, or a few, applied over and over; a narrow table of words and a map to the width of the layers.

How often a layer is applied is in the config only: with L layers in g groups, group i is applied as often as
floor(j g / L) = i for j = 0, ..., L - 1."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from certiformer.audit.form import Checkpoint, Layer
from certiformer.audit.read.blocks import Head, Maps, head, hidden, maps_heads, positions_of, rows_of, separate
from certiformer.audit.read.family import Family
from certiformer.audit.read.names import Names
from certiformer.audit.read.settings import WIDTH, Settings
from certiformer.errors import BadInput

SIGN = "encoder.albert_layer_groups.0.albert_layers.0.attention.query.weight"
WORDS = "embeddings.word_embeddings.weight"
GROUPS = "encoder.albert_layer_groups"


def read(names: Names, settings: Settings) -> Checkpoint:
    """The checkpoint below the prefix of `names`."""
    width = names.matrix(SIGN)[1]
    settings.agree(width, "columns", *WIDTH)
    epsilon = settings.positive("layer_norm_eps")
    groups = names.count(GROUPS + ".{}.")
    settings.agree(groups, "groups of layers", "num_hidden_groups")
    depth = settings.whole("repeats", "num_hidden_layers")
    if depth is None:
        raise BadInput("no file says how often the shared layers are applied; say it with --repeats")
    # The first j of group i is the least with j g / L >= i; counting them one by one would take as long as L is large.
    first = [-(-i * depth // groups) for i in range(groups + 1)]
    times = [after - before for before, after in pairwise(first)]
    layers = [
        _layer(names, settings, f"{GROUPS}.{i}.albert_layers.{k}", width, epsilon, times[i])
        for i in range(groups)
        for k in range(names.count(f"{GROUPS}.{i}.albert_layers." + "{}."))
    ]
    embeddings = names.some(
        word=WORDS,
        position="embeddings.position_embeddings.weight",
        token_type="embeddings.token_type_embeddings.weight",
        mapping="encoder.embedding_hidden_mapping_in.weight",
        mapping_bias="encoder.embedding_hidden_mapping_in.bias",
    )
    last = _head(names, settings)
    return Checkpoint(
        "albert",
        tuple(layers),
        width,
        positions=positions_of(embeddings, settings.positions("learned")),
        norm_place="post",
        embeddings=embeddings,
        head=last.weight,
        head_tied=last.tied,
        head_bias=last.bias,
        # It stands before the map to the width of the layers, so it does not feed them.
        norms=names.norms({"embeddings_before_mapping": "embeddings.LayerNorm"}, "layer", epsilon),
        others={**names.rest("pooler.", "pooler"), **names.root.rest("predictions.", "classifier.", "sop_classifier.")},
        context=settings.whole("max_position_embeddings"),
        vocabulary=rows_of(embeddings, "word"),
        config=settings.config,
    )


def _layer(names: Names, settings: Settings, place: str, width: int, epsilon: float | None, times: int) -> Layer:
    maps = Maps.below(f"{place}.attention", "query", "key", "value", "dense")
    heads = maps_heads(names, settings, maps)
    return Layer(
        place,
        (replace(separate(names, maps, heads, width), causal=False),),
        (hidden(names, f"{place}.ffn", f"{place}.ffn_output", width, settings.activation("hidden_act")),),
        names.norms(
            {"attention": f"{place}.attention.LayerNorm", "ffn": f"{place}.full_layer_layer_norm"}, "layer", epsilon
        ),
        repeats=times,
        heads_known=heads.known,
    )


def _head(names: Names, settings: Settings) -> Head:
    root = names.root
    if not root.has("predictions.bias") or not names.has(WORDS):
        return Head()
    if root.has("predictions.decoder.bias"):
        root.counted_as_copy("predictions.decoder.bias", f"{root.prefix}predictions.bias")
    return head(
        names, settings, "predictions.decoder", names.prefix + WORDS, usually_tied=True, bias_name="predictions.bias"
    )


ALBERT = Family("albert", SIGN, read, ("albert.",))
