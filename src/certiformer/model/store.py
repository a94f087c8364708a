"""Saving and loading: `model.safetensors` and `config.json` in one folder.

The same model always gives the same bytes (`tensor_file`). Reading goes through the safetensors library, which checks the
layout of the file, and never through pickle.
"""

from __future__ import annotations

import json
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import safetensors

from certiformer.disk import recover, write_atomically
from certiformer.errors import BadInput
from certiformer.model.config import Config
from certiformer.model.layout import tensor_specs
from certiformer.model.tensor_file import CODES, arrays_to_bytes
from certiformer.model.transformer import Transformer
from certiformer.reading import read_regular

TENSORS_FILE = "model.safetensors"
CONFIG_FILE = "config.json"
LARGEST_FILE = 256 << 20  # of a model that a user brings; one of a run folder is read within tighter limits


def save(model: Transformer, directory: str | Path) -> None:
    """Writes the model into `directory` (made if absent); each file appears complete or not at all."""
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    # Making the model anew checks tensors that training may have turned into NaN.
    checked = Transformer(model.config, model.tensors)
    write_atomically(folder / TENSORS_FILE, tensors_to_bytes(checked))
    write_atomically(folder / CONFIG_FILE, checked.config.to_bytes())


def load(directory: str | Path) -> Transformer:
    """Reads the model that `save` wrote; anything else is refused with one sentence."""
    folder = Path(directory)
    recover(folder)
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
    return arrays_to_bytes(model.tensors)


def _tensors(config: Config, data: bytes) -> dict[str, np.ndarray]:
    try:
        stored = safetensors.deserialize(data)
    except safetensors.SafetensorError as error:
        raise BadInput(f"this is not a complete safetensors file ({error})") from None
    specs, tensors = tensor_specs(config), {}
    for name, entry in stored:
        if name in specs and entry["dtype"] != CODES[specs[name].dtype]:
            raise BadInput(f"the tensor {name} is stored as {entry['dtype']} instead of {CODES[specs[name].dtype]}")
        # A tensor without a place is kept only so that it can be named; its numbers do not matter.
        dtype = jnp.dtype(specs[name].dtype) if name in specs else np.dtype(np.uint8)
        array = np.frombuffer(bytes(entry["data"]), dtype.newbyteorder("<")).astype(dtype)
        tensors[name] = array.reshape(entry["shape"]) if name in specs else array
    return tensors


def _read(path: Path) -> bytes:
    try:
        return read_regular(path, LARGEST_FILE, links=True)
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}") from None
