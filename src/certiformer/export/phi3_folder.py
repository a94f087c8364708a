"""A Hugging Face folder of the stock Phi-3 architecture.

**Rotary positions.** Phi-3 turns only the first part of each query and key, the share `partial_rotary_factor` of its
size h. With 2/h that is coordinates 0 and 1, which queries and keys leave 0: nothing they use is touched.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from certiformer.export.decoder import Decoder
from certiformer.export.labels import Labels
from certiformer.export.rms_decoder import rms_decoder, rms_model
from certiformer.export.stock_folder import decoder_labels, stock_files
from certiformer.model import Transformer

NAME = "Phi-3"
TURNED = 2  # coordinates of a head that rotary positions turn


def phi3_files(model: Transformer, notes: Mapping[str, str], labels: Labels | None = None) -> dict[str, bytes]:
    """The files of the folder, by name."""
    decoder = rms_model(model, NAME)
    labels = decoder_labels(decoder, labels)
    head = _head(decoder)
    built = rms_decoder(decoder, labels, head, range(TURNED, head))
    share = TURNED / head
    config = {
        "architectures": ["Phi3ForCausalLM"],
        "model_type": "phi3",
        **built.config,
        "original_max_position_embeddings": decoder.length + 1,
        "embd_pdrop": 0.0,
        "resid_pdrop": 0.0,
        "rope_theta": 10000.0,
        "partial_rotary_factor": share,
        "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default", "partial_rotary_factor": share},
        "sliding_window": None,
        "bos_token_id": labels.start,
    }
    tensors = {
        "model.embed_tokens.weight": built.embed,
        "model.norm.weight": built.norm,
        "lm_head.weight": built.unembed,
    }
    for index, layer in enumerate(built.layers):
        parts = {
            "input_layernorm": built.norm,
            "post_attention_layernorm": built.norm,
            "self_attn.qkv_proj": np.concatenate([layer.query, layer.key, layer.value]),
            "self_attn.o_proj": layer.output,
            "mlp.gate_up_proj": np.concatenate([layer.gate, layer.up]),
            "mlp.down_proj": layer.down,
        }
        tensors |= {f"model.layers.{index}.{part}.weight": array for part, array in parts.items()}
    return stock_files(config, tensors, decoder, labels, built.about, notes)


def _head(decoder: Decoder) -> int:
    size = 4
    while size < max(decoder.key + TURNED, decoder.value):
        size *= 4
    return size
