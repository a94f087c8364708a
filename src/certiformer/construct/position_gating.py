"""A feed-forward layer shared by all positions computes a different function at each: units are switched off by position.

The feed-forward weights are shared by all positions, so a unit meant for some of them is switched off at the others by
a large negative weight on their one-hot codes. Affine
parts go where they cost least: constants that differ by position are read off the code, a slope that all positions
share off the gathered numbers, a slope on the position's own token off that token, and what remains becomes one gated
unit relu(l.x + s) - s that is always active at its position.

A gelu is switched off and on the same way, `TAIL` beyond: |gelu(u)| and |gelu(-u) + u| are below exp(-u^2/2) for u <= 0
(Phi(-t) <= phi(t)/t), which is 1e-348 at u = -40.

Statement
    Let every token t see the whole sequence x (`exact_gather`) and its one-hot code e_t. On a box let
    B >= sup (w.x + b). Then

        relu(w.x + b - B <e_s, code>)     is 0 at position s and relu(w.x + b) at every other one,
        relu(w.x + b - B + B <e_s, code>) is relu(w.x + b) at position s and 0 at every other one.

    A unit that is nonnegative on the box is affine there. Hence for any affine maps F_1, ..., F_n on the box there is
    one block with relu units whose output at position t is F_t(x), exactly: with s_t >= sup (-F_t) one unit
    relu(F_t(x) + s_t - B_t + B_t <e_t, code>) for each output and the constant -s_t read off the code.

Source
    The usual one-hot gate of constructive proofs, as in yun2020, with an explicit constant; derived here.

Differs from the source in
    Gates are exact on the box instead of approximate, and constants that differ by position cost no unit.

Proof
    Where the code's entry subtracts B, the argument is at most sup (w.x + b) - B <= 0. Elsewhere nothing is subtracted.
    On a box where every unit has one sign at every position that is read, each is zero or affine, so that T is affine
    at every position; the difference to the affine target is largest at a corner. QED.

Assumptions
    none: the certificate encloses the difference by one first-order form on the whole box; a gate that is too small leaves
    a unit without a sign, and the form is then wide.

Certified
    sup |T - f| <= bound over all positions for the exact stored weights (rule *boxes*, one leaf); the rounding of gates,
    biases and of the gather is in the enclosure.

Not certified
    Anything outside the box, where a gate may open; the rounding of a floating-point run.

Example
    >>> gate = lambda x, position: max(3 * x - 1 - 2 * (position == 1), 0)  # sup of 3x - 1 on [0, 1] is 2
    >>> [gate(x, 1) for x in (0, 0.5, 1)], [gate(x, 2) for x in (0, 0.5, 1)]
    ([0, 0, 0], [0, 0.5, 2])

Tests
    tests/theorems/test_position_gating.py
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from certiformer.construct.method import Shape
from certiformer.errors import BadInput

THEOREM = {
    "id": "construct.position_gating",
    "title": "A shared feed-forward layer computes a different function at each position: units are switched off "
    "by position.",
    "kind": "exact",
    "sources": ("yun2020",),
    "verb": "build",
    "assumptions": (),
    "uses": ("construct.exact_gather",),
}

Vector = Float[np.ndarray, " n"]
Matrix = Float[np.ndarray, "n m"]

# A gate is larger than it must be by this share of the largest terms of its unit: the gathered numbers carry rounding
# of some 2^-50 of their size, and a gate that is too small by that much would let a little of the unit through.
GATE_ROOM = 2.0**-20
# How far beyond zero the argument of a unit must lie for the unit to count as off, or as affine.
TAIL = {"relu": 0.0, "gelu": 40.0}


class Ridges(NamedTuple):
    """The function of the module docstring; `coefficients` and `constant` are flat over (out token, out coordinate)."""

    linear: Float[np.ndarray, "inputs outputs"]
    constant: Float[np.ndarray, " outputs"]
    weights: Float[np.ndarray, "units inputs"]
    bias: Float[np.ndarray, " units"]
    coefficients: Float[np.ndarray, "units outputs"]


class Feed(NamedTuple):
    """What the feed-forward part and the read-out compute on the row that is read, by role of the coordinates.

    `read` takes the gathered or own numbers, `own` the token's own numbers (per position only), `position` the one-hot
    code.
    """

    up: Float[np.ndarray, "units inputs"]
    gate: Float[np.ndarray, "units tokens"]
    bias: Float[np.ndarray, " units"]
    down: Float[np.ndarray, "units out"]
    read: Float[np.ndarray, "inputs out"]
    own: Float[np.ndarray, "width out"]
    position: Float[np.ndarray, "tokens out"]
    constant: Float[np.ndarray, " out"]


def gated(shape: Shape, low: Vector, high: Vector, ridges: Ridges, activation: str) -> Feed:
    """Units gated to the positions that use them; affine parts where they cost least."""
    n, width = shape.tokens, shape.out_width
    gates = _Gates(low, high, n, width, TAIL.get(activation, math.inf))
    for w, b, coefficients in zip(ridges.weights, ridges.bias, ridges.coefficients, strict=True):
        rows = coefficients.reshape(n, width)
        for row in np.unique(rows[rows.any(axis=1)], axis=0):
            gates.add(w, float(b), row, (rows == row).all(axis=1))
    read, own, rest = _shared_linear(ridges.linear.reshape(n, shape.width, n, width))
    constant = ridges.constant.reshape(n, width).copy()
    for t, o in np.argwhere(rest.any(axis=(0, 1))):
        slope = rest[:, :, t, o].ravel()
        # Lifted so far that the unit stays active on the whole box, with room for rounding.
        lift = gates.largest(-slope, 0.0) + gates.tail
        gates.add(slope, lift, np.eye(width)[o], np.arange(n) == t)
        constant[t, o] -= lift
    if activation not in TAIL and gates.gated:
        raise BadInput(f"different outputs by position need units that can be switched off, not {activation} units")
    same = (constant == constant[0]).all(axis=0)
    position, shared = np.where(same, 0.0, constant), np.where(same, constant[0], 0.0)
    return Feed(*gates.arrays(), read.reshape(-1, width), own, position, shared)


@dataclass
class _Gates:
    """Units with the positions at which they work."""

    low: Vector
    high: Vector
    tokens: int
    outputs: int
    tail: float

    def __post_init__(self) -> None:
        self.units: list[tuple[Vector, Vector, float, Vector]] = []
        self.gated = False

    def largest(self, weights: Vector, bias: float) -> float:
        """More than sup (weights . x + bias) on the box, and at least 0."""
        ends = np.maximum(weights * self.low, weights * self.high)
        sizes = np.abs(weights) * np.maximum(np.abs(self.low), np.abs(self.high))
        return max(0.0, float(ends.sum() + bias + GATE_ROOM * (sizes.sum() + abs(bias))))

    def add(self, weights: Vector, bias: float, row: Vector, positions: np.ndarray) -> None:
        """A unit that works at `positions` only: switched off by -B elsewhere, or by -B and switched on by +B there.

        The first leaves the bias as it is; the second is taken when it needs fewer weights.
        """
        gate, size = np.zeros(self.tokens), self.largest(weights, bias + self.tail)
        if size and not positions.all():
            self.gated = True
            if positions.sum() < (~positions).sum():
                # Rounding the new bias must not make the unit leak.
                size = math.nextafter(size + 2.0**-50 * (size + abs(bias)), math.inf)
                gate[positions], bias = size, bias - size
            else:
                gate[~positions] = -size
        self.units.append((weights, gate, bias, row))

    def arrays(self) -> tuple[Matrix, Matrix, Vector, Matrix]:
        inputs = len(self.low)
        up = np.array([unit[0] for unit in self.units]).reshape(-1, inputs)
        gate = np.array([unit[1] for unit in self.units]).reshape(-1, self.tokens)
        down = np.array([unit[3] for unit in self.units]).reshape(-1, self.outputs)
        return up, gate, np.array([unit[2] for unit in self.units], dtype=float), down


def _shared_linear(
    linear: Float[np.ndarray, "tokens width tokens out"],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`linear` as a part that all positions share, a part for a position's own token, and the rest.

    Two ways to share are tried: a slope that is equal at all positions; or one that is equal at all *other* positions, the
    difference at the own token being equal for all tokens. The one that leaves fewer outputs with a rest is taken.
    """
    n = linear.shape[0]
    others = ~np.eye(n, dtype=bool)
    equal = (linear == linear[:, :, :1]).all(axis=2)
    everywhere = np.where(equal, linear[:, :, 0], 0.0)
    off = np.stack([linear[s][:, others[s]] for s in range(n)])
    elsewhere = np.where((off == off[:, :, :1]).all(axis=2), off[:, :, 0], 0.0)
    found = []
    for read in (everywhere, elsewhere):
        rest = linear - read[:, :, None, :]
        at_own = np.stack([rest[t, :, t] for t in range(n)])
        own = np.where((at_own == at_own[0]).all(axis=0), at_own[0], 0.0)
        for t in range(n):
            rest[t, :, t] -= own
        found.append((read, own, rest))
    return min(found, key=lambda parts: int(parts[2].any(axis=(0, 1)).sum()))
