"""A coordinate as a sum of parts, each a function of a few variables: does it hold what its cell claims, in every case?

Parts that share variables, and the variables that the claimed node follows from, are joined into groups. Within a group all
combinations are enumerated; between groups everything adds up. The group of the claimed node must give its feature, every
other group must be constant; what differs is charged as an error, value by value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from typing import NamedTuple

from certiformer.kernel import Refused
from certiformer.kernel.meanings.rasp import Value, exact
from certiformer.kernel.situations.numbers import BITS, ceil_shift
from certiformer.kernel.situations.rasp.circuit import Cell
from certiformer.kernel.situations.rasp.fixed import Arithmetic, nearest
from certiformer.kernel.situations.rasp.state import Content, expected, expected_start, grid_between, tell_apart
from certiformer.kernel.situations.rasp.variables import Variables

DEPTH = 4 * BITS  # values of parts are in units of 2^-DEPTH


class Amount(NamedTuple):
    """What a part adds in one case: the exact value; bounds of its deviation in a run, as a whole (`moved`) and term by
    term (`carried`); the sum of the sizes of its terms, and how many of them are not zero.
    """

    value: int
    moved: int = 0
    carried: int = 0
    size: int = 0
    terms: int = 0

    def plus(self, other: Amount) -> Amount:
        return Amount(*(a + b for a, b in zip(self, other, strict=True)))

    def worse(self, other: Amount) -> Amount:
        """The larger of each; of the values, the larger deviation."""
        return Amount(*map(max, self, other))


NOTHING = Amount(0)


@dataclass(frozen=True)
class Part:
    """A function of the places of `variables`; `start` is what it adds at the beginning-of-sequence token."""

    variables: tuple[int, ...]
    at: Callable[[tuple[int, ...]], Amount]
    start: Amount


@dataclass(frozen=True)
class Sum:
    """What a coordinate gets: parts, a constant, and what is needed for the rounding of the sum (see `Arithmetic.plan`)."""

    parts: list[Part]
    constant: Amount
    products: bool = False
    weights: int = 0
    grid: int = 0
    more: int = 0  # terms that may cancel each other and are not counted


def components(sets: Iterable[Sequence[int]]) -> list[list[int]]:
    """The classes of numbers that share a set, directly or not."""
    found: list[set[int]] = []
    for members in map(set, sets):
        if members:
            apart = [group for group in found if not group & members]
            found = [*apart, members.union(*(group for group in found if group & members))]
    return [sorted(group) for group in found]


def old_part(content: Content) -> Part:
    """What a coordinate held before, as one term of the sum."""

    def amount(value: int, error: int) -> Amount:
        return Amount(value << (DEPTH - BITS), error, error, abs(value), int(value != 0 or error != 0))

    start = amount(content.start, content.start_error)
    if content.variable is None:
        return Part((), lambda places: amount(content.ideal[0], content.error[0]), start)
    return Part((content.variable,), lambda places: amount(content.ideal[places[0]], content.error[places[0]]), start)


def settle(
    arithmetic: Arithmetic, variables: Variables, total: Sum, cell: tuple[int, Cell] | None, where: str
) -> Content:
    """The new content of a coordinate; `cell` None claims that it is empty."""
    if cell is None:
        node, claimed, slack = None, [0], [0]
        reads: set[int] = set()
        start, start_slack = 0, 0
    else:
        node = cell[1].node
        claimed, slack = expected(variables, cell[1])
        reads = variables.support(node, {v for part in total.parts for v in part.variables})
        start, start_slack = expected_start(cell[1])
    worst: list[Amount | None] = [None] * len(claimed)
    base, spread = total.constant, NOTHING
    linked = variables.linked({v for part in total.parts for v in part.variables})
    groups = components([*(part.variables for part in total.parts), sorted(reads), *linked])
    for part in total.parts:
        if not part.variables:
            base = base.plus(part.at(()))
    for group in groups:
        if not reads & set(group):
            first, others = _constant_group(variables, group, total.parts)
            base, spread = base.plus(first._replace(moved=0, carried=0, size=0, terms=0)), spread.plus(others)
    group = next((group for group in groups if reads & set(group)), [])
    add = _added(group, [part for part in total.parts if part.variables and set(part.variables) <= set(group)])
    for places, values in variables.cases(group, [] if node is None else [node]):
        z, target = (0, 0) if node is None else _target(variables, node, values[0], claimed)
        amount = base.plus(add(places))
        amount = amount._replace(value=abs(amount.value - (target << (DEPTH - BITS))))
        worst[z] = amount if worst[z] is None else amount.worse(worst[z])  # type: ignore[arg-type]
    begin = reduce(Amount.plus, [part.start for part in total.parts], total.constant)
    begin = begin._replace(value=abs(begin.value - (start << (DEPTH - BITS))))
    cases = [None if amount is None else amount.plus(spread) for amount in worst]
    error = _rounding(arithmetic, total, [begin, *(amount for amount in cases if amount is not None)])
    errors = [0 if amount is None else error(amount) + s for amount, s in zip(cases, slack, strict=True)]
    if node is not None and not variables.listed(node):
        errors[:2] = [errors[0] + 1] * 2
    number, start_error = None if cell is None else cell[0], error(begin) + start_slack
    between = grid_between(variables, node)
    content = Content(node if len(claimed) > 1 else None, claimed, errors, start, start_error, number, between)
    if cell is not None:
        tell_apart(arithmetic, content, cell[1], where)
    return content


def _target(variables: Variables, node: int, value: Value, claimed: list[int]) -> tuple[int, int]:
    """The place of a value, and the number to be held; numbers too many to list all count at the first place."""
    if value is not None and not variables.listed(node):
        return 0, nearest(exact(value))[0]
    z = variables.place(node, value)
    return z, claimed[z]


def _rounding(arithmetic: Arithmetic, total: Sum, cases: list[Amount]) -> Callable[[Amount], int]:
    """The error of a sum in one of these cases."""
    bound = reduce(Amount.worse, cases)
    terms = bound.terms + total.more
    plan = arithmetic.plan_of(terms, total.products, total.weights, total.grid, bound.size, bound.carried)

    def error(amount: Amount) -> int:
        deviation = ceil_shift(amount.value, DEPTH - BITS)
        if arithmetic.form is None or not amount.terms:  # without terms, the sum is an exact zero
            return deviation + amount.moved
        absorbed = amount.carried <= plan.limit
        return deviation + (amount.carried if absorbed else amount.moved) + plan.added(amount.carried, amount.size)

    return error


def _added(group: list[int], parts: Iterable[Part]) -> Callable[[tuple[int, ...]], Amount]:
    """What the parts add together, as a function of the places of the whole group; what was computed once is kept."""
    own = [([group.index(v) for v in part.variables], cache(part.at)) for part in parts]

    def total(places: tuple[int, ...]) -> Amount:
        found = [add(tuple([places[i] for i in at])) for at, add in own]
        return Amount(*map(sum, zip(*found, strict=True))) if found else NOTHING

    return total


def _constant_group(variables: Variables, group: list[int], parts: list[Part]) -> tuple[Amount, Amount]:
    """The value of a group in its first case, and how far it may be from that in any other."""
    add = _added(group, [part for part in parts if set(part.variables) & set(group)])
    first, worst = None, NOTHING
    for places, _ in variables.cases(group):
        amount = add(places)
        first = amount if first is None else first
        worst = worst.worse(amount._replace(value=abs(amount.value - first.value)))
    if first is None:
        raise Refused("a group of variables has no case")
    return first, worst
