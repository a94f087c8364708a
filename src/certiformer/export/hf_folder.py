"""The transformer in the shape of a Hugging Face model folder, under TransformerLens parameter names.

`config.json` has the sizes under the usual keys, our own configuration whole under `certiformer`, and under `tensors` the
original name of every tensor: the folder loses nothing, and the original files can be made from it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from certiformer.export.card import claim_lines
from certiformer.export.folder import README_FILE, put_export
from certiformer.export.lens_names import lens_names
from certiformer.export.safetensors_header import tensors_with_notes
from certiformer.kernel.files import canonical
from certiformer.model import Config, Transformer
from certiformer.model.store import CONFIG_FILE, TENSORS_FILE


def to_hf(model: Transformer, folder: str | Path, notes: Mapping[str, str] | None = None, force: bool = False) -> None:
    """Write the folder, whole or not at all.

    **Arguments:**

    - `folder`: where to; what exists is refused, with `force` an earlier export is replaced.
    - `notes`: texts to carry along (in the header of the weights, and in the README).
    """
    put_export(Path(folder), hf_files(model, notes or {}), force)


def hf_files(model: Transformer, notes: Mapping[str, str]) -> dict[str, bytes]:
    """The files of the folder, by name."""
    names = lens_names(model.config)
    return {
        CONFIG_FILE: canonical(_config(model.config, names)),
        TENSORS_FILE: _tensors(model, names, notes),
        README_FILE: _readme(model, names, notes).encode("utf-8"),
    }


def _config(config: Config, names: Mapping[str, str]) -> dict[str, Any]:
    attentions = [block.attention for block in config.blocks if block.attention is not None]
    heads = [sum(group.count for group in attention.heads) for attention in attentions]
    hidden = [block.ffn.width for block in config.blocks if block.ffn is not None]
    return {
        "architectures": ["CertiformerTransformer"],
        "model_type": "certiformer",
        "dtype": config.dtype,
        "hidden_size": config.width,
        "intermediate_size": max(hidden, default=0),
        "max_position_embeddings": config.tokens,
        "num_attention_heads": max(heads, default=0),
        "num_hidden_layers": len(config.blocks) * config.loops,
        "vocab_size": config.input.vocabulary,
        "certiformer": config.to_json(),
        "tensors": dict(names),
    }


def _tensors(model: Transformer, names: Mapping[str, str], notes: Mapping[str, str]) -> bytes:
    """The weights; the header carries the configuration and the notes."""
    arrays = {new: np.ascontiguousarray(model.tensors[old]) for new, old in names.items()}
    config = json.dumps(model.config.to_json(), sort_keys=True)
    return tensors_with_notes(arrays, {"certiformer_config": config, **notes})


def _readme(model: Transformer, names: Mapping[str, str], notes: Mapping[str, str]) -> str:
    ours = [new for new, old in names.items() if new == old or "groups" in new or new.endswith(("mask", "score_bias"))]
    kept = f"Without a counterpart there: {', '.join(f'`{name}`' for name in ours)}." if ours else ""
    lines = [
        "---",
        "library_name: certiformer",
        "tags:",
        "- certiformer",
        "- transformer-lens",
        "- safetensors",
        "---",
        "",
        "# A transformer with a checkable claim" if notes.get("claim") else "# A transformer",
        "",
        f"`{model}`",
        "",
        "The weights have the parameter names of TransformerLens (`blocks.0.attn.W_Q`, ...). " + kept,
        "`config.json` holds the configuration of certiformer under `certiformer` and the original name of every tensor",
        "under `tensors`; the header of `model.safetensors` repeats the configuration.",
        "",
        *claim_lines(notes),
    ]
    return "\n".join(line.rstrip() for line in lines)
