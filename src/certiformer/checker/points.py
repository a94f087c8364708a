"""Finite problems: a stored transformer evaluated in balls at given inputs, numbers or token ids.

`PointNetwork` is the checker's forward pass (`checker.network`) with two additions: it embeds token ids, and it adds
up ReLU units that look in the same direction w without visiting each of them. For units relu(s - t_i) with s = w . h
and outgoing weights d_i, sorted by threshold,

    sum_i d_i relu(s - t_i) = s sum_{i < k} d_i - sum_{i < k} d_i t_i + (the units whose sign at s is not certain),

where the first k thresholds are certainly at most s: two table look-ups instead of thousands of products. Both sides
are the same real number; the sums are kept in balls.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from flint import arb, arb_mat

from certiformer.certificate import Witness
from certiformer.checker import stream
from certiformer.checker.balls import ZERO, Box, ball, exact, larger
from certiformer.checker.network import Network
from certiformer.checker.rules.refusal import Refused
from certiformer.checker.stream import Stream
from certiformer.checker.taylor import Table, value_ball
from certiformer.target import FiniteTarget


class PointNetwork(Network):
    """A stored transformer as a function of single points; boxes are for `Network`."""

    def __init__(self, config: dict[str, Any], tensors: dict[str, Any]):
        super().__init__(config, tensors)
        self._bundles: dict[str, list[Bundle] | None] = {}

    def values(self, point: tuple[Fraction, ...]) -> list[arb]:
        """Balls around all outputs at `point`; raises `Refused` when one cannot be enclosed."""
        if len(point) != self.dimension:
            raise Refused(f"the transformer reads {self.dimension} inputs, not {len(point)}")
        box = Box(tuple(ball(x) for x in point), (ZERO,) * len(point))
        result = []
        for form in self.forms(box, 0):
            value = value_ball(form)
            if form.singular or not value.is_finite():
                raise Refused(f"the transformer's output at ({', '.join(map(str, point))}) could not be enclosed")
            result.append(value)
        return result

    def embed(self, tab: Table, box: Box) -> Stream:
        """The embedded sequence; a token id picks a row of the embedding."""
        if self.config["input"]["kind"] == "continuous":
            return super().embed(tab, box)
        rows = [self.tensors["registers"].row(r) for r in range(self.registers)]
        for t, centre in enumerate(box.centre):
            letter = centre.unique_fmpz() if centre.is_integer() else None
            if letter is None or not 0 <= letter < self.config["input"]["vocabulary"]:
                raise Refused(f"token {t + 1} of a row is not an id of the transformer's vocabulary")
            row = self.tensors["embed.weight"].row(int(letter))
            rows.append([a + b for a, b in zip(row, self._code(t), strict=True)])
        return stream.constants(tab, arb_mat(len(rows), len(rows[0]), [value for row in rows for value in row]))

    def _ffn(self, u: Stream, name: str, ffn: dict[str, Any]) -> Stream:
        if name not in self._bundles:
            self._bundles[name] = self._bundled(name) if ffn["kind"] == "relu" else None
        bundles = self._bundles[name]
        if bundles is None:
            return super()._ffn(u, name, ffn)
        bias = self.tensors[f"{name}.down_bias"].row()
        values = []
        for r in range(u.shape[0]):
            row = [value_ball(u.form(r, c)) for c in range(u.shape[1])]
            out = list(bias)
            for bundle in bundles:
                bundle.add(row, out)
            values.extend(out)
        return stream.constants(u.table, arb_mat(u.shape[0], len(bias), values))

    def _bundled(self, name: str) -> list[Bundle] | None:
        """The hidden units sorted by direction, unless nearly every unit has its own."""
        up, down = self.tensors[f"{name}.up"], self.tensors[f"{name}.down"]
        width, units = up.shape
        groups: dict[tuple[float, ...], list[int]] = {}
        for i in range(units):
            groups.setdefault(tuple(up.data[c * units + i] for c in range(width)), []).append(i)
        if 4 * len(groups) > units:
            return None
        shifts = self.tensors[f"{name}.up_bias"].row()
        return [Bundle(direction, [(-shifts[i], down.row(i)) for i in own]) for direction, own in groups.items()]


class Bundle:
    """Units relu(w . h - t_i) with outgoing rows d_i, summed by prefix sums over increasing t_i."""

    def __init__(self, direction: tuple[float, ...], units: list[tuple[arb, list[arb]]]):
        self.direction = [(c, arb(w)) for c, w in enumerate(direction) if w]
        units = sorted(units, key=lambda unit: unit[0])
        self.thresholds = [t for t, _ in units]
        used = [c for c in range(len(units[0][1])) if any(not row[c].is_zero() for _, row in units)]
        self.columns = []
        for c in used:
            slopes, offsets = [ZERO], [ZERO]
            for t, row in units:
                slopes.append(slopes[-1] + row[c])
                offsets.append(offsets[-1] + row[c] * t)
            self.columns.append((c, [row[c] for _, row in units], slopes, offsets))

    def add(self, row: list[arb] | Mapping[int, arb], out: list[arb]) -> None:
        """Add the units' contribution at the residual row to `out`."""
        s = sum((row[c] * w for c, w in self.direction), ZERO)
        if not s.is_finite():
            raise Refused("a hidden unit of the transformer could not be enclosed")
        sure, possible = bisect_right(self.thresholds, s.lower()), bisect_left(self.thresholds, s.upper())
        for c, weights, slopes, offsets in self.columns:
            out[c] = out[c] + s * slopes[sure] - offsets[sure]
            for i in range(sure, possible):
                out[c] = out[c] + weights[i] * (s - self.thresholds[i]).nonnegative_part()


@dataclass(frozen=True)
class FiniteProblem:
    """The statement `max over rows and outputs of |T(row) - y| <= bound` for a bound still to be proved."""

    network: PointNetwork
    target: FiniteTarget

    def errors(self, inputs: tuple[Fraction, ...], outputs: tuple[Fraction, ...]) -> list[arb]:
        """Balls around T - y at one row."""
        return [t - ball(y) for t, y in zip(self.network.values(inputs), outputs, strict=True)]

    def error_lower(self, witness: Witness) -> arb:
        """A lower bound of the error at the witness, which must be a row."""
        point = tuple(exact(text) for text in witness.point)
        wanted = self.target.find(point)
        if wanted is None:
            raise Refused("the recorded witness is not a row of the claim")
        if not 0 <= witness.output < len(wanted):
            raise Refused("the recorded witness names an output that does not exist")
        return larger(self.errors(point, wanted)[witness.output].abs_lower(), ZERO)
