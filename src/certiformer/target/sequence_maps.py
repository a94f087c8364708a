"""Maps on all sequences of n letters below V: claims about V^n rows that no file could list.

`SortMap` puts the letters in order, `CountMap` counts them (their numbers, a parity, which has the majority), `WidthMap`
says at every position how often its letter occurs, `InductionMap` what followed the last time. The meaning of each is
the plain Python of `answer`; `target.json` stores the sizes and the name. Standard library only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any, ClassVar

from certiformer.errors import BadInput
from certiformer.target.description import canonical_text
from certiformer.target.sentence import epsilon_text

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
    deed: ClassVar[str] = ""  # what needs an alphabet and a length, in refusals

    def __post_init__(self) -> None:
        sizes = (self.alphabet, self.tokens)
        if any(type(n) is not int or not 1 <= n <= 10_000 for n in sizes) or self.outputs > MAX_NUMBERS:
            raise BadInput(f"{self.deed} needs an alphabet and a length between 1 and 10,000, not {sizes}")

    @property
    def outputs(self) -> int:
        """How many numbers are wanted for one sequence."""
        raise NotImplementedError

    def answer(self, letters: list[int]) -> list[int]:
        """The outputs wanted for a sequence, all of them whole numbers."""
        raise NotImplementedError

    def wish(self) -> str:
        """What the outputs differ from by at most epsilon, as the middle of a sentence."""
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
        """The claim in one sentence."""
        count = f"{self.alphabet}^{self.tokens}"
        if self.tokens * self.alphabet.bit_length() < 200 and self.count < 10**15:
            count += f" = {self.count:,}"
        return (
            f"For every one of the {count} sequences of {self.tokens} letters from an alphabet of {self.alphabet},"
            f" {self.wish()} by at most {epsilon_text(epsilon)}."
        )

    def entries(self) -> dict[str, Any]:
        """What `target.json` holds besides format, source and norm."""
        return {"alphabet": self.alphabet, "tokens": self.tokens}

    def to_text(self) -> str:
        """The canonical content of `target.json`."""
        return canonical_text({"format": self.format, "source": self.source, "norm": NORM, **self.entries()})


@dataclass(frozen=True)
class SortMap(SequenceMap):
    """The sorted letters, a unit vector at every position."""

    format = "certiformer-sort-1"
    deed = "sorting"

    @property
    def outputs(self) -> int:
        return self.alphabet * self.tokens

    def answer(self, letters: list[int]) -> list[int]:
        return [int(letter == v) for letter in sorted(letters) for v in range(self.alphabet)]

    def wish(self) -> str:
        return "each position's outputs differ from the unit vector of its letter in sorted order"


@dataclass(frozen=True)
class CountMap(SequenceMap):
    """A function of the numbers of single letters: `count`, `parity` (of the letters 1) or `majority`.

    >>> CountMap("parity", 2, 5, "parity").answer([1, 0, 1, 1, 0]), CountMap("majority", 2, 3, "majority").letters
    ([1], (0, 1))
    """

    what: str

    format = "certiformer-count-1"
    deed = "counting"

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

    def wish(self) -> str:
        if self.what == "parity":
            return "the output differs from the parity (0 or 1) of the number of letters 1"
        if self.what == "count":
            return "output v differs from the number of letters v, v = 0, 1, ...,"
        return "output v differs from 1 where more than half of the letters are v, and from 0 elsewhere,"

    def entries(self) -> dict[str, Any]:
        return {**super().entries(), "what": self.what}


@dataclass(frozen=True)
class WidthMap(SequenceMap):
    """At every position, how many positions have the same letter.

    >>> WidthMap("hist", 3, 4).answer([2, 0, 2, 1])
    [2, 1, 2, 1]
    """

    format = "certiformer-histogram-1"
    deed = "a histogram"

    @property
    def outputs(self) -> int:
        return self.tokens

    def answer(self, letters: list[int]) -> list[int]:
        return [letters.count(letter) for letter in letters]

    def wish(self) -> str:
        return "each position's output differs from the number of positions with the same letter"


@dataclass(frozen=True)
class InductionMap(SequenceMap):
    """At every position, the letter that followed the last earlier occurrence of its own, as a unit vector; else zeros.

    >>> InductionMap("induction", 2, 4).answer([1, 0, 1, 1])
    [0, 0, 0, 0, 1, 0, 0, 1]
    """

    format = "certiformer-induction-1"
    deed = "induction"

    @property
    def outputs(self) -> int:
        return self.alphabet * self.tokens

    def answer(self, letters: list[int]) -> list[int]:
        followed: dict[int, int] = {}
        outputs = []
        for place, letter in enumerate(letters):
            if place:
                followed[letters[place - 1]] = letter
            outputs += [int(followed.get(letter) == v) for v in range(self.alphabet)]
        return outputs

    def wish(self) -> str:
        return (
            "each position's outputs differ from the unit vector of the letter that followed the last earlier occurrence"
            " of its own letter (from zero when there was none)"
        )


MAPS: dict[str, type[SequenceMap]] = {m.format: m for m in (SortMap, CountMap, WidthMap, InductionMap)}


def map_from_data(data: dict[str, Any]) -> SequenceMap:
    """The map of the object of a `target.json` with a format of `MAPS`; sizes and names are checked."""
    kind = MAPS[data["format"]]
    names = {"alphabet", "tokens"} | ({"what"} if kind is CountMap else set())
    if set(data) != names | {"format", "source", "norm"} or data["norm"] != NORM or type(data["source"]) is not str:
        raise BadInput(f"target.json does not have exactly the entries of {data['format']}")
    return kind(data["source"], **{name: data[name] for name in names})
