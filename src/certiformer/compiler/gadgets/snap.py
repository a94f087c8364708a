"""Exact zeros and ones from inexact numbers, in three sub-layers, whatever the order of summation.

Y is 2 where the feature is 0 and -2 where it is 1, up to an error below 1. Then relu(Y) is exactly 0 where the feature
is 1 and at least 1 elsewhere, and relu(1 - relu(Y)) is exactly the feature. Errors of earlier layers end here: a count
that has been compared once does not carry its rounding into the next comparison.

When only the zeros must be exact (a penalty, a product), two sub-layers do: relu(Y) with the signs exchanged.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import TYPE_CHECKING

from certiformer.compiler.draft import Feature
from certiformer.compiler.features import entries, like
from certiformer.compiler.linear_form import Form

if TYPE_CHECKING:
    from certiformer.compiler.extended_to_draft import Lowering


def snapped(low: Lowering, number: int, feature: Feature) -> Generator[tuple[int, Feature], Form, Form]:
    """The form of a feature of zeros and ones; with `zero`, ones become twos."""
    alone = _of_one_input(low, number, feature)
    if alone is not None:
        return (yield alone)
    held = entries(feature)
    code = low.codes[number]
    if feature.snapped == "zero":
        rough = yield (number, like(code, tuple(2 if f else -2 for f in held)))
        kept = like(code, tuple(2 if f else 0 for f in held))
        return low.tables.written(number, kept, rough, [(-2, 0), (0, 0), (2, 2)])
    rough = yield (number, like(code, tuple(-2 if f else 2 for f in held)))
    half = low.tables.written(number, like(code, tuple(0 if f else 2 for f in held)), rough, [(-2, 0), (0, 0), (2, 2)])
    return low.tables.written(number, like(code, tuple(held)), half, [(0, 1), (1, 0), (2, 0)], downward=True)


def _of_one_input(low: Lowering, number: int, feature: Feature) -> tuple[int, Feature] | None:
    """The same question to one input of a map of two, when the other does not matter; it may even be exact."""
    node = low.nodes[number]
    if node.kind != "map" or len(node.inputs) != 2 or low.affine(node) is not None:
        return None
    if any(low.codes[i].numbers is None for i in node.inputs):
        return None
    grid = low.tables.grid(number, feature)
    table = grid.integers
    if (table == table[:1]).all():
        target, numbers = node.inputs[1], grid.numbers(table[0])
    elif (table == table[:, :1]).all():
        target, numbers = node.inputs[0], grid.numbers(table[:, 0])
    else:
        return None
    wanted = like(low.codes[target], tuple(numbers))
    return target, wanted if low.exact[target] else replace(wanted, snapped=feature.snapped)
