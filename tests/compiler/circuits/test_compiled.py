"""Compiled circuits against the plain simulator, and the decoder with kept rows against the full forward pass."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from certiformer import load
from certiformer.compiler.circuits import gate_writer
from certiformer.compiler.decode import greedy
from certiformer.errors import BadInput
from certiformer.kernel.meanings.gates import Gate, Gates
from certiformer.model import Transformer
from compiler.circuits.random_circuits import random_circuit


def simulated(circuit: Gates, rows: np.ndarray) -> np.ndarray:
    return np.array([list(circuit.values(row).values()) for row in rows.tolist()])


def test_two_hundred_gates():
    circuit = random_circuit(1, 12, 200)
    rows = np.random.default_rng(0).integers(0, 2, (48, 12))
    assert np.array_equal(gate_writer(circuit, "float32").evaluate(rows), simulated(circuit, rows))


def test_kept_rows_are_those_of_the_forward_pass():
    """All inputs of a small circuit: one forward pass over the whole sequence chooses the same tokens."""
    circuit = random_circuit(4, 4, 20)
    compiled = gate_writer(circuit)
    rows = np.array(list(product((0, 1), repeat=4)))
    signals = compiled.evaluate(rows)
    assert np.array_equal(signals, simulated(circuit, rows))
    tokens = np.concatenate([np.full((16, 1), 2), signals], axis=1)
    outputs = compiled.model.evaluate(tokens).reshape(16, 25, 3)
    assert np.array_equal(np.argmax(outputs, axis=-1)[:, 4:-1], signals[:, 4:])


def test_a_wrong_token_is_not_hidden():
    """The negative control: with another truth table in the weights the decoder writes something else."""
    circuit = random_circuit(4, 4, 20)
    compiled = gate_writer(circuit)
    compiled.tensors["code.table"][4:, 4:8] = 1.0 - compiled.tensors["code.table"][4:, 4:8]
    rows = np.array(list(product((0, 1), repeat=4)))
    assert not np.array_equal(compiled.evaluate(rows), simulated(circuit, rows))


def test_no_inputs_and_no_gates():
    assert gate_writer(Gates((), (Gate("one", "1", ()),), ("one",))).run(()) == {"one": 1}
    assert gate_writer(Gates(("a", "b"), (), ("b",))).run((0, 1)) == {"a": 0, "b": 1}


def test_the_folder_gives_the_circuit_back(tmp_path):
    circuit = random_circuit(5, 3, 9)
    artifact = gate_writer(circuit, "float32").certified()
    artifact.save(tmp_path / "c")
    certificate = artifact.certificate
    assert certificate.level == 2
    loaded = load(tmp_path / "c").subject
    assert loaded.circuit == circuit and loaded.config.dtype == "float32"
    (tmp_path / "c" / "gates.json").write_text(random_circuit(5, 3, 8).to_text())
    with pytest.raises(BadInput, match="is not that of the circuit beside it"):
        load(tmp_path / "c")


def test_the_width_grows_as_the_logarithm():
    sizes = [gate_writer(random_circuit(1, 4, gates)).config for gates in (3, 59, 1019)]
    assert [config.width for config in sizes] == [8 + 3 * 3, 8 + 3 * 6, 8 + 3 * 10]
    assert all(config.blocks[0].ffn is not None and config.blocks[0].ffn.width == 8 for config in sizes)


def test_bfloat16_is_refused():
    with pytest.raises(BadInput, match="a circuit is stored in float64, float32, not 'bfloat16'"):
        gate_writer(random_circuit(1, 1, 1), "bfloat16")


def test_only_causal_models_are_decoded():
    compiled = gate_writer(random_circuit(1, 2, 2))
    data = compiled.config.to_json()
    data["blocks"][0]["attention"]["mask"] = "none"
    model = Transformer(type(compiled.config).from_json(data), compiled.tensors)
    with pytest.raises(ValueError, match="only a causal model"):
        greedy(model.config, compiled.tensors, np.zeros((1, 1), int), np.array([0, 1, -1]), 1)
    with pytest.raises(ValueError, match="do not fit"):
        greedy(compiled.config, compiled.tensors, np.zeros((1, 3), int), np.array([0, 1, -1]), 4)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_two_thousand_gates(dtype):
    circuit = random_circuit(7, 64, 2_000)
    compiled = gate_writer(circuit, dtype)
    rows = np.random.default_rng(0).integers(0, 2, (8, 64))
    assert np.array_equal(compiled.evaluate(rows), simulated(circuit, rows))
