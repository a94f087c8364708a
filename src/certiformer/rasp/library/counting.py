"""Programs that count, average and add up.

*Addition* of n digits needs no loop: whether a carry arrives is decided by the nearest column that does not hand it on.

The input is "a + b" with equally many digits, most significant first: 2 n + 1 tokens. At position i < n the result is
digit i of the sum, at position n (the sign) it is the carry out of the whole addition; later positions are undefined.

Column i has the digit sum s. It makes a carry if s >= 10, stops one if s <= 8, and hands it on if s = 9. So the carry into
a column is made by the nearest column to its right whose sum is not 9, if that is at least 10: with D(i) the number of
columns up to i whose sum is not 9, that column is the next one where D grows, which is where D = D(i) + 1 first holds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from certiformer.rasp.expression import numerical
from certiformer.rasp.library.ordering import make_hist
from certiformer.rasp.library.patterns import at_position, count_where, everything, make_length, so_far, where
from certiformer.rasp.selectors import Aggregate, Comparison, Select, Selector, SelectorWidth
from certiformer.rasp.sequences import Full, Map, SequenceMap, SOp, indices, tokens
from certiformer.rasp.value import Value


def make_addition(sign: str = "+") -> SOp:
    """The sum of two numbers of equally many decimal digits, written as digits 0 to 9 (integers) around a sign."""
    digits = ((make_length() - 1) // 2).named("digits")
    own = Map(lambda t: t if t != sign else 0, tokens).named("own")
    other = at_position(indices + digits + 1, own, default=0).named("other")
    in_first = (indices < digits).named("in_first")
    total = (own + other).named("total")
    # Only columns of the first number count; the rest neither make nor stop a carry.
    column = SequenceMap(lambda s, here: s if here else 9, total, in_first).named("column")
    decides = column != 9
    number = count_where(decides, so_far).named("number")
    makes = column >= 10
    next_one = where(decides) & Select(number, number + 1, Comparison.EQ)
    carry_in = Aggregate(next_one, makes, default=False).named("carry_in")
    digit = SequenceMap(lambda s, c: (s + c) % 10, total, carry_in).named("digit")
    leading = where(decides) & Select(number, Full(1), Comparison.EQ)
    carry_out = Aggregate(leading, makes, default=False).named("carry_out")
    which = SequenceMap(lambda a, b: "digit" if a else "carry" if b else None, in_first, indices == digits).named(
        "which"
    )
    chosen = SequenceMap(lambda w, c: (w, int(c)), which, carry_out)
    return SequenceMap(lambda w, d: d if w[0] == "digit" else w[1], chosen, digit).named("addition")


def make_frac_prevs(bools: SOp) -> SOp:
    """The fraction of positions so far where a condition holds."""
    return numerical(Aggregate(so_far, numerical(bools), default=0)).named("frac_prevs")


def make_count(sop: SOp, token: Value) -> SOp:
    """How often a value occurs, at every position."""
    return SelectorWidth(Select(sop, Full(token), Comparison.EQ)).named(f"count_{token}")


def make_count_less_freq(n: int) -> SOp:
    """How many positions have a token that occurs at most `n` times."""
    return count_where(make_hist() <= n).named("count_less_freq")


def make_majority(token: Value) -> SOp:
    """Whether a token is at more than half of the positions."""
    return (make_count(tokens, token) * 2 > make_length()).named("majority")


def make_parity(token: Value) -> SOp:
    """Whether a token occurs an odd number of times: 0 or 1."""
    return (make_count(tokens, token) % 2).named("parity")


def make_mean(among: Selector = everything) -> SOp:
    """The mean of the tokens, which are numbers."""
    return numerical(Aggregate(among, tokens)).named("mean")


def make_sum(among: Selector = everything) -> SOp:
    """The sum of the tokens: their exact mean times their number."""
    return numerical(make_mean(among) * SelectorWidth(among)).named("sum")


def make_modular_sum(modulus: int) -> SOp:
    """The sum of the tokens, which are integers, modulo a number."""
    return (make_sum() % modulus).named("modular_sum")


def make_prefix_modular_sum(modulus: int) -> SOp:
    """The sum of the tokens so far modulo a number."""
    return (make_sum(so_far) % modulus).named("prefix_modular_sum")


def make_window_sum(size: int) -> SOp:
    """The sum of the last `size` tokens, fewer at the start."""
    recent = so_far & Select(indices, indices - size, Comparison.GT)
    return make_sum(recent).named("window_sum")


def make_window_maximum(size: int) -> SOp:
    """The largest of the last `size` tokens, which are numbers."""
    largest = tokens
    for offset in range(1, size):
        # Where there is no token that far back, the first one stands in; it is in the window, too.
        earlier = Select(indices, Map(lambda i, k=offset: max(i - k, 0), indices), Comparison.EQ)
        largest = SequenceMap(max, largest, Aggregate(earlier, tokens))
    return largest.named("window_max")


def make_nary_sequencemap(f: Callable[..., Any], *sops: SOp) -> SOp:
    """A function of any number of values at the same position."""
    values, *others = sops
    for place, sop in enumerate(others):
        values = SequenceMap(_pair if place == 0 else _extend, values, sop)
    return Map(lambda arguments: f(*arguments), values) if others else Map(f, values)


def _pair(x: Value, y: Value) -> tuple[Value, Value]:
    return (x, y)


def _extend(xs: tuple, y: Value) -> tuple:
    return (*xs, y)
