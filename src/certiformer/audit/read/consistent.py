"""What every reading must satisfy, whichever family it is of: the parts of a checkpoint fit each other.

The shapes of maps are compared when they are taken. What is left are the norms, whose width no map says; the tables and
the head, which are as wide as the tokens or, where a map stands between, as its other side; and tensors without weights."""

from __future__ import annotations

from collections.abc import Iterator

from certiformer.audit.files.tensors import WEIGHTS
from certiformer.audit.form import Checkpoint, Layer, Norm, Weight
from certiformer.errors import BadInput

Problem = tuple[Weight, str]  # and how its sentence goes on behind its name
# Tables that are added to each other; the last axis of each is as wide as a token.
TABLES = ("word", "item", "position", "token_type")
SINGLE_TOKENS = ("class_token", "distillation_token", "mask_token")
MOST_REGISTERS = 4096  # masks are written out, n x n; the models that are known have up to 16
PICTURES = ("vit", "timm-vit")  # their tables have an axis for the batch in front
BEFORE_MAPPING = "embeddings_before_mapping"


def check_parts(checkpoint: Checkpoint) -> None:
    """Raises where a norm, a table or the head is not as wide as its tokens, or where a tensor holds no weights at all."""
    for checks in (_no_weights, _narrow_norms, _narrow_tables, _own_tokens, _beside_maps):
        for weight, problem in checks(checkpoint):
            raise BadInput(f"the tensor {weight.source.tensor!r} {problem}")


def _no_weights(checkpoint: Checkpoint) -> Iterator[Problem]:
    for weight in checkpoint.weights():
        if 0 in weight.shape:
            yield weight, f"has the shape {weight.shape}: there is nothing in it"
        if weight.stored not in WEIGHTS:
            yield weight, f"holds whole numbers ({weight.stored}); if it is quantised, audit what it was made from"


def _narrow_norms(checkpoint: Checkpoint) -> Iterator[Problem]:
    for norm, width in _norms(checkpoint):
        if norm is not None and norm.gain is not None and norm.gain.shape != (width,):
            yield norm.gain, f"has the shape {norm.gain.shape}, but it norms {width} numbers"


def _narrow_tables(checkpoint: Checkpoint) -> Iterator[Problem]:
    for weight, axes, widths in _tables(checkpoint):
        if len(weight.shape) != axes or weight.shape[-1] not in widths:
            shown = " or ".join(map(str, sorted(widths)))
            yield weight, f"has the shape {weight.shape}, but its rows should be {shown} wide"
    bias = checkpoint.head_bias
    if bias is not None and len(bias.shape) != 1:
        yield bias, f"has the shape {bias.shape}; a vector was expected"


def _own_tokens(checkpoint: Checkpoint) -> Iterator[Problem]:
    """What should be one token and is not, and more registers than any model has."""
    for name in SINGLE_TOKENS:
        weight = checkpoint.embeddings.get(name)
        if weight is not None and weight.shape != (1, 1, checkpoint.width):
            yield weight, f"has the shape {weight.shape}, but it should be one token of width {checkpoint.width}"
    registers = checkpoint.embeddings.get("registers")
    if registers is not None and registers.shape[-2] > MOST_REGISTERS:
        yield registers, f"has the shape {registers.shape}; no model has so many registers"


def _beside_maps(checkpoint: Checkpoint) -> Iterator[Problem]:
    for layer in checkpoint.layers:
        for name, weight in layer.others.items():
            wanted = _last_sides(checkpoint, layer, name)
            if wanted is not None and weight.shape[-len(wanted) :] != wanted:
                yield weight, f"has the shape {weight.shape}, but its last sides should be {wanted}"


def _norms(checkpoint: Checkpoint) -> Iterator[tuple[Norm | None, int]]:
    yield checkpoint.final_norm, checkpoint.width
    for place, norm in checkpoint.norms.items():
        yield norm, _inner(checkpoint) if place == BEFORE_MAPPING else checkpoint.width
    for layer in checkpoint.layers:
        for norm in layer.norms.values():
            yield norm, checkpoint.width
        for attention in layer.attention:
            yield attention.query_norm, attention.query.shape[1]
            yield attention.key_norm, attention.key.shape[1]


def _tables(checkpoint: Checkpoint) -> Iterator[tuple[Weight, int, set[int]]]:
    """Every table with the number of axes and the widths that it may have."""
    width, inner = checkpoint.width, _inner(checkpoint)
    pictures = checkpoint.family in PICTURES
    for name in TABLES:
        if name in checkpoint.embeddings:
            # Of a narrow model the words are narrow; positions may be added behind the map or before it.
            yield checkpoint.embeddings[name], 3 if pictures else 2, {width, inner} if name == "position" else {inner}
    if "registers" in checkpoint.embeddings:
        yield checkpoint.embeddings["registers"], 3 if pictures else 2, {width}
    if checkpoint.head is not None:
        yield checkpoint.head, 2, {width, inner}


def _last_sides(checkpoint: Checkpoint, layer: Layer, name: str) -> tuple[int, ...] | None:
    """The last sides of what stands beside the maps of a layer, where they are known."""
    if name == "router":
        return len(layer.ffn), checkpoint.width
    if name in ("attention_gain", "ffn_gain"):
        return (checkpoint.width,)
    if name.endswith("relative_bias"):
        return (layer.attention[0].query.shape[0],)
    return (layer.attention[0].query.shape[1],) if name == "distance" else None


def _inner(checkpoint: Checkpoint) -> int:
    """The width of the table of words: that of the tokens, unless a map leads from one to the other."""
    mapping = checkpoint.embeddings.get("mapping")
    if mapping is None:
        return checkpoint.width
    if len(mapping.shape) != 2 or mapping.shape[0] != checkpoint.width:
        raise BadInput(
            f"the tensor {mapping.source.tensor!r} has the shape {mapping.shape}; a matrix with {checkpoint.width} rows was"
            " expected"
        )
    return mapping.shape[1]
