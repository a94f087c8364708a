"""Random programs over values that are equal and not the same: True and 1, 0 and False, 0.5 and 1/2, tuples of them.

The functions tell such values apart, and -0.0, 1.0 and Fraction(1) are among what they return.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from random import Random
from typing import Any

from certiformer.rasp import (
    Aggregate,
    Comparison,
    Full,
    LinearSequenceMap,
    Map,
    Select,
    Selector,
    SelectorWidth,
    SequenceMap,
    SOp,
    indices,
    length,
    numerical,
    tokens,
)
from rasp.naive import kind

NUMBERS = (True, 1, False, 0, 1.0, -0.0, 0.0, Fraction(1), 2, 0.5, Fraction(1, 2), -1)
TRUTHS = (True, 1, False, 0)
SYMBOLS = (True, 1, "1", (True,), (1,), "a", (False, 0.5), (0, Fraction(1, 2)))
ORDERS = (Comparison.LT, Comparison.LEQ, Comparison.GT, Comparison.GEQ, Comparison.NEQ)


class TwinGrowth:
    """What there is to combine; the newest is taken most often."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.numbers: list[SOp] = [self.table(TRUTHS), self.table(NUMBERS)]
        self.symbols: list[SOp] = [tokens, self.table(SYMBOLS)]
        self.positions: list[SOp] = [indices, length]

    def one(self, kept: list[SOp]) -> SOp:
        return kept[-1] if self.rng.random() < 0.6 else self.rng.choice(kept)

    def lookup(self, results: tuple) -> Callable[..., Any]:
        """A function that tells True from 1: its result depends on the type, too."""
        results = tuple(self.rng.sample(results, min(len(results), self.rng.choice((2, 3, 4)))))
        salt = self.rng.randrange(1_000)

        def f(*arguments: Any) -> Any:
            text = "".join(str(kind(x)).replace("Ratio", "Fraction") for x in arguments)
            return results[(sum(map(ord, text)) * 7 + salt) % len(results)]

        return f

    def table(self, results: tuple) -> SOp:
        return Map(self.lookup(results), tokens)

    def grow(self) -> SOp:
        kept, made = self.rng.choice(
            (
                (self.numbers, self.number),
                (self.numbers, self.read),
                (self.numbers, self.read),
                (self.symbols, self.symbol),
                (self.symbols, self.read_symbol),
                (self.positions, self.position),
            )
        )
        new = made()
        kept.append(new)
        return new

    def number(self) -> SOp:
        x, y = self.one(self.numbers), self.one(self.numbers)
        return self.rng.choice(
            (
                lambda: Map(self.lookup(NUMBERS), self.one(self.symbols)),
                lambda: Map(self.lookup(TRUTHS), x),
                lambda: SequenceMap(self.lookup(NUMBERS), x, self.one(self.symbols)),
                lambda: x + self.rng.choice((0, True, 1, 0.5, Fraction(1, 2))),
                lambda: x * self.rng.choice((1, True, 1.0, Fraction(1, 2), 0.5)),
                lambda: x == y,
                lambda: x == self.rng.choice((1, True, 0, False, 0.5, Fraction(1, 2))),
                lambda: x & y,
                lambda: x | self.rng.choice((0, False, 1, True)),
                lambda: ~x,
                lambda: -x,
                lambda: numerical(x + y),
                lambda: LinearSequenceMap(x, y, self.rng.choice((1, True, 0.5, Fraction(1, 2))), 1),
            )
        )()

    def symbol(self) -> SOp:
        x = self.one(self.numbers)
        return self.rng.choice(
            (
                lambda: Map(self.lookup(SYMBOLS), x),
                lambda: SequenceMap(lambda a, b: (a, b), x, self.one(self.positions) == 1),
                lambda: SequenceMap(self.lookup(SYMBOLS), x, self.one(self.symbols)),
                lambda: Full(self.rng.choice(SYMBOLS)),
            )
        )()

    def position(self) -> SOp:
        x = self.one(self.numbers)
        return self.rng.choice(
            (
                lambda: SelectorWidth(self.selector()),
                lambda: SelectorWidth(Select(x, x, self.rng.choice(ORDERS))),
                lambda: SelectorWidth(Select(x, x, Comparison.EQ) & Select(indices, indices, Comparison.LT)),
                lambda: length - 1 - indices,
            )
        )()

    def read(self) -> SOp:
        default = self.rng.choice((None, None, 0, False, 1, True, 0.5))
        selector = self.rng.choice((self.selector, self.agreeing))()
        return Aggregate(selector, self.one(self.numbers), default=default)

    def read_symbol(self) -> SOp:
        default = self.rng.choice((None, True, 1, (True,), (1,)))
        selector = self.rng.choice((self.agreeing, self.one_position))()
        return Aggregate(selector, self.one(self.symbols), default=default)

    def agreeing(self) -> Selector:
        """Positions with equal keys: twins are selected together."""
        keys = self.one(self.rng.choice((self.numbers, self.symbols)))
        rank = SelectorWidth(Select(self.numbers[0], self.numbers[0], self.rng.choice(ORDERS[:4])))
        keys = self.rng.choice((keys, keys, rank))
        return Select(keys, self.rng.choice((keys, keys, self.one(self.numbers))), Comparison.EQ)

    def one_position(self) -> Selector:
        return Select(indices, self.rng.choice((self.one(self.positions), self.one(self.numbers))), Comparison.EQ)

    def selector(self) -> Selector:
        x, y = self.one(self.numbers), self.one(self.numbers)
        told_apart = self.lookup((True, False))
        return self.rng.choice(
            (
                lambda: Select(x, y, Comparison.EQ),
                lambda: Select(x, y, self.rng.choice(ORDERS)),
                lambda: Select(x, y, told_apart),
                lambda: Select(indices, indices, Comparison.LEQ),
                lambda: Select(tokens, tokens, Comparison.TRUE),
                lambda: ~Select(x, y, Comparison.EQ),
                lambda: Select(x, x, Comparison.EQ) & Select(indices, indices, Comparison.LEQ),
                lambda: Select(x, y, Comparison.EQ) | Select(indices, indices, Comparison.EQ),
            )
        )()


def twin_program(seed: int, steps: int = 4) -> SOp:
    """A program grown in a few steps; the seed decides everything."""
    growth = TwinGrowth(seed)
    made = [growth.grow() for _ in range(steps)]
    return made[-1]
