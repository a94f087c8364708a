"""Hugging Face folders of the stock architectures Llama and Phi-3.

**Rotary positions.** Llama turns coordinates k and k + h/2 of every query and key of size h at position p by the angle
p b^(-2k/h), b = `rope_theta`. Queries and keys use only the first coordinates k = h/4 .. h/2 - 1 of such pairs, and the
others stay 0; with b = 2^120 the angles are at most p 2^-60. A score is then the sum of q_k c_k cos((p - p')
b^(-2k/h)), which differs from the sum of q_k c_k by a relative (p 2^-60)^2 / 2, that is 2^-95 for p < 2^12. In a run
the cosine is exactly 1, and the product of sines is below 2^-96 of the product of cosines it is added to: it does not
show in any type.

Phi-3 turns only the first part of each query and key, the share `partial_rotary_factor` of its
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

PHI3 = "Phi-3"
TURNED = 2  # coordinates of a head that rotary positions turn


def phi3_files(model: Transformer, notes: Mapping[str, str], labels: Labels | None = None) -> dict[str, bytes]:
    """The files of the folder, by name."""
    decoder = rms_model(model, PHI3)
    labels = decoder_labels(decoder, labels)
    head = _phi3_head(decoder)
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


def _phi3_head(decoder: Decoder) -> int:
    size = 4
    while size < max(decoder.key + TURNED, decoder.value):
        size *= 4
    return size


LLAMA = "Llama"
ROPE_THETA = 2.0**120


def llama_files(model: Transformer, notes: Mapping[str, str], labels: Labels | None = None) -> dict[str, bytes]:
    """The files of the folder, by name."""
    decoder = rms_model(model, LLAMA)
    labels = decoder_labels(decoder, labels)
    head = _llama_head(decoder)
    built = rms_decoder(decoder, labels, head, range(head // 4, head // 2))
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        **built.config,
        "head_dim": head,
        "attention_bias": False,
        "mlp_bias": False,
        "rope_theta": ROPE_THETA,
        "rope_parameters": {"rope_theta": ROPE_THETA, "rope_type": "default"},
        "bos_token_id": labels.start,
    }
    tensors = {
        "model.embed_tokens.weight": built.embed,
        "model.norm.weight": built.norm,
        "lm_head.weight": built.unembed,
    }
    for index, layer in enumerate(built.layers):
        parts: dict[str, np.ndarray] = {
            "input_layernorm": built.norm,
            "post_attention_layernorm": built.norm,
            "self_attn.q_proj": layer.query,
            "self_attn.k_proj": layer.key,
            "self_attn.v_proj": layer.value,
            "self_attn.o_proj": layer.output,
            "mlp.gate_proj": layer.gate,
            "mlp.up_proj": layer.up,
            "mlp.down_proj": layer.down,
        }
        tensors |= {f"model.layers.{index}.{part}.weight": array for part, array in parts.items()}
    return stock_files(config, tensors, decoder, labels, built.about, notes)


def _llama_head(decoder: Decoder) -> int:
    """A quarter of it is for queries and keys, all of it for values."""
    size = 4
    while size < max(4 * decoder.key, decoder.value):
        size *= 4
    return size
