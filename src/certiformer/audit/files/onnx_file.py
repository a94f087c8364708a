"""ONNX: weights are initializers, or the values of Constant nodes; both are read, and nothing outside the file.

Names of tensors are those of the graph. A MatMul stores its matrix (in, out): which way round a tensor is, the nodes
that use it tell, and they go along.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from certiformer.audit.files.onnx_nodes import GraphFiles, bodies, nodes_of, text
from certiformer.audit.files.tensors import TensorInfo
from certiformer.errors import BadInput, MissingExtra
from certiformer.reading import read_regular

LARGEST = 2**31 - 1  # bytes; the format cannot hold more in one file
# The number of a type in the format -> its name here and its bytes.
TYPES = {
    number: (name, size)
    for number, name, size in (
        (1, "F32", 4), (2, "U8", 1), (3, "I8", 1), (4, "U16", 2), (5, "I16", 2), (6, "I32", 4), (7, "I64", 8),
        (9, "BOOL", 1), (10, "F16", 2), (11, "F64", 8), (12, "U32", 4), (13, "U64", 8), (16, "BF16", 2),
    )
}  # fmt: skip


def open_file(path: Path) -> GraphFiles:
    """The tensors of an ONNX file, and the nodes that use them."""
    try:
        import onnx
        from google.protobuf.message import DecodeError
    except ImportError:
        raise MissingExtra("reading ONNX files needs the package onnx: pip install 'certiformer[onnx]'") from None
    if path.stat().st_size > LARGEST:
        raise BadInput(f"{path} has more than 2 GiB, which an ONNX file cannot have")
    try:
        model = onnx.ModelProto.FromString(read_regular(path, LARGEST, links=True))
    except DecodeError:
        raise BadInput(f"{path} is not an ONNX file: it cannot be decoded") from None
    held: dict[str, Any] = {}
    infos: dict[str, TensorInfo] = {}
    for name, tensor in _tensors(model.graph):
        if name in infos:
            raise BadInput(f"{path} has two tensors called {name!r}")
        infos[name], held[name] = _info(name, tensor, path), tensor

    def read(name: str) -> np.ndarray:
        try:
            return onnx.numpy_helper.to_array(held[name])
        except (TypeError, ValueError) as problem:
            raise BadInput(f"the tensor {name!r} of {path.name} cannot be read: {problem}") from None

    if not infos:
        raise BadInput(f"{path} holds no weights: no initializer and no Constant")
    metadata = {entry.key: entry.value for entry in model.metadata_props}
    return GraphFiles("onnx", str(path), infos, read, None, metadata, nodes=tuple(nodes_of(model.graph)))


def _tensors(graph: Any) -> Iterator[tuple[str, Any]]:
    """Initializers and Constants, also those of the graphs inside loops and branches."""
    for body, _, _ in bodies(graph):
        for tensor in body.initializer:
            yield text(tensor.name), tensor
        for node in body.node:
            for attribute in node.attribute:
                if node.op_type == "Constant" and attribute.name == "value" and node.output:
                    yield text(node.output[0]), attribute.t


def _info(name: str, tensor: Any, path: Path) -> TensorInfo:
    if tensor.data_type not in TYPES:
        raise BadInput(
            f"the tensor {name!r} of {path.name} has the ONNX type {tensor.data_type}, which cannot be audited"
        )
    stored, size = TYPES[tensor.data_type]
    if tensor.data_location == 1 or tensor.external_data:
        raise BadInput(f"the tensor {name!r} of {path.name} is stored in another file, which is not opened")
    sides = tuple(int(side) for side in tensor.dims)
    if any(side < 0 for side in sides):
        raise BadInput(f"the tensor {name!r} of {path.name} has a negative side")
    # What is claimed must be there before anything is allocated for it.
    there = (
        len(tensor.raw_data) // size
        if tensor.raw_data
        else sum(
            len(getattr(tensor, field))
            for field in ("float_data", "int32_data", "int64_data", "double_data", "uint64_data")
        )
    )
    if prod(sides) != there:
        raise BadInput(f"the tensor {name!r} of {path.name} claims {prod(sides):,} entries and has {there:,}")
    return TensorInfo(sides, stored, path.name)
