"""Every situation that a cell of a looped machine can be in, run through the stored hidden units.

The statement and the proof are in `axioms.looped_machine`. Numbers that are the same in real arithmetic and in a
run are kept as integers, in quarters; what a slot holds is known to lie in an interval.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import frexp
from typing import NamedTuple

from flint import arb

from certiformer.kernel.balls import ZERO
from certiformer.kernel.refusal import Refused
from certiformer.kernel.rounding import Format
from certiformer.kernel.weights import Tensor
from certiformer.target.machine import Machine

QUARTERS = 4


class Ends(NamedTuple):
    """Whether a cell is the left and the right end of the tape, and the position coordinates that hidden units read."""

    left: bool
    right: bool
    read: tuple[float, ...]


class Noisy(NamedTuple):
    """A hidden unit that is a slot plus a constant, in quarters."""

    slot: int
    shift: int


Outputs = tuple[dict[int, int], dict[int, list[tuple[float, Noisy]]]]


@dataclass(frozen=True)
class CellWeights:
    """The hidden units, sparse and in quarters: what each coordinate adds to them, and what they add to each coordinate."""

    rest: int
    ups: list[dict[int, int]]  # coordinate -> unit -> weight
    biases: list[int]
    downs: list[dict[int, float]]  # unit -> coordinate -> weight
    read_codes: tuple[int, ...]  # position coordinates that reach a hidden unit

    @staticmethod
    def read(tensors: Mapping[str, Tensor], name: str, rest: int, width: int) -> CellWeights:
        """The weights of the sub-layer `name`; refused unless they are multiples of 1/4 and leave positions alone."""
        up, down = tensors[f"{name}.up"], tensors[f"{name}.down"]
        units = up.shape[1]
        if any(tensors[f"{name}.down_bias"].data):
            raise Refused("the hidden units of a looped machine add a constant to every cell")
        ups = [_sparse(up, coordinate, units) for coordinate in range(width)]
        downs = [
            {c: w for c, w in enumerate(down.data[unit * width : (unit + 1) * width]) if w} for unit in range(units)
        ]
        if any(coordinate >= rest for row in downs for coordinate in row):
            raise Refused("a hidden unit changes the position of a cell")
        biases = [_quarters(x) for x in tensors[f"{name}.up_bias"].data]
        return CellWeights(rest, ups, biases, downs, tuple(c for c in range(rest, width) if ups[c]))


def _sparse(up: Tensor, coordinate: int, units: int) -> dict[int, int]:
    row = up.data[coordinate * units : (coordinate + 1) * units]
    return {unit: _quarters(weight) for unit, weight in enumerate(row) if weight}


def _quarters(weight: float) -> int:
    if not (QUARTERS * weight).is_integer() or abs(weight) > 1024:
        raise Refused(f"a hidden unit has the weight {weight!r}, which is not a small multiple of 1/4")
    return int(QUARTERS * weight)


@dataclass
class Arguments:
    """The exact parts of the units' arguments in quarters: their sums, the sums of sizes and the numbers of terms."""

    sums: list[int]
    sizes: list[int]
    terms: list[int]

    def add(self, unit: int, amount: int) -> None:
        self.sums[unit] += amount
        self.sizes[unit] += abs(amount)
        self.terms[unit] += 1


