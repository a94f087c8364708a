"""Small valid files of every format, and what they hold."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import ml_dtypes
import numpy as np
from safetensors.numpy import save_file

from certiformer.model.tensor_file import arrays_to_bytes

RNG = np.random.default_rng(0)
TENSORS = {
    "a.weight": RNG.normal(size=(4, 32)).astype(np.float32),
    "b.weight": RNG.normal(size=(3, 2)).astype(np.float64),
    "c.bias": RNG.normal(size=(5,)).astype(np.float32),
}


def safetensors_file(folder: Path) -> Path:
    path = folder / "model.safetensors"
    path.write_bytes(arrays_to_bytes(TENSORS))
    return path


def sharded_folder(folder: Path) -> Path:
    names = list(TENSORS)
    places = {}
    for number, part in enumerate((names[:2], names[2:]), 1):
        file = f"model-0000{number}-of-00002.safetensors"
        save_file({name: TENSORS[name] for name in part}, folder / file)
        places |= dict.fromkeys(part, file)
    index = {"metadata": {"total_size": 1}, "weight_map": places}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder


def _text(text: str) -> bytes:
    return struct.pack("<Q", len(text)) + text.encode()


def gguf_file(folder: Path) -> Path:
    """Written by hand, so that the test does not depend on a library; a test compares it with one."""
    metadata = [
        _text("general.architecture") + struct.pack("<I", 8) + _text("llama"),
        _text("llama.block_count") + struct.pack("<II", 4, 2),
        _text("tokens") + struct.pack("<IIQ", 9, 8, 2) + _text("x") + _text("yy"),
        _text("scores") + struct.pack("<IIQ", 9, 6, 3) + struct.pack("<3f", 1, 2, 3),
    ]
    factor = np.float16(0.01)
    whole = np.arange(-16, 16, dtype=np.int8)
    q8 = b"".join(factor.tobytes() + whole.tobytes() for _ in range(4))
    parts = [
        ("a.weight", (4, 32), 8, q8),
        ("b.weight", (3, 2), 0, TENSORS["b.weight"].astype("<f4").tobytes()),
        ("c.bias", (5,), 30, TENSORS["c.bias"].astype(ml_dtypes.bfloat16).tobytes()),
        ("d.half", (2,), 1, np.array([1.5, -2], "<f2").tobytes()),
    ]
    head = b"GGUF" + struct.pack("<IQQ", 3, len(parts), len(metadata)) + b"".join(metadata)
    data = b""
    for name, shape, kind, raw in parts:
        head += _text(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *reversed(shape))
        head += struct.pack("<IQ", kind, len(data))
        data += raw + b"\0" * (-len(raw) % 32)
    path = folder / "model.gguf"
    path.write_bytes(head + b"\0" * (-len(head) % 32) + data)
    return path


def onnx_file(folder: Path) -> Path:
    from onnx import TensorProto, helper, numpy_helper, save

    constant = helper.make_node("Constant", [], ["b.weight"], value=numpy_helper.from_array(TENSORS["b.weight"], "b"))
    product = helper.make_node("MatMul", ["x", "a.weight"], ["y"])
    graph = helper.make_graph(
        [constant, product],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 32])],
        [
            numpy_helper.from_array(TENSORS["a.weight"], "a.weight"),
            numpy_helper.from_array(TENSORS["c.bias"], "c.bias"),
        ],
    )
    path = folder / "model.onnx"
    save(helper.make_model(graph), path)
    return path


MAKERS = {"safetensors": safetensors_file, "gguf": gguf_file, "onnx": onnx_file}
