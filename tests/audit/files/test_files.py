"""Files of weights: what is read, what is refused, and one sentence for each."""

from __future__ import annotations

import json
import os
import shlex
import struct
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

from audit.files.valid import MAKERS, TENSORS, gguf_file, safetensors_file, sharded_folder
from certiformer.audit.files import open_tensors
from certiformer.audit.files.refused import COMMAND
from certiformer.errors import BadInput


@pytest.mark.parametrize("kind", ["safetensors", "onnx"])
def test_what_was_written_is_read(tmp_path, kind):
    files = open_tensors(MAKERS[kind](tmp_path))
    assert files.kind == kind and set(files.infos) == set(TENSORS) and files.config is None
    for name, wanted in TENSORS.items():
        assert files.info(name).shape == wanted.shape
        assert np.array_equal(files.read(name), wanted) and files.read(name).dtype == wanted.dtype
    with pytest.raises(BadInput, match="has no tensor 'z'"):
        files.read("z")


def test_a_gguf_file_has_its_sides_the_right_way_round(tmp_path):
    files = open_tensors(gguf_file(tmp_path))
    assert files.metadata["general.architecture"] == "llama" and files.metadata["llama.block_count"] == 2
    assert files.metadata["tokens"] == ["x", "yy"] and files.metadata["scores"] == [1, 2, 3]
    assert [files.info(name).shape for name in files.infos] == [(4, 32), (3, 2), (5,), (2,)]
    quantised = np.tile(np.float32(np.float16(0.01)) * np.arange(-16, 16, dtype=np.float32), (4, 1))
    assert np.array_equal(files.read("a.weight"), quantised)
    assert np.array_equal(files.read("b.weight"), TENSORS["b.weight"].astype(np.float32))
    assert np.array_equal(files.read("c.bias"), TENSORS["c.bias"].astype(ml_dtypes.bfloat16).astype(np.float32))
    assert files.read("d.half").tolist() == [1.5, -2]


def test_the_library_of_the_format_reads_the_same(tmp_path):
    gguf = pytest.importorskip("gguf")
    reader = gguf.GGUFReader(str(gguf_file(tmp_path)))
    files = open_tensors(tmp_path / "model.gguf")
    for tensor in reader.tensors:
        assert tuple(reversed(tensor.shape.tolist())) == files.info(tensor.name).shape
        wanted = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        assert np.array_equal(wanted.reshape(files.info(tensor.name).shape), files.read(tensor.name))


def test_half_precision_and_whole_numbers(tmp_path):
    from safetensors.numpy import save_file

    tensors = {"h": np.array([65504.0, 1e-7], np.float16), "b": np.ones(2, ml_dtypes.bfloat16), "ids": np.arange(3)}
    save_file(tensors, tmp_path / "model.safetensors")
    files = open_tensors(tmp_path)
    assert files.read("h").dtype == files.read("b").dtype == np.float32 and files.read("h")[0] == 65504
    assert not files.info("ids").is_weight and files.read("ids").tolist() == [0, 1, 2]


def test_shards(tmp_path):
    files = open_tensors(sharded_folder(tmp_path))
    assert all(np.array_equal(files.read(name), wanted) for name, wanted in TENSORS.items())
    assert files.info("c.bias").file == "model-00002-of-00002.safetensors"
    assert set(open_tensors(tmp_path / "model.safetensors.index.json").infos) == set(TENSORS)


def with_index(folder, **changes):
    path = folder / "model.safetensors.index.json"
    index = json.loads(path.read_text())
    index["weight_map"].update(changes)
    path.write_text(json.dumps(index))


def test_an_index_that_lies(tmp_path):
    sharded_folder(tmp_path)
    with_index(tmp_path, **{"a.weight": "model-00002-of-00002.safetensors"})
    with pytest.raises(BadInput, match="says that 'a.weight' is in model-00002.*; it is in model-00001"):
        open_tensors(tmp_path)
    with_index(tmp_path, **{"a.weight": "model-00001-of-00002.safetensors", "z": "model-00001-of-00002.safetensors"})
    with pytest.raises(BadInput, match="says that 'z' is in model-00001-of-00002.safetensors, where it is not"):
        open_tensors(tmp_path)
    with_index(tmp_path, z="../secret.safetensors")
    with pytest.raises(BadInput, match="names the file '../secret.safetensors', which is not"):
        open_tensors(tmp_path)
    with_index(tmp_path, z="model-00009-of-00002.safetensors")
    with pytest.raises(BadInput, match="1 of the 3 shards .* are missing, the first is model-00009"):
        open_tensors(tmp_path)
    (tmp_path / "model.safetensors.index.json").write_text('{"weight_map": {"a": {"file": "b"}}}')
    with pytest.raises(BadInput, match="not an index of shards"):
        open_tensors(tmp_path)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "last.ckpt", "weights.pkl"])
def test_pickles_are_never_opened(tmp_path, name):
    (tmp_path / name).write_bytes(b"cos\nsystem\n(S'touch owned'\ntR.")
    for place in (tmp_path, tmp_path / name):
        with pytest.raises(BadInput, match=r"may run code when it is opened.*safetensors") as problem:
            open_tensors(place)
        assert "\n" not in str(problem.value)
    assert not (tmp_path / "owned").exists()


