"""Balanced brackets: with one pair, several shuffled pairs, and several properly nested pairs.

Depth is counted in integers, opening minus closing brackets so far, so nothing is rounded at any length.

Nested pairs. Take a sequence that is balanced when all brackets look alike. A bracket belongs to level L if it opens to
depth L or closes from it. Between an opening bracket of level L and its partner the depth stays at least L, so no other
bracket of level L lies between them: brackets of one level alternate, and the k-th closing one is the partner of the k-th
opening one. The program compares these two. A mismatch, a negative depth, or a last depth other than zero decides.
"""

from __future__ import annotations

from collections.abc import Sequence

from certiformer.errors import BadInput
from certiformer.rasp.expression import numerical
from certiformer.rasp.library.counting import make_frac_prevs
from certiformer.rasp.library.patterns import count_where, make_length, so_far
from certiformer.rasp.selectors import Aggregate, Comparison, Select, SelectorWidth
from certiformer.rasp.sequences import LinearSequenceMap, Map, SequenceMap, SOp, indices, tokens


def make_pair_balance(sop: SOp, open_token: str, close_token: str) -> SOp:
    """The fraction of positions so far that open minus the fraction that close."""
    opens = make_frac_prevs(sop == open_token)
    closes = make_frac_prevs(sop == close_token)
    return numerical(LinearSequenceMap(opens, closes, 1, -1)).named("pair_balance")


def depth_of(opening: Sequence[str], closing: Sequence[str]) -> SOp:
    """How many brackets are open after each position."""
    opens = Map(lambda t: t in opening, tokens).named("opens")
    closes = Map(lambda t: t in closing, tokens).named("closes")
    return (count_where(opens, so_far) - count_where(closes, so_far)).named("depth")


def make_shuffle_dyck(pairs: Sequence[str]) -> SOp:
    """Whether every kind of bracket is balanced by itself, at every position."""
    _check(pairs)
    verdict = None
    for opening, closing in pairs:
        depth = depth_of([opening], [closing])
        never_negative = count_where(depth < 0) == 0
        last = Aggregate(Select(indices, make_length() - 1, Comparison.EQ), depth)
        balanced = never_negative & (last == 0)
        verdict = balanced if verdict is None else verdict & balanced
    if verdict is None:
        raise BadInput("at least one pair of brackets is needed")
    return verdict.named(f"shuffle_dyck{len(pairs)}")


def make_shuffle_dyck2() -> SOp:
    """`make_shuffle_dyck` of round and curly brackets."""
    return make_shuffle_dyck(["()", "{}"])


def make_dyck(pairs: Sequence[str]) -> SOp:
    """Whether the brackets are balanced and properly nested, at every position."""
    _check(pairs)
    opening, closing = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    depth = depth_of(opening, closing)
    last = Aggregate(Select(indices, make_length() - 1, Comparison.EQ), depth)
    balanced = (count_where(depth < 0) == 0) & (last == 0)
    if len(pairs) == 1:
        return balanced.named("dyck1")
    kind = {bracket: number for number, pair in enumerate(pairs) for bracket in pair}
    role = Map(lambda t: "closes" if t in closing else "opens" if t in opening else "text", tokens).named("role")
    # A closing bracket ends the level above its depth. Both brackets of a level are numbered as they occur.
    level = SequenceMap(lambda d, r: (d + (r == "closes"), r), depth, role).named("level")
    number = SelectorWidth(Select(level, level, Comparison.EQ) & so_far).named("number")
    partner_level = Map(lambda x: (x[0], "opens") if x[1] == "closes" else x, level).named("partner_level")
    partner = Select(level, partner_level, Comparison.EQ) & Select(number, number, Comparison.EQ)
    opened = Aggregate(partner, tokens).named("opened")
    mismatch = SequenceMap(lambda t, o: kind.get(t) != kind.get(o), tokens, opened).named("mismatch")
    return (balanced & (count_where(mismatch) == 0)).named(f"dyck{len(pairs)}")


def _check(pairs: Sequence[str]) -> None:
    brackets = [bracket for pair in pairs for bracket in pair]
    if not pairs or any(len(pair) != 2 for pair in pairs) or len(set(brackets)) < len(brackets):
        raise BadInput("pairs of brackets are written like ['()', '[]'], each bracket once")
