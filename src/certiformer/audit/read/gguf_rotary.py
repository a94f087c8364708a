"""What the metadata of a GGUF file say about its rotary code, as the entry `rope_scaling` of a config.

The runtime of the format, llama.cpp, multiplies sines and cosines by `rope.scaling.attn_factor` (1 where it is absent),
and for the kind `yarn` also by 1 + 0.1 ln(factor). A file that says nothing has the kind `linear` and the factor 1. Tables
of factors for single frequencies turn queries and keys further or less far, and scale nothing. Newer entries that change
the rule for `yarn` are not interpreted: then the factor is not known."""

from __future__ import annotations

import math
from typing import Any

ROTARY = ("llama", "qwen2", "qwen3", "gemma", "gemma2", "gemma3", "phi3", "gptneox", "falcon")
TURNING = ("none", "linear", "longrope")
CHANGING = ("yarn_log_multiplier", "yarn_ext_factor", "yarn_attn_factor")


def rope_scaling(architecture: str, metadata: dict[str, Any]) -> dict[str, Any]:
    """The entry, with the factor of sines and cosines where the file determines it.

    >>> rope_scaling("llama", {}), rope_scaling("llama", {"llama.rope.scaling.attn_factor": 1.2})
    ({'type': 'default'}, {'type': 'longrope', 'attention_factor': 1.2})
    """
    said = {
        name: metadata.get(f"{architecture}.rope.scaling.{name}")
        for name in ("type", "factor", "attn_factor", *CHANGING)
    }
    kind = "linear" if said["type"] is None else said["type"]
    factor = _number(said["attn_factor"], 1.0)
    if kind == "yarn":
        stretched = _number(said["factor"], 1.0)
        if factor is None or stretched is None or stretched < 1 or any(said[name] is not None for name in CHANGING):
            factor = None
        else:
            factor *= 1 + 0.1 * math.log(stretched)
    elif kind not in TURNING:
        factor = None
    if factor is None:
        return {"type": "not known"}
    return {"type": "default"} if factor == 1 else {"type": "longrope", "attention_factor": factor}


def _number(value: Any, absent: float) -> float | None:
    """A positive number; None for what is none."""
    if value is None:
        return absent
    return float(value) if type(value) in (int, float) and 0 < value < 1e300 else None
