"""Linear attention for learning in a context: configurations, the constructed weights, and how alike two layers are.

A layer is one head with W_Q W_K^T = B and W_V W_O = C, both of full size. Rows see rows, the query sees rows, nobody
sees the query: the residual label of a row is y - w . x and that of the query -w . x, as in `compiler.incontext`; the
read-out is its negative. Gradient descent preconditioned by P with step eta, which also improves the features by beta
(GD++ of von Oswald et al. 2023, arXiv 2212.07677), is

    B = diag(P / n, 0),      C = -diag(beta, ..., beta, eta).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from certiformer.model.config import Attention, Block, Config, Heads, Input, Readout
from certiformer.train import transformer_outputs

START = 0.05  # of the usual size of random weights: a layer begins as a small change, or deep ones soon diverge
Params = dict[str, Any]


def regression_config(features: int, rows: int, layers: int, looped: bool) -> Config:
    """One block for each layer, or one block that is applied so many times."""
    width = features + 1
    attention = Attention((Heads(1, width, width),), kind="linear", scale="unit", mask="table")
    return Config(
        Input("continuous", tokens=rows + 1, width=width),
        width=width,
        outputs=1,
        readout=Readout("token", rows),
        blocks=(Block(attention),) * (1 if looped else layers),
        loops=layers if looped else 1,
        dtype="float32",
    )


def next_token_config(features: int, length: int, layers: int) -> Config:
    """Causal layers over tokens (s_(t-1) | s_t | 0); the last part is read out at every place."""
    width = 3 * features
    attention = Attention((Heads(1, width, width),), kind="linear", scale="unit", mask="causal")
    return Config(
        Input("continuous", tokens=length, width=width),
        width=width,
        outputs=features,
        readout=Readout("all"),
        blocks=(Block(attention),) * layers,
        dtype="float32",
    )


def outputs(config: Config, params: Mapping[str, Array], x: Float[Array, "batch tokens width"]) -> Array:
    """What the model gives when only its attention is free: the rest is the identity, and minus the label (or the rest)."""
    return transformer_outputs(config)({**_fixed(config), **params}, x)


def _fixed(config: Config) -> dict[str, Array]:
    width, out = config.width, config.outputs
    read = np.zeros((width, out), np.float32)
    read[width - out :] = -np.eye(out) if config.readout.kind == "token" else np.eye(out)
    tensors = {
        "embed.weight": np.eye(width, dtype=np.float32),
        "embed.bias": np.zeros(width, np.float32),
        "readout.weight": read,
        "readout.bias": np.zeros(out, np.float32),
    }
    if config.readout.kind == "token":
        mask = np.ones((config.tokens, config.tokens), np.uint8)
        mask[:, -1] = 0
        tensors |= {f"blocks.{index}.attention.mask": mask for index in range(len(config.blocks))}
    return {name: jnp.asarray(tensor) for name, tensor in tensors.items()}


def random_start(config: Config, seed: int) -> Params:
    """Small random weights of all free tensors, in float32."""
    generator, width = np.random.default_rng(seed), config.width
    size = START / np.sqrt(width)
    shape = (1, width, width)
    return {
        f"blocks.{index}.attention.groups.0.{role}": (size * generator.standard_normal(shape)).astype(np.float32)
        for index in range(len(config.blocks))
        for role in ("query", "key", "value", "output")
    }


def constructed(config: Config, rows: int, settings: Mapping[str, Any]) -> Params:
    """The weights of preconditioned gradient descent: `steps` and `whiten` (one a block), and `precondition` (features)."""
    width, d = config.width, config.width - 1
    eye = jnp.eye(width, dtype=jnp.float32)
    precondition = jnp.concatenate([jnp.asarray(settings["precondition"], jnp.float32), jnp.zeros(1, jnp.float32)])
    tensors = {}
    for index in range(len(config.blocks)):
        group = f"blocks.{index}.attention.groups.0"
        last = jnp.where(jnp.arange(width) < d, settings["whiten"][index], settings["steps"][index])
        tensors |= {
            f"{group}.query": (precondition[:, None] * eye / rows)[None],
            f"{group}.key": eye[None],
            f"{group}.value": eye[None],
            f"{group}.output": -(last.astype(jnp.float32)[:, None] * eye)[None],
        }
    return tensors


def constructed_outputs(config: Config, rows: int, params: Mapping[str, Array], x: Array) -> Array:
    """The outputs of the construction without a preconditioner, as a function of `steps` and `whiten`."""
    settings = {"precondition": jnp.ones(config.width - 1, jnp.float32), **params}
    return outputs(config, constructed(config, rows, settings), x)


def constructed_next(config: Config, step: float) -> Params:
    """One step of gradient descent on the pairs so far: sum_j s_j (s_(j-1) . s_t), times the step, into the last part."""
    width = config.width
    d = width // 3
    query, key, value, output = (np.zeros((1, width, width), np.float32) for _ in range(4))
    index = np.arange(d)
    query[0, d + index, index] = key[0, index, index] = value[0, d + index, index] = 1.0
    output[0, index, 2 * d + index] = step
    group = "blocks.0.attention.groups.0"
    return {f"{group}.query": query, f"{group}.key": key, f"{group}.value": value, f"{group}.output": output}


def forms(params: Mapping[str, Any], index: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """B = W_Q W_K^T and C = W_V W_O of a layer: all that its function depends on."""
    query, key, value, output = (
        np.asarray(params[f"blocks.{index}.attention.groups.0.{role}"], np.float64)[0]
        for role in ("query", "key", "value", "output")
    )
    return query @ key.T, value @ output


def alignment(
    found: Mapping[str, Any], wanted: Mapping[str, Any], layers: int, used: tuple[slice, slice]
) -> list[float]:
    """The cosine between B (x) C of two models, layer by layer; scales between B and C do not matter, nor do joint signs.

    `used` are the rows of B in the first layer and the columns of C in the last one that the output can depend on: of a
    single layer the query alone is read, and it has no label.
    """
    cosines = []
    for index in range(layers):
        pair = []
        for number, (a, b) in enumerate(zip(forms(found, index), forms(wanted, index), strict=True)):
            if number == 0 and index == 0:
                a, b = a[used[0]], b[used[0]]
            if number == 1 and index == layers - 1:
                a, b = a[:, used[1]], b[:, used[1]]
            size = np.linalg.norm(a) * np.linalg.norm(b)
            pair.append(float((a * b).sum() / size) if size > 0 else 0.0)
        cosines.append(pair[0] * pair[1])
    return cosines


@partial(jax.jit, static_argnames=("config",))
def predictions(config: Config, params: Mapping[str, Array], x: Float[Array, "batch tokens width"]) -> Array:
    """`outputs`, compiled."""
    return outputs(config, params, x)


@partial(jax.jit, static_argnames=("config",))
def sensitivities(config: Config, params: Mapping[str, Array], x: Float[Array, "batch tokens width"]) -> Array:
    """The gradient of each prediction in the features of its query."""
    d = config.width - 1

    def one(query: Array, tokens: Array) -> Array:
        return outputs(config, params, tokens.at[-1, :d].set(query)[None])[0, 0]

    return jax.vmap(jax.grad(one))(x[:, -1, :d], x)


def mean_cosine(a: Float[ArrayLike, "batch size"], b: Float[ArrayLike, "batch size"]) -> float:
    """The mean cosine of rows; a row of zeros counts as no agreement."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    size = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    return float(np.where(size > 0, (a * b).sum(1) / np.where(size > 0, size, 1.0), 0.0).mean())
