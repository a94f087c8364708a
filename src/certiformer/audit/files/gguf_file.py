"""GGUF: typed metadata, then tensors, memory-mapped; F32, F16, BF16 and Q8_0 are read, other quantisations refused by
name.

The stored list of sides is reversed: a matrix (out, in) is listed as [in, out]. A block of Q8_0 is a half-precision
factor and 32 signed bytes. What is said about the numbers of a quantised file holds for the quantised model, not for
its parent.

Every count and length is compared with what is left of the file before anything is allocated.
"""

from __future__ import annotations

import mmap
import struct
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from certiformer.audit.files.tensors import TensorFiles, TensorInfo
from certiformer.errors import BadInput
from certiformer.reading import require_regular

MAGIC, VERSIONS = b"GGUF", (2, 3)
BLOCK = 32
# Number -> name; the names of the format, for what is read and for what is refused.
TYPES = dict(
    enumerate(
        [
            "F32",
            "F16",
            "Q4_0",
            "Q4_1",
            "Q4_2",
            "Q4_3",
            "Q5_0",
            "Q5_1",
            "Q8_0",
            "Q8_1",
            "Q2_K",
            "Q3_K",
            "Q4_K",
            "Q5_K",
            "Q6_K",
            "Q8_K",
            "IQ2_XXS",
            "IQ2_XS",
            "IQ3_XXS",
            "IQ1_S",
            "IQ4_NL",
            "IQ3_S",
            "IQ2_S",
            "IQ4_XS",
            "I8",
            "I16",
            "I32",
            "I64",
            "F64",
            "IQ1_M",
            "BF16",
            "Q4_0_4_4",
            "Q4_0_4_8",
            "Q4_0_8_8",
            "TQ1_0",
            "TQ2_0",
            "IQ4_NL_4_4",
            "IQ4_NL_4_8",
            "IQ4_NL_8_8",
            "MXFP4",
        ]
    )
)
SIZES = {"F32": 4, "F16": 2, "BF16": 2, "F64": 8, "I8": 1, "I16": 2, "I32": 4, "I64": 8}
PLAIN = {
    "F32": np.dtype("<f4"), "F16": np.dtype("<f2"), "F64": np.dtype("<f8"), "I8": np.dtype("<i1"), "I16": np.dtype("<i2"),
    "I32": np.dtype("<i4"), "I64": np.dtype("<i8"),
}  # fmt: skip
SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
TEXT, ARRAY = 8, 9
KEPT = 64  # entries of a metadata array that are kept: vocabularies are long and not needed


def open_file(path: Path) -> TensorFiles:
    """The tensors of a GGUF file."""
    require_regular(path)
    with path.open("rb") as stream:
        size = stream.seek(0, 2)
        if size < 24:
            raise BadInput(f"{path} is not a GGUF file: it has {size} bytes")
        data = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    cursor = _Cursor(data, path)
    if cursor.take(4) != MAGIC:
        raise BadInput(f"{path} is not a GGUF file: it does not begin with GGUF")
    version, tensors, entries = cursor.number("<I"), cursor.number("<Q"), cursor.number("<Q")
    if version not in VERSIONS:
        raise BadInput(f"{path} has version {version} of GGUF; versions 2 and 3 are read")
    metadata = {}
    for _ in range(cursor.fits(entries, 13, "metadata entries")):
        key = cursor.text()
        metadata[key] = cursor.value(cursor.number("<I"), depth=0)
    places: dict[str, tuple[TensorInfo, int]] = {}
    for _ in range(cursor.fits(tensors, 24, "tensors")):
        name = cursor.text()
        sides = tuple(cursor.number("<Q") for _ in range(cursor.fits(cursor.number("<I"), 8, "sides")))
        kind, offset = cursor.number("<I"), cursor.number("<Q")
        if name in places:
            raise BadInput(f"{path} has two tensors called {name!r}")
        stored = TYPES.get(kind, f"type {kind}")
        places[name] = TensorInfo(tuple(reversed(sides)), stored, path.name), offset
    return _tensors(path, data, cursor, metadata, places)


