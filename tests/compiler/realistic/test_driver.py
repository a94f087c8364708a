"""Realistic weights: the same answers, labels that hold, and whatever is too much is noticed."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import jax
import numpy as np
import pytest

from certiformer import BadInput
from certiformer.compiler import compile_program
from certiformer.compiler.realistic import BASIS, Basis, apply, noise_limit
from certiformer.compiler.realistic.basis import rotation
from certiformer.compiler.realistic.driver import largest_noise, with_noise
from certiformer.compiler.realistic.evidence import measure
from certiformer.compiler.realistic.layernorm import paired_width, pins_for, with_layer_norm
from certiformer.compiler.realistic.padded import padded_forms
from certiformer.compiler.realistic.stream import as_float64, as_stored
from certiformer.model import Transformer
from certiformer.rasp.library import catalogue

VOCAB, LENGTH, INPUTS = ("a", "b"), 3, 2 + 4 + 8


@pytest.fixture(scope="module")
def hist():
    return compile_program(catalogue()["hist"].make(), VOCAB, LENGTH)


@pytest.fixture(scope="module")
def rotated(hist):
    return apply(hist, rotate=True)


@pytest.fixture(scope="module")
def normed(hist):
    return apply(hist, layernorm=True)


def test_a_rotated_program_is_the_same_function_and_every_weight_is_in_use(hist, rotated):
    evidence = rotated.evidence
    assert evidence.exact and (evidence.inputs, evidence.tried, evidence.wrong) == (INPUTS, INPUTS, 0)
    assert (
        "all 14 inputs were tried and answered rightly, run in float32 on this machine; with real numbers"
        in evidence.sentence
    )
    assert rotated.config.width == 4 and (rotated.tensors["registers"] != 0).all()
    assert rotated.circuit is hist.circuit


def test_labels_follow_the_directions_and_a_wrong_basis_is_noticed(rotated):
    assert rotated.trace("aba", everywhere=True).first_wrong is None
    other = rotation(4, "exact", seed=99)
    assert replace(rotated, basis=other).trace("aba").first_wrong is not None
    swapped = Basis(
        rotated.basis.directions, (replace(rotated.basis.readers[0], matrix=rotated.basis.readers[0].matrix[:, ::-1]),)
    )
    assert replace(rotated, basis=swapped).trace("aba").first_wrong is not None


def test_the_files_hold_everything(rotated):
    files = rotated.files()
    assert set(files) == {"model.safetensors", "config.json", "program.json", "circuit.json", BASIS}
    again = Basis.from_bytes(files[BASIS])
    assert (again.directions == rotated.basis.directions).all()


def test_norms_are_proved_harmless_and_labels_hold(normed):
    assert normed.evidence.exact and "norms and rounding were proved to move" in normed.evidence.sentence
    assert all(block.norm is not None and block.norm.place == "pre" for block in normed.config.blocks)
    assert normed.trace("aba", everywhere=True).first_wrong is None


def test_the_norm_multiplies_by_a_constant_within_the_derived_bound(hist):
    pins = pins_for(hist, hist.config.width)
    size, width = paired_width(hist.config.width), hist.config.width
    assert math.log2(pins.constant).is_integer() and pins.share <= 1.0
    with jax.enable_x64(True):
        states = Transformer(hist.config, hist.tensors).states(np.array([0, 1, 0]))
    for state in states:
        x = state.astype(np.float64)
        held = np.zeros((len(x), size))
        held[:, :width], held[:, width : 2 * width] = x, -x
        held[:, 2 * width : 2 * width + 2] = pins.constant, -pins.constant
        scaled = held / np.sqrt(held.var(axis=1, keepdims=True) + pins.epsilon) * pins.scale
        read = (scaled[:, :width] - scaled[:, width : 2 * width]) / 2
        share = (x**2).sum(axis=1, keepdims=True) / (2 * pins.constant**2)
        rounding = 64 * 2.0**-53  # this test computes in float64
        assert (np.abs(read - x) <= (share + rounding) * np.abs(x) + rounding).all()
        assert (share <= 2.0**-24).all()  # C is chosen so that it is at most u in float32


def test_pins_that_are_too_small_change_the_answers(hist):
    pins = pins_for(hist, hist.config.width)
    weak = replace(pins, constant=1.0, scale=math.sqrt(2.0 / paired_width(hist.config.width) + pins.epsilon))
    config, tensors, _ = with_layer_norm(hist.config, hist.tensors, weak)
    assert measure(config, as_stored(tensors, "float32"), hist.graph, hist.circuit).wrong > 0


def test_noise_reaches_every_weight_and_too_much_of_it_is_refused(hist):
    limit = noise_limit(hist, 1.0, seed=3)
    assert 0 < limit < 1.0
    noisy = apply(hist, noise=limit, seed=3)
    assert noisy.evidence.exact and noisy.evidence.proof == ""
    assert all((noisy.tensors[name] != tensor).all() for name, tensor in hist.tensors.items())
    with pytest.raises(
        BadInput, match=r"^noise of 1 is too strong: .* answered wrongly .* is the largest that was found"
    ):
        apply(hist, noise=1.0, seed=3)
    with pytest.raises(BadInput, match="the noise is a number from 0 on"):
        apply(hist, noise=-1.0)


def test_noise_depends_on_the_seed_alone_and_has_the_size_asked_for():
    zeros = {"a": np.zeros((100, 100)), "b": np.zeros(7)}
    one, same, other = (with_noise(zeros, 0.5, seed) for seed in (1, 1, 2))
    assert all((one[name] == same[name]).all() and (one[name] != other[name]).all() for name in zeros)
    assert abs(one["a"].std() - 0.5) < 0.02  # 10,000 draws: the standard error is 0.0035


def test_the_largest_noise_was_tried_itself():
    tried = []

    def right(size):
        tried.append(size)
        return size < 0.3

    found = largest_noise(right)
    assert found in tried and 0.3 / 1.03 < found < 0.3
    assert largest_noise(lambda size: True, 2.0) == 2.0 and largest_noise(lambda size: False) == 0.0


def test_a_sample_is_never_called_exact(hist):
    sampled = measure(hist.config, hist.tensors, hist.graph, hist.circuit, most=INPUTS)
    assert sampled.outcome == "sampled" and not sampled.exact and "nothing is known of the others" in sampled.sentence
    assert measure(hist.config, hist.tensors, hist.graph, hist.circuit, most=INPUTS + 1).outcome == "exact"


def test_what_is_not_a_number_is_wrong(hist):
    broken = {**hist.tensors, "readout.bias": np.full_like(hist.tensors["readout.bias"], np.inf)}
    with pytest.raises(BadInput):  # it cannot even be stored
        measure(hist.config, broken, hist.graph, hist.circuit)
    huge = {name: tensor * np.float32(1e30) for name, tensor in hist.tensors.items()}
    assert measure(hist.config, huge, hist.graph, hist.circuit).wrong == INPUTS


def test_a_narrower_code_is_learned_and_one_that_is_too_narrow_is_refused(hist):
    seen = []
    narrow = apply(hist, compress=3, progress=lambda *call: seen.append(call))
    assert narrow.config.width == 3 < hist.config.width and narrow.evidence.exact
    assert narrow.evidence.proof == "" and seen[0][0] == "compress"
    assert narrow.trace("aba").first_wrong is None
    with pytest.raises(
        BadInput, match=r"^no code of 1 coordinates was found .* [0-9.]+% of the answers are right; try 2"
    ):
        apply(hist, compress=1, seconds=0.0)
    for width in (0, 5):
        with pytest.raises(BadInput, match="a narrower code has 1 to 4 coordinates"):
            apply(hist, compress=width)


def test_the_padded_forward_pass_is_that_of_the_model(hist):
    ids = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 1]])
    lengths = [1, 2, 3]
    present = np.arange(LENGTH + 1)[None] <= np.array(lengths)[:, None]
    with jax.enable_x64(True):
        tensors = {name: jax.numpy.asarray(tensor) for name, tensor in as_float64(hist.tensors).items()}
        forms, states = jax.jit(partial(padded_forms, hist.config))(tensors, ids, present)
        model = Transformer(replace(hist.config, dtype="float64"), hist.tensors)
        for row, n in enumerate(lengths):
            wanted = model.evaluate(ids[row : row + 1, :n])[0].reshape(n, -1)
            # Both are sums of fewer than 20 numbers below 1,000 in float64.
            np.testing.assert_allclose(forms["readout.weight"][row, 1 : n + 1], wanted, rtol=0, atol=1e-11)
            for found, want in zip(states, model.states(ids[row, :n]), strict=True):
                np.testing.assert_allclose(found[row, : n + 1], want, rtol=0, atol=1e-11)
