"""Programs that count, average and add up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from certiformer.rasp.expression import numerical
from certiformer.rasp.library.ordering import make_hist
from certiformer.rasp.library.patterns import count_where, everything, make_length, so_far
from certiformer.rasp.selectors import Aggregate, Comparison, Select, Selector, SelectorWidth
from certiformer.rasp.sequences import Full, Map, SequenceMap, SOp, indices, tokens
from certiformer.rasp.value import Value


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
