r"""Predictive coding: every layer has a state of its own, and weights follow the error between a state and its prediction.

Layers f_1, ..., f_K of weights w_1, ..., w_K, states s_0 = x, s_1, ..., s_(K-1), and a wanted output y. The energy is

    E = 1/2 sum_(l < K) |s_l - f_l(s_(l-1))|^2 + beta/2 |y - f_K(s_(K-1))|^2.

States go down the energy until they rest; then every weight takes its gradient of E, which needs the two states around its
layer only. Divided by beta it is called the update here. beta = 1 is the usual form (Whittington and Bogacz 2017, Neural
Computation 29; Millidge et al. 2020, arXiv 2006.04182), a small beta is a weak nudge (Scellier and Bengio 2017,
arXiv 1602.05179).

*For beta -> 0 the updates are the gradients of backpropagation for 1/2 |y - y_0|^2*, y_0 what the network says by itself.
Without the last term the states of the forward pass have energy 0, so they rest there, and nowhere near else: the Hessian
is J^T J with J unit triangular. By the theorem on implicit functions the resting states are those plus O(beta), with errors
e_l = s_l - f_l(s_(l-1)) = O(beta). At rest e_l = f'_(l+1)^T e_(l+1) for l < K - 1, e_(K-1) = beta f'_K^T (y - f_K), slopes
taken at the resting states; replacing these by the states of the forward pass and f_K by y_0 changes O(beta^2). That is the
recursion of backpropagation for -beta delta_l, and the gradient of E by w_l is -(df_l/dw_l)^T e_l. QED. For beta of size 1
they differ: the states that rest are then no longer those of the forward pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from certiformer.errors import BadInput
from certiformer.model.attention import Rows
from certiformer.model.block import apply_block
from certiformer.model.codes import code_rows
from certiformer.model.config import Config

Params = Mapping[str, Array]
Layer = Callable[[Params, Array], Array]


def layers_of(config: Config) -> list[Layer]:
    """A transformer as a list of layers for one sequence: the embedding, block by block, the read-out of all tokens."""
    if config.registers or config.loops > 1 or config.readout.kind != "all" or config.input.kind != "continuous":
        raise BadInput("here a transformer reads numbers, answers at all tokens, and has no registers and no loops")
    code = code_rows(config)

    def embedded(params: Params, x: Array) -> Array:
        rows = x @ params["embed.weight"] + params["embed.bias"]
        added = params["code.table"] if config.code.kind == "table" else code
        return rows if added is None else rows + jnp.asarray(added, rows.dtype)

    def block(index: int, params: Params, rows: Array) -> Array:
        (after,), _ = apply_block(config.blocks[index], params, f"blocks.{index}", (rows,), (Rows(0, rows),))
        return after

    def read(params: Params, rows: Array) -> Array:
        return rows @ params["readout.weight"] + params["readout.bias"]

    return [embedded, *(partial(block, index) for index in range(len(config.blocks))), read]


def predictive_updates(
    layers: Sequence[Layer], params: Params, x: Array, y: Array, beta: float = 1e-3, steps: int = 200, rate: float = 0.1
) -> tuple[dict[str, Array], Float[Array, ""]]:
    """The updates for one sequence, and the largest slope of the energy by a state that is left, over beta.

    The second number says how far the states are from rest.
    """
    start = [x]
    for layer in layers[:-1]:
        start.append(layer(params, start[-1]))

    def energy(params: Params, states: list[Array]) -> Array:
        *inner, last = [
            jnp.sum((goal - layer(params, state)) ** 2)
            for layer, state, goal in zip(layers, [x, *states], [*states, y], strict=True)
        ]
        return 0.5 * sum(inner, beta * last)

    def relax(_: int, states: list[Array]) -> list[Array]:
        slopes = jax.grad(energy, argnums=1)(params, states)
        return [state - rate * slope for state, slope in zip(states, slopes, strict=True)]

    states = jax.lax.fori_loop(0, steps, relax, start[1:])
    slopes = jax.grad(energy, argnums=1)(params, states)
    rest = jnp.max(jnp.stack([jnp.max(jnp.abs(slope)) for slope in slopes])) / beta
    found = jax.grad(energy)(dict(params), states)
    return {name: slope / beta for name, slope in found.items()}, rest


def loss_gradients(layers: Sequence[Layer], params: Params, x: Array, y: Array) -> dict[str, Any]:
    """What backpropagation gives for 1/2 |y - y_0|^2."""

    def loss(params: Params) -> Array:
        rows = x
        for layer in layers:
            rows = layer(params, rows)
        return 0.5 * jnp.sum((y - rows) ** 2)

    return jax.grad(loss)(dict(params))


def cosine(first: Mapping[str, Array], second: Mapping[str, Array]) -> float:
    """The cosine of two sets of gradients, all entries together."""
    one, two = (jnp.concatenate([jnp.ravel(each[name]) for name in sorted(first)]) for each in (first, second))
    return float(one @ two / (jnp.linalg.norm(one) * jnp.linalg.norm(two)))
