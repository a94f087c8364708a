"""Inputs on which both sides of `compile.py` are tried: some drawn evenly, some skewed, some that the program is meant for.

Plain Python, because the peer's process draws the same ones.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

PAIRS = ("()", "[]", "{}")
SKEW = 0.9


def drawn(name: str, length: int, vocab: Sequence[Any], count: int) -> list[list[Any]]:
    """`count` inputs of one length: evenly drawn, mostly one token, and typical ones in turn; the same in every run.

    >>> drawn("dyck1", 4, "()", 3)[2] in (list("()()"), list("(())"))
    True
    """
    draw = random.Random(f"{name} {length} {len(vocab)}")
    kinds = (_even, _skewed, _typical)
    return [kinds[i % 3](draw, name, length, vocab) for i in range(count)]


def _even(draw: random.Random, name: str, length: int, vocab: Sequence[Any]) -> list[Any]:
    return [draw.choice(vocab) for _ in range(length)]


def _skewed(draw: random.Random, name: str, length: int, vocab: Sequence[Any]) -> list[Any]:
    common = draw.choice(vocab)
    return [common if draw.random() < SKEW else draw.choice(vocab) for _ in range(length)]


def _typical(draw: random.Random, name: str, length: int, vocab: Sequence[Any]) -> list[Any]:
    """Balanced brackets, a sum of two numbers, different tokens, a palindrome; evenly drawn where nothing is typical."""
    if "dyck" in name:
        return _balanced(draw, length, vocab)
    if name == "addition" and length % 2:
        digits = [draw.randrange(10) for _ in range(length - 1)]
        return [*digits[: length // 2], "+", *digits[length // 2 :]]
    if name == "sort_unique" and length <= len(vocab):
        return draw.sample(list(vocab), length)
    if name == "palindrome":
        half = [draw.choice(vocab) for _ in range((length + 1) // 2)]
        return [*half, *reversed(half[: length // 2])]
    return _even(draw, name, length, vocab)


def _balanced(draw: random.Random, length: int, vocab: Sequence[Any]) -> list[Any]:
    """Properly nested brackets; one other token, or an unmatched bracket where there is none, if the length is odd."""
    pairs = [pair for pair in PAIRS if set(pair) <= set(vocab)]
    text = [token for token in vocab if token not in "".join(pairs)] or list(pairs[0])
    out, open_ones = [draw.choice(text)] if length % 2 else [], []
    while len(out) + len(open_ones) < length:
        if open_ones and draw.random() < 0.5:
            out.append(open_ones.pop())
        else:
            opening, closing = draw.choice(pairs)
            out.append(opening)
            open_ones.append(closing)
    return out + open_ones[::-1]
