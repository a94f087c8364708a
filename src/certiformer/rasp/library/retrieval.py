"""Programs that find: occurrences, patterns, what followed last time, the value that belongs to a key."""

from __future__ import annotations

from collections.abc import Sequence

from certiformer.errors import BadInput
from certiformer.rasp.library.patterns import before, count_where, everything, occurrence, shift_by, so_far, where
from certiformer.rasp.selectors import Aggregate, Comparison, Select, Selector, SelectorWidth
from certiformer.rasp.sequences import Full, Map, SequenceMap, SOp, indices, tokens
from certiformer.rasp.value import Value


def detect_pattern(sop: SOp, pattern: Sequence[Value]) -> SOp:
    """Whether the pattern ends here; undefined where it would have begun before the input."""
    if len(pattern) < 1:
        raise BadInput("a pattern has at least one value")
    found = None
    for offset, element in enumerate(reversed(pattern)):
        here = sop == element
        here = shift_by(offset, here) if offset else here
        found = here if found is None else here & found
    return found.named(f"detect_pattern({pattern})")  # type: ignore[union-attr]


def make_is_first() -> SOp:
    """Whether the token occurs here for the first time."""
    return (occurrence(tokens) == 1).named("is_first")


def make_is_last() -> SOp:
    """Whether the token does not occur again."""
    same = Select(tokens, tokens, Comparison.EQ)
    later = Select(indices, indices, Comparison.GT)
    return (SelectorWidth(same & later) == 0).named("is_last")


def make_first_occurrence(token: Value) -> SOp:
    """The position of the first occurrence of a token, at every position; undefined when there is none."""
    found = tokens == token
    number = count_where(found, so_far).named("number")
    return Aggregate(where(found) & Select(number, Full(1), Comparison.EQ), indices).named("first_occurrence")


def make_last_occurrence(token: Value) -> SOp:
    """The position of the last occurrence of a token, at every position; undefined when there is none."""
    found = tokens == token
    number = count_where(found, so_far).named("number")
    newest = Select(number, count_where(found), Comparison.EQ)
    return Aggregate(where(found) & newest, indices).named("last_occurrence")


def newest_follower() -> Selector:
    """Attends to the position after the last earlier occurrence of the token here.

    It is found by its predecessor's token and by which occurrence of it that was: no two positions share both.
    """
    previous = shift_by(1, tokens).named("previous")
    number = SelectorWidth(Select(previous, previous, Comparison.EQ) & so_far).named("number")
    matches = SelectorWidth(Select(previous, tokens, Comparison.EQ) & so_far).named("matches")
    return Select(previous, tokens, Comparison.EQ) & Select(number, matches, Comparison.EQ) & so_far


def make_induction() -> SOp:
    """The token that followed the last earlier occurrence of the token here; undefined when there was none."""
    return Aggregate(newest_follower(), tokens).named("induction")


def make_associative_recall() -> SOp:
    """For key value key value ... key: at each key the value it had when it was last seen before.

    Keys stand at even positions. At odd positions, and at keys that are new, the result is undefined.
    """
    key = SequenceMap(lambda t, i: t if i % 2 == 0 else None, tokens, indices).named("key")
    key_of_value = SequenceMap(lambda t, i: t if i % 2 == 1 else None, shift_by(1, tokens), indices).named(
        "key_of_value"
    )
    number = SelectorWidth(Select(key_of_value, key_of_value, Comparison.EQ) & so_far).named("number")
    matches = SelectorWidth(Select(key_of_value, key, Comparison.EQ) & so_far).named("matches")
    newest = Select(key_of_value, key, Comparison.EQ) & Select(number, matches, Comparison.EQ) & so_far
    return Aggregate(newest, tokens).named("associative_recall")


def make_count_after_delimiter(delimiter: Value, token: Value) -> SOp:
    """How often a token occurs after the first delimiter: one head finds it, another one counts."""
    start = make_first_occurrence(delimiter).named("start")
    after = Select(indices, start, Comparison.GT).named("after")
    return SelectorWidth(after & where(tokens == token)).named("count_after_delimiter")


def make_mean_after_delimiter(delimiter: Value) -> SOp:
    """The mean of the numbers after the first delimiter, undefined when there are none: find, then aggregate."""
    start = make_first_occurrence(delimiter).named("start")
    number = Map(lambda t: t if not isinstance(t, str) else 0, tokens).named("number")
    is_number = Map(lambda t: not isinstance(t, str), tokens).named("is_number")
    after = Select(indices, start, Comparison.GT) & where(is_number)
    return Aggregate(after, number).named("mean_after_delimiter")


def make_has_previous() -> SOp:
    """Whether the token occurred before."""
    return (Aggregate(Select(tokens, tokens, Comparison.EQ) & before, Full(1), default=0) > 0).named("has_previous")


def make_contains(token: Value) -> SOp:
    """Whether a token occurs at all, at every position."""
    return (count_where(tokens == token, everything) > 0).named("contains")
