"""Every function of short words, in every shape: proved in balls; and what the theorem excludes is refused or fails."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from certiformer.errors import BadInput
from certiformer.expressivity.word_network import FLOATS, PLACES, NormedShape, normed, outputs, silent
from certiformer.expressivity.words_in_normed_blocks import half_width, proved_error, word_network, words
from certiformer.model import Attention, Block, Code, Config, FeedForward, Heads, Input, Norm, Readout, Transformer

UNITS = [("gelu", False, True), ("silu", True, False), ("relu", False, False), ("gelu-tanh", False, False)]
UNITS += [("tanh", False, True), ("gelu-sigmoid", False, False), ("relu", True, False)]


def backwards(word, place):
    return (word[-1 - place],)


def parity_and_first(word, place):
    return (sum(word[: place + 1]) % 2, word[0])


def test_the_statement_on_random_targets():
    """Every function: here one of independent normal numbers for each context."""
    rng = np.random.default_rng(1)
    numbers = {word: rng.normal(size=(len(word), 3)) for word in words(3, 2)}
    network = word_network(NormedShape(causal=False), lambda w, i: numbers[w][i], letters=3, longest=2)
    assert network.table.shape[1] == 2 * half_width(3, False) == 14
    assert proved_error(network, lambda w, i: numbers[w][i], letters=3, longest=2) < 1e-9


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("norm", ["layer", "rms"])
@pytest.mark.parametrize(("activation", "gated", "biased"), UNITS)
def test_every_shape_reads_words_backwards(place, norm, activation, gated, biased):
    shape = NormedShape(place, norm, 1e-5, activation, gated, biased, causal=False)
    network = word_network(shape, backwards, letters=2, longest=2)
    assert proved_error(network, backwards, letters=2, longest=2) < 1e-9


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("rotary", [None, 1.0])
def test_a_start_token_is_as_good_as_codes(place, rotary):
    shape = NormedShape(place, "rms", 1e-6, "silu", gated=True, biased=False, causal=True, start=True, rotary=rotary)
    network = word_network(shape, parity_and_first, letters=2, longest=3)
    assert network.codes is None and len(network.blocks) == (4 if place == "parallel" else 2)
    assert proved_error(network, parity_and_first, letters=2, longest=3) < 1e-9


def test_without_its_start_token_the_same_network_fails():
    """The negative control: the first block learns the places from it alone."""
    shape = NormedShape("pre", "rms", 1e-6, "silu", gated=True, biased=False, start=True, rotary=1.0)
    network = word_network(shape, parity_and_first, letters=2, longest=3)
    same = outputs(network, (1, 1, 1))
    assert np.allclose(same, same[0])  # equal tokens stay equal
    assert abs(outputs(network, (2, 1, 1, 1))[1:, 0] - [1, 0, 1]).max() < 1e-9


@pytest.mark.parametrize("fault", ["down", "readout", "table", "value"])
def test_a_changed_weight_is_found(fault):
    shape = NormedShape("post", "layer", 1e-12, "gelu", causal=False)
    network = word_network(shape, backwards, letters=2, longest=2)
    if fault in ("readout", "table"):
        broken = replace(network, **{fault: getattr(network, fault) * (1 + 1e-3)})
    else:
        block = network.blocks[-1]
        broken = replace(network, blocks=(replace(block, **{fault: getattr(block, fault) * (1 + 1e-3)}),))
    assert proved_error(broken, backwards, letters=2, longest=2) > 1e-5


def test_a_deaf_block_cannot_do_it():
    """Without its attention no units help: tokens of different words are then the same."""
    network = word_network(NormedShape(causal=False), backwards, letters=2, longest=2)
    deaf = replace(network, blocks=(silent(network.blocks[0], attention=True),))
    assert proved_error(deaf, backwards, letters=2, longest=2) >= 0.5


def test_a_target_that_is_no_prefix_map_is_refused():
    with pytest.raises(BadInput, match="no prefix map"):
        word_network(NormedShape(causal=True), backwards, letters=2, longest=2)
    with pytest.raises(BadInput, match="more than 2,000 contexts"):
        word_network(NormedShape(), backwards, letters=10, longest=6)
    with pytest.raises(BadInput, match="letters and a length"):
        word_network(NormedShape(), backwards, letters=0, longest=6)
    with pytest.raises(BadInput, match="causal attention only"):
        NormedShape(causal=False, start=True)
    with pytest.raises(BadInput, match="units relu"):
        NormedShape(activation="identity")


@pytest.mark.parametrize("norm", ["layer", "rms"])
def test_the_norm_is_the_one_of_the_definition(norm):
    x = np.random.default_rng(0).normal(size=(4, 6))
    centred = x - x.mean(1, keepdims=True) if norm == "layer" else x
    wanted = centred / np.sqrt((centred**2).mean(1, keepdims=True) + 0.25)
    assert np.allclose(normed(NormedShape(norm=norm, epsilon=0.25), x, FLOATS), wanted, rtol=1e-14)


@pytest.mark.parametrize("place", ["none", "pre", "post"])
@pytest.mark.parametrize("causal", [False, True])
def test_the_network_is_one_of_our_transformers(place, causal):
    """An independent implementation of blocks, norms and units gives the same numbers."""
    shape = NormedShape(place, "layer", 1e-5, "gelu", causal=causal)
    network = word_network(shape, lambda w, i: (w[0],), letters=2, longest=3)
    width, block = network.table.shape[1], network.blocks[0]
    layer = Block(
        Attention((Heads(1, 2, 2),), scale="unit", mask="causal" if causal else "none"),
        FeedForward(len(block.up), "gelu"),
        None if place == "none" else Norm(place, "layer", 1e-5),
    )
    config = Config(
        Input("ids", 3, vocabulary=2), width, 1, Readout("all"), (layer,), code=Code("table"), dtype="float64"
    )
    tensors = dict(Transformer.random(config, 0).tensors)
    assert block.up_bias is not None
    tensors |= {"embed.weight": network.table, "code.table": network.codes}
    group = "blocks.0.attention.groups.0"
    tensors |= {f"{group}.{name}": getattr(block, name).T[None] for name in ("query", "key", "value", "output")}
    tensors |= {"blocks.0.ffn.up": block.up.T, "blocks.0.ffn.up_bias": block.up_bias, "blocks.0.ffn.down": block.down.T}
    tensors["blocks.0.ffn.down_bias"] = np.zeros(width)
    tensors |= {name: np.ones(width) for name in tensors if name.endswith(".scale")}
    tensors |= {name: np.zeros(width) for name in tensors if name.endswith(".shift")}
    readout = network.readout
    if place == "pre":  # the norm before the read-out multiplies by one number, which our model has in the read-out
        one = np.eye(1, width) - np.eye(1, width, width // 2)
        readout = readout * normed(shape, one, FLOATS)[0, 0]
    tensors |= {"readout.weight": readout.T, "readout.bias": np.zeros(1)}
    model = Transformer(config, tensors)
    for word in [(0, 1, 1), (1, 0, 1)]:
        assert np.allclose(model.evaluate(np.array([word]))[0], outputs(network, word)[:, 0], atol=1e-9)
