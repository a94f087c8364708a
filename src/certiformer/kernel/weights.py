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
from certiformer.kernel.files import MAX_NUMBERS, parse_json

FORMAT = "certiformer-model-1"
MAX_LOOPS = 1_000
DTYPES = {"float64": "F64", "float32": "F32", "bfloat16": "BF16"}

# A rule is a tuple of allowed values, the smallest allowed integer, or the type of a part that has rules of its own.
_FLAG = (True, False)
_PART = (dict, type(None))
_TOP = {
    "format": (FORMAT,), "dtype": tuple(DTYPES), "input": dict, "width": 1, "registers": 0, "code": dict,
    "blocks": list, "loops": 1, "readout": dict, "outputs": 1,
}  # fmt: skip
_INPUT = {"continuous": {"tokens": 1, "width": 1}, "ids": {"tokens": 1, "vocabulary": 1}}
_CODE = {
    "none": {},
    "one-hot": {"offset": 0},
    "sinusoidal": {"offset": 0, "width": 1},
    "circle": {"offset": 0, "period": 1},
    "table": {},
}
_READOUT = {"token": {"token": 0}, "register": {"token": 0}, "mean": {}, "sum": {}, "all": {}}
_BLOCK = {"attention": _PART, "ffn": _PART, "norm": _PART}
_OPTIONS = {
    "heads": list, "bias": _FLAG, "scale": ("inverse-sqrt", "unit"), "mask": ("none", "causal", "table"),
    "score_bias": ("none", "table", "toeplitz"), "residual": _FLAG,
}  # fmt: skip
_ATTENTION: dict[str, dict] = dict.fromkeys(("softmax", "hard", "nearest", "linear", "relu"), _OPTIONS)
_HEADS = {"count": 1, "key": 1, "value": 1}
_FFN: dict[str, dict] = dict.fromkeys(("relu", "gelu", "identity"), {"width": 1, "residual": _FLAG})
_NORM = {"layer": {"place": ("pre", "post"), "epsilon": float}}


def check_config(config: Any) -> dict[str, Any]:
    """The configuration, if it is one that the checker's forward pass knows in every field."""
    _check(config, _TOP, "config")
    for name, kinds in (("input", _INPUT), ("code", _CODE), ("readout", _READOUT)):
        _check_kind(config[name], kinds, name)
    for b, block in enumerate(config["blocks"]):
        _check_block(block, f"blocks[{b}]")
    if config["loops"] > MAX_LOOPS:
        raise _problem(f"it applies its blocks more than {MAX_LOOPS} times, which would not end")
    tokens, code = config["input"]["tokens"], config["code"]
    needed = {"one-hot": tokens, "circle": 2}.get(code["kind"], code.get("width", 0))
    if code.get("offset", 0) + needed > config["width"]:
        raise _problem("the position code does not fit into the width")
    rows = config["registers"] if config["readout"]["kind"] == "register" else tokens
    if config["readout"].get("token", 0) >= rows:
        raise _problem("the read-out token does not exist")
    return config


def _check_block(block: Any, name: str) -> None:
    _check(block, _BLOCK, name)
    for part, kinds in (("attention", _ATTENTION), ("ffn", _FFN), ("norm", _NORM)):
        if block[part] is not None:
            _check_kind(block[part], kinds, f"{name}.{part}")
    if block["attention"] is not None:
        if not block["attention"]["heads"]:
            raise _problem(f"{name}.attention has no heads")
        for group in block["attention"]["heads"]:
            _check(group, _HEADS, f"a group of heads of {name}")
    if block["norm"] is not None and not 0 < block["norm"]["epsilon"] < 1:
        raise _problem("the epsilon of a norm is not a number between 0 and 1")


def _check_kind(data: dict[str, Any], kinds: dict[str, dict], name: str) -> None:
    kind = data.get("kind")
    if type(kind) is not str or kind not in kinds:
        raise _problem(f"{name} has the unknown kind {str(kind)[:40]!r}")
    _check(data, {"kind": (kind,), **kinds[kind]}, name)


def _check(data: Any, rules: dict[str, Any], name: str) -> None:
    if not isinstance(data, dict) or set(data) != set(rules):
        raise _problem(f"{name} does not have exactly the entries {', '.join(sorted(rules))}")
    for key, rule in rules.items():
        if not _fits(data[key], rule):
            raise _problem(f"{name}.{key} is {str(data[key])[:40]!r}")


def _fits(value: Any, rule: Any) -> bool:
    if type(rule) is int:
        return type(value) is int and value >= rule
    if rule is _PART or type(rule) is type:
        return isinstance(value, rule)
    return any(type(value) is type(choice) and value == choice for choice in rule)


def _problem(reason: str) -> BadInput:
    return BadInput(f"config.json is not a transformer that the checker can read: {reason}")


def expected_shapes(config: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """The name and shape of every tensor that a configuration calls for."""
    n, d = config["input"]["tokens"], config["width"]
    total = n + config["registers"]
    shapes: dict[str, tuple[int, ...]] = {}
    if config["input"]["kind"] == "continuous":
        shapes |= {"embed.weight": (config["input"]["width"], d), "embed.bias": (d,)}
    else:
        shapes["embed.weight"] = (config["input"]["vocabulary"], d)
    if config["registers"]:
        shapes["registers"] = (config["registers"], d)
    if config["code"]["kind"] == "table":
        shapes["code.table"] = (n, d)
    for b, block in enumerate(config["blocks"]):
        shapes |= _block_shapes(f"blocks.{b}", block, d, total)
    return shapes | {"readout.weight": (d, config["outputs"]), "readout.bias": (config["outputs"],)}


def _block_shapes(prefix: str, block: dict[str, Any], d: int, total: int) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {}
    attention, ffn, norm = block["attention"], block["ffn"], block["norm"]
    if attention is not None:
        for g, group in enumerate(attention["heads"]):
            name, count, key, value = f"{prefix}.attention.groups.{g}", group["count"], group["key"], group["value"]
            shapes |= {f"{name}.query": (count, d, key), f"{name}.key": (count, d, key)}
            shapes |= {f"{name}.value": (count, d, value), f"{name}.output": (count, value, d)}
            if attention["bias"]:
                shapes |= {f"{name}.query_bias": (count, key), f"{name}.key_bias": (count, key)}
                shapes[f"{name}.value_bias"] = (count, value)
            if attention["score_bias"] != "none":
                last = (total, total) if attention["score_bias"] == "table" else (2 * total - 1,)
                shapes[f"{name}.score_bias"] = (count, *last)
        if attention["bias"]:
            shapes[f"{prefix}.attention.output_bias"] = (d,)
        if attention["mask"] == "table":
            shapes[f"{prefix}.attention.mask"] = (total, total)
    if ffn is not None:
        m = ffn["width"]
        shapes |= {f"{prefix}.ffn.up": (d, m), f"{prefix}.ffn.up_bias": (m,)}
        shapes |= {f"{prefix}.ffn.down": (m, d), f"{prefix}.ffn.down_bias": (d,)}
    for part, present in (("attention", attention), ("ffn", ffn)):
        if norm is not None and present is not None:
            shapes |= {f"{prefix}.norm.{part}.scale": (d,), f"{prefix}.norm.{part}.shift": (d,)}
    return shapes


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
