"""Sums of units as functions of a few variables, and one output of a transformer as such a sum:

    S(x) = constant + linear . x + sum_u coefficient_u act(offset_u + slope_u . x)  up to `slack`.

*Reading.* `units_of` reads one output of a stored transformer as S(x - c) on a box with centre c. Two kinds of block have
this form:

* blocks whose last feed-forward input is affine in x (attention whose scores do not depend on x, like the exact
  gather, in one block or hop by hop in several): a first-order Taylor form of that input on the whole box gives
  slopes and offsets; its remainder, which is zero up to rounding for such blocks and large for any other, is the
  `error` of the unit. So nothing is assumed.
* softmax heads over two keys with constant values: V_1 + (V_0 - V_1) sigmoid(s_0 - s_1), the scores affine in x.

One softmax head over more keys is read with its keys as the units: arguments are scores, coefficients are values.

A relu that has one sign on the whole box is zero or affine and is not kept as a unit. So is a gelu whose argument stays
below -t or above t for some t >= 8: with Phi(-t) <= phi(t)/t, |gelu(u)| for u <= -t and |gelu(u) - u| for u >= t are at
most exp(-t^2/2), which is added to the slack (t = 40: 1e-348).

*Enclosure.* A `UnitSum` is enclosed unit by unit in closed form. On a box the argument of a unit is u + y with u its value
at the centre and y = sum_j y_j e_j, |y| <= rho = sum_j |y_j|. So its Taylor polynomial is a polynomial in one number y, and
y^i is i! times the sum of y^a/a! over |a| = i: no products of forms are needed, and nothing but the remainder is dropped.

*Gelu.* g(u) = u Phi(u), and with Hermite polynomials He_{i+1} = u He_i - i He_{i-1}, for n >= 2,

    g^(n)(u) = u Phi^(n) + n Phi^(n-1) = (-1)^n phi(u) (He_{n-2}(u) - He_n(u)).

Cramer's inequality |He_n(u)| <= 1.09 sqrt(n!) exp(u^2/4) gives |g^(n)(v)|/n! <= C_n exp(-v^2/4), where
C_n = 1.09 (2 pi)^(-1/2) (sqrt(n!) + sqrt((n-2)!)) / n! (C_6 = 0.0192). The remainder of order k is the (k+1)st term at
some v between: at most C_{k+1} exp(-m^2/4) rho^(k+1) with m = min |v|, and also at most
(|g^(k+1)(u)|/(k+1)! + (k+2) C_{k+2} rho) rho^(k+1) by the mean value theorem; the smaller one counts.

*Gelu beside relu.* 0 <= relu(v) - g(v) = |v| Phi(-|v|), which is at most 0.17 everywhere and at most exp(-t^2/2) for
|v| >= t (as Phi(-t) <= phi(t)/t). So g is relu, by its chord, less half of that and up to half of that: better than the
Taylor polynomial on wide boxes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import factorial

from flint import arb, fmpq

from certiformer.kernel import taylor
from certiformer.kernel.affine_softmax import Prototypes, scores_at_centre
from certiformer.kernel.balls import HALF, INFINITY, ONE, ZERO, BallDomain, Box, power, smaller
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
FLAT = {"identity": -INFINITY, "relu": ZERO, "gelu": arb(8)}
CRAMER, DIP = arb(fmpq(109, 100)), arb(fmpq(17, 100))


@dataclass(frozen=True)
class Unit:
    """coefficient * act(offset + slope . x), the argument known up to `error`."""

    slope: list[arb]
    offset: arb
    coefficient: arb
    error: arb

    def reach(self, radius: Sequence[arb]) -> arb:
        """How far the argument may be from its value at the centre of a box."""
        return sum((s.abs_upper() * r for s, r in zip(self.slope, radius, strict=True)), self.error).upper()


@dataclass(frozen=True)
class UnitSum:
    """The function S of the module docstring; `kind` is relu, gelu, sigmoid, or identity where there are no units."""

    kind: str
    linear: list[arb]
    constant: arb
    units: list[Unit]
    slack: arb = ZERO

    @property
    def outputs(self) -> int:
        return 1

    def forms(self, box: Box, order: int) -> list[Form]:
        tab = taylor.table(box.dimension, order)
        coef, rem = [ZERO] * tab.size, self.slack
        coef[0] = self.constant + _dot(self.linear, box.centre)
        rem = rem + _add_line(tab, coef, ONE, [a * r for a, r in zip(self.linear, box.radius, strict=True)])
        for unit in self.units:
            y = [s * r for s, r in zip(unit.slope, box.radius, strict=True)]
            rem = rem + self._add(tab, coef, unit, unit.offset + _dot(unit.slope, box.centre), y)
            rem = rem + unit.coefficient.abs_upper() * LIPSCHITZ[self.kind] * unit.error
        form = Form(tab, {i: c for i, c in enumerate(coef) if not c.is_zero()}, rem.upper(), -INFINITY, INFINITY)
        form.low, form.high = taylor.bounds(form)
        return [form]

    def _add(self, tab: Table, coef: list[arb], unit: Unit, u: arb, y: list[arb]) -> arb:
        """Add one unit to the coefficients; returns what it adds to the remainder."""
        rho = sum((part.abs_upper() for part in y), ZERO).upper()
        low, high = (u - rho).lower(), (u + rho).upper()
        factor, size = unit.coefficient, unit.coefficient.abs_upper()
        if self.kind == "sigmoid":
            form = _sigmoid(tab, u, y)
            for place, c in form.coef.items():
                coef[place] = coef[place] + factor * c
            return size * form.rem
        slope, beyond = taylor.chord(low, high)
        middle = beyond
        if self.kind == "gelu":
            dip = _dip(low, high) * HALF
            series = _gelu(u, tab.order)
            remainder = _remainder(series[-1], tab.order, rho, low, high)
            if remainder < beyond + dip:
                _add_powers(tab, coef, [factor * t for t in series[:-1]], y)
                return size * remainder
            middle, beyond = beyond - dip, beyond + dip
        coef[0] = coef[0] + factor * (slope * u + middle)
        return size * beyond + _add_line(tab, coef, factor * slope, y)

    def restrict(self, box: Box) -> UnitSum:
        """The same function on a smaller box, where more units are zero or affine."""
        if self.kind not in FLAT:
            return self
        kept, linear, constant, slack, far = [], self.linear, self.constant, self.slack, FLAT[self.kind]
        for unit in self.units:
            u, reach, size = (
                unit.offset + _dot(unit.slope, box.centre),
                unit.reach(box.radius),
                unit.coefficient.abs_upper(),
            )
            low, high = (u - reach).lower(), (u + reach).upper()
            if self.kind == "identity" or low >= far:
                linear = [a + unit.coefficient * s for a, s in zip(linear, unit.slope, strict=True)]
                constant, slack = constant + unit.coefficient * unit.offset, slack + size * unit.error
            elif not high <= -far:
                kept.append(unit)
                continue
            if self.kind == "gelu":
                slack = slack + size * _dip(low, high)
        if len(kept) == len(self.units):
            return self
        return replace(self, linear=linear, constant=constant, units=kept, slack=slack.upper())


def units_of(left: Function, domain: BallDomain) -> UnitSum:
    """One output as affine part and units of x - c; `Refused` when the transformer is not of that form."""
    output = 0
    if isinstance(left, SelectedOutput):
        left, output = left.function, left.output
    elif left.outputs != 1:
        raise Refused("the rule split speaks of one output at a time")
    box = domain.box(((0, 0),) * domain.dimension)
    if isinstance(left, Prototypes):
        return _from_heads(left, output, box)
    if isinstance(left, Network):
        return _from_block(left, output, box).restrict(Box((ZERO,) * box.dimension, box.radius))
    raise Refused("the rule split needs a transformer on its left-hand side")


def _from_block(network: Network, output: int, box: Box) -> UnitSum:
    config = network.config
    if not config["blocks"] or config["loops"] != 1 or any(block["norm"] for block in config["blocks"]):
        raise Refused("the rule split needs blocks without layer norm, applied once")
    network.require_room(1 + box.dimension)
    reading = read_layer(network.program, box)
    row, column = divmod(output, reading.affine.shape[1])
    # A head that writes nothing into this output is no part of it.
    written = [
        (mix, unit)
        for mix in reading.mixes
        for unit in range(mix.values.nrows())
        if mix.row == row and not mix.values[unit, column].is_zero()
    ]
    kinds = {mix.kind for mix, _ in written} or {"identity"}
    if len(kinds) > 1 or not kinds <= set(FLAT):
        raise Refused("the rule split needs units of one kind behind an affine part")
    units = [_entry(mix.arguments, 0, unit, mix.values[unit, column], box) for mix, unit in written]
    affine = _entry(reading.affine, row, column, ONE, box)
    return UnitSum(kinds.pop(), affine.slope, affine.offset, units, affine.error)


def _entry(forms: Stream, row: int, column: int, coefficient: arb, box: Box) -> Unit:
    """One entry of a first-order stream as the argument of a unit."""
    slope = [ZERO] * box.dimension
    for axis, place in enumerate(forms.table.axis):
        if place in forms.coef:
            slope[axis] = forms.coef[place][row, column] / box.radius[axis]
    offset = forms.coef[0][row, column] if 0 in forms.coef else ZERO
    return Unit(slope, offset, coefficient, forms.rem[row, column].upper())


def _from_heads(left: Prototypes, output: int, box: Box) -> UnitSum:
    grid = len(left.heads) == 1 and len(left.heads[0].offsets) > 2
    if grid:
        left = left.registers_only(box)
    linear = [line[output] for line in left.weight]
    constant, units = left.bias[output] + _dot(linear, box.centre), []
    for head in left.heads:
        scores = scores_at_centre(head, box)
        keys = [Unit(*key, ZERO) for key in zip(head.slopes, scores, (v[output] for v in head.values), strict=True)]
        if grid:
            units = keys
        elif not all(key.coefficient.is_zero() for key in keys):
            if len(keys) != 2:
                raise Refused("the rule split needs heads over two keys, or a feed-forward part")
            (first, second), difference = keys, [a - b for a, b in zip(keys[0].slope, keys[1].slope, strict=True)]
            constant = constant + second.coefficient
            units.append(Unit(difference, first.offset - second.offset, first.coefficient - second.coefficient, ZERO))
    return UnitSum("softmax" if grid else "sigmoid", linear, constant, units, left.slack[output])


def _sigmoid(tab: Table, u: arb, y: list[arb]) -> Form:
    """(1 + tanh(x/2))/2 at x = u + y."""
    coef = {place: part for place, part in zip(tab.axis, y, strict=False) if not part.is_zero()}
    rem = ZERO if tab.order else sum((part.abs_upper() for part in y), ZERO).upper()
    x = Form(tab, {0: u, **coef}, rem, -INFINITY, INFINITY)
    half = taylor.scale(FormAlgebra(tab).tanh(taylor.scale(x, HALF)), HALF)
    return taylor.add(half, taylor.constant(tab, HALF))


def _dot(a: Sequence[arb], b: Sequence[arb]) -> arb:
    return sum((x * y for x, y in zip(a, b, strict=True)), ZERO)


def _add_line(tab: Table, coef: list[arb], factor: arb, y: list[arb]) -> arb:
    """Add factor * y to the coefficients; what a table of order 0 has no place for is returned."""
    if tab.order == 0:
        return sum(((factor * part).abs_upper() for part in y), ZERO)
    for place, part in zip(tab.axis, y, strict=True):
        coef[place] = coef[place] + factor * part
    return ZERO


def _add_powers(tab: Table, coef: list[arb], series: list[arb], y: list[arb]) -> None:
    """Add sum_i series_i y^i to the coefficients."""
    terms = [t * factorial(i) for i, t in enumerate(series)]
    powers = [ONE]  # y^a / a!
    coef[0] = coef[0] + series[0]
    for place, (parent, axis, exponent, degree) in enumerate(tab.steps, 1):
        value = powers[parent] * y[axis]
        powers.append(value if exponent == 1 else value / exponent)
        coef[place] = coef[place] + terms[degree] * powers[place]


def _dip(low: arb, high: arb) -> arb:
    """An upper bound of relu - gelu on [low, high]."""
    distance = low if low > 0 else -high if high < 0 else ZERO
    return smaller(DIP, (-distance * distance * HALF).exp().upper())


def _gelu(u: arb, order: int) -> list[arb]:
    """Taylor coefficients of gelu at u, from 0 to order + 1."""
    below = (-u * arb(2).rsqrt()).erfc() * HALF
    density = (-u * u * HALF).exp() * (2 * arb.pi()).rsqrt()
    series, hermite = [u * below, below + u * density], [ONE, u]
    for n in range(2, order + 2):
        hermite.append(u * hermite[n - 1] - (n - 1) * hermite[n - 2])
        sign = density if n % 2 == 0 else -density
        series.append(sign * (hermite[n - 2] - hermite[n]) / factorial(n))
    return series[: order + 2]


@lru_cache(maxsize=32)
def _cramer(n: int) -> arb:
    """C_n of the module docstring, n >= 2; for n = 1 the largest slope of gelu, 1.1289..."""
    if n == 1:
        return arb(fmpq(113, 100))
    sizes = arb(factorial(n)).sqrt() + arb(factorial(n - 2)).sqrt()
    return (CRAMER * (2 * arb.pi()).rsqrt() * sizes / factorial(n)).upper()


def _remainder(following: arb, order: int, rho: arb, low: arb, high: arb) -> arb:
    """The remainder of gelu's Taylor polynomial: the bounds of the module docstring, `following` the next coefficient."""
    n = order + 1
    distance = low if low > 0 else -high if high < 0 else ZERO
    fading = (-distance * distance / 4).exp() if n >= 2 else ONE
    near = following.abs_upper() + (n + 1) * _cramer(n + 1) * rho
    return (smaller((_cramer(n) * fading).upper(), near.upper()) * power(rho, n)).upper()
