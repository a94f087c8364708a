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

from certiformer.certificate import parse_json
from certiformer.errors import BadInput

_WIDTHS = {"F64": 8, "F32": 4, "BF16": 2, "U8": 1}
_FORMAT = "certiformer-model-1"


@dataclass(frozen=True)
class Tensor:
    """A stored array: shape and exact Python numbers in row-major order."""

    shape: tuple[int, ...]
    data: list[float]

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
    body, used, tensors = data[8 + size :], 0, {}
    for name, entry in header.items():
        if name != "__metadata__":
            tensors[name], length = _read_tensor(name, entry, body)
            used += length
    if used != len(body):
        raise BadInput("model.safetensors does not hold exactly the bytes of its tensors")
    return tensors


def _read_tensor(name: str, entry: Any, body: bytes) -> tuple[Tensor, int]:
    try:
        width, shape, (start, end) = _WIDTHS[entry["dtype"]], tuple(entry["shape"]), entry["data_offsets"]
    except (KeyError, TypeError, ValueError):
        raise BadInput(
            f"tensor {name} of model.safetensors has a dtype, shape or range that is not supported"
        ) from None
    if any(type(n) is not int or n < 0 for n in (*shape, start, end)) or not start <= end <= len(body):
        raise BadInput(f"tensor {name} of model.safetensors lies outside the file")
    if end - start != width * math.prod(shape):
        raise BadInput(f"tensor {name} of model.safetensors has {end - start} bytes for the shape {list(shape)}")
    numbers = _decode(entry["dtype"], body[start:end])
    if not all(map(math.isfinite, numbers)):
        raise BadInput(f"tensor {name} of model.safetensors has a weight that is not finite")
    return Tensor(shape, numbers), end - start


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


def check_config(config: Any) -> dict[str, Any]:
    """The configuration, if it is one that the checker's forward pass knows in every field."""
    try:
        problem = _config_problem(config)
    except (KeyError, TypeError, AttributeError, IndexError):
        problem = "a field is missing or has the wrong type"
    if problem:
        raise BadInput(f"config.json is not a transformer that the checker can read: {problem}")
    return config


def _config_problem(config: Any) -> str:
    if config["format"] != _FORMAT:
        return f"its format is {config['format']!r}, expected {_FORMAT!r}"
    if config["input"]["kind"] != "continuous":
        return "its input is not continuous"
    counts = [config["input"]["tokens"], config["input"]["width"], config["width"], config["outputs"], config["loops"]]
    if (
        any(type(n) is not int or n < 1 for n in counts)
        or type(config["registers"]) is not int
        or config["registers"] < 0
    ):
        return "a size is not a positive integer"
    if config["code"]["kind"] not in ("none", "one-hot", "sinusoidal", "circle", "table"):
        return f"unknown code {config['code']['kind']!r}"
    if config["readout"]["kind"] not in ("token", "mean", "sum", "all"):
        return f"unknown read-out {config['readout']['kind']!r}"
    if config["readout"]["kind"] == "token" and not 0 <= config["readout"]["token"] < config["input"]["tokens"]:
        return "the read-out token does not exist"
    for block in config["blocks"]:
        problem = _block_problem(block)
        if problem:
            return problem
    return ""


def _block_problem(block: dict[str, Any]) -> str:
    attention, ffn, norm = block["attention"], block["ffn"], block["norm"]
    choices = []
    if attention is not None:
        choices += [(attention["kind"], ("softmax", "hard", "linear")), (attention["scale"], ("inverse-sqrt", "unit"))]
        choices += [(attention["mask"], ("none", "causal", "table"))]
        choices += [(attention["score_bias"], ("none", "table", "toeplitz"))]
        choices += [(attention["bias"], (True, False)), (attention["residual"], (True, False))]
        if any(type(g[n]) is not int or g[n] < 1 for g in attention["heads"] for n in ("count", "key", "value")):
            return "a head has a size that is not a positive integer"
    if ffn is not None:
        choices += [(ffn["kind"], ("relu", "gelu", "identity")), (ffn["residual"], (True, False))]
    if norm is not None:
        choices += [(norm["kind"], ("layer",)), (norm["place"], ("pre", "post"))]
        if type(norm["epsilon"]) is not float or not 0 < norm["epsilon"] < 1:
            return "the epsilon of a norm is not a number between 0 and 1"
    unknown = [str(value) for value, allowed in choices if value not in allowed]
    return f"unknown option {unknown[0]!r}" if unknown else ""


def expected_shapes(config: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """The name and shape of every tensor that a configuration calls for."""
    n, d_in, d = config["input"]["tokens"], config["input"]["width"], config["width"]
    total = n + config["registers"]
    shapes: dict[str, tuple[int, ...]] = {"embed.weight": (d_in, d), "embed.bias": (d,)}
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
    return config, tensors
