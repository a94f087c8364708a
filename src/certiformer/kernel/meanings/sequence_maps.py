"""Maps on all sequences of n letters below V: claims about V^n rows that no file could list.

The meaning of each is the plain Python of `answer`; `target.json` stores the sizes and the name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from itertools import product
from typing import Any, ClassVar

from certiformer.errors import BadInput

NORM = "max"  # the largest absolute error over all outputs and all rows
MAX_NUMBERS = 20_000_000  # of a whole table, or of the outputs of one sequence

Row = tuple[tuple[Fraction, ...], tuple[Fraction, ...]]


@dataclass(frozen=True)
class SequenceMap:
    """All sequences of `tokens` letters below `alphabet`, and the outputs wanted for each."""

    source: str
    alphabet: int
    tokens: int

    kind: ClassVar[str] = "ids"
    format: ClassVar[str] = ""
    wish: ClassVar[str] = ""  # what the outputs differ from by at most epsilon, as the middle of a sentence

    def __post_init__(self) -> None:
        sizes = (self.alphabet, self.tokens)
        if type(self.source) is not str:
            raise BadInput("the source of a map on sequences is not text")
        if any(type(n) is not int or not 1 <= n <= 10_000 for n in sizes) or self.outputs > MAX_NUMBERS:
            raise BadInput(f"a map on sequences needs an alphabet and a length between 1 and 10,000, not {sizes}")

    @property
    def outputs(self) -> int:
        """How many numbers are wanted for one sequence: one for every letter at every position, unless a map differs."""
        return self.alphabet * self.tokens

    def answer(self, letters: list[int]) -> list[int]:
        """The outputs wanted for a sequence, all of them whole numbers."""
        raise NotImplementedError

    @property
    def inputs(self) -> int:
        return self.tokens

    @property
    def count(self) -> int:
        return self.alphabet**self.tokens

    @property
    def rows(self) -> Iterator[Row]:
        """All V^n rows, one by one."""
        for letters in product(range(self.alphabet), repeat=self.tokens):
            yield tuple(map(Fraction, letters)), tuple(map(Fraction, self.answer(list(letters))))

    def find(self, point: tuple[Fraction, ...]) -> tuple[Fraction, ...] | None:
        """The outputs wanted at a sequence, or None when it is not one."""
        if len(point) != self.tokens or not all(x.denominator == 1 and 0 <= x < self.alphabet for x in point):
            return None
        return tuple(map(Fraction, self.answer([int(x) for x in point])))

    def sentence(self, epsilon: str) -> str:
        """The claim in one sentence, for a tolerance as sentences write it."""
        count = f"{self.alphabet}^{self.tokens}"
        if self.tokens * self.alphabet.bit_length() < 200 and self.count < 10**15:
            count += f" = {self.count:,}"
        which = f"sequences of {self.tokens} letters from an alphabet of {self.alphabet}"
        return f"For every one of the {count} {which}, {self.wish} by at most {epsilon}."

    def to_text(self) -> str:
        """The canonical content of `target.json`."""
        data = {"format": self.format, "norm": NORM, **asdict(self)}
        return json.dumps(data, sort_keys=True, separators=(",", ":")) + "\n"


@dataclass(frozen=True)
class SortMap(SequenceMap):
    """The sorted letters, a unit vector at every position."""

    format = "certiformer-sort-1"
    wish = "each position's outputs differ from the unit vector of its letter in sorted order"

    def answer(self, letters: list[int]) -> list[int]:
        return [int(letter == v) for letter in sorted(letters) for v in range(self.alphabet)]


@dataclass(frozen=True)
class CountMap(SequenceMap):
    """A function of the numbers of single letters: `count`, `parity` (of the letters 1) or `majority`."""

    what: str

    format = "certiformer-count-1"

    def __post_init__(self) -> None:
        if self.what not in ("count", "parity", "majority"):
            raise BadInput(f"letters are counted for count, parity or majority, not {str(self.what)[:40]!r}")
        super().__post_init__()
        if self.what == "parity" and self.alphabet < 2:
            raise BadInput("parity counts the letters 1, so the alphabet has at least two letters, 0 and 1")

    @property
    def letters(self) -> tuple[int, ...]:
        """The letter that each output speaks of."""
        return (1,) if self.what == "parity" else tuple(range(self.alphabet))

    def value(self, count: int) -> int:
        """The output for a letter that occurs `count` times."""
        return {"count": count, "parity": count % 2, "majority": int(2 * count > self.tokens)}[self.what]

    @property
    def outputs(self) -> int:
        return len(self.letters)

    def answer(self, letters: list[int]) -> list[int]:
        return [self.value(letters.count(letter)) for letter in self.letters]

    @property
    def wish(self) -> str:
        return {
            "parity": "the output differs from the parity (0 or 1) of the number of letters 1",
            "count": "output v differs from the number of letters v, v = 0, 1, ...,",
            "majority": "output v differs from 1 where more than half of the letters are v, and from 0 elsewhere,",
        }[self.what]


@dataclass(frozen=True)
class WidthMap(SequenceMap):
    """At every position, how many positions have the same letter."""

    format = "certiformer-histogram-1"
    wish = "each position's output differs from the number of positions with the same letter"

    @property
    def outputs(self) -> int:
        return self.tokens

    def answer(self, letters: list[int]) -> list[int]:
        return [letters.count(letter) for letter in letters]


@dataclass(frozen=True)
class InductionMap(SequenceMap):
    """At every position, the letter that followed the last earlier occurrence of its own, as a unit vector; else zeros."""

    format = "certiformer-induction-1"
    wish = (
        "each position's outputs differ from the unit vector of the letter that followed the last earlier occurrence"
        " of its own letter (from zero when there was none)"
    )

    def answer(self, letters: list[int]) -> list[int]:
        followed: dict[int | None, int] = {}
        outputs: list[int] = []
        for before, letter in zip([None, *letters], letters, strict=False):
            followed[before] = letter
            outputs += [int(followed.get(letter) == v) for v in range(self.alphabet)]
        return outputs


MAPS: dict[str, type[SequenceMap]] = {m.format: m for m in (SortMap, CountMap, WidthMap, InductionMap)}


def map_from_data(data: dict[str, Any]) -> SequenceMap:
    """The map of the object of a `target.json` with a format of `MAPS`; sizes and names are checked."""
    kind = MAPS[data["format"]]
    entries = {name: value for name, value in data.items() if name not in ("format", "norm")}
    if set(entries) != {field.name for field in fields(kind)} or data.get("norm") != NORM:
        raise BadInput(f"target.json does not have exactly the entries of {data['format']}")
    return kind(**entries)
