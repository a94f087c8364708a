"""Phi-3: Llama with fused maps. Rows are all queries, all keys, all values; and the gate, then the map up.

Equal thirds are the wrong rule wherever keys are fewer than queries."""

from __future__ import annotations

from certiformer.audit.form import Attention, Checkpoint, FeedForward, Weight
from certiformer.audit.read.blocks import fused
from certiformer.audit.read.decoder import Kin, read_decoder
from certiformer.audit.read.family import Family
from certiformer.audit.read.heads import Heads, fused_heads
from certiformer.audit.read.names import Names
from certiformer.audit.read.settings import KEY_VALUE_HEADS, Settings
from certiformer.errors import BadInput

SIGN = "layers.0.self_attn.qkv_proj.weight"


def attention(names: Names, settings: Settings, place: str, width: int) -> tuple[Attention, Heads]:
    """qkv_proj in three blocks, and o_proj."""
    name, output = f"{place}.self_attn.qkv_proj.weight", f"{place}.self_attn.o_proj"
    rows, columns = names.matrix(name)[0], names.matrix(f"{output}.weight")[1]
    groups = settings.whole(*KEY_VALUE_HEADS)
    if groups is None and rows != 3 * columns:
        raise BadInput(
            f"{names.prefix + name!r} has {rows} rows for {columns} of queries, so keys are fewer, and no file says how"
            " many heads they are; say it with --key-value-heads"
        )
    heads = fused_heads(settings, rows, names.prefix + name, groups=groups, layout="blocks")
    return fused(names, name, f"{place}.self_attn.qkv_proj.bias", output, heads, width, "blocks"), heads


def gate_and_up(names: Names, settings: Settings, place: str, width: int) -> tuple[FeedForward, ...]:
    """gate_up_proj in two blocks, and down_proj."""
    both, down = f"{place}.mlp.gate_up_proj.weight", f"{place}.mlp.down_proj.weight"
    size = names.matrix(down)[1]

    def half(start: int, part: str) -> Weight:
        rows = slice(start, start + size)
        return names.take(both, (size, width), whole=(2 * size, width), change=lambda array: array[rows], part=part)

    gate, up = half(0, "first half of the rows"), half(size, "second half of the rows")
    return (FeedForward(up, names.take(down, whole=(width, size)), gate, activation=settings.activation("hidden_act")),)


def read(names: Names, settings: Settings) -> Checkpoint:
    """The checkpoint below the prefix of `names`."""
    return read_decoder(names, settings, Kin("phi3", attention, gate_and_up))


PHI3 = Family("phi3", SIGN, read, ("model.",))
