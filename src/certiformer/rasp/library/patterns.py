"""Selectors and sequences that other programs are made of."""

from __future__ import annotations

from certiformer.rasp.selectors import Aggregate, Comparison, Select, Selector, SelectorWidth
from certiformer.rasp.sequences import Full, Map, SOp, indices, tokens
from certiformer.rasp.value import Value

everything = Select(indices, indices, Comparison.TRUE).named("everything")
so_far = Select(indices, indices, Comparison.LEQ).named("so_far")
before = Select(indices, indices, Comparison.LT).named("before")


def make_length() -> SOp:
    """The number of tokens, counted."""
    return SelectorWidth(everything).named("length")


def where(condition: SOp) -> Selector:
    """Attends to every position where a condition holds."""
    return Select(condition, Full(True), Comparison.EQ)


def count_where(condition: SOp, among: Selector = everything) -> SOp:
    """How many of the positions `among` those attended to have the condition."""
    return SelectorWidth(where(condition) & among)


def at_position(position: SOp, sop: SOp, default: Value = None) -> SOp:
    """The value of `sop` at a position that is computed; `default` where there is no such position."""
    return Aggregate(Select(indices, position, Comparison.EQ), sop, default)


def shift_by(offset: int, /, sop: SOp, default: Value = None) -> SOp:
    """`sop` moved to the right by `offset` positions."""
    return at_position(indices - offset, sop, default).named(f"shift_by({offset})")


def truth(sop: SOp) -> SOp:
    """True or False instead of any values that count as such."""
    return Map(bool, sop)


def occurrence(sop: SOp) -> SOp:
    """Which occurrence of its value each position is, counted from 1."""
    same = Select(sop, sop, Comparison.EQ)
    return SelectorWidth(same & so_far).named("occurrence")


def is_last_position() -> SOp:
    """Whether nothing follows."""
    return indices == make_length() - 1


def make_copy() -> SOp:
    """The input."""
    return tokens.named("copy")
