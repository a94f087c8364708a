"""Bounds of the scores of a head, within one group of variables and for all groups together.

With the smallest and largest D of selected keys and the largest of the others, query by query, the groups add up:

    selected - unselected >= min over groups c of (a_c + sum of b over the other groups),
    a_c = min over queries of (smallest selected - largest unselected),
    b = min over queries of (smallest selected - largest of all).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from flint import arb


@dataclass(frozen=True)
class Gaps:
    """What the scores of a head are like, in nats: bounds that hold at every query of every input.

    `over`: selected minus unselected; `selected`: the ends of D over selected keys; `unselected`: the largest D of the
    others; `apart`: how far two selected keys of one query differ; None where no such pair exists. `start`: the largest D
    when the query is the beginning-of-sequence token. All errors are included.
    """

    over: arb | None
    selected: tuple[arb, arb] | None
    unselected: arb | None
    apart: arb
    start: arb | None


@dataclass
class Group:
    """Bounds within one group, as integers in units of 2^-4 BITS; None: there is no such pair. `steady` and `loose`: the
    largest errors of selected and of all pairs, in units of 2^-3 BITS.
    """

    over: int | None
    fall: int
    least: int | None
    most: int | None
    others: int | None
    apart: int
    steady: int = 0
    loose: int = 0

    def note(self, low: int | None, high: int | None, other: int | None) -> None:
        """One more query: the ends of its selected scores, and the largest of the others."""

        def extreme(pick: Callable, *values: int | None) -> int | None:
            return pick((x for x in values if x is not None), default=None)

        self.least, self.most = extreme(min, self.least, low), extreme(max, self.most, high)
        self.others = extreme(max, self.others, other)
        if low is None or high is None:
            return
        self.apart = max(self.apart, high - low)
        self.fall = min(self.fall, low - high if other is None else low - max(high, other))
        if other is not None:
            self.over = extreme(min, self.over, low - other)
