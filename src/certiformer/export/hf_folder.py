"""The transformer in the shape of a Hugging Face model folder, under TransformerLens parameter names.

`config.json` has the sizes under the usual keys, our own configuration whole under `certiformer`, and under `tensors` the
original name of every tensor: the folder loses nothing, and the original files can be made from it.

TransformerLens stores a head's matrices as we do (row vectors, heads first), so that a new name is all a tensor needs. It
knows one group of heads in a block; with several groups the number of the group goes into the name. Registers, masks, score
biases and the bias of a continuous embedding have no counterpart and keep a name of ours beside the others.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from certiformer.export.folder import README_FILE, claim_lines, put_export, tensors_with_notes
from certiformer.kernel.files import canonical
from certiformer.model import Config, Transformer, tensor_specs
from certiformer.model.store import CONFIG_FILE, TENSORS_FILE

_GLOBAL = {
    "embed.weight": "embed.W_E",
    "code.table": "pos_embed.W_pos",
    "readout.weight": "unembed.W_U",
    "readout.bias": "unembed.b_U",
}
_IN_BLOCK = {
    "attention.output_bias": "attn.b_O",
    "attention.mask": "attn.mask",
    "ffn.up": "mlp.W_in",
    "ffn.up_bias": "mlp.b_in",
    "ffn.down": "mlp.W_out",
    "ffn.down_bias": "mlp.b_out",
    "norm.attention.scale": "ln1.w",
    "norm.attention.shift": "ln1.b",
    "norm.ffn.scale": "ln2.w",
    "norm.ffn.shift": "ln2.b",
}
_IN_HEADS = {
    "query": "W_Q",
    "key": "W_K",
    "value": "W_V",
    "output": "W_O",
    "query_bias": "b_Q",
    "key_bias": "b_K",
    "value_bias": "b_V",
    "score_bias": "score_bias",
}
_BLOCK = re.compile(r"(blocks\.\d+)\.(.+)")
_HEADS = re.compile(r"attention\.groups\.(\d+)\.(.+)")


def lens_names(config: Config) -> dict[str, str]:
    """New name -> our name, for every tensor of the model.

    >>> from certiformer.model import Attention, Block, Heads, Input, Readout
    >>> attention = Attention((Heads(2, 3, 3),))
    >>> config = Config(Input("ids", 4, vocabulary=7), 6, 7, Readout("all"), (Block(attention),), registers=1)
    >>> list(lens_names(config))[:5]
    ['embed.W_E', 'registers', 'blocks.0.attn.W_Q', 'blocks.0.attn.W_K', 'blocks.0.attn.W_V']
    """
    groups = [1 if block.attention is None else len(block.attention.heads) for block in config.blocks]
    return {_new_name(name, groups): name for name in tensor_specs(config)}


def _new_name(name: str, groups: list[int]) -> str:
    in_block = _BLOCK.fullmatch(name)
    if in_block is None:
        return _GLOBAL.get(name, name)
    block, rest = in_block.groups()
    in_heads = _HEADS.fullmatch(rest)
    if in_heads is None:
        return f"{block}.{_IN_BLOCK[rest]}"
    group, role = in_heads.groups()
    single = groups[int(block.partition(".")[2])] == 1
    return f"{block}.attn.{'' if single else f'groups.{group}.'}{_IN_HEADS[role]}"


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
