"""Positions by counting and biases by heads: the same numbers, exactly, in every type."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from certiformer.errors import BadInput
from certiformer.export.counted_positions import with_bias_heads, with_counted_positions
from certiformer.export.decoder import Decoder, Layer, empty_layer
from export.decoder_run import run


def plain(length: int, dtype: str = "float32") -> Decoder:
    """No layers; positions are t, its square, and a multiple of 1/4."""
    t = np.arange(length, dtype=np.float64)
    rows = np.stack([t + 1 - length // 2, (t - length // 2) ** 2, (t % 3) / 4, np.zeros(length)], axis=1)
    return Decoder(dtype, np.ones((2, 4)), np.array([0.0, 0, 0, 5]), rows, (), np.eye(4), np.zeros(4))


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("length", [1, 2, 7, 100, 1000])
def test_every_position_is_exact(kind, length):
    decoder = plain(length)
    counted = with_counted_positions(decoder)
    assert not counted.positions.any() and len(counted.layers) == 2
    _, wanted = run(decoder, [0] * length, kind)
    _, logits = run(counted, [0] * length, kind)
    assert np.array_equal(logits, wanted)


def test_shorter_inputs_see_the_same_positions():
    decoder = plain(50)
    assert np.array_equal(run(with_counted_positions(decoder), [1] * 3)[1], run(decoder, [1] * 3)[1])


def test_a_wrong_threshold_is_noticed():
    """The negative control: thresholds at the values themselves instead of halfway."""
    counted = with_counted_positions(plain(20))
    first = counted.layers[0]
    moved = replace(first, up_bias=first.up_bias - 2.5)
    wrong = replace(counted, layers=(moved, *counted.layers[1:]))
    assert not np.array_equal(run(wrong, [0] * 20)[1], run(plain(20), [0] * 20)[1])


def test_what_cannot_be_counted_exactly_is_refused():
    with pytest.raises(BadInput, match="bfloat16 cannot"):
        with_counted_positions(plain(100, "bfloat16"))
    thirds = replace(plain(5), positions=np.full((5, 4), 1 / 3))
    with pytest.raises(BadInput, match="steps"):
        with_counted_positions(thirds)
    far = replace(plain(5), positions=np.array([[2.0**25, 0, 0, 0], [1, 0, 0, 0]] * 2))
    with pytest.raises(BadInput, match="steps"):
        with_counted_positions(far)


def test_without_positions_or_biases_nothing_changes():
    decoder = replace(plain(3), positions=np.zeros((3, 4)))
    assert with_counted_positions(decoder) is decoder and with_bias_heads(decoder) is decoder


def test_a_bias_becomes_a_head():
    parts = empty_layer(4)
    parts["output_bias"] = np.array([1.0, -2, 0, 0.1])
    decoder = replace(plain(6), layers=(Layer(**parts),))
    changed = with_bias_heads(decoder)
    assert not changed.layers[0].output_bias.any() and changed.layers[0].heads == 1
    for kind in (np.float32, np.float64):
        assert np.array_equal(run(changed, [0, 1, 1], kind)[1], run(decoder, [0, 1, 1], kind)[1])
