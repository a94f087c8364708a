"""The inputs of a program: all of them where they are few, the shortest ones where they are many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, product

from certiformer.rasp.value import Value


def all_inputs(vocab: Sequence[Value], length: int) -> Iterator[tuple[Value, ...]]:
    """Every sequence of 1 to `length` tokens, shortest first.

    >>> ["".join(xs) for xs in all_inputs("ab", 2)]
    ['a', 'b', 'aa', 'ab', 'ba', 'bb']
    """
    for n in range(1, length + 1):
        yield from product(vocab, repeat=n)


def count_inputs(vocab: Sequence[Value], length: int) -> int:
    """How many there are."""
    return length if len(vocab) == 1 else (len(vocab) ** (length + 1) - len(vocab)) // (len(vocab) - 1)


def first_inputs(vocab: Sequence[Value], length: int, limit: int) -> tuple[list[tuple[Value, ...]], bool]:
    """The shortest `limit` inputs, and whether these are all."""
    some = list(islice(all_inputs(vocab, length), limit + 1))
    return some[:limit], len(some) <= limit
