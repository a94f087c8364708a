"""A safetensors file with notes in its header, in an order that is always the same."""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np
import safetensors.numpy


def tensors_with_notes(arrays: Mapping[str, np.ndarray], notes: Mapping[str, str]) -> bytes:
    """The content of the file; readers of the Hugging Face libraries insist on the entry `format`.

    >>> tensors_with_notes({"a": np.zeros(1, np.float32)}, {"claim": "so"})[8:40]
    b'{"__metadata__":{"format":"pt","'
    """
    data = safetensors.numpy.save(dict(arrays))
    start = 8 + int.from_bytes(data[:8], "little")
    about = {"format": "pt", **dict(sorted(notes.items()))}
    header = json.dumps({"__metadata__": about, **json.loads(data[8:start])}, separators=(",", ":")).encode("ascii")
    header += b" " * (-len(header) % 8)
    return b"".join([len(header).to_bytes(8, "little"), header, data[start:]])
