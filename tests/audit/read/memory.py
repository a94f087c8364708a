"""Tensors that are in no file, for tests of what readers do with odd names, shapes and configs."""

from __future__ import annotations

import numpy as np

from certiformer.audit.files import TensorFiles, TensorInfo

STORED = {"float64": "F64", "float32": "F32", "float16": "F16", "int64": "I64"}


def in_memory(
    tensors: dict[str, np.ndarray], config: dict | None, kind: str = "safetensors", metadata: dict | None = None
):
    infos = {name: TensorInfo(array.shape, STORED[array.dtype.name], "memory") for name, array in tensors.items()}
    return TensorFiles(kind, "memory", infos, tensors.__getitem__, config, metadata or {})
