"""A decoder with the parts that Llama and Phi-3 share: RMSNorm, rotary positions, gated units, no biases.

* **Norms** are a bit-exact identity by pinned coordinates (`norm_identity`), and the first pin reads as 1 wherever a bias
  is wanted. Positions are counted by two layers in front, output biases of attention become heads (`counted_positions`).
* **Gated units** compute relu(gate) * up; with the pin's 1 as `up` they are ordinary ReLU units, since h * 1 = h.
* **Scores** are divided by the root of the head size, a power of four, which the queries make up for by a power of two.
* **Rotary positions** must not turn what the scores are made of; which coordinates of a head are safe, each
  architecture says (`key_places`).

The width of the stream is a power of two, the heads' sizes together are the width, as in the stock models.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certiformer.errors import BadInput
from certiformer.export.counted_positions import with_bias_heads, with_counted_positions
from certiformer.export.decoder import Decoder, Layer, decoder_of, empty_layer, resized
from certiformer.export.labels import Labels
from certiformer.export.norm_identity import RMS_EPSILON, RmsPins, rms_pins
from certiformer.export.stock_folder import silent_logit
from certiformer.export.stream_bounds import stream_bounds
from certiformer.model import Transformer


@dataclass(frozen=True)
class RmsLayer:
    """Matrices of shape (outputs, inputs), as `transformers` stores them."""

    query: np.ndarray
    key: np.ndarray
    value: np.ndarray
    output: np.ndarray
    gate: np.ndarray
    up: np.ndarray
    down: np.ndarray


@dataclass(frozen=True)
class RmsDecoder:
    """All weights of the architecture; `norm` is the weight of every norm."""

    decoder: Decoder
    pins: RmsPins
    head: int
    embed: np.ndarray
    norm: np.ndarray
    layers: tuple[RmsLayer, ...]
    unembed: np.ndarray

    @property
    def config(self) -> dict:
        """The entries of `config.json` that both architectures have."""
        heads = self.pins.size // self.head
        return {
            "vocab_size": len(self.embed),
            "hidden_size": self.pins.size,
            "intermediate_size": len(self.layers[0].gate),
            "num_hidden_layers": len(self.layers),
            "num_attention_heads": heads,
            "num_key_value_heads": heads,
            "hidden_act": "relu",
            "max_position_embeddings": self.decoder.length + 1,
            "rms_norm_eps": RMS_EPSILON,
            "attention_dropout": 0.0,
            "tie_word_embeddings": False,
            "use_cache": False,
            "eos_token_id": None,
            "pad_token_id": None,
        }

    @property
    def about(self) -> str:
        return (
            f"Every RMSNorm is the identity, bit for bit: {self.pins.count} of {self.pins.size} coordinates hold the"
            f" constant {self.pins.constant:g}, and the squares of all others were proved to sum to at most"
            f" {self.pins.squares:.3g} for every input, which no rounded sum with a square of"
            f" {self.pins.constant**2:.3g} can show. A run in {self.decoder.dtype} is a run of the original, up to the"
            " order of its sums."
        )


def rms_model(model: Transformer, architecture: str) -> Decoder:
    """The model as a decoder without positions and output biases, in a type that these architectures compute with."""
    decoder = decoder_of(model, architecture, causal=True)
    if decoder.dtype == "float64":
        raise BadInput(
            f"{architecture} computes its norms in float32, and this transformer is made for float64; compile it with"
            " --dtype float32"
        )
    return with_counted_positions(with_bias_heads(decoder))


def rms_decoder(decoder: Decoder, labels: Labels, head: int, key_places: range) -> RmsDecoder:
    """The weights.

    **Arguments:**

    - `head`: the size of a head, a power of four.
    - `key_places`: the coordinates of a head that queries and keys may use.
    """
    needed = max(decoder.width + 2, head * max(decoder.heads, 1))
    size = 1 << (needed - 1).bit_length()
    pins = rms_pins(decoder, size)
    one = size - 1  # the pin that reads as 1
    bounds = stream_bounds(decoder, decoder.dtype)
    embed = np.full((len(labels.texts), size), np.nan)
    embed[: labels.inputs] = resized(decoder.embed, (labels.inputs, size))
    embed[labels.start] = resized(decoder.start, (size,))
    # The other rows stay NaN throughout: what is no input must not give a plausible answer.
    embed[[*range(labels.inputs), labels.start], size - pins.count :] = pins.constant
    norm = np.full(size, pins.scale)
    norm[size - pins.count :] = 0.0
    norm[one] = pins.one
    unembed = np.zeros((len(labels.texts), size))
    unembed[:, one] = silent_logit(bounds.logits) if labels.kind == "logits" else 0.0
    unembed[list(labels.outputs)] = _biased(decoder.unembed, decoder.unembed_bias, size)
    units = max([layer.units + bool(layer.down_bias.any()) for layer in decoder.layers] + [1])
    layers = decoder.layers or (Layer(**empty_layer(decoder.width)),)
    built = tuple(_layer(layer, size, head, key_places, units) for layer in layers)
    return RmsDecoder(decoder, pins, head, embed, norm, built, unembed)


def _layer(layer: Layer, size: int, head: int, key_places: range, units: int) -> RmsLayer:
    heads, one = size // head, size - 1
    projections = {}
    for part, places, factor in (
        ("query", key_places, head**0.5),
        ("key", key_places, 1.0),
        ("value", range(head), 1.0),
    ):
        matrix = np.zeros((heads, head, size))
        for index in range(layer.heads):
            rows = _biased(getattr(layer, part)[index], getattr(layer, f"{part}_bias")[index], size) * factor
            matrix[index, list(places)[: len(rows)]] = rows
        projections[part] = matrix.reshape(size, size)
    output = np.zeros((size, heads, head))
    output[: layer.output.shape[2], : layer.heads, : layer.value.shape[2]] = layer.output.transpose(2, 0, 1)
    gate, up, down = np.zeros((units, size)), np.zeros((units, size)), np.zeros((size, units))
    gate[: layer.units] = _biased(layer.up, layer.up_bias, size)
    down[: layer.down.shape[1], : layer.units] = layer.down.T
    up[: layer.units, one] = 1.0
    if layer.down_bias.any():  # a unit that is always 1
        gate[layer.units, one] = up[layer.units, one] = 1.0
        down[: len(layer.down_bias), layer.units] = layer.down_bias
    return RmsLayer(**projections, output=output.reshape(size, size), gate=gate, up=up, down=down)


def _biased(matrix: np.ndarray, bias: np.ndarray, size: int) -> np.ndarray:
    """A map of the stream as rows (outputs, size), with its bias on the pin that reads as 1."""
    rows = resized(matrix.T, (matrix.shape[1], size))
    rows[:, size - 1] = bias
    return rows
