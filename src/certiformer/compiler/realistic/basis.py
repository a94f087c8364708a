"""`basis.json`: which direction of the residual stream each coordinate of `circuit.json` has become.

`directions[c]` is the vector that writing 1 into coordinate c now adds to the stream. A *reader* goes the other way:
coordinates = stream @ matrix + offset. There is one for every state of the stream (the embedding, then after every
sub-layer that exists), or a single one for all of them. A learned narrow code need not hold every coordinate at all
times (only what is still to be read), so its readers say how far each coordinate was off, at most, on the inputs they
were fitted on.

After a *rotation*, an orthogonal change of basis, every coordinate mixes all variables.

*Exact.* A Hadamard matrix H of a power of two D has entries 1 and -1, and H H^T = D. With D the next power of two
from the number of coordinates on and a = floor(log2(D) / 2), the directions are rows of H / 2^a with random signs of
the columns, in random order; the reader is the transpose times 2^(2a) / D. All of these are powers of two, so integer
weights become multiples of 2^-a, or of 2^a / D, and nothing is rounded as long as the sums fit the significand (24
bits in float32): the rotated model is the same function of real numbers, which `stream.is_conjugate` checks.
Directions have length 1 (D a power of four) or sqrt 2. Example: 7 coordinates become D = 8 with entries +-1/2, and
the reader's entries are +-1/4.

*Random.* The directions are the rows of a random orthogonal matrix (the Q of a Gaussian one, signs made even): the
look of a trained model, but its weights are rounded to the stored type, so what is computed changes by a relative u =
2^-24 or so at every step.
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


KINDS = ("exact", "random")


def rotation(width: int, kind: str | Matrix, seed: int) -> Basis:
    """A basis for `width` coordinates: random, or that of given directions.

    >>> rotation(3, "exact", 0).directions.tolist()
    [[0.5, 0.5, -0.5, -0.5], [-0.5, -0.5, -0.5, -0.5], [-0.5, 0.5, -0.5, 0.5]]
    """
    if not isinstance(kind, str):
        return _given(kind, width)
    generator = np.random.default_rng(seed)
    if kind == "exact":
        return _hadamard(width, generator)
    if kind == "random":
        q, r = np.linalg.qr(generator.normal(size=(width, width)))
        directions = q * np.sign(np.diag(r))
        return Basis.of(directions, directions.T)
    raise BadInput(f"a rotation is one of {', '.join(KINDS)}, not {kind!r}")


def _given(directions: Matrix, width: int) -> Basis:
    """The basis of given directions, one row for each coordinate, orthogonal to each other."""
    rows = np.asarray(directions, np.float64)
    if rows.ndim != 2 or rows.shape[0] != width or not np.isfinite(rows).all():
        raise BadInput(f"a basis is a matrix with {width} rows of finite numbers, one for each coordinate")
    gram = rows @ rows.T
    sizes = np.diag(gram)
    # Orthogonal up to the rounding of float64: D products of numbers of size 1 err by about D 2^-53.
    if not (sizes > 0).all() or np.abs(gram - np.diag(sizes)).max() > 1e-12 * sizes.max() * rows.shape[1]:
        raise BadInput("the directions of a basis must be orthogonal to each other")
    return Basis.of(rows, rows.T / sizes)


def _hadamard(width: int, generator: np.random.Generator) -> Basis:
    size = 1 << max(1, (width - 1).bit_length())
    rows, columns = np.arange(size)[:, None], np.arange(size)[None, :]
    signs = 1.0 - 2.0 * (np.bitwise_count(rows & columns) % 2)
    signs = signs[generator.permutation(size)[:width]] * generator.choice([-1.0, 1.0], size)
    signs = signs * generator.choice([-1.0, 1.0], (width, 1))
    scale = 2.0 ** ((size.bit_length() - 1) // 2)
    return Basis.of(signs / scale, signs.T * scale / size)
