"""torch's `nn.MultiheadAttention`: rows of queries, keys and values in three blocks of `in_proj_weight`.

With keys or values of another width it has three maps instead: `q_proj_weight`, `k_proj_weight`, `v_proj_weight`."""

from __future__ import annotations

from certiformer.audit.form import Attention, Weight
from certiformer.audit.read.blocks import fused, output_map
from certiformer.audit.read.heads import Heads, fused_heads, fused_rows
from certiformer.audit.read.names import Names
from certiformer.audit.read.settings import Settings


def multihead(names: Names, settings: Settings, place: str, width: int) -> tuple[Attention, Heads]:
    """The attention at `place` with tokens of the given width; keys of another width are those of another sequence."""
    name = f"{place}.in_proj_weight"
    heads = fused_heads(settings, 3 * width, names.prefix + name, groups=None, layout="blocks")
    if names.has(name):
        return fused(names, name, f"{place}.in_proj_bias", f"{place}.out_proj", heads, width, "blocks"), heads

    def projection(letter: str) -> Weight:
        single = f"{place}.{letter}_proj_weight"
        wide = width if letter == "q" else names.matrix(single)[1]
        return names.take(single, (heads.count, heads.size, wide), whole=(width, wide), part="rows by head")

    rows = fused_rows(heads, "blocks")

    def bias(which: str) -> Weight | None:
        chosen = getattr(rows, which)
        return names.maybe(
            f"{place}.in_proj_bias", chosen.shape, whole=(3 * width,), change=lambda array: array[chosen], part=which
        )

    out, out_bias = output_map(names, f"{place}.out_proj", heads, width)
    query, key, value = (projection(letter) for letter in "qkv")
    query_bias, key_bias, value_bias = (bias(which) for which in ("query", "key", "value"))
    other = {key.shape[2], value.shape[2]} != {width}
    biases = (query_bias, key_bias, value_bias, out_bias)
    return Attention(query, key, value, out, *biases, scale=heads.scale, cross=other), heads
