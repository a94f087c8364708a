"""The recurrent networks against loops in NumPy, written from the formulas."""

import jax
import numpy as np
import pytest

from certiformer.rates.recurrent import gated_outputs, gated_start, impulse_response, linear_outputs, linear_start

UNITS, WIDTH, LENGTH, BATCH = 5, 2, 7, 3
# Float64 against float64, sums of at most 5 x 7 terms of size 1: a few hundred roundings of 1e-16.
ROUNDING = 1e-13


def doubled(params):
    return {name: np.asarray(tensor, np.float64) for name, tensor in params.items()}


def linear_loop(p, sequence):
    state, outputs = np.zeros(UNITS), []
    for token in sequence:
        state = p["input"] @ token + p["input_bias"] + p["recurrent"] @ state + p["recurrent_bias"]
        outputs.append(p["readout"] @ state + p["readout_bias"])
    return outputs


def gated_loop(p, sequence):
    def sigmoid(z):
        return 1 / (1 + np.exp(-z))

    names = ("input", "input_bias", "recurrent", "recurrent_bias")
    (wr, br, rr, cr), (wz, bz, rz, cz), (wn, bn, rn, cn) = (
        [p[name][gate * UNITS : (gate + 1) * UNITS] for name in names] for gate in range(3)
    )
    state, outputs = np.zeros(UNITS), []
    for token in sequence:
        reset = sigmoid(wr @ token + br + rr @ state + cr)
        update = sigmoid(wz @ token + bz + rz @ state + cz)
        new = np.tanh(wn @ token + bn + reset * (rn @ state + cn))
        state = (1 - update) * new + update * state
        outputs.append(p["readout"] @ state + p["readout_bias"])
    return outputs


CASES = {"linear": (linear_start, linear_outputs, linear_loop), "gated": (gated_start, gated_outputs, gated_loop)}


@pytest.fixture(scope="module", params=CASES)
def case(request):
    start, outputs, loop = CASES[request.param]
    params = doubled(start(UNITS, seed=1, width=WIDTH))
    x = np.random.default_rng(2).standard_normal((BATCH, LENGTH, WIDTH))
    return params, x, jax.jit(outputs), loop


def test_outputs_are_those_of_the_recurrence(case):
    params, x, outputs, loop = case
    np.testing.assert_allclose(outputs(params, x), [loop(params, sequence) for sequence in x], rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("name", ["input_bias", "recurrent_bias", "recurrent", "readout_bias"])
def test_a_changed_weight_is_seen(case, name):
    """Planted fault: a recurrence that forgot one tensor would pass with it unchanged, and fails here."""
    params, x, outputs, loop = case
    changed = {**params, name: params[name] + 0.1}
    wanted = [loop(changed, sequence) for sequence in x]
    np.testing.assert_allclose(outputs(changed, x), wanted, rtol=0, atol=ROUNDING)
    assert np.abs(np.asarray(outputs(params, x)) - wanted).max() > 1e-3


def test_impulse_response_is_the_answer_to_an_impulse():
    params = doubled(linear_start(UNITS, seed=3, width=WIDTH))
    silent = {**params, "input_bias": 0 * params["input_bias"], "recurrent_bias": 0 * params["recurrent_bias"]}
    impulse = np.zeros((LENGTH, WIDTH))
    impulse[0, 1] = 1.0
    response, _ = impulse_response(params, LENGTH)
    answer = np.array(linear_loop(silent, impulse)) - params["readout_bias"]
    np.testing.assert_allclose(response[:, 1], answer, rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("start", [linear_start, gated_start])
def test_starts_are_single_precision_and_uniform_as_pytorchs(start):
    params = start(64, seed=0)
    assert {np.asarray(tensor).dtype for tensor in params.values()} == {np.dtype(np.float32)}
    largest = np.abs(params["recurrent"]).max()
    assert (
        0.99 / 8 < largest <= 1 / 8
    )  # of at least 4,096 uniform numbers the largest misses the end by 1 % with chance e^-40
    assert start(64, seed=0)["readout"][0] == params["readout"][0] != start(64, seed=1)["readout"][0]
