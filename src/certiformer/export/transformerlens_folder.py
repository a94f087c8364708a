"""A folder with the state dict and configuration of a TransformerLens `HookedTransformer`, and the lines that load it.

TransformerLens needs no norm, knows ReLU units, position rows, biases everywhere, and attention in both directions:
nothing is changed but names and sizes. All heads get the size of the largest, all layers the number of heads and units
of the largest, filled up with zeros. The direction of attention is one entry for the whole model there; layers that
differ from it get a copy of the configuration with the other direction, which is what the last lines of the loader do.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from certiformer.export.decoder import Decoder, decoder_of, resized
from certiformer.export.folder import README_FILE, claim_lines, tensors_with_notes
from certiformer.export.labels import TOKENS_FILE, Labels
from certiformer.export.stock_folder import decoder_labels, stored
from certiformer.kernel.files import canonical
from certiformer.model import Transformer
from certiformer.model.store import CONFIG_FILE, TENSORS_FILE

LOADER = """\
import copy, json, torch
from safetensors.torch import load_file
from transformer_lens import HookedTransformer, HookedTransformerConfig

config = json.load(open("config.json"))
cfg = HookedTransformerConfig(**config["hooked_transformer"], dtype=getattr(torch, config["dtype"]))
model = HookedTransformer(cfg)
model.load_state_dict({**model.state_dict(), **load_file("model.safetensors")})
for index in config["causal_layers"]:               # in a bidirectional model some layers may be causal
    attention = model.blocks[index].attn
    attention.cfg = copy.copy(cfg)
    attention.cfg.attention_dir = "causal"
"""


def transformerlens_files(
    model: Transformer, notes: Mapping[str, str], labels: Labels | None = None
) -> dict[str, bytes]:
    """The files of the folder, by name."""
    decoder = decoder_of(model, "TransformerLens", causal=False)
    labels = decoder_labels(decoder, labels)
    directions = {layer.causal for layer in decoder.layers if layer.heads}
    config = {
        "hooked_transformer": {
            "n_layers": len(decoder.layers),
            "d_model": decoder.width,
            "n_ctx": decoder.length + 1,
            "n_heads": max(decoder.heads, 1),
            "d_head": max(decoder.key, decoder.value),
            "d_mlp": max(decoder.units, 1),
            "d_vocab": labels.inputs + 1,
            "d_vocab_out": decoder.unembed.shape[1],
            "act_fn": "relu",
            "normalization_type": None,
            "positional_embedding_type": "standard",
            "attention_dir": "causal" if directions <= {True} else "bidirectional",
            "use_attn_scale": False,
            "attn_scale": 1.0,
        },
        "causal_layers": [
            index for index, layer in enumerate(decoder.layers) if layer.heads and layer.causal and len(directions) == 2
        ],
        "dtype": decoder.dtype,
    }
    return {
        CONFIG_FILE: canonical(config),
        TENSORS_FILE: tensors_with_notes(stored(_tensors(decoder), decoder.dtype), notes),
        TOKENS_FILE: labels.tokens_file(),
        README_FILE: _readme(labels, notes).encode("utf-8"),
    }


def _tensors(decoder: Decoder) -> dict[str, np.ndarray]:
    """The state dict; the start token is the last row of the embedding and stands at position 0."""
    width, heads, units = decoder.width, max(decoder.heads, 1), max(decoder.units, 1)
    head = max(decoder.key, decoder.value)
    tensors = {
        "embed.W_E": np.concatenate([decoder.embed, decoder.start[None]]),
        "pos_embed.W_pos": np.concatenate([np.zeros((1, width)), decoder.positions]),
        "unembed.W_U": decoder.unembed,
        "unembed.b_U": decoder.unembed_bias,
    }
    for index, layer in enumerate(decoder.layers):
        parts = {
            f"attn.W_{part[0].upper()}": resized(getattr(layer, part), (heads, width, head))
            for part in ("query", "key", "value")
        }
        parts |= {
            f"attn.b_{part[0].upper()}": resized(getattr(layer, f"{part}_bias"), (heads, head))
            for part in ("query", "key", "value")
        }
        parts |= {
            "attn.W_O": resized(layer.output, (heads, head, width)),
            "attn.b_O": layer.output_bias,
            "mlp.W_in": resized(layer.up, (width, units)),
            "mlp.b_in": resized(layer.up_bias, (units,)),
            "mlp.W_out": resized(layer.down, (units, width)),
            "mlp.b_out": layer.down_bias,
        }
        tensors |= {f"blocks.{index}.{part}": array for part, array in parts.items()}
    return tensors


def _readme(labels: Labels, notes: Mapping[str, str]) -> str:
    if labels.kind == "logits":
        answers = "`logits[0, 1:].argmax(-1)` numbers the answers in the order of `outputs` in `tokens.json`."
    else:
        answers = "`logits[0, 1:, 0]` are the answers, which are numbers."
    lines = [
        "# A transformer for TransformerLens",
        "",
        "In this folder, with transformer_lens 3 (tried: 3.9). `HookedTransformer` is gone in 4, which opens the exports",
        "of a causal program to `gpt2`, `llama` and `phi3` instead:",
        "",
        "```python",
        *LOADER.splitlines(),
        "```",
        "",
        f"The input ids are those of `tokens.json` after the start token {labels.start}:",
        f"`logits = model(torch.tensor([[{labels.start}, 0]]))`. {answers}",
        "",
        *claim_lines(notes),
    ]
    return "\n".join(line.rstrip() for line in lines)
