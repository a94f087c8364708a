"""A stored transformer, read strictly: `config.json` and `model.safetensors`.

Every entry of the configuration must be one that is known here, of the right type and in range: an entry that was skipped
could change the transformer's meaning elsewhere without the checker noticing. The safetensors format is a little-endian
length, a JSON header with dtype, shape and byte range of every tensor, and the raw bytes. Every number becomes an exact
ball. Shapes and names must be exactly those that the configuration calls for.
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
from certiformer.kernel.files import MAX_NUMBERS, entries, parse_json

FORMAT = "certiformer-model-1"
MAX_LOOPS = 1_000
DTYPES = {"float64": "F64", "float32": "F32", "bfloat16": "BF16"}

_WHOLE = "config.json is not a transformer that the checker can read"
# The rules of `files.entries`. Parts with a `kind` have entries of their own for each kind.
_FLAG, _PART = (True, False), (dict, type(None))
_TOP = {
    "format": (FORMAT,), "dtype": tuple(DTYPES), "input": dict, "width": 1, "registers": 0, "code": dict,
    "blocks": list, "loops": lambda n: type(n) is int and 1 <= n <= MAX_LOOPS, "readout": dict, "outputs": 1,
}  # fmt: skip
_KINDS: dict[str, dict[str, dict[str, Any]]] = {
    "input": {"continuous": {"tokens": 1, "width": 1}, "ids": {"tokens": 1, "vocabulary": 1}},
    "code": {
        "none": {}, "one-hot": {"offset": 0}, "sinusoidal": {"offset": 0, "width": 1},
        "circle": {"offset": 0, "period": 1}, "table": {},
    },
    "readout": {"token": {"token": 0}, "register": {"token": 0}, "mean": {}, "sum": {}, "all": {}},
    "attention": dict.fromkeys(("softmax", "hard", "nearest", "linear", "relu"), {
        "heads": lambda heads: type(heads) is list and heads, "bias": _FLAG, "scale": ("inverse-sqrt", "unit"),
        "mask": ("none", "causal", "table"), "score_bias": ("none", "table", "toeplitz"), "residual": _FLAG,
    }),
    "ffn": dict.fromkeys(("relu", "gelu", "identity"), {"width": 1, "residual": _FLAG}),
    "norm": {"layer": {"place": ("pre", "post"), "epsilon": lambda number: type(number) is float and 0 < number < 1}},
}  # fmt: skip


def check_config(config: Any) -> dict[str, Any]:
    """The configuration, if it is one that the checker's forward pass knows in every field."""
    _read(config, _TOP, "config")
    for part in ("input", "code", "readout"):
        _read_kind(config[part], part)
    for block in config["blocks"]:
        _read(block, dict.fromkeys(("attention", "ffn", "norm"), _PART), "a block")
        for part, data in block.items():
            if data is not None:
                _read_kind(data, part)
        for group in block["attention"]["heads"] if block["attention"] else ():
            _read(group, {"count": 1, "key": 1, "value": 1}, "a group of heads")
    tokens, code = config["input"]["tokens"], config["code"]
    needed = {"one-hot": tokens, "circle": 2}.get(code["kind"], code.get("width", 0))
    if code.get("offset", 0) + needed > config["width"]:
        raise BadInput(f"{_WHOLE}: the position code does not fit into the width")
    rows = config["registers"] if config["readout"]["kind"] == "register" else tokens
    if config["readout"].get("token", 0) >= rows:
        raise BadInput(f"{_WHOLE}: the read-out token does not exist")
    return config


def _read(data: Any, rules: dict[str, Any], part: str) -> None:
    entries(data, rules, f"{_WHOLE}: {part}")


def _read_kind(data: dict[str, Any], part: str) -> None:
    kind = data.get("kind")
    if type(kind) is not str or kind not in _KINDS[part]:
        raise BadInput(f"{_WHOLE}: {part} has the unknown kind {str(kind)[:40]!r}")
    _read(data, {"kind": (kind,), **_KINDS[part][kind]}, part)


