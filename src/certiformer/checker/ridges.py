"""A block that bends only along fixed directions: affine part and units act(slope . x + offset), read from the weights.

`units_of` reads one output of a stored transformer as

    T(x) = constant + linear . (x - c) + sum_u coefficient_u act(offset_u + slope_u . (x - c))  up to `slack`        (*)

on a box with centre c. Two kinds of block have this form:

* blocks whose last feed-forward input is affine in x (attention whose scores do not depend on x, like the exact
  gather, in one block or hop by hop in several): a first-order Taylor form of that input on the whole box gives
  slopes and offsets; its remainder, which is zero up to rounding for such blocks and large for any other, is the
  `error` of the unit. So nothing is assumed.
* softmax heads over two keys with constant values: V_1 + (V_0 - V_1) sigmoid(s_0 - s_1), the scores affine in x.

A relu that has one sign on the whole box is zero or affine and is not kept as a unit. So is a gelu whose argument stays
below -t or above t for some t >= 8: with Phi(-t) <= phi(t)/t, |gelu(u)| for u <= -t and |gelu(u) - u| for u >= t are at
most exp(-t^2/2), which is added to the slack (t = 40: 1e-348).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from flint import arb, fmpq

from certiformer.kernel import taylor
from certiformer.kernel.affine_softmax import Prototypes
from certiformer.kernel.balls import HALF, ONE, ZERO, BallDomain, Box
from certiformer.kernel.forward import gelu
from certiformer.kernel.functions import FormAlgebra
from certiformer.kernel.network import Network
from certiformer.kernel.problem import Function, SelectedOutput
from certiformer.kernel.refusal import Refused
from certiformer.kernel.shallow import read_layer
from certiformer.kernel.stream import Stream
from certiformer.kernel.taylor import Form, Table

# |act(u) - act(v)| <= LIPSCHITZ |u - v|. For gelu: sup |Phi(x) + x phi(x)| = 1.1289... at x = sqrt 2.
LIPSCHITZ = {"relu": ONE, "gelu": arb(fmpq(113, 100)), "identity": ONE, "sigmoid": arb(fmpq(1, 4))}
# How far from zero the argument of a unit must stay for the unit to be zero or affine.
FLAT = {"relu": ZERO, "gelu": arb(8)}


@dataclass(frozen=True)
class Unit:
    """coefficient * act(offset + slope . (x - c)), the argument known up to `error`."""

    slope: list[arb]
    offset: arb
    coefficient: arb
    error: arb


@dataclass(frozen=True)
class Units:
    """One output in the form (*) of the module docstring."""

    kind: str
    linear: list[arb]
    constant: arb
    slack: arb
    units: list[Unit]


def units_of(left: Function, domain: BallDomain) -> Units:
    """One output as affine part and units; `Refused` when the transformer is not of that form."""
    output = 0
    if isinstance(left, SelectedOutput):
        left, output = left.function, left.output
    elif left.outputs != 1:
        raise Refused("the rule ridges speaks of one output at a time")
    box = domain.box(((0, 0),) * domain.dimension)
    if isinstance(left, Prototypes):
        return _from_heads(left, output, box)
    if isinstance(left, Network):
        return _from_block(left, output, box)
    raise Refused("the rule ridges needs a transformer on its left-hand side")


def _from_block(network: Network, output: int, box: Box) -> Units:
    config = network.config
    if not config["blocks"] or config["loops"] != 1 or any(block["norm"] for block in config["blocks"]):
        raise Refused("the rule ridges needs blocks without layer norm, applied once")
    reading = read_layer(network.program, box)
    row, column = divmod(output, reading.affine.shape[1])
    # A head that writes nothing into this output is no part of it.
    mixes = [
        mix
        for mix in reading.mixes
        if mix.row == row and any(not mix.values[u, column].is_zero() for u in range(mix.values.nrows()))
    ]
    kinds = {mix.kind for mix in mixes} or {"identity"}
    if len(kinds) > 1 or not kinds <= set(FLAT) | {"identity"}:
        raise Refused("the rule ridges needs units of one kind behind an affine part")
    slope, offset, error = _entry(reading.affine, row, column, box)
    found = _add_affine(Units(kinds.pop(), [ZERO] * box.dimension, ZERO, ZERO, []), Unit(slope, offset, ONE, error))
    for mix in mixes:
        for unit in range(mix.values.nrows()):
            if not mix.values[unit, column].is_zero():
                slope, offset, error = _entry(mix.arguments, 0, unit, box)
                found = _add_unit(found, Unit(slope, offset, mix.values[unit, column], error), box)
    return found


def _entry(forms: Stream, row: int, column: int, box: Box) -> tuple[list[arb], arb, arb]:
    """Slope, value at the centre and remainder of one entry of a first-order stream."""
    slope = [ZERO] * box.dimension
    for axis, place in enumerate(forms.table.axis):
        if place in forms.coef:
            slope[axis] = forms.coef[place][row, column] / box.radius[axis]
    offset = forms.coef[0][row, column] if 0 in forms.coef else ZERO
    return slope, offset, forms.rem[row, column].upper()


def _add_affine(found: Units, unit: Unit) -> Units:
    linear = [a + unit.coefficient * b for a, b in zip(found.linear, unit.slope, strict=True)]
    constant = found.constant + unit.coefficient * unit.offset
    slack = (found.slack + unit.coefficient.abs_upper() * unit.error).upper()
    return replace(found, linear=linear, constant=constant, slack=slack)


def _add_unit(found: Units, unit: Unit, box: Box) -> Units:
    if found.kind == "identity":
        return _add_affine(found, unit)
    if found.kind in FLAT:
        reach = unit.error
        for s, r in zip(unit.slope, box.radius, strict=True):
            reach = reach + s.abs_upper() * r
        below, above = (-unit.offset - reach).lower(), (unit.offset - reach).lower()
        tail = below if below >= FLAT[found.kind] else above
        if tail >= FLAT[found.kind]:
            rest = ZERO if found.kind == "relu" else (-tail * tail * HALF).exp()
            found = replace(found, slack=(found.slack + unit.coefficient.abs_upper() * rest).upper())
            return found if tail is below else _add_affine(found, unit)
    found.units.append(unit)
    return found


def _from_heads(left: Prototypes, output: int, box: Box) -> Units:
    centre = [left.weight[i][output] * box.centre[i] for i in range(left.dimension)]
    constant = left.bias[output] + sum(centre, ZERO)
    linear = [left.weight[i][output] for i in range(left.dimension)]
    units = []
    for head in left.heads:
        values = [value[output] for value in head.values]
        if all(value.is_zero() for value in values):
            continue
        if len(values) != 2:
            raise Refused("the rule ridges needs heads over two keys, or a feed-forward part")
        constant = constant + values[1]
        slope = [a - b for a, b in zip(head.slopes[0], head.slopes[1], strict=True)]
        offset = head.offsets[0] - head.offsets[1] + sum((s * c for s, c in zip(slope, box.centre, strict=True)), ZERO)
        units.append(Unit(slope, offset, values[0] - values[1], ZERO))
    return Units("sigmoid", linear, constant, left.slack[output], units)


@dataclass(frozen=True)
class Bend:
    """coefficient * act(steepness s + offset), a unit as a function of s = direction . x."""

    steepness: arb
    offset: arb
    coefficient: arb


@dataclass(frozen=True)
class Profile:
    """slope s + shift + the sum of bends: what a transformer does along one direction. A function of one variable."""

    kind: str
    slope: arb
    shift: arb
    bends: list[Bend]

    @property
    def outputs(self) -> int:
        return 1

    def forms(self, box: Box, order: int) -> list[Form]:
        tab = taylor.table(1, order)
        s = taylor.variable(tab, box, 0)
        total = _affine(s, self.slope, self.shift)
        for bend in self.bends:
            total = taylor.add(
                total, taylor.scale(self._act(tab, _affine(s, bend.steepness, bend.offset)), bend.coefficient)
            )
        return [total]

    def _act(self, tab: Table, x: Form) -> Form:
        if self.kind == "relu":
            return taylor.relu(x)
        if self.kind == "gelu":
            return gelu(x)
        # sigmoid(x) = (1 + tanh(x/2))/2
        half = taylor.scale(FormAlgebra(tab).tanh(taylor.scale(x, HALF)), HALF)
        return taylor.add(half, taylor.constant(tab, HALF))

    def restrict(self, box: Box) -> Profile:
        """The same function on a smaller box, where more relus have one sign."""
        if self.kind != "relu":
            return self
        slope, shift, bends = self.slope, self.shift, []
        centre, radius = box.centre[0], box.radius[0]
        for bend in self.bends:
            middle, reach = bend.steepness * centre + bend.offset, bend.steepness.abs_upper() * radius
            if (middle - reach).lower() >= 0:
                slope, shift = slope + bend.coefficient * bend.steepness, shift + bend.coefficient * bend.offset
            elif not (middle + reach).upper() <= 0:
                bends.append(bend)
        return Profile(self.kind, slope, shift, bends) if len(bends) < len(self.bends) else self


def _affine(s: Form, slope: arb, offset: arb) -> Form:
    return taylor.add(taylor.scale(s, slope), taylor.constant(s.table, offset))
