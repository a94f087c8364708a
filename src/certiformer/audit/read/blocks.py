"""The parts that families have in common: attention with separate or fused maps, hidden units, and the head."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from certiformer.audit.form import Attention, FeedForward, Weight
from certiformer.audit.read.heads import Heads, Layout, fused_rows, separate_heads
from certiformer.audit.read.names import Names
from certiformer.audit.read.settings import Settings
from certiformer.errors import BadInput


class Maps(NamedTuple):
    """The names of the four maps of an attention, without `.weight` and `.bias`; no output where there is none."""

    query: str
    key: str
    value: str
    output: str | None

    @staticmethod
    def below(place: str, query: str, key: str, value: str, output: str | None) -> Maps:
        output = None if output is None else f"{place}.{output}"
        return Maps(f"{place}.{query}", f"{place}.{key}", f"{place}.{value}", output)


def maps_heads(names: Names, settings: Settings, maps: Maps) -> Heads:
    """The heads of separate maps."""
    query, key = f"{maps.query}.weight", f"{maps.key}.weight"
    return separate_heads(settings, names.matrix(query)[0], names.matrix(key)[0], names.prefix + query)


def separate(names: Names, maps: Maps, heads: Heads, width: int, seen: int | None = None) -> Attention:
    """Attention with a map each, (out, in), heads one after the other; `seen` is the width of other tokens that keys and
    values are made of."""
    seen = width if seen is None else seen

    def projection(name: str, count: int, wide: int) -> tuple[Weight, Weight | None]:
        rows = count * heads.size
        weight = names.take(f"{name}.weight", (count, heads.size, wide), whole=(rows, wide), part="rows by head")
        return weight, names.maybe(f"{name}.bias", (count, heads.size), whole=(rows,))

    query, query_bias = projection(maps.query, heads.count, width)
    key, key_bias = projection(maps.key, heads.groups, seen)
    value, value_bias = projection(maps.value, heads.groups, seen)
    output, output_bias = (None, None) if maps.output is None else output_map(names, maps.output, heads, width)
    return Attention(query, key, value, output, query_bias, key_bias, value_bias, output_bias, scale=heads.scale)


def fused(
    names: Names,
    weight: str,
    bias: str,
    output: str,
    heads: Heads,
    width: int,
    layout: Layout,
    transposed: bool = False,
) -> Attention:
    """Attention whose queries, keys and values are rows of one matrix (columns where it is stored transposed)."""
    total = (heads.count + 2 * heads.groups) * heads.size
    rows = fused_rows(heads, layout)

    def projection(which: str) -> tuple[Weight, Weight | None]:
        chosen: np.ndarray = getattr(rows, which)
        part = f"rows of {which}, {layout}"
        taken = names.take(
            weight,
            (*chosen.shape, width),
            whole=(total, width),
            change=lambda array: array[chosen],
            part=part,
            transposed=transposed,
        )
        return taken, names.maybe(bias, chosen.shape, whole=(total,), change=lambda array: array[chosen], part=part)

    (query, query_bias), (key, key_bias), (value, value_bias) = (projection(each) for each in ("query", "key", "value"))
    out, output_bias = output_map(names, output, heads, width, transposed)
    return Attention(query, key, value, out, query_bias, key_bias, value_bias, output_bias, scale=heads.scale)


def output_map(
    names: Names, name: str, heads: Heads, width: int, transposed: bool = False
) -> tuple[Weight, Weight | None]:
    """The map back to tokens, (width, heads * size), as one map for each head."""
    count, size = heads.count, heads.size
    weight = names.take(
        f"{name}.weight",
        (count, width, size),
        whole=(width, count * size),
        change=lambda array: array.reshape(width, count, size).transpose(1, 0, 2),
        part="columns by head",
        transposed=transposed,
    )
    return weight, names.maybe(f"{name}.bias", whole=(width,))


def hidden(
    names: Names,
    up: str,
    down: str,
    width: int,
    activation: str | None,
    gate: str | None = None,
    transposed: bool = False,
) -> FeedForward:
    """Hidden units from maps (out, in), or (in, out) where they are stored transposed."""
    shape = names.matrix(f"{up}.weight")
    size = shape[1] if transposed else shape[0]
    return FeedForward(
        names.take(f"{up}.weight", whole=(size, width), transposed=transposed),
        names.take(f"{down}.weight", whole=(width, size), transposed=transposed),
        None if gate is None else names.take(f"{gate}.weight", whole=(size, width), transposed=transposed),
        names.maybe(f"{up}.bias", whole=(size,)),
        names.maybe(f"{down}.bias", whole=(width,)),
        None if gate is None else names.maybe(f"{gate}.bias", whole=(size,)),
        activation,
    )


def rows_of(tables: dict[str, Weight], name: str, axis: int = 0) -> int | None:
    """How many rows a table has, or None where there is none; `axis` is where they are counted."""
    weight = tables.get(name)
    if weight is None:
        return None
    if len(weight.shape) != axis + 2 or 0 in weight.shape:
        raise BadInput(
            f"the tensor {weight.source.tensor!r} has the shape {weight.shape}, which is not that of a table"
        )
    return weight.shape[axis]


def positions_of(tables: dict[str, Weight], scheme: str) -> str | None:
    """The scheme, unless it is a table that was learned and is not there."""
    return None if scheme == "learned" and "position" not in tables else scheme


class Head(NamedTuple):
    """What turns tokens into scores of items: a matrix of its own, or the table of the inputs (`tied`)."""

    weight: Weight | None = None
    tied: bool = False
    bias: Weight | None = None


def head(
    names: Names, settings: Settings, place: str, table: str, usually_tied: bool, bias_name: str | None = None
) -> Head:
    """The head at `place` of the whole model; `table` is the full name of the table it may be tied to.

    A head that is stored although it is tied is a copy. Whether one that need not be tied is a copy all the same is looked
    up only where the config does not deny it: tables are the largest tensors there are.
    """
    root = names.root
    # A head cannot be tied to a table that is not there.
    tied = bool(settings.flag("tie_word_embeddings", default=usually_tied)) and table in names.files
    bias = root.maybe(bias_name or f"{place}.bias")
    weight = f"{place}.weight"
    if not root.has(weight):
        return Head(None, tied, bias)
    if tied and root.counted_as_copy(weight, table):
        return Head(None, True, bias)
    return Head(root.take(weight), False, bias)