def _tensors(path: Path, data: mmap.mmap, cursor: _Cursor, metadata: dict, places: dict) -> TensorFiles:
    alignment = metadata.get("general.alignment", 32)
    if type(alignment) is not int or not 1 <= alignment <= 1 << 20:
        raise BadInput(f"{path} has the alignment {alignment!r}, which is none")
    start = -(-cursor.place // alignment) * alignment
    for name, (info, offset) in places.items():
        if start + offset + _bytes(name, info) > len(data):
            raise BadInput(f"the tensor {name!r} of {path.name} does not fit into the file; was it cut?")

    def read(name: str) -> np.ndarray:
        info, offset = places[name]
        return _decoded(data, start + offset, info)

    return TensorFiles("gguf", str(path), {name: info for name, (info, _) in places.items()}, read, None, metadata)


def _bytes(name: str, info: TensorInfo) -> int:
    if info.stored in SIZES:
        return prod(info.shape) * SIZES[info.stored]
    if info.stored == "Q8_0":
        if not info.shape or info.shape[-1] % BLOCK:
            raise BadInput(
                f"the tensor {name!r} is stored in blocks of {BLOCK}, but its rows have {info.shape[-1:]} entries"
            )
        return prod(info.shape) // BLOCK * (2 + BLOCK)
    raise BadInput(
        f"the tensor {name!r} of {info.file} is quantised as {info.stored}, which is not read; convert it to F16 or Q8_0"
    )


def _decoded(data: mmap.mmap, place: int, info: TensorInfo) -> np.ndarray:
    count = prod(info.shape)
    if info.stored == "Q8_0":
        blocks = np.frombuffer(data, np.dtype([("factor", "<f2"), ("bytes", "i1", BLOCK)]), count // BLOCK, place)
        with np.errstate(invalid="ignore"):  # a factor may be infinite or NaN; the audit names the tensor
            return (blocks["factor"].astype(np.float32)[:, None] * blocks["bytes"]).reshape(info.shape)
    if info.stored == "BF16":
        high = np.frombuffer(data, "<u2", count, place).astype(np.uint32) << 16
        return high.view(np.float32).reshape(info.shape)
    return np.frombuffer(data, PLAIN[info.stored], count, place).reshape(info.shape)


class _Cursor:
    """Reads the front of the file; every length is held against what is left."""

    def __init__(self, data: mmap.mmap, path: Path) -> None:
        self.data, self.path, self.place = data, path, 0

    def take(self, count: int) -> bytes:
        if count > len(self.data) - self.place:
            raise BadInput(f"{self.path} ends in the middle of its header")
        self.place += count
        return self.data[self.place - count : self.place]

    def number(self, form: str) -> Any:
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def fits(self, count: int, least: int, what: str) -> int:
        """A count, if so many things of at least so many bytes can still be in the file."""
        if count * least > len(self.data) - self.place:
            raise BadInput(f"{self.path} says that it has {count:,} {what}, more than fit into it")
        return count

    def text(self) -> str:
        try:
            return self.take(self.number("<Q")).decode("utf-8")
        except UnicodeDecodeError:
            raise BadInput(f"{self.path} has a name that is not text") from None

    def value(self, kind: int, depth: int) -> Any:
        if kind in SCALARS:
            return self.number(SCALARS[kind])
        if kind == TEXT:
            return self.text()
        if kind != ARRAY or depth > 4:
            raise BadInput(f"{self.path} has metadata of the type {kind}, which is none")
        inner, count = self.number("<I"), self.number("<Q")
        if inner in SCALARS:  # one step, whatever the length
            width = struct.calcsize(SCALARS[inner])
            raw = self.take(self.fits(count, width, "array entries") * width)
            return [each[0] for each in struct.iter_unpack(SCALARS[inner], raw[: KEPT * width])]
        found = [self.value(inner, depth + 1) for _ in range(self.fits(count, 8, "array entries"))]
        return found[:KEPT]
