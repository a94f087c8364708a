"""Mixtral: Llama with several hidden layers, of which a router picks some for each token.

In an expert w1 is the gate, w3 goes up and w2 down."""

from __future__ import annotations

from certiformer.audit.form import Checkpoint, FeedForward
from certiformer.audit.read.blocks import hidden
from certiformer.audit.read.decoder import SEPARATE, Kin, read_decoder
from certiformer.audit.read.family import Family
from certiformer.audit.read.names import Names
from certiformer.audit.read.settings import Settings


def is_mine(names: Names, settings: Settings) -> bool:
    """By its router; in GGUF it goes by the name of Llama. Others have such routers, and norms with a shift."""
    return (
        names.has("layers.0.block_sparse_moe.gate.weight")
        and not names.has("layers.0.input_layernorm.bias")
        and settings.get("model_type") in (None, "mixtral", "llama")
    )


def experts(names: Names, settings: Settings, place: str, width: int) -> tuple[FeedForward, ...]:
    """One record of hidden units for each expert."""
    place = f"{place}.block_sparse_moe.experts"
    count = names.count(place + ".{}.")
    settings.agree(count, "experts", "num_local_experts")
    activation = settings.activation("hidden_act")
    each = [f"{place}.{number}" for number in range(count)]
    return tuple(hidden(names, f"{one}.w3", f"{one}.w2", width, activation, f"{one}.w1") for one in each)


def read(names: Names, settings: Settings) -> Checkpoint:
    """The checkpoint below the prefix of `names`."""
    return read_decoder(names, settings, Kin("mixtral", hidden=experts))


MIXTRAL = Family("mixtral", SEPARATE, read, ("model.",), is_mine)
