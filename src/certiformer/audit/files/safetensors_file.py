"""safetensors: one file, or the shards of an index, memory-mapped one tensor at a time.

The library of the format checks headers: lengths, offsets that overlap or leave the file, shapes that do not fit. What is
checked here is what it does not know: that an index names files of its own folder only, that no shard is missing, and
that every name of the index is where it says. Then a tensor is a map of its bytes: the library would read the header again
for every tensor, and copy it."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from mmap import ACCESS_READ, ALLOCATIONGRANULARITY, mmap
from pathlib import Path
from typing import Any

import numpy as np

from certiformer.audit.files.tensors import INTEGERS, WEIGHTS, TensorInfo
from certiformer.errors import BadInput
from certiformer.kernel.files import parse_json
from certiformer.reading import read_regular, require_regular

_TYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "bfloat16", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "?",
}  # fmt: skip
SMALL = 1 << 16  # bytes of a tensor that is read
LARGEST_INDEX = 64 << 20  # bytes; the index of a thousand-layer model has less than one


def read_headers(paths: Iterable[Path]) -> tuple[dict[str, TensorInfo], dict[str, Any], dict[str, Path]]:
    """Names and sizes of the tensors of several files, their metadata, and the file of each tensor."""
    infos: dict[str, TensorInfo] = {}
    metadata: dict[str, Any] = {}
    homes: dict[str, Path] = {}
    for path in paths:
        with opened(path) as handle:
            metadata.update(handle.metadata() or {})
            for name in handle.keys():  # noqa: SIM118 (a handle is no mapping)
                part = handle.get_slice(name)
                stored = str(part.get_dtype())
                if stored not in (*WEIGHTS, *INTEGERS):
                    raise BadInput(f"the tensor {name!r} in {path.name} is stored as {stored}, which cannot be audited")
                if name in infos:
                    raise BadInput(f"the tensor {name!r} is in {homes[name].name} and in {path.name}")
                infos[name] = TensorInfo(tuple(int(side) for side in part.get_shape()), stored, path.name)
                homes[name] = path
    return infos, metadata, homes


class Places:
    """Where the tensors of a file are in it; the header has been checked."""

    def __init__(self, path: Path) -> None:
        with open(path, "rb") as file:
            size = int.from_bytes(file.read(8), "little")
            header = parse_json(file.read(size), f"the header of {path.name}")
        self.path, self.begin, self.header = path, 8 + size, header

    def tensor(self, name: str) -> np.ndarray:
        """One tensor, as a map of its bytes; a small one is read, which is faster than mapping it."""
        entry = self.header[name]
        kind, shape = np.dtype(_TYPES[entry["dtype"]]), tuple(entry["shape"])
        first, last = (self.begin + place for place in entry["data_offsets"])
        if first == last:
            return np.zeros(shape, kind)
        try:
            with open(self.path, "rb", buffering=0) as file:
                if last - first <= SMALL:
                    file.seek(first)
                    before, stored = 0, file.read(last - first)
                else:
                    before = first % ALLOCATIONGRANULARITY  # a map begins where the system lets it
                    stored = mmap(file.fileno(), last - first + before, access=ACCESS_READ, offset=first - before)
            return np.frombuffer(stored, kind, prod(shape), before).reshape(shape)
        except (OSError, ValueError):  # shorter than it was
            raise BadInput(f"{self.path} has changed while it was read") from None


def opened(path: Path) -> Any:
    """The file, with one sentence for whatever is wrong with it."""
    import ml_dtypes  # noqa: F401 (gives NumPy the type bfloat16)
    from safetensors import SafetensorError, safe_open

    try:
        require_regular(path)
        return safe_open(str(path), "np")
    except SafetensorError as problem:
        reason = str(problem).removeprefix("Error while deserializing header: ")
        raise BadInput(f"{path} is not a safetensors file: {reason}") from None
    except FileNotFoundError:
        raise BadInput(f"{path} does not exist") from None
    except OSError as problem:
        raise BadInput(f"{path} cannot be read: {problem.strerror or problem}") from None


def shards_of(index: Path) -> list[Path]:
    """The files of an index, which are all beside it."""
    data = _index(index)
    places = data.get("weight_map") if isinstance(data, dict) else None
    if not isinstance(places, dict) or not places or not all(isinstance(file, str) for file in places.values()):
        raise BadInput(f"{index} is not an index of shards: its weight_map does not name a file for each tensor")
    names = sorted(set(places.values()))
    odd = next((name for name in names if Path(name).name != name or not name.endswith(".safetensors")), None)
    if odd is not None:
        raise BadInput(f"{index.name} names the file {odd!r}, which is not a safetensors file of the same folder")
    missing = [name for name in names if not (index.parent / name).is_file()]
    if missing:
        raise BadInput(
            f"{len(missing)} of the {len(names)} shards of {index.name} are missing, the first is {missing[0]}"
        )
    return [index.parent / name for name in names]


def _index(index: Path) -> Any:
    return parse_json(read_regular(index, LARGEST_INDEX, links=True), index.name)


def check_index(index: Path, infos: dict[str, TensorInfo]) -> None:
    """Every tensor is in the shard that the index says, and no tensor is missing."""
    places = _index(index)["weight_map"]
    for name, file in places.items():
        if name not in infos:
            raise BadInput(f"{index.name} says that {name!r} is in {file}, where it is not")
        if infos[name].file != file:
            raise BadInput(f"{index.name} says that {name!r} is in {file}; it is in {infos[name].file}")
