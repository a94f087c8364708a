"""A Hugging Face folder of the stock GPT-2 architecture, which `transformers` loads without any code of ours.

The stream is paired (every number x is held as x and as -x, and read as half their difference) and pinned (constant
coordinates), so that each LayerNorm is the identity up to an error that `norm_identity` bounds; the bound of the
logits' error must stay within what the outputs allow. If it does not in the model's own type, the folder is float64,
which holds the same weights; if not even there, the export is refused. Heads have a size that is a power of four, so
that the division of scores by its root is a power of two, which the queries make up for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from certiformer.errors import BadInput
from certiformer.export.decoder import Decoder, Layer, decoder_of, empty_layer, mapped, resized
from certiformer.export.labels import Labels
from certiformer.export.norm_identity import LAYER_EPSILON, LayerPins, layer_pins
from certiformer.export.stock_folder import decoder_labels, error_share, silent_logit, stock_files
from certiformer.model import Config, Transformer

NAME = "GPT-2"


def gpt2_files(model: Transformer, notes: Mapping[str, str], labels: Labels | None = None) -> dict[str, bytes]:
    """The files of the folder, by name."""
    decoder = decoder_of(model, NAME, causal=True)
    labels = decoder_labels(decoder, labels)
    head, count = _heads(decoder)
    size = head * count
    gaps = head_gaps(model.config, labels)
    pins, bounds = layer_pins(decoder, size, gaps)
    if decoder.dtype != "float64" and not error_share(decoder, bounds, labels) <= 1.0:
        decoder = replace(decoder, dtype="float64")
        pins, bounds = layer_pins(decoder, size, gaps)
    share = error_share(decoder, bounds, labels)
    if not share <= 1.0:
        raise BadInput(
            f"the norms of {NAME} cannot be proved harmless here: their rounding may come to {share:.2g} times what the"
            " outputs allow; export it to llama or phi3"
        )
    silent = silent_logit(bounds.logits)
    config = {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "activation_function": "relu",
        "vocab_size": len(labels.texts),
        "n_positions": decoder.length + 1,
        "n_embd": size,
        "n_layer": max(len(decoder.layers), 1),
        "n_head": count,
        "n_inner": max(decoder.units, 1),
        "layer_norm_epsilon": LAYER_EPSILON,
        "scale_attn_weights": True,
        "scale_attn_by_inverse_layer_idx": False,
        "reorder_and_upcast_attn": False,
        "attn_pdrop": 0.0,
        "embd_pdrop": 0.0,
        "resid_pdrop": 0.0,
        "tie_word_embeddings": False,
        "use_cache": False,
        "bos_token_id": labels.start,
        "eos_token_id": None,
    }
    largest = f"{float(bounds.logits.error.max()):.2g}"
    if labels.spacing is not None:
        largest = f"{share:.2g} times what could change an answer"
    about = (
        "Every LayerNorm is the identity up to rounding: the stream is held as x and -x beside constants of"
        f" {pins.constant:g} and {-pins.constant:g}. For every input, the outputs of a run in {decoder.dtype} differ from"
        f" the real-number outputs of the original by at most {largest}."
    )
    return stock_files(config, _tensors(decoder, labels, pins, head, silent), decoder, labels, about, notes)


def head_gaps(config: Config, labels: Labels) -> dict[tuple[int, int], float]:
    """The heads that read one position, by layer and number in it, with the gap of scores that the checker found."""
    if labels.gap is None:
        return {}
    gaps = {}
    for block, group, head in labels.single_heads:
        attention = config.blocks[block].attention
        if attention is not None:
            gaps[block, sum(earlier.count for earlier in attention.heads[:group]) + head] = labels.gap
    return gaps


def _heads(decoder: Decoder) -> tuple[int, int]:
    """The size and number of heads: room for the stream twice and at least two pins."""
    size = 4
    while size < max(decoder.key, decoder.value):
        size *= 4
    return size, max(decoder.heads, -(-(2 * decoder.width + 2) // size))


def _tensors(decoder: Decoder, labels: Labels, pins: LayerPins, head: int, silent: float) -> dict[str, np.ndarray]:
    size, width = pins.size, decoder.width

    def read(matrix: np.ndarray) -> np.ndarray:
        pair = np.concatenate([matrix, -matrix], axis=-2) / 2.0
        return resized(pair, (*matrix.shape[:-2], size, matrix.shape[-1]))

    def written(vectors: np.ndarray) -> np.ndarray:
        pair = np.concatenate([vectors, -vectors], axis=-1)
        return resized(pair, (*vectors.shape[:-1], size))

    tokens = np.full((len(labels.texts), size), np.nan)
    tokens[: labels.inputs] = written(decoder.embed)
    tokens[labels.start] = written(decoder.start)
    # The other rows stay NaN throughout: what is no input must not give a plausible answer.
    fed = [*range(labels.inputs), labels.start]
    tokens[fed, 2 * width :] = resized(np.array([pins.constant, -pins.constant]), (size - 2 * width,))
    scale = np.where(np.arange(size) < 2 * width, pins.scale, 0.0)
    one = np.arange(size) == 2 * width  # after the last norm, the first pin is the constant 1
    unembed = np.zeros((len(labels.texts), size))
    unembed[:, 2 * width] = silent if labels.kind == "logits" else 0.0
    unembed[list(labels.outputs)] = read(decoder.unembed).T
    unembed[list(labels.outputs), 2 * width] = decoder.unembed_bias
    tensors = {
        "transformer.wte.weight": tokens,
        "transformer.wpe.weight": np.concatenate([np.zeros((1, size)), written(decoder.positions)]),
        "transformer.ln_f.weight": scale,
        "transformer.ln_f.bias": one.astype(np.float64),
        "lm_head.weight": unembed,
    }
    layers = [Layer(**mapped(layer, read, written)) for layer in decoder.layers] or [Layer(**empty_layer(size))]
    for index, layer in enumerate(layers):
        tensors |= _layer(layer, f"transformer.h.{index}", scale, head, max(decoder.units, 1))
    return tensors


def _layer(layer: Layer, name: str, scale: np.ndarray, head: int, units: int) -> dict[str, np.ndarray]:
    size = len(scale)
    heads = size // head
    parts = {}
    for part, factor in (("query", head**0.5), ("key", 1.0), ("value", 1.0)):
        matrix = resized(getattr(layer, part), (heads, size, head)) * factor
        parts[part] = matrix.transpose(1, 0, 2).reshape(size, size)
        parts[f"{part}_bias"] = resized(getattr(layer, f"{part}_bias"), (heads, head)).reshape(size) * factor
    tensors = {
        f"{norm}.{part}": scale if part == "weight" else np.zeros(size)
        for norm in ("ln_1", "ln_2")
        for part in ("weight", "bias")
    }
    tensors |= {
        "attn.c_attn.weight": np.concatenate([parts["query"], parts["key"], parts["value"]], axis=1),
        "attn.c_attn.bias": np.concatenate([parts["query_bias"], parts["key_bias"], parts["value_bias"]]),
        "attn.c_proj.weight": resized(layer.output, (heads, head, size)).reshape(size, size),
        "attn.c_proj.bias": layer.output_bias,
        "mlp.c_fc.weight": resized(layer.up, (size, units)),
        "mlp.c_fc.bias": resized(layer.up_bias, (units,)),
        "mlp.c_proj.weight": resized(layer.down, (units, size)),
        "mlp.c_proj.bias": layer.down_bias,
    }
    return {f"{name}.{part}": array for part, array in tensors.items()}