class Cells:
    """The hidden units of `machine` on cells whose full slots are at most `full` and whose empty slots at most `leak`."""

    def __init__(self, machine: Machine, weights: CellWeights, form: Format, full: arb, leak: arb):
        self.machine, self.weights, self.form, self.full, self.leak = machine, weights, form, full, leak
        self.symbols, self.states = len(machine.symbols), len(machine.states)
        self.off = self.symbols * (1 + self.states)
        self.entered = sorted({machine.states.index(r) for _, move, r in machine.table.values() if move != "S"})
        slots = range(self.off + 1, weights.rest)
        self._surely_off: dict[tuple[int, int, int, tuple[tuple[int, bool], ...]], bool] = {}
        self.slots: list[list[tuple[int, int]]] = [[] for _ in weights.biases]  # unit -> (state, weight in quarters)
        for state, coordinate in enumerate(slots):
            for unit, weight in weights.ups[coordinate].items():
                self.slots[unit].append((state, weight))

    def compared(self, ends: Iterable[Ends]) -> int:
        """Compare every situation with the table; returns how many there are."""
        count = 0
        for end in ends:
            for content in range(self.off):
                state, symbol = divmod(content, self.symbols)
                head = state - 1 if state else None  # the first contents are symbols without the head
                for flag in (0, 1) if self._blocked(head, symbol, end) else (0,):
                    arguments = self._arguments(content, flag, end)
                    # A unit that is off with all its slots full is off in every other case.
                    units = [u for u in range(len(self.slots)) if not self._is_off(u, arguments, None, all_full=True)]
                    for arriving in self._arriving(head, symbol, end):
                        self._compare(head, symbol, flag, end, arriving, self._outputs(units, arguments, arriving))
                        count += 1
        return count

    def _transition(self, head: int | None, symbol: int) -> tuple[int, str, int] | None:
        states, symbols = self.machine.states, self.machine.symbols
        found = None if head is None else self.machine.transition(states[head], symbols[symbol])
        return None if found is None else (symbols.index(found[0]), found[1], states.index(found[2]))

    def _blocked(self, head: int | None, symbol: int, end: Ends) -> bool:
        """Whether the step would leave the tape."""
        step = self._transition(head, symbol)
        return step is not None and ((step[1] == "L" and end.left) or (step[1] == "R" and end.right))

    def _arriving(self, head: int | None, symbol: int, end: Ends) -> list[int | None]:
        """Which slots can be full. A cell with the head sees it only where an end of the tape looks at itself."""
        if head is None:
            return [None, *self.entered]
        step = self._transition(head, symbol)
        sees_itself = step is not None and ((step[1] == "R" and end.left) or (step[1] == "L" and end.right))
        return [step[2] if step is not None and sees_itself else None]

    def _arguments(self, content: int, flag: int, end: Ends) -> Arguments:
        weights, units = self.weights, len(self.weights.biases)
        found = Arguments([0] * units, [0] * units, [0] * units)
        for unit, bias in enumerate(weights.biases):
            if bias:
                found.add(unit, bias)
        held = [content % self.symbols] + ([content] if content >= self.symbols else []) + [self.off] * flag
        for coordinate in held:
            for unit, weight in weights.ups[coordinate].items():
                found.add(unit, weight)
        for coordinate, value in zip(weights.read_codes, end.read, strict=True):
            if value not in (-1.0, 0.0, 1.0):
                raise Refused("a hidden unit reads a position code that is not -1, 0 or 1")
            if value:
                for unit, weight in weights.ups[coordinate].items():
                    found.add(unit, int(value) * weight)
        if any(size > 2**self.form.precision for size in found.sizes):
            raise Refused("the argument of a hidden unit may be rounded")
        return found

    def _is_off(self, unit: int, arguments: Arguments, arriving: int | None, all_full: bool = False) -> bool:
        """Whether the argument is at most zero for every value of the slots, in real arithmetic and in a run."""
        exact, slots = arguments.sums[unit], self.slots[unit]
        if not slots:
            return exact <= 0
        held = tuple((weight, all_full or state == arriving) for state, weight in slots)
        key = (exact, arguments.sizes[unit], arguments.terms[unit], held)
        if key not in self._surely_off:
            reach = [(weight, abs(arb(weight)) * (self.full if full else self.leak)) for weight, full in held]
            upward = sum((size for weight, size in reach if weight > 0), ZERO)
            terms = arguments.terms[unit] + len(slots)
            rounded = arguments.sizes[unit] + sum((size for _, size in reach), ZERO)
            slack = self.form.gamma(terms) * rounded + 4 * terms * self.form.tiny
            self._surely_off[key] = bool(exact + upward + slack < 0)
        return self._surely_off[key]

    def _unit(self, unit: int, arguments: Arguments, arriving: int | None) -> int | Noisy:
        """The value of a unit: exact in quarters, or a slot plus a constant."""
        exact, slots, terms = arguments.sums[unit], self.slots[unit], arguments.terms[unit]
        if self._is_off(unit, arguments, arriving):
            return 0
        if not slots:
            return exact
        state, weight = slots[0]
        if len(slots) == 1 and weight == QUARTERS:
            if not terms:
                return Noisy(state, 0)
            if state == arriving and terms == 1 and exact in (-1, -3):
                return Noisy(state, exact)
        raise Refused("a hidden unit may round what arrives from a neighbour")

    def _compare(
        self, head: int | None, symbol: int, flag: int, end: Ends, arriving: int | None, outputs: Outputs
    ) -> None:
        exact, noisy = outputs
        held = {symbol: QUARTERS, self.off: QUARTERS * flag}
        if head is not None:
            held[self._pair(head, symbol)] = QUARTERS
        after = {coordinate: amount for coordinate, amount in held.items() if amount}
        for coordinate in range(self.off + 1):
            change = exact.get(coordinate, 0)
            if coordinate in noisy:
                if coordinate in exact:
                    raise Refused("an arrival is mixed with another change of the same coordinate")
                change = _difference(noisy[coordinate])
            if change:
                after[coordinate] = after.get(coordinate, 0) + change
        wanted = {coordinate: QUARTERS for coordinate in self._next(head, symbol, end, arriving)}
        if {coordinate: amount for coordinate, amount in after.items() if amount} != wanted:
            raise Refused(f"the block does not do what the table says {self._situation(head, symbol, arriving)}")
        for state in range(self.states):
            slot = self.off + 1 + state
            emptied = [(-1.0, Noisy(state, 0))] if state in self.entered else []
            if slot in exact or noisy.get(slot, []) != emptied:
                raise Refused("an arrival slot is not emptied")

    def _outputs(self, units: list[int], arguments: Arguments, arriving: int | None) -> Outputs:
        """What every coordinate gets: exact amounts in quarters (present even where they cancel), and noisy ones."""
        exact: dict[int, int] = {}
        sizes: dict[int, int] = {}
        noisy: dict[int, list[tuple[float, Noisy]]] = {}
        for unit in units:
            value = self._unit(unit, arguments, arriving)
            if not isinstance(value, Noisy) and not value:
                continue
            for coordinate, weight in self.weights.downs[unit].items():
                if isinstance(value, Noisy):
                    noisy.setdefault(coordinate, []).append((weight, value))
                    continue
                if not weight.is_integer() or abs(weight) > 1024:
                    raise Refused(f"a hidden unit acts with the weight {weight!r}, which is not a small integer")
                exact[coordinate] = exact.get(coordinate, 0) + int(weight) * value
                sizes[coordinate] = sizes.get(coordinate, 0) + abs(int(weight) * value)
        if any(size > 2 ** (self.form.precision - 1) for size in sizes.values()):
            raise Refused("the sum of hidden units may be rounded")
        return exact, noisy

    def _next(self, head: int | None, symbol: int, end: Ends, arriving: int | None) -> list[int]:
        """The coordinates that must be 1 after the pass, by the table."""
        if head is None:
            return [symbol] if arriving is None else [symbol, self._pair(arriving, symbol)]
        step = self._transition(head, symbol)
        if step is None or self._blocked(head, symbol, end):
            return [symbol, self._pair(head, symbol)] + ([self.off] if step is not None else [])
        write, move, following = step
        return [write] if move != "S" else [write, self._pair(following, write)]

    def _pair(self, state: int, symbol: int) -> int:
        return self.symbols + state * self.symbols + symbol

    def _situation(self, head: int | None, symbol: int, arriving: int | None) -> str:
        name, names = self.machine.symbols[symbol], self.machine.states
        if head is not None:
            return f"when {names[head]} reads {name}"
        return f"on a cell {name} that " + (
            "the head does not reach" if arriving is None else f"{names[arriving]} enters"
        )


def _difference(parts: list[tuple[float, Noisy]]) -> int:
    """c (a + b) - c (a + b') in quarters, for one slot a and a power of two c."""
    if len(parts) == 2:
        (first, left), (second, right) = parts
        if left.slot == right.slot and first == -second and frexp(abs(first))[0] == 0.5 and first.is_integer():
            return int(first) * (left.shift - right.shift)
    raise Refused("an arrival reaches a coordinate without being rounded to 0 or 1")
