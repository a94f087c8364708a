"""Llama, Mistral, Qwen2 and Qwen3: separate maps, gated hidden units, gains as they are stored.

Keys and values may be fewer than queries, and query head h uses group h // (H / G). Qwen2 has biases, Qwen3 norms its
queries and keys; both are read where they are there."""

from __future__ import annotations

from reprlib import repr as short

from certiformer.audit.form import Checkpoint
from certiformer.audit.read.decoder import SEPARATE, Kin, read_decoder
from certiformer.audit.read.family import Family
from certiformer.audit.read.names import Names
from certiformer.audit.read.settings import Settings
from certiformer.errors import BadInput

# Where a model of several kinds of input keeps its text model, and where a plain one keeps its layers.
INNER = ("language_model.model.", "model.language_model.", "model.")


# Others share every name and compute something else: Granite multiplies, Cohere centres its norms.
KNOWN = ("llama", "mistral", "qwen2", "qwen3")


def is_mine(names: Names, settings: Settings) -> bool:
    """OPT, BART and CLIP share the names of the maps, but have no gates; StableLM norms with a shift."""
    norm = "layers.0.input_layernorm"
    return names.has("layers.0.mlp.gate_proj.weight") and names.has(f"{norm}.weight") and not names.has(f"{norm}.bias")


def read(names: Names, settings: Settings) -> Checkpoint:
    """The checkpoint below the prefix of `names`."""
    said = settings.get("model_type") or "llama"
    if said not in KNOWN:
        raise BadInput(
            f"{names.files.place} has the names of a Llama, but its config says {short(said)}, which may mean other sums;"
            " read it as a Llama with --model-type llama"
        )
    return read_decoder(names, settings, Kin(said))


LLAMA = Family("llama", SEPARATE, read, INNER, is_mine)
