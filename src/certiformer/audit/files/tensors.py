"""What every format offers: names, sizes, and one tensor at a time.

Nothing is read before it is asked for, and nothing is kept. A file can claim whatever it likes: sizes are compared
with the bytes that are there before anything is allocated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from certiformer.errors import BadInput

# Types that hold weights, and those of buffers and masks, which are listed but never measured.
WEIGHTS = ("F64", "F32", "F16", "BF16", "Q8_0")
INTEGERS = ("I64", "I32", "I16", "I8", "U64", "U32", "U16", "U8", "BOOL")


MOST_AXES, LONGEST_SIDE = 8, 1 << 40


@dataclass(frozen=True)
class TensorInfo:
    """One tensor: its shape (row-major, last axis fastest), the type it is stored in, and the file it is in."""

    shape: tuple[int, ...]
    stored: str
    file: str

    def __post_init__(self) -> None:
        # A side of zero hides any other from the comparison with the bytes that are there.
        if len(self.shape) > MOST_AXES or any(not 0 <= side <= LONGEST_SIDE for side in self.shape):
            raise BadInput(f"{self.file} has a tensor of the shape {self.shape}, which no weight has")

    @property
    def count(self) -> int:
        return prod(self.shape)

    @property
    def is_weight(self) -> bool:
        return self.stored in WEIGHTS


@dataclass(frozen=True)
class TensorFiles:
    """The tensors of a checkpoint. `read` gives a whole tensor in the type it computes in; quantised ones dequantised."""

    kind: str  # "safetensors" | "gguf" | "onnx"
    place: str  # what the user named
    infos: Mapping[str, TensorInfo]
    reader: Callable[[str], np.ndarray]
    config: dict[str, Any] | None = None  # config.json, or what stands for it
    metadata: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def info(self, name: str) -> TensorInfo:
        try:
            return self.infos[name]
        except KeyError:
            raise BadInput(f"{self.place} has no tensor {name!r}") from None

    def read(self, name: str) -> np.ndarray:
        """The tensor, in float32 or float64 where it holds weights."""
        info = self.info(name)
        array = self.reader(name)
        if array.shape != info.shape:
            raise BadInput(
                f"the tensor {name!r} in {info.file} has the shape {array.shape}, its header says {info.shape}"
            )
        return array if array.dtype in (np.float64, np.float32) or not info.is_weight else array.astype(np.float32)

    def __contains__(self, name: object) -> bool:
        return name in self.infos
