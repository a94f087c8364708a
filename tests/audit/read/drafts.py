"""Small checkpoints that are about to be written: tensors, a config or metadata, and what is said besides them.

A draft can be changed before it is written, and says itself what a right reading of it would be: the maps of every head,
by the rules of `synthetic`, as long as nothing that these rules use was changed."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401 (gives NumPy the type bfloat16)
import numpy as np

from audit.read.synthetic import Full, Synthetic
from audit.read.test_contract import MADE
from audit.read.test_gguf_names import CASES, converted
from audit.read.test_own import made as own_model
from certiformer.audit.read.settings import HEAD_SIZE, HEADS, KEY_VALUE_HEADS

STORED = {
    "float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "int64": "I64", "int8": "I8", "bool": "BOOL",
}  # fmt: skip
GGUF_TYPES = {"float32": 0, "float16": 1, "int8": 24, "int64": 27, "float64": 28, "bfloat16": 30}
SAID_ABOUT_HEADS = (*HEADS, *KEY_VALUE_HEADS, *HEAD_SIZE, "text_config", "multi_query", "new_decoder_architecture")


@dataclass
class Draft:
    """One checkpoint; `made` says what its tensors mean (None: nobody does), `prefix` what was put before their names."""

    tensors: dict[str, np.ndarray]
    config: Any = None
    kind: str = "safetensors"
    metadata: dict[str, Any] = field(default_factory=dict)
    given: dict[str, Any] = field(default_factory=dict)
    made: Synthetic | None = None
    prefix: str = ""

    def maps(self) -> list[Full] | None:
        """The attentions that a reader must find; None where too much was changed to say."""
        if self.made is None or self.kind != "safetensors" or not isinstance(self.config, (dict, type(None))):
            return None
        said = self.config or {}
        if any(said.get(key) != self.made.config.get(key) for key in SAID_ABOUT_HEADS) or self.given != self.made.given:
            return None
        plain = {
            name.removeprefix(self.prefix): np.asarray(array, np.float64)
            for name, array in self.tensors.items()
            if name.startswith(self.prefix)
        }
        if any(plain[name].shape != shape for name, shape in self.made.shapes.items() if name in plain):
            return None
        try:
            return self.made.full(plain)
        except KeyError:
            return None

    def write(self, folder: Path) -> Path:
        """The file as a library would write it, in the order of `tensors`."""
        folder.mkdir(parents=True, exist_ok=True)
        if self.kind == "gguf":
            (folder / "model.gguf").write_bytes(gguf(self.tensors, self.metadata))
            return folder / "model.gguf"
        (folder / "model.safetensors").write_bytes(safetensors(self.tensors))
        (folder / "config.json").unlink(missing_ok=True)
        if self.config is not None:
            (folder / "config.json").write_text(json.dumps(self.config))
        return folder


def safetensors(tensors: dict[str, np.ndarray]) -> bytes:
    header, data, start = {}, [], 0
    for name, array in tensors.items():
        raw = np.ascontiguousarray(array).tobytes()
        place = [start, start + len(raw)]
        header[name] = {"dtype": STORED[array.dtype.name], "shape": list(array.shape), "data_offsets": place}
        data.append(raw)
        start += len(raw)
    text = json.dumps(header).encode()
    return b"".join([len(text).to_bytes(8, "little"), text, *data])


def gguf(tensors: dict[str, np.ndarray], metadata: dict[str, Any]) -> bytes:
    head = [b"GGUF", struct.pack("<IQQ", 3, len(tensors), len(metadata))]
    head += [_text(key) + _value(value) for key, value in metadata.items()]
    data: list[bytes] = []
    start = 0
    for name, array in tensors.items():
        array = array.astype(np.int8) if array.dtype == bool else array
        raw = np.ascontiguousarray(array).tobytes()
        raw += bytes(-len(raw) % 32)
        head.append(_text(name) + struct.pack("<I", array.ndim) + struct.pack(f"<{array.ndim}Q", *array.shape[::-1]))
        head.append(struct.pack("<IQ", GGUF_TYPES[array.dtype.name], start))
        data.append(raw)
        start += len(raw)
    front = b"".join(head)
    return b"".join([front, bytes(-len(front) % 32), *data])


def _text(text: str) -> bytes:
    raw = text.encode("utf-8", "replace")
    return struct.pack("<Q", len(raw)) + raw


def _value(value: Any) -> bytes:
    """A number, a text or a list of numbers as metadata; what GGUF cannot say is said as a text."""
    if isinstance(value, bool):
        return struct.pack("<I?", 7, value)
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return struct.pack("<Iq", 11, value)
    if isinstance(value, float):
        return struct.pack("<Id", 12, value)
    if isinstance(value, list) and all(type(each) is int and abs(each) < 2**63 for each in value):
        return struct.pack("<IIQ", 9, 11, len(value)) + struct.pack(f"<{len(value)}q", *value)
    return struct.pack("<I", 8) + _text(str(value))


def _synthetic(make: Callable[[], Synthetic]) -> Callable[[], Draft]:
    def draft() -> Draft:
        made = make()
        return Draft(made.tensors(), dict(made.config), given=dict(made.given), made=made)

    return draft


def _converted(name: str) -> Callable[[], Draft]:
    def draft() -> Draft:
        make, words = CASES[name]
        files = converted(name.removesuffix("-multi-query"), make(), words)
        # Converters write single precision.
        tensors = {key: files.read(key).astype(np.float32) for key in files.infos}
        return Draft(tensors, None, "gguf", dict(files.metadata))

    return draft


def _own() -> Draft:
    model = own_model(score_bias="toeplitz")
    tensors = {name: np.asarray(tensor) for name, tensor in model.tensors.items()}
    return Draft(tensors, json.loads(model.config.to_bytes()))


def _parametrised(ends: tuple[str, ...]) -> Callable[[], Draft]:
    """BERT with one map that is stored as the parameters of a weight norm or of a spectral norm."""

    def draft() -> Draft:
        draft = _synthetic(MADE["bert-bare"])()
        place, rng = "encoder.layer.0.intermediate.dense.", np.random.default_rng(3)
        weight = draft.tensors.pop(f"{place}weight")
        parts = (
            [weight, np.ones((len(weight), 1))]
            if len(ends) == 2
            else [weight, *map(rng.normal, (0, 0), (1, 1), weight.shape)]
        )
        draft.tensors |= {place + end: part for end, part in zip(ends, parts, strict=True)}
        return draft

    return draft


# Every family, as libraries write it, as converters to GGUF do, and in the parametrised forms of torch.
BASES: dict[str, Callable[[], Draft]] = {
    **{name: _synthetic(make) for name, make in MADE.items()},
    **{f"gguf-{name}": _converted(name) for name in CASES},
    "own": _own,
    "weight-norm-old": _parametrised(("weight_v", "weight_g")),
    "weight-norm": _parametrised(("parametrizations.weight.original1", "parametrizations.weight.original0")),
    "spectral-norm-old": _parametrised(("weight_orig", "weight_u", "weight_v")),
    "spectral-norm": _parametrised(tuple(f"parametrizations.weight.{end}" for end in ("original", "0._u", "0._v"))),
}
