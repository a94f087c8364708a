"""Saving and loading: `model.safetensors` and `config.json` in one folder.

The same model always gives the same bytes. The writer is ours because the bytes that the safetensors library writes
belong to its version: tensors stand in the order of decreasing item size, then of their names, and the header is
compact JSON padded with spaces to a multiple of 8. Reading goes through the library, which checks the layout of the
file, and never through pickle.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import safetensors

from certiformer.errors import BadInput
from certiformer.model.config import Config
from certiformer.model.layout import tensor_specs
from certiformer.model.transformer import Transformer

TENSORS_FILE = "model.safetensors"
CONFIG_FILE = "config.json"

# Stored type -> its name in a safetensors file.
_CODES = {"float64": "F64", "float32": "F32", "bfloat16": "BF16", "uint8": "U8"}


def save(model: Transformer, directory: str | Path) -> None:
    """Writes the model into `directory` (made if absent); each file appears complete or not at all."""
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    # Making the model anew checks tensors that training may have turned into NaN.
    checked = Transformer(model.config, model.tensors)
    _write(folder / TENSORS_FILE, tensors_to_bytes(checked))
    _write(folder / CONFIG_FILE, checked.config.to_bytes())


def load(directory: str | Path) -> Transformer:
    """Reads the model that `save` wrote; anything else is refused with one sentence."""
    folder = Path(directory)
    return from_bytes(_read(folder / CONFIG_FILE), _read(folder / TENSORS_FILE), folder)


def from_bytes(config_bytes: bytes, tensor_bytes: bytes, folder: Path = Path()) -> Transformer:
    """The model whose two files have this content; `folder` appears in error messages only."""
    try:
        config = Config.from_json(json.loads(config_bytes))
    except BadInput as error:
        raise BadInput(f"{folder / CONFIG_FILE}: {error}") from None
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{folder / CONFIG_FILE} is not JSON: {error}") from None
    try:
        return Transformer(config, _tensors(config, tensor_bytes))
    except BadInput as error:
        raise BadInput(f"{folder / TENSORS_FILE}: {error}") from None


def tensors_to_bytes(model: Transformer) -> bytes:
    """The content of `model.safetensors`."""
    arrays = {name: np.ascontiguousarray(tensor) for name, tensor in model.tensors.items()}
    header, data, start = {}, [], 0
    for name in sorted(arrays, key=lambda name: (-arrays[name].itemsize, name)):
        array = arrays[name]
        code = _CODES[array.dtype.name]
        header[name] = {"dtype": code, "shape": list(array.shape), "data_offsets": [start, start + array.nbytes]}
        data.append(array.astype(array.dtype.newbyteorder("<")).tobytes())
        start += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode("ascii")
    text += b" " * (-len(text) % 8)
    return b"".join([len(text).to_bytes(8, "little"), text, *data])


def _tensors(config: Config, data: bytes) -> dict[str, np.ndarray]:
    try:
        stored = safetensors.deserialize(data)
    except safetensors.SafetensorError as error:
        raise BadInput(f"this is not a complete safetensors file ({error})") from None
    specs, tensors = tensor_specs(config), {}
    for name, entry in stored:
        if name in specs and entry["dtype"] != _CODES[specs[name].dtype]:
            raise BadInput(f"the tensor {name} is stored as {entry['dtype']} instead of {_CODES[specs[name].dtype]}")
        # A tensor without a place is kept only so that it can be named; its numbers do not matter.
        dtype = jnp.dtype(specs[name].dtype) if name in specs else np.dtype(np.uint8)
        array = np.frombuffer(bytes(entry["data"]), dtype.newbyteorder("<")).astype(dtype)
        tensors[name] = array.reshape(entry["shape"]) if name in specs else array
    return tensors


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}") from None


def _write(path: Path, data: bytes) -> None:
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
