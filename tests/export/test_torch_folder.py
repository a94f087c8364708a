"""The PyTorch module against the model itself, in this process and alone in its folder."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certiformer.errors import MissingExtra
from certiformer.export import to_torch, write
from certiformer.model import Transformer, load
from certiformer.model.store import tensors_to_bytes
from export.cases import AGREEMENT, CASES, TIES, by_definition, case, expected, points_of, ties
from model.cases import configs


def with_torch():
    return pytest.importorskip("torch", reason="PyTorch is not installed (pip install torch): its export was not run")


def outputs_of(model: Transformer, points: np.ndarray) -> np.ndarray:
    torch = with_torch()
    with torch.no_grad():
        return to_torch(model)(torch.from_numpy(points)).numpy()


@pytest.mark.parametrize("name", CASES)
def test_every_option_computes_the_same(name):
    with_torch()
    model = case(name)
    outputs, wanted = outputs_of(model, points_of(model.config)), expected(name)
    assert outputs.dtype == np.float64 and outputs.shape == wanted.shape
    assert np.abs(outputs - wanted).max() <= AGREEMENT


@given(configs, st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_any_combination_computes_what_the_definition_says(config, seed):
    with_torch()
    model, points = Transformer.random(config, seed), points_of(config, 2, seed)
    wanted = by_definition(model, points)
    assert np.abs(outputs_of(model, points) - wanted).max() <= AGREEMENT * (1 + np.abs(wanted).max())


def test_a_build_computes_the_same(sines):
    model = load(sines)
    points = np.random.default_rng(0).uniform(0, 2 * np.pi, (10_000, 2))
    assert np.abs(outputs_of(model, points) - model.evaluate(points)).max() <= AGREEMENT


def test_ties_are_averaged():
    assert outputs_of(ties(), np.array([[x] for x in TIES]))[:, 0].tolist() == list(TIES.values())


def test_shorter_ids_and_wrong_ones():
    torch = with_torch()
    model = case("ids")
    ids = points_of(model.config, 20)[:, :3]
    assert np.abs(outputs_of(model, ids) - by_definition(model, ids)).max() <= AGREEMENT
    for wrong in ([[0, 7, 0]], [[-1, 0, 0]], [[0] * 5], [[0.0]]):
        with pytest.raises(ValueError, match="ids must"):
            to_torch(model)(torch.tensor(wrong))
    with pytest.raises(ValueError, match=r"the shape \(batch, 6\), not \(2, 5\)"):
        to_torch(case("plain"))(torch.zeros(2, 5))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_narrow_weights_are_kept_and_wide_points_lose_nothing(dtype):
    torch = with_torch()
    wide = case("one block with registers")
    model = Transformer(dataclasses.replace(wide.config, dtype=dtype), wide.tensors)
    module, points = to_torch(model), points_of(model.config, 50)
    assert {str(p.dtype) for p in module.parameters()} == {f"torch.{dtype}"}
    with torch.no_grad():
        outputs = module(torch.from_numpy(points)).numpy()
    assert np.abs(outputs - by_definition(model, points)).max() <= AGREEMENT


def test_the_state_dict_has_our_names_and_gradients_flow():
    torch = with_torch()
    model = case("hard, one block with registers")
    module = to_torch(model)
    assert module.state_dict().keys() == model.tensors.keys()
    module(torch.from_numpy(points_of(model.config, 3))).sum().backward()
    assert module.registers.grad is not None and module.get_submodule("readout").weight.grad.abs().sum() > 0


def test_the_folder_needs_nothing_of_ours(tmp_path):
    """Another interpreter, in the folder, without certiformer and jax."""
    with_torch()
    name = "one block with registers"
    model = case(name)
    write(model, "torch", tmp_path / "out", {})
    np.save(tmp_path / "points.npy", points_of(model.config))
    program = (
        "import sys; sys.modules['certiformer'] = sys.modules['jax'] = None\n"
        "import numpy, torch; from module import load\n"
        "points = torch.from_numpy(numpy.load('../points.npy'))\n"
        "numpy.save('../outputs.npy', load('.')(points).detach().numpy())"
    )
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path / "out", check=True, timeout=60)
    assert np.abs(np.load(tmp_path / "outputs.npy") - expected(name)).max() <= AGREEMENT


def test_the_folder_is_written_without_torch_and_holds_the_very_weights(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    model = case("ids")
    files = write(model, "torch", tmp_path / "out", {"claim": "It is so.", "model_sha256": "ab"})
    assert sorted(p.name for p in files) == ["README.md", "config.json", "model.safetensors", "module.py"]
    assert (tmp_path / "out" / "model.safetensors").read_bytes() == tensors_to_bytes(model)
    assert load(tmp_path / "out").config == model.config
    module = (tmp_path / "out" / "module.py").read_text(encoding="utf-8")
    assert "pickle" not in module and " torch.load(" not in module and "import certiformer" not in module
    assert "> It is so." in (tmp_path / "out" / "README.md").read_text(encoding="utf-8")


def test_without_the_library_one_sentence_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtra, match="pip install torch"):
        to_torch(case("plain"))
