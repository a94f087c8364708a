"""The pins: RMSNorm as a bit-exact identity in any order of summation, LayerNorm within the stated error."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certiformer.errors import BadInput
from certiformer.export.decoder import decoder_of
from certiformer.export.norm_identity import LAYER_EPSILON, RMS_EPSILON, LayerPins, layer_pins, rms_pins
from certiformer.export.stock_folder import error_share
from certiformer.export.stream_bounds import Bounds, stream_bounds
from certiformer.model import Transformer
from export.stock_cases import case


def shuffled_sum(terms: np.ndarray, generator: np.random.Generator) -> np.floating:
    """A sum in a random order by a random tree, every step rounded to the type of the terms."""
    parts = list(generator.permutation(terms))
    while len(parts) > 1:
        i = int(generator.integers(0, len(parts) - 1))
        parts[i : i + 2] = [parts[i] + parts[i + 1]]
    return parts[0]


def rms_norm(x: np.ndarray, weight: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    kind = x.dtype.type
    mean = shuffled_sum(x * x, generator) / kind(len(x))
    return weight * (x * (kind(1) / np.sqrt(mean + kind(RMS_EPSILON))))


@given(st.integers(0, 10**6), st.sampled_from([16, 32, 128]), st.sampled_from([np.float32, np.float64]))
@settings(max_examples=40, deadline=None)
def test_rms_norm_changes_no_bit(seed, size, kind):
    decoder = decoder_of(case("pairs seen").model, "", causal=True)
    pins, generator = rms_pins(decoder, size), np.random.default_rng(seed)
    x = generator.standard_normal(size)
    x *= math.sqrt(pins.squares) / np.linalg.norm(x)
    weight = np.full(size, pins.scale)
    x[-pins.count :], weight[-1] = pins.constant, pins.one
    x = x.astype(kind)
    y = rms_norm(x, weight.astype(kind), generator)
    assert np.array_equal(y[: -pins.count], x[: -pins.count]) and y[-1] == 1.0
    # The negative control: numbers that are larger than proved do show.
    x[: -pins.count] *= kind(2.0**20)
    assert kind is np.float64 or not np.array_equal(
        rms_norm(x * kind(2.0**12), weight.astype(kind), generator), x * kind(2.0**12)
    )


def test_pins_are_powers_of_two_and_large_streams_are_refused():
    decoder = decoder_of(case("pairs seen").model, "", causal=True)
    for size in (16, 32):
        pins = rms_pins(decoder, size)
        assert (
            math.log2(pins.constant).is_integer()
            and math.log2(pins.scale).is_integer()
            and pins.count == 1 + (size == 32)
        )
    model = case("pairs seen").model
    large = {name: np.asarray(t) * (2.0**60 if name == "embed.weight" else 1) for name, t in model.tensors.items()}
    with pytest.raises(BadInput, match="cannot be made an identity"):
        rms_pins(decoder_of(Transformer(model.config, large), "", causal=True), 16)


@given(st.integers(0, 10**6), st.sampled_from([np.float32, np.float64]))
@settings(max_examples=60, deadline=None)
def test_layer_norm_stays_within_its_noise(seed, kind):
    """Mean and variance by sums in a random order; what is read is half the difference of the two places."""
    generator = np.random.default_rng(seed)
    width, size, u = 9, 24, float(np.finfo(kind).eps) / 2
    values = generator.integers(-300, 300, width).astype(np.float64) / generator.choice([1, 3, 64], width)
    constant = 2.0 ** math.ceil(math.log2(math.sqrt(max(values @ values, 1.0) / (2 * u))))
    pins = LayerPins(size, constant, math.sqrt(2 * constant**2 / size + LAYER_EPSILON), u)
    x = np.concatenate([values, -values, [constant, -constant], np.zeros(size - 2 * width - 2)]).astype(kind)
    mean = shuffled_sum(x, generator) / kind(size)
    centred = x - mean
    variance = shuffled_sum(centred * centred, generator) / kind(size)
    y = centred * (kind(1) / np.sqrt(variance + kind(LAYER_EPSILON))) * kind(pins.scale)
    read = (y[:width].astype(np.float64) - y[width : 2 * width].astype(np.float64)) / 2
    stored = x[:width].astype(np.float64)
    ends = np.stack([stored, stored])
    zero = np.zeros(width)
    noise = pins.noise(Bounds(ends, ends, zero, zero, zero))
    assert (np.abs(read - stored) <= noise).all()
    assert noise.max() < 100 * u * np.abs(stored).max() + 1e-300 * (not stored.any())
    # The negative control: without the pins the norm changes everything.
    bare = np.concatenate([values, -values])
    assert not values.any() or np.abs(bare / bare.std() - bare).max() > noise.max() or abs(bare.std() - 1) < 1e-3


def test_the_noise_enters_the_bounds():
    this = case("hist of the prefix")
    decoder = decoder_of(this.model, "", causal=True)
    pins, bounds = layer_pins(decoder, 32)
    assert math.log2(pins.constant).is_integer()
    quiet = stream_bounds(decoder, decoder.dtype)
    assert (bounds.read > 2 * quiet.read).any() and error_share(decoder, bounds, this.labels) < 1
