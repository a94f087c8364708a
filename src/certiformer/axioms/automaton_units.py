"""The stored hidden units of a compiled automaton, run on every situation that the rules name.

A situation is an exact whole number for every coordinate, and an interval for each slot that the head has filled.
Weights are multiples of 1/4 and sums are kept in quarters. What is needed of a run (precision p):

*Exact sums* (Lemma). If all terms are multiples of g and every partial sum is at most 2^p g, no order of additions
rounds, fused or not, as all results are numbers of the type. Partial sums lie between minus the sum of the negative
terms' sizes and the sum of the positive ones.

*Units.* An argument without a slot is a sum of multiples of 1/4: exact by the lemma if the sizes add up to at most 2^p
/ 4. One that is negative for every value of the slots, roundings included, gives 0. Any other must be a slot a alone,
which is a itself (slots are not negative), or a - c, where c >= 0 is a sum of multiples of 1/4 and a >= c for sure. If
2^m <= a, then a is a multiple of g = 2^(m + 1 - p), so is 1/4 when m <= p - 3, and partial sums lie between -c and a;
so with c <= 2^(m + 1) the unit is a - c exactly. (For a larger a, both g and the bound grow.)

*Outputs.* A slot must get -a from one unit and nothing else: it becomes 0, or stays below t where tiny numbers are
flushed. Any other coordinate gets whole numbers of quarters, and possibly w (a - c) - w (a - c') with w a power of two,
which is w (c' - c) in real arithmetic. In a run both products are exact; if nothing else is added, the sum of two
numbers whose exact result is a number of the type is exact; otherwise the terms are multiples of w g, and positive and
negative sizes must each add up to at most w 2^(m + 1).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import frexp
from typing import NamedTuple

from flint import arb

from certiformer.axioms.automaton_head import Slot
from certiformer.kernel.balls import ZERO, smaller
from certiformer.kernel.refusal import Refused
from certiformer.kernel.rounding import Format, NoBound
from certiformer.kernel.weights import Tensor

QUARTERS = 4


class Noisy(NamedTuple):
    """A unit that is the slot at a coordinate less a constant, which is in quarters."""

    slot: int
    less: int


@dataclass
class Sums:
    """The exact parts of the arguments in quarters: positive and negative sizes, and the numbers of terms."""

    up: list[int]
    down: list[int]
    terms: list[int]

    def add(self, unit: int, amount: int) -> None:
        (self.up if amount > 0 else self.down)[unit] += abs(amount)
        self.terms[unit] += 1


@dataclass(frozen=True)
class HiddenUnits:
    """One feed-forward sub-layer, sparse: what every coordinate adds to the units, and what they add to coordinates."""

    ups: dict[int, list[tuple[int, int]]]  # coordinate -> (unit, weight in quarters)
    biases: list[int]  # in quarters
    downs: list[dict[int, int]]  # unit -> coordinate -> weight

    @staticmethod
    def read(tensors: Mapping[str, Tensor], block: int) -> HiddenUnits:
        name = f"blocks.{block}.ffn"
        up, down = tensors[f"{name}.up"], tensors[f"{name}.down"]
        (width, units), ups = up.shape, {}
        if any(tensors[f"{name}.down_bias"].data):
            raise Refused("the hidden units of an automaton add a constant to every row")
        for coordinate in range(width):
            row = up.data[coordinate * units : (coordinate + 1) * units]
            found = [(unit, _quarters(weight)) for unit, weight in enumerate(row) if weight]
            if found:
                ups[coordinate] = found
        biases = [_quarters(bias) for bias in tensors[f"{name}.up_bias"].data]
        downs = [
            {c: _whole(w) for c, w in enumerate(down.data[unit * width : (unit + 1) * width]) if w}
            for unit in range(units)
        ]
        return HiddenUnits(ups, biases, downs)

    @property
    def read_coordinates(self) -> set[int]:
        return set(self.ups)

    @property
    def written_coordinates(self) -> set[int]:
        return {coordinate for row in self.downs for coordinate in row}


def _quarters(weight: float) -> int:
    if not (QUARTERS * weight).is_integer() or abs(weight) > 1024:
        raise Refused(f"a hidden unit has the weight {weight!r}, which is not a small multiple of 1/4")
    return int(QUARTERS * weight)


def _whole(weight: float) -> int:
    if not weight.is_integer() or abs(weight) > 1024:
        raise Refused(f"a hidden unit acts with the weight {weight!r}, which is not a small whole number")
    return int(weight)


class Situations:
    """Runs situations through hidden units and remembers the smallest margin of an argument with a slot."""

    def __init__(self, units: HiddenUnits, form: Format, slots: Iterable[int], must_empty: bool = True):
        self.units, self.form, self.count, self.must_empty = units, form, 0, must_empty
        self.margin: arb | None = None
        self.slots = set(slots)
        self.reads: dict[int, list[tuple[int, int]]] = {}  # unit -> (slot, weight in quarters)
        for slot in self.slots:
            for unit, weight in units.ups.get(slot, ()):
                self.reads.setdefault(unit, []).append((slot, weight))
        self._off: dict[tuple[object, ...], arb | None] = {}

    def live(
        self, held: Mapping[int, int], largest: Mapping[int, Slot], among: Iterable[int] | None = None
    ) -> tuple[Sums, list[int]]:
        """The exact parts of the arguments, and the units that may be on while no slot is above `largest`."""
        units = self.units
        count = len(units.biases)
        chosen = range(count) if among is None else among
        sums = Sums([0] * count, [0] * count, [0] * count)
        for unit in chosen:
            if units.biases[unit]:
                sums.add(unit, units.biases[unit])
        for coordinate, value in held.items():
            if value:
                for unit, weight in units.ups.get(coordinate, ()):
                    sums.add(unit, weight * value)
        if any(a + b > 2**self.form.precision for a, b in zip(sums.up, sums.down, strict=True)):
            raise Refused("the argument of a hidden unit may be rounded")
        return sums, [unit for unit in chosen if not self._is_off(unit, sums, largest)]

    def after(self, held: Mapping[int, int], slots: Mapping[int, Slot], sums: Sums, live: list[int]) -> dict[int, int]:
        """The coordinates that are not zero afterwards, slots left out: they are emptied, unless that is not asked for."""
        self.count += 1
        exact: dict[int, list[int]] = {}
        noisy: dict[int, list[tuple[int, Noisy]]] = {}
        for unit in live:
            value = self._value(unit, sums, slots)
            if value == 0:
                continue
            for coordinate, weight in self.units.downs[unit].items():
                if isinstance(value, Noisy):
                    noisy.setdefault(coordinate, []).append((weight, value))
                else:
                    exact.setdefault(coordinate, []).append(weight * value)
        if self.must_empty and not slots.keys() <= noisy.keys():
            raise Refused("a slot of the head is not emptied")
        result = {coordinate: QUARTERS * value for coordinate, value in held.items()}
        for coordinate in exact.keys() | noisy.keys():
            if coordinate in self.slots:
                if coordinate in exact or noisy[coordinate] != [(-1, Noisy(coordinate, 0))]:
                    raise Refused("a slot of the head is not emptied")
                continue
            change = self._change(exact.get(coordinate, []), noisy.get(coordinate, []), slots)
            result[coordinate] = result.get(coordinate, 0) + change
        if any(abs(value) > 2**self.form.precision for value in result.values()):
            raise Refused("a coordinate of the automaton may be rounded")
        if any(value % QUARTERS for value in result.values()):
            raise Refused("a coordinate of the automaton is not a whole number")
        return {coordinate: value // QUARTERS for coordinate, value in result.items() if value}

    def _is_off(self, unit: int, sums: Sums, slots: Mapping[int, Slot]) -> bool:
        """Whether the argument is not positive, in real arithmetic and in a run; the margin is kept."""
        exact, reads = sums.up[unit] - sums.down[unit], self.reads.get(unit)
        if not reads:
            return exact <= 0
        held = tuple((weight, slots[slot]) for slot, weight in reads)
        key = (sums.up[unit], sums.down[unit], sums.terms[unit], held)
        if key not in self._off:
            reach = sum((abs(arb(weight)) * slots[slot].high for slot, weight in reads), ZERO)
            upward = sum((arb(weight) * slots[slot].high for slot, weight in reads if weight > 0), ZERO)
            terms = sums.terms[unit] + len(reads)
            try:
                slack = self.form.gamma(terms) * (sums.up[unit] + sums.down[unit] + reach) + 4 * terms * self.form.tiny
            except NoBound as reason:
                raise Refused(f"the hidden units have no bound: {reason}") from None
            highest = exact + upward + slack
            self._off[key] = (-highest / QUARTERS).lower() if highest < 0 else None
        margin = self._off[key]
        if margin is not None:
            self._keep(margin)
        return margin is not None

    def _value(self, unit: int, sums: Sums, slots: Mapping[int, Slot]) -> int | Noisy:
        """A unit: exact in quarters, or a slot less a constant."""
        if self._is_off(unit, sums, slots):
            return 0
        reads, exact = self.reads.get(unit), sums.up[unit] - sums.down[unit]
        if not reads:
            return exact
        (slot, weight), less = reads[0], sums.down[unit]
        if len(reads) > 1 or weight != QUARTERS or sums.up[unit]:
            raise Refused("a hidden unit may round what the head brings")
        if not less:
            return Noisy(slot, 0)
        low, power = slots[slot].low, _power(slots[slot].low)
        on = (low - arb(less) / QUARTERS).lower()
        if power is None or not on >= 0:
            raise Refused("what the head brings may fall short of a threshold, or beyond it")
        if not (power <= self.form.precision - 3 and arb(less) / QUARTERS <= arb((1, power + 1))):
            raise Refused("a hidden unit may round what the head brings")
        self._keep(on)
        return Noisy(slot, less)

    def _change(self, exact: list[int], noisy: list[tuple[int, Noisy]], slots: Mapping[int, Slot]) -> int:
        """What a coordinate gets, in quarters."""
        up, down = sum(x for x in exact if x > 0), -sum(x for x in exact if x < 0)
        if up > 2**self.form.precision or down > 2**self.form.precision:
            raise Refused("the sum of hidden units may be rounded")
        if not noisy:
            return up - down
        if len(noisy) != 2 or noisy[0][0] != -noisy[1][0] or noisy[0][1].slot != noisy[1][1].slot:
            raise Refused("what the head brings reaches a coordinate without being rounded to a whole number")
        noisy = sorted(noisy, reverse=True)
        (weight, plus), (_, minus) = noisy
        slot, power = slots[plus.slot], _power(slots[plus.slot].low)
        if frexp(weight)[0] != 0.5 or power is None:
            raise Refused("a hidden unit may round what the head brings")
        if exact:
            most = weight * arb((1, power + 1))
            sizes = [arb(up) + weight * (QUARTERS * slot.high - plus.less)]
            sizes.append(arb(down) + weight * (QUARTERS * slot.high - minus.less))
            finest = power + 1 - self.form.precision + frexp(weight)[1] - 1
            if not (all(size <= QUARTERS * most for size in sizes) and finest <= -2):
                raise Refused("what the head brings may be rounded when it is added to something else")
        change = up - down + weight * (minus.less - plus.less)
        if abs(change) > 2**self.form.precision:
            raise Refused("the sum of hidden units may be rounded")
        return change

    def _keep(self, margin: arb) -> None:
        self.margin = margin if self.margin is None else smaller(self.margin, margin)


def _power(low: arb) -> int | None:
    """The largest m with 2^m <= low, for an exact positive number."""
    if not low > 0:
        return None
    power = frexp(float(low))[1]
    while not arb((1, power)) <= low:
        power -= 1
    return power
