"""The numbers of a sentence, read back, and their comparison with exact ones; nothing of certiformer is used."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

_NUMBER = re.compile(
    r"(?P<word>about |between |and )?(?<![\w.^/])"
    r"(?P<first>-?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:e-?\d+)?)"
    r"(?:(?P<sign>/2\^|\*2\^|\^|/)(?P<second>\d+))?(?![\w^])"
)
_TIGHT = Fraction(1, 10**8)  # an enclosure of nine digits is not wider than this share


@dataclass(frozen=True)
class Shown:
    """A number of a sentence, the word before it, and its place."""

    value: Fraction
    word: str
    start: int
    end: int


def numbers_of(sentence: str) -> list[Shown]:
    """Every number, in order; digits in names (x1, float64) are none.

    >>> [str(n.value) for n in numbers_of("|x1| <= 0.5 in 1,000 of 2^3 runs in float64, at most 3/2^4 (about 0.1875)")]
    ['1/2', '1000', '8', '3/16', '3/16']
    """
    found = []
    for match in _NUMBER.finditer(sentence):
        value = Fraction(match["first"].replace(",", ""))
        if match["sign"]:
            second = int(match["second"])
            if match["sign"] == "^":
                value = value**second
            elif match["sign"] == "*2^":
                value *= 2**second
            else:
                value /= second if match["sign"] == "/" else 2**second
        found.append(Shown(value, (match["word"] or "").strip(), match.start("first"), match.end()))
    return found


@dataclass(frozen=True)
class Within:
    """A number that may be said by two decimals around it; all of `values` lie between them."""

    values: tuple[Fraction, ...]


Wanted = list[Fraction | Within]


def mismatch(sentence: str, wanted: Wanted) -> str | None:
    """What is wrong with the numbers of a sentence, or None: all of them are there, exact or on the right side."""
    shown = numbers_of(sentence)
    for number in wanted:
        if not shown:
            return f"{number} is not said"
        first = shown.pop(0)
        if isinstance(number, Within) and first.word == "between":
            last = shown.pop(0)
            low, high = min(number.values), max(number.values)
            if not low * (1 - _TIGHT) <= first.value <= low or not high <= last.value <= high * (1 + _TIGHT):
                return f"{first.value} and {last.value} do not enclose {number}"
            continue
        exact = number.values[0] if isinstance(number, Within) else number
        if first.value != exact or (isinstance(number, Within) and len({*number.values}) > 1):
            return f"{first.value} is said for {exact}"
        if shown and shown[0].word == "about":
            about = shown.pop(0).value
            if abs(about - exact) > abs(exact) / 10**5:
                return f"about {about} is said for {exact}"
    return f"{shown[0].value} is said, and nobody knows why" if shown else None
