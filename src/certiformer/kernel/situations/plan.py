"""What a certificate says about the stream, none of which is believed: cells and codes of coordinates, links of heads.

A plan is compared with the stored weights by `walk`; a wrong one is refused, or proves what it says by another argument.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from certiformer.kernel.situations.numbers import UNIT


class Held(NamedTuple):
    """A coordinate holds a cell: its code (in units of 2^-192) for every value of the cell, and at the register."""

    cell: str | None
    codes: tuple[int, ...]
    start: int = 0


EMPTIED = Held(None, (0,))


@dataclass(frozen=True)
class Step:
    """One sub-layer: what coordinates hold afterwards, and the link of each head (none for hidden units)."""

    held: Mapping[int, Held]
    links: tuple[str, ...] = ()


def unit_vectors(cell: str, domain: Sequence[object], first: int, values: Sequence[object]) -> dict[int, Held]:
    """Coordinate `first` + n is 1 where the cell has the n-th of `values`, and 0 elsewhere."""
    return {first + n: Held(cell, tuple(UNIT * (other == value) for other in domain)) for n, value in enumerate(values)}
