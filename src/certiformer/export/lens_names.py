"""Names of our tensors in the convention of TransformerLens, where it has one.

TransformerLens stores a head's matrices as we do (row vectors, heads first), so that a new name is all a tensor needs. It
knows one group of heads in a block; with several groups the number of the group goes into the name. Registers, masks, score
biases and the bias of a continuous embedding have no counterpart and keep a name of ours beside the others.
"""

from __future__ import annotations

import re

from certiformer.model import Config, tensor_specs

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
