"""Files: the same bytes for the same model, the same model from the bytes, one sentence for anything else."""

from __future__ import annotations

import hashlib
import json
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import safetensors.numpy

from certiformer.errors import BadInput
from certiformer.model import Transformer, load, save
from certiformer.model.store import CONFIG_FILE, TENSORS_FILE
from model.cases import OPTIONS, model_of


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
@pytest.mark.parametrize("option", ["pre-norm", "mask table", "score toeplitz", "ids"])
def test_loading_gives_every_bit_back(tmp_path, dtype, option):
    model = model_of(**OPTIONS[option], dtype=dtype)
    save(model, tmp_path)
    again = load(tmp_path)
    assert again.config == model.config
    assert again.tensors.keys() == model.tensors.keys()
    for name, tensor in model.tensors.items():
        assert again.tensors[name].dtype == tensor.dtype
        assert again.tensors[name].tobytes() == tensor.tobytes()


def test_the_same_model_gives_the_same_bytes(tmp_path):
    model = model_of(**OPTIONS["mask table"])
    save(model, tmp_path / "a")
    shuffled = Transformer(model.config, dict(reversed(model.tensors.items())))
    save(jax.tree.map(jnp.asarray, shuffled), tmp_path / "b")
    save(load(tmp_path / "a"), tmp_path / "c")
    for name in (TENSORS_FILE, CONFIG_FILE):
        assert len({(tmp_path / folder / name).read_bytes() for folder in "abc"}) == 1
    assert sorted(p.name for p in (tmp_path / "a").iterdir()) == [CONFIG_FILE, TENSORS_FILE]


def test_the_bytes_never_change(tmp_path):
    """A model whose weights are written here, so that a new version of any library shows when it moves a byte."""
    model = model_of(**OPTIONS["mask table"])
    tensors = {n: (np.arange(t.size).reshape(t.shape) % 2) for n, t in model.tensors.items()}
    save(Transformer(model.config, tensors), tmp_path)
    digest = hashlib.sha256((tmp_path / TENSORS_FILE).read_bytes() + (tmp_path / CONFIG_FILE).read_bytes()).hexdigest()
    assert digest == "a3b2dd6be4f5bd76f1014a2675c2b82c6be7e26feeffe62c28b0ecbf4304af99"


def test_other_programs_can_read_the_tensors(tmp_path):
    model = model_of(**OPTIONS["mask table"])
    save(model, tmp_path)
    theirs = safetensors.numpy.load_file(tmp_path / TENSORS_FILE)
    assert theirs.keys() == model.tensors.keys()
    assert all(np.array_equal(theirs[name], tensor) for name, tensor in model.tensors.items())


def test_weights_that_became_nan_are_not_saved(tmp_path):
    model = jax.tree.map(lambda t: t * np.nan, model_of())
    with pytest.raises(BadInput, match="not finite in float64"):
        save(model, tmp_path)
    assert not list(tmp_path.iterdir())


def test_float64_is_kept_when_jax_computes_in_float32(tmp_path):
    model = model_of()
    with jax.enable_x64(False):
        save(model, tmp_path)
        again = load(tmp_path)
        assert again.evaluate(np.ones((1, 6))).dtype == np.float64
    name = "embed.weight"
    assert again.tensors[name].tobytes() == model.tensors[name].tobytes()


def refusal(folder):
    with pytest.raises(BadInput) as error:
        load(folder)
    return str(error.value)


def test_every_truncation_is_refused(tmp_path):
    save(model_of(), tmp_path)
    whole = (tmp_path / TENSORS_FILE).read_bytes()
    for size in [0, 1, 7, 8, 9, 200, len(whole) // 2, len(whole) - 1]:
        (tmp_path / TENSORS_FILE).write_bytes(whole[:size])
        assert "not a complete safetensors file" in refusal(tmp_path), size
    (tmp_path / TENSORS_FILE).write_bytes(whole + b"x")
    assert "not a complete safetensors file" in refusal(tmp_path)


def test_foreign_files_are_refused(tmp_path):
    save(model_of(), tmp_path)
    (tmp_path / TENSORS_FILE).write_bytes(pickle.dumps({"embed.weight": [1.0]}))
    assert "not a complete safetensors file" in refusal(tmp_path)
    safetensors.numpy.save_file({"wte.weight": np.zeros((3, 5), np.float32)}, tmp_path / TENSORS_FILE)
    reason = refusal(tmp_path)
    assert "the tensor embed.weight is missing" in reason
    assert "the tensor wte.weight has no place in this configuration" in reason
    (tmp_path / CONFIG_FILE).write_bytes(b"\xff\xfe")
    assert "config.json is not JSON" in refusal(tmp_path)
    (tmp_path / CONFIG_FILE).write_bytes(b"[" * 100_000)
    assert "config.json is not JSON" in refusal(tmp_path)
    (tmp_path / CONFIG_FILE).write_text(json.dumps({"model_type": "gpt2"}))
    assert "model_type is not an entry we know" in refusal(tmp_path)
    (tmp_path / CONFIG_FILE).unlink()
    assert "config.json cannot be read: No such file" in refusal(tmp_path)


def test_tensors_that_do_not_fit_are_refused(tmp_path):
    model = model_of()
    save(model, tmp_path)

    def write(**changed):
        tensors = {**model.tensors, **{name.replace("__", "."): t for name, t in changed.items()}}
        safetensors.numpy.save_file({n: t for n, t in tensors.items() if t is not None}, tmp_path / TENSORS_FILE)
        return refusal(tmp_path)

    weight = model.tensors["embed.weight"]
    assert "embed.weight has shape (5, 2) instead of (2, 5)" in write(embed__weight=np.ascontiguousarray(weight.T))
    assert "embed.weight is missing" in write(embed__weight=None)
    assert "extra has no place" in write(extra=np.zeros(3))
    assert "embed.weight is stored as F32 instead of F64" in write(embed__weight=weight.astype(np.float32))
    for bad in (np.nan, np.inf, -np.inf):
        poisoned = weight.copy()
        poisoned[1, 2] = bad
        assert "embed.weight holds a number that is not finite" in write(embed__weight=poisoned)


def test_a_mask_holds_zeros_and_ones():
    model = model_of(**OPTIONS["mask table"])
    name = "blocks.0.attention.mask"
    with pytest.raises(BadInput, match="besides 0 and 1"):
        Transformer(model.config, {**model.tensors, name: 2 * np.ones((4, 4))})


def test_a_weight_too_large_for_its_type_is_refused():
    model = model_of(dtype="float32")
    with pytest.raises(BadInput, match="not finite in float32"):
        Transformer(model.config, {**model.tensors, "readout.bias": np.array([1e39, 0.0])})
