"""A linear recurrent network and a gated one, the rivals of the transformer in the comparisons of Jiang & Li (2023).

Both read a sequence x(0), x(1), ... of `width` numbers each and give one number per step, so that their outputs stand
in the place of a transformer whose read-out is `all`. Weights start as PyTorch's do: uniform on +-1/sqrt(units).

    linear   h(t) = W x(t) + b + R h(t-1) + c                              y(t) = o h(t) + e
    gated    r = sigma(W_r x + b_r + R_r h + c_r),   z likewise,   n = tanh(W_n x + b_n + r (R_n h + c_n)),
             h <- (1 - z) n + z h                                          y(t) = o h(t) + e

The linear network is computed by its impulse response instead of step by step: h(t) = sum_s R^s (W x(t-s) + b + c), so
o R^s W and o R^s (b + c) for s < length say everything. They cost `length` products of a matrix with two vectors,
whatever the batch; the step-by-step recurrence costs as many for every sequence of it. At 128 units, length 32 and
batch 64 that is 64 times less arithmetic.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

Params = dict[str, Any]

GATES = 3  # reset, update and new state, in this order


def linear_start(units: int, seed: int, width: int = 1) -> Params:
    """Random weights of a linear network, in float32."""
    return _start(units, width, 1, seed)


def gated_start(units: int, seed: int, width: int = 1) -> Params:
    """Random weights of a gated network, in float32."""
    return _start(units, width, GATES, seed)


def _start(units: int, width: int, gates: int, seed: int) -> Params:
    generator, bound = np.random.default_rng(seed), units**-0.5
    shapes = {
        "input": (gates * units, width),
        "recurrent": (gates * units, units),
        "input_bias": (gates * units,),
        "recurrent_bias": (gates * units,),
        "readout": (units,),
        "readout_bias": (),
    }
    return {name: generator.uniform(-bound, bound, shape).astype(np.float32) for name, shape in shapes.items()}


def linear_outputs(params: Params, x: Float[Array, "batch length width"]) -> Float[Array, "batch length"]:
    """What a linear network gives at every step of every sequence."""
    length = x.shape[1]
    response, drift = impulse_response(params, length)
    lag = np.arange(length)[:, None] - np.arange(length)[None, :]
    kernel = jnp.where((lag >= 0)[..., None], response[np.maximum(lag, 0)], 0)
    mixed = jnp.einsum("tsw,bsw->bt", kernel, x, precision="highest")
    return mixed + jnp.cumsum(drift) + params["readout_bias"]


def impulse_response(params: Params, length: int) -> tuple[Float[Array, "length width"], Float[Array, " length"]]:
    """What y(t) owes to x(t-s), and to the biases at step t-s, for s = 0, 1, ..., length - 1."""
    bias = params["input_bias"] + params["recurrent_bias"]
    first = jnp.concatenate([params["input"], bias[:, None]], axis=1)

    def step(state: Array, _: None) -> tuple[Array, Array]:
        return jnp.matmul(params["recurrent"], state, precision="highest"), params["readout"] @ state

    _, responses = jax.lax.scan(step, first, length=length)
    return responses[:, :-1], responses[:, -1]


def gated_outputs(params: Params, x: Float[Array, "batch length width"]) -> Float[Array, "batch length"]:
    """What a gated network gives at every step of every sequence."""
    units = params["readout"].shape[0]
    fed = jnp.einsum("bsw,uw->sbu", x, params["input"], precision="highest") + params["input_bias"]

    def step(state: Array, fed: Array) -> tuple[Array, Array]:
        back = jnp.matmul(state, params["recurrent"].T, precision="highest") + params["recurrent_bias"]
        reset = jax.nn.sigmoid(fed[:, :units] + back[:, :units])
        keep = jax.nn.sigmoid(fed[:, units : 2 * units] + back[:, units : 2 * units])
        new = jnp.tanh(fed[:, 2 * units :] + reset * back[:, 2 * units :])
        state = (1 - keep) * new + keep * state
        return state, state

    _, states = jax.lax.scan(step, jnp.zeros((x.shape[0], units), x.dtype), fed)
    return jnp.einsum("sbu,u->bs", states, params["readout"], precision="highest") + params["readout_bias"]
