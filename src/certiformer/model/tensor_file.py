"""The bytes of `model.safetensors`, written without JAX.

The writer is ours because the bytes that the safetensors library writes belong to its version: tensors stand in the order
of decreasing item size, then of their names, and the header is compact JSON padded with spaces to a multiple of 8.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

# Stored type -> its name in a safetensors file.
CODES = {"float64": "F64", "float32": "F32", "bfloat16": "BF16", "uint8": "U8"}


def arrays_to_bytes(arrays: Mapping[str, Any]) -> bytes:
    """The content of `model.safetensors` for tensors that already have their stored types.

    >>> arrays_to_bytes({"readout.bias": np.zeros(1, np.float32)})[8:]
    b'{"readout.bias":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}       \\x00\\x00\\x00\\x00'
    """
    ready = {name: np.ascontiguousarray(tensor) for name, tensor in arrays.items()}
    header, data, start = {}, [], 0
    for name in sorted(ready, key=lambda name: (-ready[name].itemsize, name)):
        array = ready[name]
        code = CODES[array.dtype.name]
        header[name] = {"dtype": code, "shape": list(array.shape), "data_offsets": [start, start + array.nbytes]}
        data.append(array.astype(array.dtype.newbyteorder("<")).tobytes())
        start += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode("ascii")
    text += b" " * (-len(text) % 8)
    return b"".join([len(text).to_bytes(8, "little"), text, *data])
