"""Reading a program as one layer: an affine function plus mixes of affine functions.

On a box, every node of an array program is read as

    node = affine + sum over its *mixes* of  act(arguments) * values   or   softmax(arguments) * values,             (*)

each mix in one row, its arguments first-order forms and its values constants. This is the shape of every construction:
heads over register tokens, or a feed-forward layer whose input is affine in x. Nothing is assumed: the remainder of a
form says how far it is from affine on the box, zero up to rounding where the network is of that shape and large
elsewhere; what an earlier layer bends ends up in remainders.

Proof of (*) by induction over the nodes. Linear maps, sums, pools and chosen rows act on both sides of (*). A function
applied to a node starts a new mix whose argument is the *form* of that node, and so does a softmax over constant
values. Every other node is read as its own form, with no mix. QED.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from flint import arb, arb_mat

from certiformer.kernel import taylor
from certiformer.kernel.arrays import Apply, ArrayProgram, Attend, Linear, Node, Pool, Rows, Sum, arguments
from certiformer.kernel.balls import ONE, ZERO, Box
from certiformer.kernel.forward import node_value, point_stream
from certiformer.kernel.stream import Stream, constants, is_zero, take_rows, transpose
from certiformer.kernel.taylor import Table


@dataclass(frozen=True)
class Mix:
    """kind(arguments) values in one row: `arguments` is a row of forms, `values` has a line for each of them."""

    row: int
    kind: str
    arguments: Stream
    values: arb_mat


@dataclass(frozen=True)
class Reading:
    """A node as (*) of the module docstring; `whole` computes its form where it has mixes, when somebody asks."""

    affine: Stream
    mixes: tuple[Mix, ...] = ()
    whole: Callable[[], Stream] | None = None

    @cached_property
    def form(self) -> Stream:
        """The form of the node as a whole."""
        return self.affine if self.whole is None else self.whole()


def read_layer(program: ArrayProgram, box: Box) -> Reading:
    """The reading of the last node on `box`."""
    table = taylor.table(box.dimension, 1)
    readings = [Reading(point_stream(table, box, program.source))]
    for node in program.nodes[1:]:
        readings.append(_read(node, readings, table))
    return readings[-1]


def entries(forms: Stream, monomial: int) -> list[arb]:
    """The coefficients of one monomial, entry after entry."""
    return forms.coef[monomial].entries() if monomial in forms.coef else [ZERO] * (forms.shape[0] * forms.shape[1])


class _Forms(Sequence[Stream]):
    """The forms of the nodes, each computed when it is looked at."""

    def __init__(self, readings: list[Reading]):
        self.readings = readings

    def __getitem__(self, position: Any) -> Any:
        return self.readings[position].form

    def __len__(self) -> int:
        return len(self.readings)


def _read(node: Node, readings: list[Reading], table: Table) -> Reading:
    def whole() -> Stream:
        return node_value(node, _Forms(readings), table)

    mixes = [mix for i in arguments(node) for mix in readings[i].mixes]
    match node:
        case Apply(kind, x):
            argument = readings[x].form
            rows, columns = argument.shape
            fresh = [Mix(r, kind, argument.rows([r]), _identity(columns)) for r in range(rows)]
            return Reading(constants(table, arb_mat(rows, columns)), tuple(fresh), whole)
        case Attend("softmax", scores, values, allowed) if _is_constant(readings[values].form) and all(allowed):
            fresh = _softmax_mixes(readings[scores].form, readings[values].form, allowed)
            return Reading(constants(table, arb_mat(len(allowed), readings[values].form.shape[1])), tuple(fresh), whole)
        case Linear():
            kept = [Mix(m.row, m.kind, m.arguments, m.values * node.weight.matrix) for m in mixes]
        case Pool():
            shares = node.weights.matrix
            kept = [
                Mix(k, m.kind, m.arguments, m.values * shares[k, m.row]) for m in mixes for k in range(shares.nrows())
            ]
        case Rows():
            places = [(k, m) for m in mixes for k, row in enumerate(node.chosen) if row == m.row]
            kept = [Mix(k, m.kind, m.arguments, m.values) for k, m in places]
        case Sum():
            kept = mixes
        case _:
            kept = []
    if not kept:
        return Reading(whole())
    return Reading(node_value(node, [reading.affine for reading in readings], table), tuple(kept), whole)


def _identity(size: int) -> arb_mat:
    return arb_mat(size, size, [ONE if i == j else ZERO for i in range(size) for j in range(size)])


def _is_constant(form: Stream) -> bool:
    return is_zero(form.rem) and all(is_zero(m) for monomial, m in form.coef.items() if monomial)


def _softmax_mixes(scores: Stream, values: Stream, allowed: tuple[tuple[int, ...], ...]) -> list[Mix]:
    numbers = values.coef.get(0, arb_mat(*values.shape))
    mixes = []
    for row, keys in enumerate(allowed):
        seen = transpose(transpose(scores.rows([row])).rows(list(keys)))
        mixes.append(Mix(row, "softmax", seen, take_rows(numbers, list(keys))))
    return mixes
