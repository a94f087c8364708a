"""`basis.json`: which direction of the residual stream each coordinate of `circuit.json` has become.

`directions[c]` is the vector that writing 1 into coordinate c now adds to the stream. A *reader* goes the other way:
coordinates = stream @ matrix + offset. There is one for every state of the stream (the embedding, then after every
sub-layer that exists), or a single one for all of them. A learned narrow code need not hold every coordinate at all
times (only what is still to be read), so its readers say how far each coordinate was off, at most, on the inputs they
were fitted on.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from certiformer.errors import BadInput

BASIS = "basis.json"
FORMAT = "certiformer-basis-1"

Matrix = Float[np.ndarray, "_ _"]
Vector = Float[np.ndarray, " _"]


@dataclass(frozen=True)
class Reader:
    """From the stream to the coordinates: stream @ matrix + offset, off by at most `deviation` where that was measured."""

    matrix: Matrix
    offset: Vector
    deviation: Vector

    def after(self, other: Reader) -> Reader:
        """This reader on the coordinates that `other` reads."""
        spread = other.deviation @ np.abs(self.matrix)
        return Reader(other.matrix @ self.matrix, other.offset @ self.matrix + self.offset, self.deviation + spread)


@dataclass(frozen=True)
class Basis:
    """See the module docstring."""

    directions: Matrix
    readers: tuple[Reader, ...]

    @staticmethod
    def identity(width: int) -> Basis:
        """Every coordinate is its own direction."""
        return Basis.of(np.eye(width), np.eye(width))

    @staticmethod
    def of(directions: Matrix, matrix: Matrix) -> Basis:
        """One exact linear reader for all states."""
        count = matrix.shape[1]
        return Basis(directions, (Reader(matrix, np.zeros(count), np.zeros(count)),))

    @property
    def width(self) -> int:
        """The number of coordinates of the stream."""
        return self.directions.shape[1]

    def reader(self, state: int) -> Reader:
        """The reader of a state, counted as `Transformer.states` does."""
        return self.readers[0] if len(self.readers) == 1 else self.readers[state]

    def coordinates(self, states: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The states of `Transformer.states` in the coordinates that `circuit.json` speaks of."""
        if len(self.readers) not in (1, len(states)) or any(state.shape[-1] != self.width for state in states):
            raise BadInput("the basis file belongs to another transformer: its numbers of states or directions differ")
        read = [self.reader(index) for index in range(len(states))]
        return [state.astype(np.float64) @ r.matrix + r.offset for state, r in zip(states, read, strict=True)]

    def then(self, later: Basis) -> Basis:
        """The basis after a further change of the stream."""
        count = max(len(self.readers), len(later.readers))
        readers = tuple(self.reader(index).after(later.reader(index)) for index in range(count))
        return Basis(self.directions @ later.directions, readers)

    def to_bytes(self) -> bytes:
        """The content of `basis.json`.

        >>> Basis.from_bytes(Basis.identity(2).to_bytes()).directions.tolist()
        [[1.0, 0.0], [0.0, 1.0]]
        """
        readers = [{name: part.tolist() for name, part in vars(reader).items()} for reader in self.readers]
        data = {"format": FORMAT, "directions": self.directions.tolist(), "readers": readers}
        return (json.dumps(data, sort_keys=True, allow_nan=False) + "\n").encode("ascii")

    @staticmethod
    def from_bytes(data: bytes) -> Basis:
        """Read the file; anything that is none is refused."""
        try:
            content = json.loads(data)
            if content["format"] != FORMAT or set(content) != {"format", "directions", "readers"}:
                raise ValueError("format")
            directions = _numbers(content["directions"], 2)
            readers = tuple(_reader(entry, directions.shape) for entry in content["readers"])
            if not readers:
                raise ValueError("readers")
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise BadInput("the basis file has not the structure of one") from None
        return Basis(directions, readers)


def _reader(entry: dict[str, Any], shape: tuple[int, ...]) -> Reader:
    parts = {"matrix": 2, "offset": 1, "deviation": 1}
    reader = Reader(**{name: _numbers(entry[name], axes) for name, axes in parts.items()})
    if set(entry) != set(parts) or reader.matrix.shape != shape[::-1]:
        raise ValueError("reader")
    if reader.offset.shape != shape[:1] or reader.deviation.shape != shape[:1]:
        raise ValueError("reader")
    return reader


def _numbers(entry: Any, axes: int) -> np.ndarray:
    array = np.array(entry, np.float64)
    if array.ndim != axes or not np.isfinite(array).all():
        raise ValueError("numbers")
    return array
