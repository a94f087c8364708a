"""The norms of a transformer that its generalization bound is made of: maps, vectors, tables, norms, heads, layers.

Every record holds upper bounds of norms: they name the class of all models whose norms are no larger. A map acts on a
token or, where it has a bias, on the token with a 1 below it, and its norms are those of the matrix with the bias as one
more column. Score scales are folded in.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

PLACES = ("pre", "post", "parallel")


@dataclass(frozen=True)
class MapNorms:
    """Spectral and Frobenius norm, sum of absolute entries, largest l2 norm of a row, shape, and a bound of the rank."""

    spectral: float
    frobenius: float
    l11: float
    rows: int
    columns: int
    rank: int
    largest_row: float = math.inf

    def scaled(self, factor: float) -> MapNorms:
        """The norms of `factor` times the map."""
        sizes = (self.spectral * factor, self.frobenius * factor, self.l11 * factor)
        return MapNorms(*sizes, self.rows, self.columns, self.rank, self.largest_row * factor)


@dataclass(frozen=True)
class VectorNorms:
    """l1, l2 and l_inf norm of a vector, and its number of entries."""

    l1: float
    l2: float
    largest: float
    size: int

    def scaled(self, factor: float) -> VectorNorms:
        """The norms of `factor` times the vector."""
        return VectorNorms(self.l1 * factor, self.l2 * factor, self.largest * factor, self.size)


@dataclass(frozen=True)
class TableNorms:
    """A table of rows: their number and length, sum of the squares of their l1 norms, largest l2 norm of a row."""

    rows: int
    columns: int
    l1_squares: float
    largest_row: float

    def scaled(self, factor: float) -> TableNorms:
        """The norms of `factor` times the table."""
        return TableNorms(self.rows, self.columns, self.l1_squares * factor**2, self.largest_row * factor)


@dataclass(frozen=True)
class NormNorms:
    """A layer norm or an RMS norm: its epsilon, its gain (None: the constant 1) and its shift."""

    epsilon: float
    gain: VectorNorms | None = None
    shift: VectorNorms | None = None

    @property
    def largest(self) -> float:
        """The largest gain."""
        return 1.0 if self.gain is None else self.gain.largest


@dataclass(frozen=True)
class StackHead:
    """V then O as one map, and the scores: one bilinear form (rows: the asking token), or two maps under rotary codes."""

    value: MapNorms
    scores: MapNorms | None = None
    query: MapNorms | None = None
    key: MapNorms | None = None
    biased: bool = False


@dataclass(frozen=True)
class AttentionNorms:
    """The heads, and the vector that biases of values and outputs add."""

    heads: tuple[StackHead, ...]
    bias: VectorNorms | None = None


@dataclass(frozen=True)
class HiddenNorms:
    """The maps of the hidden units, the Lipschitz constant of the activation, and the vector that is added behind."""

    up: MapNorms
    down: MapNorms
    gate: MapNorms | None = None
    slope: float = 1.0
    biased: bool = False
    bias: VectorNorms | None = None


@dataclass(frozen=True)
class StackLayer:
    """One layer: both parts, each with the norm before it (`post`: behind it)."""

    attention: AttentionNorms
    hidden: HiddenNorms
    attention_norm: NormNorms
    hidden_norm: NormNorms


@dataclass(frozen=True)
class StackNorms:
    """A whole model. `tables` add up to a token, the first of them times `scale`; with `tied` it is the read-out, too.

    `readout` None and not tied: the outputs are the tokens themselves.
    """

    place: str
    width: int
    layers: tuple[StackLayer, ...]
    tables: tuple[TableNorms, ...]
    scale: float = 1.0
    embedding_norm: NormNorms | None = None
    final_norm: NormNorms | None = None
    readout: TableNorms | None = None
    readout_bias: VectorNorms | None = None
    tied: bool = False
