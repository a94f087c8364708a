"""The results of a function as a table: the list of different ones, and the place of each result in it."""

from __future__ import annotations

from collections.abc import Sequence

from certiformer.rasp.value import Value, identities, identity, in_order


def tabulated(results: Sequence[Value]) -> tuple[tuple[Value, ...], tuple[int, ...]]:
    """The different results in order, and the place of each in that list; -1 for undefined.

    >>> tabulated(["b", None, "a", "b"])
    (('a', 'b'), (1, -1, 0, 1))
    """
    keys = identities(results)
    found = dict(zip(keys, results, strict=True))
    found.pop(identity(None), None)
    outputs = in_order(found.values())
    place = {identity(None): -1} | {key: number for number, key in enumerate(identities(outputs))}
    return outputs, tuple([place[key] for key in keys])