def expected_shapes(config: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """The name and shape of every tensor that a configuration calls for."""
    n, d, source = config["input"]["tokens"], config["width"], config["input"]
    shapes: dict[str, tuple[int, ...]] = {}
    if source["kind"] == "continuous":
        shapes |= {"embed.weight": (source["width"], d), "embed.bias": (d,)}
    else:
        shapes["embed.weight"] = (source["vocabulary"], d)
    if config["registers"]:
        shapes["registers"] = (config["registers"], d)
    if config["code"]["kind"] == "table":
        shapes["code.table"] = (n, d)
    for b, block in enumerate(config["blocks"]):
        shapes |= {f"blocks.{b}.{name}": shape for name, shape in _block_shapes(block, d, n + config["registers"])}
    return shapes | {"readout.weight": (d, config["outputs"]), "readout.bias": (config["outputs"],)}


def _block_shapes(block: dict[str, Any], d: int, total: int) -> list[tuple[str, tuple[int, ...]]]:
    shapes: dict[str, tuple[int, ...]] = {}
    attention, ffn = block["attention"], block["ffn"]
    for g, group in enumerate(attention["heads"] if attention else ()):
        name, count, key, value = f"attention.groups.{g}", group["count"], group["key"], group["value"]
        shapes |= {f"{name}.query": (count, d, key), f"{name}.key": (count, d, key)}
        shapes |= {f"{name}.value": (count, d, value), f"{name}.output": (count, value, d)}
        if attention["bias"]:
            shapes |= {f"{name}.query_bias": (count, key), f"{name}.key_bias": (count, key)}
            shapes[f"{name}.value_bias"] = (count, value)
        if attention["score_bias"] != "none":
            last = (total, total) if attention["score_bias"] == "table" else (2 * total - 1,)
            shapes[f"{name}.score_bias"] = (count, *last)
    if attention and attention["bias"]:
        shapes["attention.output_bias"] = (d,)
    if attention and attention["mask"] == "table":
        shapes["attention.mask"] = (total, total)
    if ffn:
        m = ffn["width"]
        shapes |= {"ffn.up": (d, m), "ffn.up_bias": (m,), "ffn.down": (m, d), "ffn.down_bias": (d,)}
    for part in ("attention", "ffn"):
        if block["norm"] and block[part]:
            shapes |= {f"norm.{part}.scale": (d,), f"norm.{part}.shift": (d,)}
    return list(shapes.items())


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
    (size,) = struct.unpack("<Q", data[:8]) if len(data) >= 8 else (0,)
    if not 0 < size <= len(data) - 8:
        raise BadInput("model.safetensors is truncated: its header is missing or longer than the file")
    header = parse_json(data[8 : 8 + size], "the header of model.safetensors")
    if type(header) is not dict:
        raise BadInput("model.safetensors has a header that is not a JSON object")
    header.pop("__metadata__", None)
    rules = {
        "dtype": tuple(_WIDTHS),
        "shape": _are_sizes,
        "data_offsets": lambda ends: _are_sizes(ends) and len(ends) == 2,
    }
    for name, entry in header.items():
        entries(entry, rules, f"tensor {name} of model.safetensors")
    # Before any is decoded: a number takes more room in memory than in the file.
    if sum(math.prod(entry["shape"]) for entry in header.values()) > MAX_NUMBERS:
        raise BadInput(f"model.safetensors holds more than {MAX_NUMBERS:,} numbers, the most that the checker reads")
    body = data[8 + size :]
    # One after the other without gaps or overlaps, as the format demands: every byte belongs to exactly one tensor.
    ranges = sorted(entry["data_offsets"] for entry in header.values())
    ends = [0, *(end for _, end in ranges)]
    if [start for start, _ in ranges] != ends[:-1] or ends[-1] != len(body):
        raise BadInput("model.safetensors does not hold exactly the bytes of its tensors, one after the other")
    return {name: _tensor(name, entry, body) for name, entry in header.items()}


def _are_sizes(numbers: Any) -> bool:
    return type(numbers) is list and len(numbers) <= MAX_AXES and all(type(n) is int and n >= 0 for n in numbers)


def _tensor(name: str, entry: dict[str, Any], body: bytes) -> Tensor:
    dtype, shape, (start, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
    if end - start != _WIDTHS[dtype] * math.prod(shape):
        raise BadInput(f"tensor {name} of model.safetensors has {end - start} bytes for the shape {shape}")
    numbers = _decode(dtype, body[start:end])
    if not all(map(math.isfinite, numbers)):
        raise BadInput(f"tensor {name} of model.safetensors has a weight that is not finite")
    return Tensor(tuple(shape), numbers, dtype)


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
    tensors, expected = read_tensors(tensor_bytes), expected_shapes(config)
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
