"""Programs that move whole values: reversing, sorting, shifting, finding the smallest and the largest."""

from __future__ import annotations

from certiformer.rasp.library.patterns import before, make_length
from certiformer.rasp.selectors import Aggregate, Comparison, Select, Selector, SelectorWidth
from certiformer.rasp.sequences import Full, SequenceMap, SOp, indices, tokens


def make_reverse(sop: SOp) -> SOp:
    """The values from last to first."""
    opposite = (make_length() - indices - 1).named("opposite")
    return Aggregate(Select(indices, opposite, Comparison.EQ).named("mirror"), sop).named("reverse")


def comes_before(keys: SOp, ties: Selector = before) -> Selector:
    """Attends to every position that sorting by `keys` puts earlier; equal keys keep their order."""
    return Select(keys, keys, Comparison.LT) | (Select(keys, keys, Comparison.EQ) & ties)


def sort_by(vals: SOp, keys: SOp) -> SOp:
    """`vals` in the order of `keys`; equal keys keep their order, and keys may be strings or numbers."""
    rank = SelectorWidth(comes_before(keys)).named("rank")
    return Aggregate(Select(rank, indices, Comparison.EQ), vals).named("sort")


def make_sort_unique(vals: SOp, keys: SOp) -> SOp:
    """`vals` in the order of `keys` that are all different; where keys repeat, later places stay undefined."""
    rank = SelectorWidth(Select(keys, keys, Comparison.LT)).named("rank")
    return Aggregate(Select(rank, indices, Comparison.EQ), vals).named("sort_unique")


def make_sort(vals: SOp, keys: SOp, *, max_seq_len: int | None = None, min_key: float | None = None) -> SOp:
    """`vals` in the order of `keys`. The two last arguments are accepted for programs written for Tracr.

    Ties are broken by position exactly, so no bound on the length or on the keys is needed.
    """
    del max_seq_len, min_key
    return sort_by(vals, keys)


def make_hist() -> SOp:
    """How often the token at each position occurs in the input."""
    return SelectorWidth(Select(tokens, tokens, Comparison.EQ).named("same")).named("hist")


def make_sort_freq(max_seq_len: int | None = None) -> SOp:
    """The tokens by how often they occur, most frequent first; equally frequent ones keep their order."""
    del max_seq_len
    return sort_by(tokens, -make_hist()).named("sort_freq")


def first_in_order(sop: SOp, keys: SOp) -> SOp:
    """The value of `sop` at the position whose key is smallest (the first such position), at every position."""
    rank = SelectorWidth(comes_before(keys)).named("rank")
    return Aggregate(Select(rank, Full(0), Comparison.EQ), sop)


def make_minimum() -> SOp:
    """The smallest token, at every position."""
    return first_in_order(tokens, tokens).named("min")


def make_maximum() -> SOp:
    """The largest token, at every position."""
    rank = SelectorWidth(comes_before(tokens)).named("rank")
    return Aggregate(Select(rank, make_length() - 1, Comparison.EQ), tokens).named("max")


def make_most_frequent() -> SOp:
    """The token that occurs most often (the first to appear among equals), at every position."""
    return first_in_order(tokens, -make_hist()).named("most_frequent")


def make_palindrome() -> SOp:
    """Whether the input reads the same from both ends, at every position."""
    differs = SequenceMap(lambda a, b: a != b, tokens, make_reverse(tokens)).named("differs")
    return (SelectorWidth(Select(differs, Full(True), Comparison.EQ)) == 0).named("palindrome")
