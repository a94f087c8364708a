"""BERT, RoBERTa and MiniLM: separate maps (out, in), heads one after the other, norms behind the residual.

Heads that predict masked words stand beside the encoder: `cls.predictions` in BERT, `lm_head` in RoBERTa. Their
matrix is the table of the words; old files write it a second time."""

from __future__ import annotations

from dataclasses import replace

from certiformer.audit.form import Checkpoint, Layer
from certiformer.audit.read.blocks import Head, Maps, head, hidden, maps_heads, positions_of, rows_of, separate
from certiformer.audit.read.family import Family
from certiformer.audit.read.names import Names
from certiformer.audit.read.settings import DEPTH, WIDTH, Settings

SIGN = "encoder.layer.0.attention.self.query.weight"
WORDS = "embeddings.word_embeddings.weight"
# What stands beside the encoder: poolers, heads that predict words, classifiers of fine-tuned models.
BESIDE = ("pooler.", "cls.", "lm_head.", "classifier.", "qa_outputs.", "linear.", "dropout.", "score.")


def is_mine(names: Names, settings: Settings) -> bool:
    """ESM has the same maps, and its norms elsewhere."""
    norm = "encoder.layer.0.attention.output.LayerNorm"
    return names.first(f"{norm}.weight", f"{norm}.gamma") is not None


def read(names: Names, settings: Settings) -> Checkpoint:
    """The checkpoint below the prefix of `names`."""
    width = names.matrix(SIGN)[1]
    settings.agree(width, "columns", *WIDTH)
    epsilon = settings.positive("layer_norm_eps")
    depth = names.count("encoder.layer.{}.")
    settings.agree(depth, "layers", *DEPTH)
    layers = tuple(_layer(names, settings, f"encoder.layer.{i}", width, epsilon) for i in range(depth))
    embeddings = names.some(
        word=WORDS,
        position="embeddings.position_embeddings.weight",
        token_type="embeddings.token_type_embeddings.weight",
    )
    roberta = names.prefix.endswith("roberta.") or "roberta" in str(settings.get("model_type"))
    last = _head(names, settings)
    return Checkpoint(
        "roberta" if roberta else "bert",
        layers,
        width,
        positions=positions_of(embeddings, settings.positions("learned")),
        norm_place="post",
        embeddings=embeddings,
        head=last.weight,
        head_tied=last.tied,
        head_bias=last.bias,
        norms=names.norms({"embeddings": "embeddings.LayerNorm"}, "layer", epsilon),
        others={**names.rest("pooler."), **names.root.rest(*BESIDE)},
        context=_context(settings, roberta),
        vocabulary=rows_of(embeddings, "word"),
        config=settings.config,
    )


def _layer(names: Names, settings: Settings, place: str, width: int, epsilon: float | None) -> Layer:
    maps = Maps.below(f"{place}.attention", "self.query", "self.key", "self.value", "output.dense")
    heads = maps_heads(names, settings, maps)
    return Layer(
        place,
        (replace(separate(names, maps, heads, width), causal=bool(settings.flag("is_decoder", default=False))),),
        (
            hidden(
                names, f"{place}.intermediate.dense", f"{place}.output.dense", width, settings.activation("hidden_act")
            ),
        ),
        names.norms(
            {"attention": f"{place}.attention.output.LayerNorm", "ffn": f"{place}.output.LayerNorm"}, "layer", epsilon
        ),
        # Tables of distances, where the config asks for relative positions.
        names.some(distance=f"{place}.attention.self.distance_embedding.weight"),
        heads_known=heads.known,
    )


def _head(names: Names, settings: Settings) -> Head:
    root = names.root
    place = next((each for each in ("cls.predictions", "lm_head") if root.has(f"{each}.bias")), None)
    if place is None or not names.has(WORDS):
        return Head()
    twice = f"{place}.decoder.bias"
    if root.has(twice):
        root.counted_as_copy(twice, f"{root.prefix}{place}.bias")
    return head(names, settings, f"{place}.decoder", names.prefix + WORDS, usually_tied=True, bias_name=f"{place}.bias")


def _context(settings: Settings, roberta: bool) -> int | None:
    """RoBERTa counts its positions from the one behind the padding token."""
    longest = settings.whole("max_position_embeddings")
    padding = settings.get("pad_token_id")
    offset = (padding if type(padding) is int and padding >= 0 else 1) + 1
    return longest - offset if roberta and longest is not None and longest > offset else longest


BERT = Family("bert", SIGN, read, ("bert.", "roberta.", "model.", "0.auto_model."), is_mine)
