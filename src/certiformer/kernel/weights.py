"""The checker's own reader of a stored transformer: `config.json` and `model.safetensors`.

Nothing of `certiformer.model` is used. The safetensors format is a little-endian length, a JSON header with dtype,
shape and byte range of every tensor, and the raw bytes; it is read here with the standard library. Every number becomes
an exact ball. Shapes and names must be exactly those that the configuration calls for.
"""

from __future__ import annotations

import array
import math
import struct
import sys
from dataclasses import dataclass
from typing import Any

from flint import arb, arb_mat

from certiformer.errors import BadInput
from certiformer.kernel.files import MAX_NUMBERS, parse_json
from certiformer.kernel.weights import DTYPES, check_config, expected_shapes

_WIDTHS = {"F64": 8, "F32": 4, "BF16": 2, "U8": 1}
MAX_AXES = 8


@dataclass(frozen=True)
class Tensor:
    """A stored array: shape and exact Python numbers in row-major order; `dtype` is how they were stored."""

    shape: tuple[int, ...]
    data: list[float]
    dtype: str = "F64"

    def matrix(self, *lead: int) -> arb_mat:
        """The last two axes as a ball matrix, at the given leading indices."""
        rows, columns = self.shape[-2:]
        start = _offset(self.shape, lead)
        return arb_mat(rows, columns, [arb(v) for v in self.data[start : start + rows * columns]])

    def row(self, *lead: int) -> list[arb]:
        """The last axis as exact balls, at the given leading indices."""
        start = _offset(self.shape, lead)
        return [arb(v) for v in self.data[start : start + self.shape[-1]]]

    def at(self, *index: int) -> float:
        return self.data[_offset(self.shape, index)]


def _offset(shape: tuple[int, ...], lead: tuple[int, ...]) -> int:
    offset = 0
    for size, index in zip(shape, lead, strict=False):
        offset = offset * size + index
    return offset * math.prod(shape[len(lead) :])


def read_tensors(data: bytes) -> dict[str, Tensor]:
    """Every tensor of a safetensors file; truncated, overlapping or non-finite content is refused."""
    if len(data) < 8:
        raise BadInput("model.safetensors is truncated: it has no header")
    (size,) = struct.unpack("<Q", data[:8])
    if size > len(data) - 8:
        raise BadInput("model.safetensors is truncated: its header is longer than the file")
    header = parse_json(data[8 : 8 + size], "the header of model.safetensors")
    if not isinstance(header, dict):
        raise BadInput("model.safetensors has a header that is not a JSON object")
    _require_few_numbers(header)
    body, ranges, tensors = memoryview(data)[8 + size :], [], {}
    for name, entry in header.items():
        if name != "__metadata__":
            tensors[name], place = _read_tensor(name, entry, body)
            ranges.append(place)
    # One after the other without gaps or overlaps, as the format demands: every byte belongs to exactly one tensor.
    ends = [0, *(end for _, end in sorted(ranges))]
    if [start for start, _ in sorted(ranges)] != ends[:-1] or ends[-1] != len(body):
        raise BadInput("model.safetensors does not hold exactly the bytes of its tensors, one after the other")
    return tensors


def _require_few_numbers(header: dict[str, Any]) -> None:
    """Before any is decoded: a number takes more room in memory than in the file."""
    count = 0
    for name, entry in header.items():
        shape = entry.get("shape") if isinstance(entry, dict) and name != "__metadata__" else None
        if isinstance(shape, list) and len(shape) <= MAX_AXES and all(type(n) is int and n >= 0 for n in shape):
            count += math.prod(shape)
    if count > MAX_NUMBERS:
        raise BadInput(f"model.safetensors holds more than {MAX_NUMBERS:,} numbers, the most that the checker reads")


def _read_tensor(name: str, entry: Any, body: memoryview) -> tuple[Tensor, tuple[int, int]]:
    try:
        if set(entry) != {"dtype", "shape", "data_offsets"} or type(entry["shape"]) is not list:
            raise ValueError
        if len(entry["shape"]) > MAX_AXES:
            raise ValueError
        width, shape, (start, end) = _WIDTHS[entry["dtype"]], tuple(entry["shape"]), entry["data_offsets"]
    except (KeyError, TypeError, ValueError):
        raise BadInput(
            f"tensor {name} of model.safetensors has a dtype, shape or range that is not supported"
        ) from None
    if any(type(n) is not int or n < 0 for n in (*shape, start, end)) or not start <= end <= len(body):
        raise BadInput(f"tensor {name} of model.safetensors lies outside the file")
    if end - start != width * math.prod(shape):
        raise BadInput(f"tensor {name} of model.safetensors has {end - start} bytes for the shape {list(shape)}")
    numbers = _decode(entry["dtype"], bytes(body[start:end]))
    if not all(map(math.isfinite, numbers)):
        raise BadInput(f"tensor {name} of model.safetensors has a weight that is not finite")
    return Tensor(shape, numbers, entry["dtype"]), (start, end)


def _decode(dtype: str, raw: bytes) -> list[float]:
    """Exact Python numbers; bfloat16 is the upper half of a float32."""
    if dtype == "U8":
        return [float(b) for b in raw]
    if dtype == "BF16":
        padded = bytearray(2 * len(raw))
        padded[2::4], padded[3::4] = raw[0::2], raw[1::2]
        raw, dtype = bytes(padded), "F32"
    numbers = array.array("d" if dtype == "F64" else "f", raw)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tolist()


def read_model(config_bytes: bytes, tensor_bytes: bytes) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Configuration and tensors of a stored model, consistent with each other."""
    config = check_config(parse_json(config_bytes, "config.json"))
    tensors = read_tensors(tensor_bytes)
    expected = expected_shapes(config)
    if set(tensors) != set(expected):
        odd = sorted(set(tensors) ^ set(expected))[0]
        raise BadInput(f"model.safetensors and config.json disagree about the tensor {odd}")
    for name, tensor in tensors.items():
        if tensor.shape != expected[name]:
            raise BadInput(f"tensor {name} has the shape {tensor.shape}, config.json calls for {expected[name]}")
        is_mask = name.endswith(".attention.mask")
        if tensor.dtype != ("U8" if is_mask else DTYPES[config["dtype"]]):
            raise BadInput(f"tensor {name} is stored as {tensor.dtype}, not in the dtype of config.json")
        if is_mask and not set(tensor.data) <= {0, 1}:
            raise BadInput(f"the mask {name} holds something besides 0 and 1")
    return config, tensors
