"""Random programs for tests and benchmarks: every construct of the language, symbols and numbers, in a few steps.

A program grows from `tokens`, `indices` and `length` by steps that each combine what is already there. The seed decides
everything. Steps are drawn so that most programs have a typed graph; `random_valid_program` redraws until one has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from certiformer.errors import BadInput
from certiformer.rasp.expression import numerical
from certiformer.rasp.selectors import Aggregate, Comparison, ConstantSelector, Select, Selector, SelectorWidth
from certiformer.rasp.sequences import Full, LinearSequenceMap, Map, SequenceMap, SOp, indices, length, tokens
from certiformer.rasp.validate import validate
from certiformer.rasp.value import Value

ORDERS = (Comparison.EQ, Comparison.NEQ, Comparison.LT, Comparison.LEQ, Comparison.GT, Comparison.GEQ)


def random_program(seed: int, vocab: Sequence[str], depth: int = 8) -> SOp:
    """A program over string tokens, grown in `depth` steps.

    >>> random_program(1, "abc").name == random_program(1, "abc").name
    True
    """
    growth = _Growth(Random(seed), tuple(vocab))
    for level in range(1, depth + 1):
        growth.grow(level)
    return growth.newest


def random_valid_program(seed: int, vocab: Sequence[str], max_length: int, depth: int = 8) -> SOp:
    """The first random program from this seed on that `validate` accepts."""
    for attempt in range(1_000):
        program = random_program(seed * 1_000 + attempt, vocab, depth)
        if not validate(program, vocab, max_length):
            return program
    raise BadInput("no valid program was found in 1,000 attempts")


@dataclass
class _Growth:
    """What there is to combine, by type; the newest is taken most often, so that programs become deep."""

    rng: Random
    vocab: tuple[str, ...]
    symbols: list[SOp] = field(default_factory=lambda: [tokens])
    numbers: list[SOp] = field(default_factory=lambda: [indices, length])
    truths: list[SOp] = field(default_factory=list)
    newest: SOp = tokens

    def grow(self, level: int) -> None:
        steps = [self.add_number, self.add_symbol, self.add_truth, self.add_read, self.add_read]
        self.rng.choice(steps)()
        self.newest = self.newest.named(f"step{level}")

    def keep(self, kind: list[SOp], expr: SOp) -> None:
        kind.append(expr)
        self.newest = expr

    def number(self) -> SOp:
        return self.numbers[-1] if self.rng.random() < 0.6 else self.rng.choice(self.numbers)

    def symbol(self) -> SOp:
        return self.symbols[-1] if self.rng.random() < 0.6 else self.rng.choice(self.symbols)

    def lookup(self, values: Sequence[Value]) -> Callable[..., Value]:
        """A user's function: some value for every argument, undefined for a few."""
        salt, values = self.rng.randrange(100), tuple(values)
        undefined = self.rng.random() < 0.3

        def f(*arguments: Value) -> Value:
            place = sum(map(ord, repr(arguments))) + salt
            return None if undefined and place % 7 == 0 else values[place % len(values)]

        return f

    def add_number(self) -> None:
        x, y, c = self.number(), self.number(), self.rng.choice((-2, -1, 2, 3))
        choices: list[Callable[[], SOp]] = [
            lambda: x + c,
            lambda: c - x,
            lambda: x * c,
            lambda: -x,
            lambda: x % 3,
            lambda: x // 2,
            lambda: 6 / x,
            lambda: x + y,
            lambda: x - y,
            lambda: (x * y) % 4,
            lambda: LinearSequenceMap(x, y, 1, c),
            lambda: Map(self.lookup(range(-1, 3)), self.symbol()),
            lambda: SequenceMap(self.lookup(range(3)), x, self.symbol()),
            lambda: Map(lambda v: v + 0.5, x % 2),
            lambda: SelectorWidth(self.selector()),
        ]
        self.keep(self.numbers, self.rng.choice(choices)())

    def add_symbol(self) -> None:
        choices: list[Callable[[], SOp]] = [
            lambda: Map(self.lookup(self.vocab), self.symbol()),
            lambda: SequenceMap(self.lookup(self.vocab), self.symbol(), self.number() % 3),
            lambda: SequenceMap(lambda a, b: a if a < b else b, self.symbol(), self.symbol()),
            lambda: Map(self.lookup((*self.vocab, "z")), self.number() % 4),
        ]
        self.keep(self.symbols, self.rng.choice(choices)())

    def add_truth(self) -> None:
        x, y, c = self.number(), self.number(), self.rng.choice((0, 1, 2))
        choices: list[Callable[[], SOp]] = [
            lambda: x < c,
            lambda: x == y,
            lambda: x >= y,
            lambda: self.symbol() == self.rng.choice(self.vocab),
            lambda: self.symbol() != self.symbol(),
            lambda: (x > 1) & (self.symbol() == self.vocab[0]),
            lambda: ~(x <= c) | (y == 1),
        ]
        expr = self.rng.choice(choices)()
        self.keep(self.truths, expr)
        self.numbers.append(numerical(expr) if self.rng.random() < 0.3 else expr)

    def add_read(self) -> None:
        default = self.rng.choice((None, None, 0, 2))
        if self.rng.random() < 0.6:
            self.keep(self.numbers, Aggregate(self.selector(), self.number(), default=default))
        else:
            text = None if default is None else self.vocab[0]
            self.keep(self.symbols, Aggregate(self.one_position(), self.symbol(), default=text))

    def one_position(self) -> Selector:
        """Symbols have no mean, so they are read from one position."""
        place = self.rng.choice((indices - 1, indices + 1, length - 1 - indices, self.number(), Full(0)))
        one = Select(indices, place, Comparison.EQ)
        return one & self.selector() if self.rng.random() < 0.3 else one

    def selector(self, nested: int = 0) -> Selector:
        kind = self.rng.random()
        if nested < 2 and kind < 0.35:
            a, b = self.selector(nested + 1), self.selector(nested + 1)
            return self.rng.choice((lambda: a & b, lambda: a | b, lambda: ~a))()
        if kind < 0.4:
            return ConstantSelector([[self.rng.random() < 0.5 for _ in range(3)] for _ in range(3)], check_length=False)
        if kind < 0.5:
            limit = self.rng.choice((1, 2))
            return Select(indices, indices, lambda k, q: abs(k - q) <= limit)
        if kind < 0.55:
            return Select(tokens, self.number(), self.rng.choice((Comparison.TRUE, Comparison.FALSE)))
        source = self.symbol if kind < 0.75 else self.number
        return Select(source(), source(), self.rng.choice(ORDERS))
