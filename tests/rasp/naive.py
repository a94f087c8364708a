"""What a program means, straight from the page on the language: plain Python, nothing of the interpreter or the graphs.

Only the attributes of expressions are read. Fractions are `Fraction`, every rule of the page is a line or two here.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from certiformer.rasp import (
    Aggregate,
    Comparison,
    ConstantSelector,
    ConstantSOp,
    Full,
    Map,
    Select,
    SelectorAnd,
    SelectorNot,
    SelectorOr,
    SelectorWidth,
    SequenceMap,
    indices,
    length,
    tokens,
)

COMPARE = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
OTHERS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod}


class NoMeaning(Exception):
    """Values without a mean are selected together."""


def kind(x: Any) -> Any:
    """Equal exactly for the same value: the type counts, inside tuples, too; any fraction is a fraction."""
    if isinstance(x, tuple):
        return ("tuple", *map(kind, x))
    return ("fraction" if isinstance(x, Fraction) else type(x).__name__, x)


def settled(x: Any) -> Any:
    """Rule 5: a result without a fractional part is an integer. So there is no -0.0."""
    if isinstance(x, tuple):
        return tuple(map(settled, x))
    return int(x) if isinstance(x, (float, Fraction)) and x == int(x) else x


def compared(word: str, x: Any, y: Any) -> bool:
    """Rule 5: a fraction compares with a float as its nearest float does."""
    if isinstance(x, float) or isinstance(y, float):
        x, y = (float(v) if isinstance(v, Fraction) else v for v in (x, y))
    return COMPARE[word](x, y)


def operated(word: str, x: Any, y: Any) -> Any:
    if word in COMPARE:
        return compared(word, x, y)
    if word in ("and", "or"):
        return (x and y) if word == "and" else (x or y)
    if word == "/":
        return x / y if isinstance(x, float) or isinstance(y, float) else Fraction(x) / Fraction(y)
    return OTHERS[word](x, y)


def function(f: Any) -> Callable[..., Any]:
    """The function of a map, an operator by its data."""
    match type(f).__name__:
        case "Unary":
            return operator.not_ if f.symbol == "not" else operator.neg
        case "WithConstant":
            first, c = f.constant_first, f.constant
            return lambda x: operated(f.symbol, c, x) if first else operated(f.symbol, x, c)
        case "Binary":
            return lambda x, y: operated(f.symbol, x, y)
        case "Linear":
            return lambda x, y: f.first * x + f.second * y
    return f


def applied(f: Callable[..., Any], *arguments: Any) -> Any:
    """Rules 1 and 2."""
    try:
        return None if any(x is None for x in arguments) else settled(f(*arguments))
    except ZeroDivisionError:
        return None


def aggregated(selected: list[Any], default: Any) -> Any:
    """Rule 4."""
    if not selected or any(x is None for x in selected):
        return default if not selected else None
    if len(set(map(kind, selected))) == 1:
        return selected[0]
    if not all(isinstance(x, (int, float, Fraction)) for x in selected):
        raise NoMeaning(selected)
    return settled(sum(map(Fraction, selected), Fraction(0)) / len(selected))


def meaning(e: Any, xs: Sequence[Any]) -> list[Any]:
    """The values of a sequence at every position; of a selector, a row for every query."""
    here, n = range(len(xs)), len(xs)
    if isinstance(e, Aggregate):
        rows, values = meaning(e.selector, xs), meaning(e.sop, xs)
        return [aggregated([v for v, chosen in zip(values, row, strict=True) if chosen], e.default) for row in rows]
    if isinstance(e, SelectorWidth):
        return [sum(row) for row in meaning(e.selector, xs)]
    if isinstance(e, SequenceMap):
        return [applied(function(e.f), x, y) for x, y in zip(meaning(e.fst, xs), meaning(e.snd, xs), strict=True)]
    if isinstance(e, Map):
        return [applied(function(e.f), x) for x in meaning(e.inner, xs)]
    if isinstance(e, Full):
        return [e.fill] * n
    if isinstance(e, ConstantSOp):
        return [e.value[i] if i < len(e.value) else None for i in here]
    if isinstance(e, ConstantSelector):
        return [[max(q, k) < len(e.value) and e.value[q][k] for k in here] for q in here]
    if isinstance(e, SelectorNot):
        return [[not chosen for chosen in row] for row in meaning(e.inner, xs)]
    if isinstance(e, (SelectorAnd, SelectorOr)):
        join = all if isinstance(e, SelectorAnd) else any
        return [
            [join(pair) for pair in zip(*rows, strict=True)]
            for rows in zip(meaning(e.fst, xs), meaning(e.snd, xs), strict=True)
        ]
    if isinstance(e, Select):
        keys, queries = meaning(e.keys, xs), meaning(e.queries, xs)
        return [[bool(applied(predicate(e.predicate), k, q)) for k in keys] for q in queries]
    return {type(tokens): list(xs), type(indices): list(here), type(length): [n] * n}[type(e)]


def predicate(p: Any) -> Callable[..., Any]:
    if p in (Comparison.TRUE, Comparison.FALSE):
        return lambda k, q: p is Comparison.TRUE
    return (lambda k, q: compared(p.value, k, q)) if isinstance(p, Comparison) else p