def test_places_without_weights(tmp_path):
    for make, sentence in (
        (lambda: tmp_path / "nowhere", "does not exist"),
        (lambda: tmp_path, "holds no weights"),
    ):
        with pytest.raises(BadInput, match=sentence):
            open_tensors(make())
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(BadInput, match=r"is no .safetensors, .gguf or .onnx file"):
        open_tensors(tmp_path / "notes.txt")
    for name in ("a.safetensors", "b.safetensors"):
        (tmp_path / name).write_bytes(safetensors_file(tmp_path).read_bytes())
        (tmp_path / "model.safetensors").unlink()
    with pytest.raises(
        BadInput, match="has 2 files of weights and no .*; name one of them: a.safetensors, b.safetensors"
    ):
        open_tensors(tmp_path)
    assert set(open_tensors(tmp_path / "a.safetensors").infos) == set(TENSORS)


@pytest.mark.parametrize("config", ["[1]", "{", '{"a": NaN}', '{"a": 1, "a": 2}'])
def test_a_config_that_is_none(tmp_path, config):
    safetensors_file(tmp_path)
    (tmp_path / "config.json").write_text(config)
    with pytest.raises(BadInput, match=r"config.json is not"):
        open_tensors(tmp_path)


def test_safetensors_headers_that_lie(tmp_path):
    path = safetensors_file(tmp_path)
    raw = path.read_bytes()
    length = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8 : 8 + length])

    def written(header, tail=raw[8 + length :]):
        text = json.dumps(header).encode()
        path.write_bytes(struct.pack("<Q", len(text)) + text + tail)

    overlap = {**header, "c.bias": {**header["c.bias"], "data_offsets": header["b.weight"]["data_offsets"]}}
    large = {**header, "c.bias": {**header["c.bias"], "shape": [2**40]}}
    odd = {**header, "c.bias": {**header["c.bias"], "dtype": "F8_E5M2", "shape": [20]}}
    for lie in (overlap, large, {**header, "more": header["c.bias"]}):
        written(lie)
        with pytest.raises(BadInput, match="is not a safetensors file"):
            open_tensors(path)
    written(header, raw[8 + length : -3])
    with pytest.raises(BadInput, match="is not a safetensors file"):
        open_tensors(path)
    written(odd)
    with pytest.raises(BadInput, match="'c.bias' in model.safetensors is stored as F8_E5M2, which cannot be audited"):
        open_tensors(path)


def test_other_quantisations_are_refused_by_name(tmp_path):
    path = gguf_file(tmp_path)
    raw = bytearray(path.read_bytes())
    place = raw.index(b"a.weight") + 8 + 4 + 16
    raw[place : place + 4] = struct.pack("<I", 12)
    path.write_bytes(bytes(raw))
    with pytest.raises(BadInput, match="quantised as Q4_K, which is not read; convert it to F16 or Q8_0"):
        open_tensors(path)


def test_an_onnx_file_that_points_elsewhere(tmp_path):
    import onnx

    path = MAKERS["onnx"](tmp_path)
    model = onnx.load(path)
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    entry = tensor.external_data.add()
    entry.key, entry.value = "location", "/etc/passwd"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(BadInput, match="is stored in another file, which is not opened"):
        open_tensors(path)


def test_the_converting_command_does_not_repeat_the_name_of_the_file(tmp_path):
    name = "x'); print('owned').bin"
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(BadInput) as problem:
        open_tensors(tmp_path / name)
    assert str(problem.value).count("owned") == 1 and "owned" not in str(problem.value).partition("python -c")[2]


def test_the_converting_command_converts(tmp_path):
    torch = pytest.importorskip("torch")
    torch.save({"a": torch.ones(2, 3).T}, tmp_path / "m.bin")
    words = shlex.split(COMMAND.replace("OLD", str(tmp_path / "m.bin")).replace("NEW", str(tmp_path / "m")))
    subprocess.run([sys.executable, *words[1:]], check=True)
    assert np.array_equal(open_tensors(tmp_path / "m.safetensors").read("a"), np.ones((3, 2)))


def test_a_name_that_stands_twice_in_a_header_is_refused(tmp_path):
    """The library of the format takes the last of the two without a word."""
    entry = b'"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}'
    header = b"{" + entry + b", " + entry + b"}"
    header += b" " * (-len(header) % 8)
    path = tmp_path / "model.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
    with safe_open(str(path), "np") as handle:  # negative control
        assert list(handle.keys()) == ["a"]
    with pytest.raises(BadInput, match="the header of model.safetensors is not valid JSON: a key occurs twice"):
        open_tensors(path)


@pytest.mark.parametrize("count", [8, 40_000])
def test_a_file_that_became_shorter_is_named(tmp_path, count):
    """A small tensor is read, a large one mapped; both fail in a sentence when their bytes are gone."""
    path = tmp_path / "model.safetensors"
    save_file({"a": np.arange(count, dtype=np.float32)}, path)
    files = open_tensors(path)
    assert np.array_equal(files.read("a"), np.arange(count))  # negative control
    os.truncate(path, path.stat().st_size - 4)
    with pytest.raises(BadInput, match="has changed while it was read"):
        files.read("a")
