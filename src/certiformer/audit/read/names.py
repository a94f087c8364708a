"""The tensors of a checkpoint while they are being understood: every number that is taken is counted.

A family takes whole tensors or parts of them. What nobody took is named in the end, so that a tensor that was
overlooked, or a third of a fused matrix that was forgotten, cannot stay unseen."""

from __future__ import annotations

import re
from collections.abc import Callable
from hashlib import blake2b
from typing import Any

import numpy as np

from certiformer.audit.files import TensorFiles
from certiformer.audit.form import Coverage, Norm, Source, Weight
from certiformer.audit.read.ledger import Ledger
from certiformer.audit.read.origin import Origin
from certiformer.errors import BadInput

Change = Callable[[np.ndarray], np.ndarray]


class Names:
    """Takes tensors by name, below a prefix, and keeps count in a ledger that views with other prefixes share.

    `root` is the prefix of the whole model: with `module.bert.` as the prefix of the encoder it is `module.`.
    """

    def __init__(self, ledger: Ledger, prefix: str = "", root: str = "") -> None:
        self.ledger, self.prefix, self._root = ledger, prefix, root

    @property
    def files(self) -> TensorFiles:
        return self.ledger.files

    def at(self, prefix: str) -> Names:
        """The same tensors seen from another prefix."""
        return Names(self.ledger, prefix, self._root)

    @property
    def root(self) -> Names:
        """The same tensors seen from where the whole model begins: heads stand there."""
        return self.at(self._root)

    def has(self, name: str) -> bool:
        return self.prefix + name in self.files

    def first(self, *names: str) -> str | None:
        """The first of several names that is there."""
        return next((name for name in names if self.has(name)), None)

    def shape(self, name: str) -> tuple[int, ...]:
        return self.files.info(self.prefix + name).shape

    def matrix(self, name: str) -> tuple[int, int]:
        """The shape of a tensor that has to be a matrix."""
        shape = self.shape(name)
        if len(shape) != 2 or 0 in shape:
            raise BadInput(f"the tensor {self.prefix + name!r} has the shape {shape}; a matrix was expected")
        return shape[0], shape[1]

    def length(self, name: str) -> int:
        """The length of a tensor that has to be a vector."""
        shape = self.shape(name)
        if len(shape) != 1 or not shape[0]:
            raise BadInput(f"the tensor {self.prefix + name!r} has the shape {shape}; a vector was expected")
        return shape[0]

    def count(self, pattern: str) -> int:
        """How many different numbers stand where the pattern has `{}`; they must be 0, 1, 2, ..."""
        regular = re.compile(re.escape(self.prefix + pattern).replace(r"\{\}", r"(\d{1,6})"))
        found = {int(match[1]) for name in self.files.infos if (match := regular.match(name))}
        if found != set(range(len(found))):
            missing = next(number for number in range(len(found)) if number not in found)
            raise BadInput(
                f"{self.files.place} has {pattern.format(max(found))!r}, but not {pattern.format(missing)!r}"
            )
        return len(found)

    def take(
        self,
        name: str,
        shape: tuple[int, ...] | None = None,
        *,
        whole: tuple[int, ...] | None = None,
        part: str = "",
        change: Change | None = None,
        transposed: bool = False,
        made: str = "",
    ) -> Weight:
        """A tensor, or the part of it that `change` cuts out, as a weight of the given shape (default: as stored).

        `change` moves numbers, and may compute with them in float64. `transposed` says that the file has (in, out). `whole`
        is the shape that the tensor must have as (out, in); a config of another model shows there. Without `change` the
        weight is the whole tensor.
        """
        full = self.prefix + name
        info = self.files.info(full)
        turned = len(info.shape) > 1 and transposed
        here = info.shape[::-1] if turned else info.shape
        if whole is not None and here != whole:
            raise BadInput(
                f"the tensor {full!r} has the shape {here}, but the config and the other tensors ask for {whole}"
            )
        wanted = here if shape is None else shape
        size = int(np.prod(wanted, dtype=np.int64))
        if size > info.count or (change is None and size != info.count):
            raise BadInput(f"the tensor {full!r} has the shape {here}, which does not give {wanted}")
        origin = self.ledger.origin(full)
        self.ledger.take(full, size)
        files = self.files

        def load() -> np.ndarray:
            array = files.read(full)
            array = array.T if turned else array
            array = array if change is None else change(array)
            return np.ascontiguousarray(array).reshape(wanted)

        made = "; ".join(filter(None, (origin.made, made)))
        source = Source(origin.tensor, info.file, part, turned != origin.transposed, made)
        return Weight(source, wanted, info.stored, load)

    def maybe(self, name: str | None, shape: tuple[int, ...] | None = None, **options: Any) -> Weight | None:
        """The tensor if it is there."""
        return self.take(name, shape, **options) if name is not None and self.has(name) else None

    def some(self, **places: str) -> dict[str, Weight]:
        """Those of several tensors that are there, by what they are."""
        return {key: self.take(name) for key, name in places.items() if self.has(name)}

    def norm(self, name: str, kind: str, epsilon: float | None, offset: float = 0.0) -> Norm | None:
        """The norm below `name`, with weight and bias, or gamma and beta as in old files; the gain is `offset` + weight."""
        gain = self.first(f"{name}.weight", f"{name}.gamma")
        if gain is None:
            return None
        made, change = (
            (f"{offset:g} + w", lambda array: offset + np.asarray(array, np.float64)) if offset else ("", None)
        )
        shift = self.maybe(self.first(f"{name}.bias", f"{name}.beta"), (self.length(gain),))
        return Norm(kind, self.take(gain, change=change, made=made), shift, epsilon)

    def norms(self, places: dict[str, str], kind: str, epsilon: float | None, offset: float = 0.0) -> dict[str, Norm]:
        """Those of several norms that are there, by their place in the block."""
        found = {key: self.norm(name, kind, epsilon, offset) for key, name in places.items()}
        return {key: norm for key, norm in found.items() if norm is not None}

    def counted_as_copy(self, name: str, original: str) -> bool:
        """Whether the tensor repeats another one (tied weights that were written twice); it is then accounted for."""
        mine, other = self.files.info(self.prefix + name), self.files.info(original)
        # Tables are the largest tensors there are: one at a time is in memory.
        if mine.shape != other.shape or self._digest(self.prefix + name) != self._digest(original):
            return False
        self.ledger.copy(self.prefix + name)
        return True

    def _digest(self, full: str) -> bytes:
        return blake2b(np.ascontiguousarray(self.files.read(full)).data).digest()

    def rest(self, *starts: str) -> dict[str, Weight]:
        """What is left below the prefix under names that begin in one of these ways: poolers, classifiers and the like."""
        begin = tuple(self.prefix + start for start in starts)
        left = [name for name in self.ledger.left() if name.startswith(begin)]
        return {name[len(self.prefix) :]: self.take(name[len(self.prefix) :]) for name in left}

    def coverage(self) -> Coverage:
        return self.ledger.coverage()


def names_of(files: TensorFiles, prefix: str = "", origins: dict[str, Origin] | None = None) -> Names:
    """All tensors of a checkpoint, none of them taken."""
    return Names(Ledger(files, origins or {}), prefix)
