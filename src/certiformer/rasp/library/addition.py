"""n-digit addition without a loop: whether a carry arrives is decided by the nearest column that does not hand it on.

The input is "a + b" with equally many digits, most significant first: 2 n + 1 tokens. At position i < n the result is
digit i of the sum, at position n (the sign) it is the carry out of the whole addition; later positions are undefined.

Column i has the digit sum s. It makes a carry if s >= 10, stops one if s <= 8, and hands it on if s = 9. So the carry into
a column is made by the nearest column to its right whose sum is not 9, if that is at least 10: with D(i) the number of
columns up to i whose sum is not 9, that column is the next one where D grows, which is where D = D(i) + 1 first holds.
"""

from __future__ import annotations

from certiformer.rasp.library.patterns import at_position, count_where, make_length, so_far, where
from certiformer.rasp.selectors import Aggregate, Comparison, Select
from certiformer.rasp.sequences import Full, Map, SequenceMap, SOp, indices, tokens


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
