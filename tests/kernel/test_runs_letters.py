"""Runs over all sequences: the bound covers every float32 run of every sequence, and is not absurdly large."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from certiformer.construct.parity import parity_network
from certiformer.construct.selector_width import histogram_network
from certiformer.construct.sort_alphabet import sort_network
from certiformer.kernel.problem import Network
from certiformer.kernel.rounding.runs import letters_error
from certiformer.kernel.weights import read_model
from certiformer.model import Attention, Block, Code, Config, FeedForward, Heads, Input, Readout, Transformer
from certiformer.model.store import tensors_to_bytes


def stored(network) -> Transformer:
    """The same weights, stored in float32; those of the gadgets are small whole numbers."""
    config, tensors = network
    return Transformer(replace(config, dtype="float32"), tensors)


def random_model(readout: str, seed: int) -> Transformer:
    blocks = (Block(Attention((Heads(2, 2, 2),), mask="causal", bias=True), FeedForward(3)),)
    config = Config(
        Input("ids", 3, vocabulary=3), 4, 2, Readout(readout), blocks, registers=1, code=Code("table"), dtype="float32"
    )
    return Transformer.random(config, seed)


MODELS = {
    "parity": stored(parity_network(9)),
    "sort": stored(sort_network(3, 4)),
    "hist": stored(histogram_network(2, 5)),
    "random": random_model("all", 1),
}


@pytest.mark.parametrize("name", MODELS)
def test_every_run_of_every_sequence_is_within_the_bound(name):
    model = MODELS[name]
    found = letters_error(Network(*read_model(model.config.to_bytes(), tensors_to_bytes(model))), "float32")
    assert found.bound is not None
    size = model.config.input
    letters = np.array(list(product(range(size.vocabulary), repeat=size.tokens)))
    # The float64 run stands for the real numbers: its own error is 2^-29 of that of float32.
    apart = np.max(np.abs(model.evaluate(letters, "float32") - model.evaluate(letters)))
    assert apart <= float(found.bound)
    # Random networks lose factors to intervals over all sequences at once; nothing may be off by more than that.
    assert float(found.bound) < 5e4 * max(apart, 2.0**-24)


def test_adding_the_code_rounds():
    """No block at all: the one rounding of the run is the sum of embedding and code."""
    config = Config(Input("ids", 2, vocabulary=2), 1, 1, Readout("all"), code=Code("table"), dtype="float32")
    weights = {
        "embed.weight": [[0.1], [0.3]],
        "code.table": [[0.7], [1.9]],
        "readout.weight": [[1.0]],
        "readout.bias": [0.0],
    }
    model = Transformer(config, weights)
    found = letters_error(Network(*read_model(config.to_bytes(), tensors_to_bytes(model))), "float32")
    letters = np.array(list(product(range(2), repeat=2)))
    apart = np.max(np.abs(model.evaluate(letters, "float32") - model.evaluate(letters)))
    assert 0 < apart <= float(found.bound) < 2.2 * 2**-24 * 1.01


def test_a_run_that_no_interval_encloses_or_that_is_too_long_has_no_bound_and_a_reason():
    config, tensors = sort_network(40, 1000)
    model = Transformer(config, tensors)
    network = Network(*read_model(config.to_bytes(), tensors_to_bytes(model)))
    found = letters_error(network, "float64")
    assert found.bound is None
    assert "numbers" in found.reason
    huge = dict(MODELS["parity"].tensors)
    huge["blocks.0.ffn.down"] = np.full_like(huge["blocks.0.ffn.down"], 3e38)
    model = Transformer(MODELS["parity"].config, huge)
    found = letters_error(Network(*read_model(model.config.to_bytes(), tensors_to_bytes(model))), "float32")
    assert found.bound is None
    assert "exceed the largest finite float32" in found.reason


def test_positions_that_are_alike_have_the_bound_of_one():
    """With a position code of zeros every position is computed: the same bound, found the long way."""
    model = MODELS["hist"]
    short = letters_error(Network(*read_model(model.config.to_bytes(), tensors_to_bytes(model))), "float32")
    config = replace(model.config, code=Code("table"))
    coded = Transformer(config, {**model.tensors, "code.table": np.zeros((5, config.width))})
    long = letters_error(Network(*read_model(config.to_bytes(), tensors_to_bytes(coded))), "float32")
    assert short.bound == long.bound
