"""The functions that are trained: T(x) = c + a.x + sum_u o_u act(w_u.x + b_u), with act a ReLU or the exact GELU.

This is the whole function of a one-block transformer whose attention gathers the sequence exactly, so it is trained by
itself, in float64, and the attention is put around it afterwards (`assemble`).

Training sees every network of one dimension and activation as a vector of one length, `w | b | o | a | c` with room for
`room` units; the units that are not there have zeros that stay fixed (`present`). So one compilation serves all widths.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

Activation = Literal["relu", "gelu"]
# Units are stored with room for the next of these.
ROOMS = (8, 16, 32, 64, 128)


@dataclass(frozen=True)
class Units:
    """A trained network in one output: c + a.x + sum_u o_u act(w_u.x + b_u)."""

    weights: Float[np.ndarray, "units inputs"]
    bias: Float[np.ndarray, " units"]
    coefficients: Float[np.ndarray, " units"]
    linear: Float[np.ndarray, " inputs"]
    constant: float

    @property
    def count(self) -> int:
        return len(self.bias)

    @property
    def nonzero(self) -> int:
        arrays = (self.weights, self.bias, self.coefficients, self.linear, np.array(self.constant))
        return sum(int(np.count_nonzero(a)) for a in arrays)

    @staticmethod
    def affine(inputs: int) -> Units:
        """No unit, all zeros."""
        return Units(np.zeros((0, inputs)), np.zeros(0), np.zeros(0), np.zeros(inputs), 0.0)

    def hidden(
        self, points: Float[np.ndarray, "points inputs"], activation: Activation
    ) -> Float[np.ndarray, "points units"]:
        """The values of all units."""
        with jax.enable_x64(True):
            return np.asarray(act(activation, jnp.asarray(points @ self.weights.T + self.bias)))

    def values(
        self, points: Float[np.ndarray, "points inputs"], activation: Activation
    ) -> Float[np.ndarray, " points"]:
        return self.hidden(points, activation) @ self.coefficients + points @ self.linear + self.constant

    def keep(self, units: np.ndarray) -> Units:
        """The network with only these units."""
        return Units(self.weights[units], self.bias[units], self.coefficients[units], self.linear, self.constant)


def room_for(units: int) -> int:
    """The length to which the lists of units are filled up."""
    return next((room for room in ROOMS if room >= units), units)


def pack(units: Units, room: int) -> Float[np.ndarray, " parameters"]:
    """The vector of a network, with zeros for the units that are not there."""
    missing = room - units.count
    return np.concatenate([
        np.pad(units.weights, ((0, missing), (0, 0))).ravel(),
        np.pad(units.bias, (0, missing)),
        np.pad(units.coefficients, (0, missing)),
        units.linear,
        [units.constant],
    ])  # fmt: skip


def unpack(vector: Float[np.ndarray, " parameters"], inputs: int, count: int) -> Units:
    """The network of a vector, its first `count` units."""
    weights, bias, coefficients, linear, constant = parts(np.asarray(vector), inputs)
    return Units(weights[:count], bias[:count], coefficients[:count], linear, float(constant))


def present(inputs: int, count: int, room: int) -> Float[np.ndarray, " parameters"]:
    """One for every parameter of the first `count` units and of the affine part, zero for the rest."""
    units = np.arange(room) < count
    return np.concatenate([np.repeat(units, inputs), units, units, np.ones(inputs + 1)]).astype(float)


def parts(vector, inputs: int):
    """The pieces w, b, o, a, c of a vector of any array type."""
    room = (len(vector) - inputs - 1) // (inputs + 2)
    ends = np.cumsum([room * inputs, room, room, inputs])
    weights = vector[: ends[0]].reshape(room, inputs)
    return weights, vector[ends[0] : ends[1]], vector[ends[1] : ends[2]], vector[ends[2] : ends[3]], vector[-1]


def act(activation: Activation, x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    return jax.nn.relu(x) if activation == "relu" else jax.nn.gelu(x, approximate=False)


def act_with_slope(activation: Activation, x: Float[Array, "*shape"]) -> tuple[Array, Array]:
    """The activation and its derivative; gelu(x) = x Phi(x) has the derivative Phi(x) + x phi(x)."""
    if activation == "relu":
        slope = (x > 0).astype(x.dtype)
        return x * slope, slope
    below = 0.5 * jax.scipy.special.erfc(-x / math.sqrt(2))
    return x * below, below + x * jnp.exp(-0.5 * x**2) / math.sqrt(2 * math.pi)


def evaluate(activation: Activation, vector: Float[Array, " parameters"], points: Float[Array, "points inputs"]):
    """The values of a network, given as a vector, at many points."""
    weights, bias, coefficients, linear, constant = parts(vector, points.shape[1])
    return act(activation, points @ weights.T + bias) @ coefficients + points @ linear + constant


def evaluate_with_slopes(
    activation: Activation, vector: Float[Array, " parameters"], points: Float[Array, "points inputs"]
) -> tuple[Float[Array, " points"], Float[Array, "points parameters"]]:
    """The values of a network and their derivatives by every parameter."""
    weights, bias, coefficients, linear, constant = parts(vector, points.shape[1])
    values, slopes = act_with_slope(activation, points @ weights.T + bias)
    moved = slopes * coefficients
    by_weight = (moved[:, :, None] * points[:, None, :]).reshape(len(points), -1)
    jacobian = jnp.concatenate([by_weight, moved, values, points, jnp.ones((len(points), 1))], axis=1)
    return values @ coefficients + points @ linear + constant, jacobian


def linear_features(
    activation: Activation, vector: Float[Array, " parameters"], points: Float[Array, "points inputs"]
) -> Float[Array, "points features"]:
    """What the last parameters o, a, c of a vector multiply: hidden values, coordinates, one."""
    weights, bias, *_ = parts(vector, points.shape[1])
    return jnp.concatenate([act(activation, points @ weights.T + bias), points, jnp.ones((len(points), 1))], axis=1)
