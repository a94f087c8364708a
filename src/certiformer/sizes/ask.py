"""`certiformer.size`: from the name of a class and its parameters to a statement, a table, or what a budget buys."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from fractions import Fraction
from typing import Any

from certiformer.errors import BadInput
from certiformer.kernel import Refused
from certiformer.kernel.programs import decimal_text
from certiformer.sizes.finite import Circuits, Languages, Programs
from certiformer.sizes.kinds import Kind, positive, whole
from certiformer.sizes.lipschitz import Equivariant, Lipschitz, Symmetric
from certiformer.sizes.ridges import Ridges
from certiformer.sizes.smooth import Analytic, Smooth
from certiformer.sizes.statement import Statement

CLASSES: dict[str, type[Kind]] = {
    kind.title: kind
    for kind in (Lipschitz, Symmetric, Equivariant, Smooth, Analytic, Ridges, Circuits, Languages, Programs)
}
PARAMETERS = tuple(dict.fromkeys(each.name for kind in CLASSES.values() for each in fields(kind)))  # type: ignore[arg-type]
NEAR = Fraction(1001, 1000)  # how well the epsilon of a budget is found, before it is rounded to four digits
WIDEST = Fraction(10**30)  # epsilons from its inverse on are looked at


@dataclass(frozen=True)
class Budget:
    """What a number of weights buys: `reached` is what the construction has, `excluded` what no transformer reaches.

    Both are an epsilon, or for a class of finite functions the largest value of its `axis` that fits.
    """

    weights: int
    bits_per_weight: int
    axis: str
    reached: Fraction | int
    excluded: Fraction | int | None
    statement: Statement

    def to_json(self) -> dict[str, Any]:
        excluded = None if self.excluded is None else str(self.excluded)
        asked = {"weights": self.weights, "bits_per_weight": self.bits_per_weight}
        return {"budget": {**asked, "axis": self.axis, "reached": str(self.reached), "excluded": excluded}} | (
            self.statement.to_json()
        )


def make_class(name: str, parameters: dict[str, Any]) -> Kind:
    """The class of that name with its parameters; those that are None count as not given."""
    if name not in CLASSES:
        raise BadInput(f"--class is one of {', '.join(CLASSES)}, not {name!r}")
    wanted = {each.name: each for each in fields(CLASSES[name])}  # type: ignore[arg-type]
    given = {key: value for key, value in parameters.items() if value is not None}
    for key in given:
        if key not in wanted:
            raise BadInput(f"--class {name} has no --{key}; it has {', '.join(f'--{each}' for each in wanted)}")
    missing = [f"--{key}" for key, each in wanted.items() if each.default is MISSING and key not in given]
    if missing:
        raise BadInput(f"--class {name} needs {' and '.join(missing)}")
    return CLASSES[name](**given)


def size(
    name: str,
    *,
    eps: str | float | Fraction | None = None,
    weights: int | None = None,
    bits: int = 64,
    **parameters: Any,
) -> Statement | Budget:
    """Proved bounds of the size of a transformer for a whole class, or with `weights` what that many of them buy.

    Arguments: `name` of the class (`CLASSES`); `eps`, the error in the sup norm; `bits` of one weight, for the lower
    bounds; `parameters` of the class.

    >>> found = size("lipschitz", constant=1, dimension=2, eps="0.01")
    >>> found.upper.values, found.lower.values, found.lower.bits
    (2601, 2401, 2401)
    """
    axis = CLASSES[name].axis if name in CLASSES else "eps"
    if weights is not None and axis != "eps":  # what the budget buys need not be given
        parameters[axis] = 1
    kind, width = make_class(name, parameters), whole("bits", bits, largest=4_096)
    if weights is not None:
        if eps is not None:
            raise BadInput("give --eps or --weights: the one is what the other buys")
        return budget(kind, whole("weights", weights, largest=10**30), width)
    if kind.exact == (eps is not None):
        raise BadInput(
            f"--class {name} " + ("is exact: it takes no --eps" if kind.exact else "needs --eps or --weights")
        )
    return _statement(kind, Fraction(0) if eps is None else positive("eps", eps), width)


def sweep(kind: Kind, axis: str, values: Sequence[str], eps: Fraction, bits: int = 64) -> list[Statement]:
    """One statement for every value of an axis: `eps`, or a parameter of the class."""
    names = {each.name: getattr(kind, each.name) for each in fields(kind)}  # type: ignore[arg-type]
    if axis == "eps" and not kind.exact:
        return [_statement(kind, positive("eps", value), bits) for value in values]
    if axis not in names or isinstance(names[axis], bool | str):
        numbers = [name for name, value in names.items() if not isinstance(value, bool | str)]
        raise BadInput(f"--over is one of {', '.join([*([] if kind.exact else ['eps']), *numbers])}, not {axis!r}")
    if isinstance(names[axis], int) and not all(value.strip().isdigit() and len(value) < 10 for value in values):
        raise BadInput(f"--values of --over {axis} are whole numbers")
    read: Callable[[str], Any] = int if isinstance(names[axis], int) else str
    return [_statement(replace(kind, **{axis: read(value)}), eps, bits) for value in values]  # type: ignore[type-var]


def budget(kind: Kind, weights: int, bits: int = 64) -> Budget:
    """The smallest epsilon (the largest member of the axis) that so many weights reach, and what they cannot reach."""
    return _exact_budget(kind, weights, bits) if kind.exact else _epsilon_budget(kind, weights, bits)


def _statement(kind: Kind, epsilon: Fraction, bits: int) -> Statement:
    try:
        return kind.statement(epsilon, bits)
    except Refused as refusal:
        raise BadInput(f"no construction is known here: {refusal}") from None


def _epsilon_budget(kind: Kind, weights: int, bits: int) -> Budget:
    def suffices(epsilon: Fraction) -> bool:
        try:
            return kind.upper(epsilon).weights <= weights
        except Refused:
            return False

    reached = _threshold(suffices)
    if reached is None:
        raise BadInput(
            f"{weights:,} weights are fewer than the construction for --class {kind.title} has at any epsilon"
        )
    reached = Fraction(decimal_text(reached, up=True, digits=4))
    possible = _threshold(lambda epsilon: kind.lower(epsilon).bits <= weights * bits)
    # Just below the threshold the bits of the lower bound are more than the weights hold.
    excluded = None if possible is None else Fraction(decimal_text(possible / NEAR, up=False, digits=4))
    return Budget(weights, bits, "eps", reached, excluded, kind.statement(reached, bits))


def _threshold(true: Callable[[Fraction], bool]) -> Fraction | None:
    """Nearly the smallest epsilon with a property that larger ones keep; None if it does not lie within 1e+-30."""
    high = low = Fraction(1)
    step = 2
    while not true(high):
        if high >= WIDEST:
            return None
        low, high, step = high, min(high * step, WIDEST), step * step
    while low == high or true(low):
        if low <= 1 / WIDEST:
            return None
        low, high, step = max(low / step, 1 / WIDEST), low, step * step
    while high > low * NEAR:
        middle = Fraction(math.sqrt(low * high))
        low, high = (low, middle) if true(middle) else (middle, high)
    return high


def _exact_budget(kind: Kind, weights: int, bits: int) -> Budget:
    def at(value: int) -> Kind:
        return replace(kind, **{kind.axis: value})  # type: ignore[type-var]

    def largest(true: Callable[[Kind], bool]) -> int:
        """The largest value of the axis with a property that smaller ones keep."""
        low, high = 0, kind.largest + 1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if _holds(true, at, middle) else (low, middle)
        return low

    reached = largest(lambda member: member.upper(Fraction(0)).weights <= weights)
    if not reached:
        raise BadInput(
            f"{weights:,} weights are fewer than the construction for --class {kind.title} has at any {kind.axis}"
        )
    excluded = largest(lambda member: member.lower(Fraction(0)).bits <= weights * bits) + 1
    statement = at(reached).statement(Fraction(0), bits)
    return Budget(weights, bits, kind.axis, reached, None if excluded > kind.largest else excluded, statement)


def _holds(true: Callable[[Kind], bool], at: Callable[[int], Kind], value: int) -> bool:
    try:
        return true(at(value))
    except BadInput:  # beyond what the class allows, or below it
        return value < 2
