"""Targets whose features depend on the input: which tokens matter is written in the tokens.

* `average` (Jiang & Li 2024, App. B.1, average by selection with tau = 8, d = 2, k = 3, in our reading): token s is
  (value, class in {0, .., k-1}), and at token t the mean of the values of its own class is asked. The coupling
  -beta (c_t - c_s)^2 = 2 beta c_t c_s - beta c_s^2 + (function of t) has rank 2 and selects any number of classes as beta
  grows; a wrong class keeps a share of at most exp(-beta) (tau - 1), so the error falls geometrically in beta.
  Rank 1 cannot select three classes: with coupling phi_t psi_s class t has the largest score in its own row only if psi_t
  is the largest (phi_t > 0) or the smallest (phi_t < 0) of all psi, which two classes at most can be.
* `ranked` (after the piecewise class of Takakura & Suzuki 2023, arXiv 2305.18699): token s is (value, importance), and
  g = sum_j WEIGHTS[j] sin(2 pi 2^-j z_(j)) is asked of the values z_(1), z_(2), ... in the order of importance:
  which coordinate a token is depends on the input. Importances are kept 1 / (2 tokens) apart, as their theorem wants a gap.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from certiformer.errors import BadInput
from certiformer.model.config import Attention, Block, Config, FeedForward, Heads, Input, Readout
from certiformer.model.transformer import Transformer

TASKS = ("average", "ranked")
SCALE_SAMPLES = 2048  # draws behind the unit of a task's errors
WEIGHTS = (1.0, 0.5, 0.25)  # of the most important token, the second, the third


def draw_tokens(task: str, tokens: int, classes: int, key: Array, count: int) -> Float[Array, "count tokens 2"]:
    """Values uniform in [0, 1]; classes uniform, or importances (r + u) / tokens with ranks r permuted and u in [0, 1/2]:
    two importances differ by at least 1 / (2 tokens)."""
    first, second, third = jax.random.split(key, 3)
    values = jax.random.uniform(first, (count, tokens), jnp.float32)
    if task == "average":
        marks = jax.random.randint(second, (count, tokens), 0, classes, jnp.int32).astype(jnp.float32)
    elif task == "ranked":
        ranks = jnp.argsort(jax.random.uniform(second, (count, tokens), jnp.float32), axis=1).astype(jnp.float32)
        marks = (ranks + jax.random.uniform(third, (count, tokens), jnp.float32, 0.0, 0.5)) / tokens
    else:
        raise BadInput(f"there is no task {task!r}; the tasks are {', '.join(TASKS)}")
    return jnp.stack([values, marks], axis=-1)


def wanted(task: str, tokens: Float[Array, "tokens 2"]) -> Float[Array, " asked"]:
    """What is asked: one number per token (`average`), or one in all (`ranked`)."""
    values, marks = tokens[:, 0], tokens[:, 1]
    if task == "average":
        same = (marks[:, None] == marks[None]).astype(tokens.dtype)
        return jnp.sum(same * values[None], axis=1) / jnp.sum(same, axis=1)
    order = jnp.argsort(-marks)[: len(WEIGHTS)]
    waves = 2.0 * np.pi * 2.0 ** -np.arange(len(WEIGHTS))
    weights = jnp.asarray(WEIGHTS, tokens.dtype)
    return jnp.sum(weights * jnp.sin(waves.astype(tokens.dtype) * values[order]), keepdims=True)


def average_model(tokens: int, beta: float) -> Transformer:
    """The built head of key size 2 on tokens (value, class, class^2)."""
    config = Config(
        Input("continuous", tokens, 3),
        3,
        1,
        Readout("all"),
        blocks=(Block(Attention((Heads(1, 2, 1),), bias=True, scale="unit", residual=False)),),
    )
    query, key = np.zeros((3, 2)), np.zeros((3, 2))
    query[1, 0], key[1, 0], key[2, 1] = 1.0, 2.0 * beta, -beta
    head = "blocks.0.attention.groups.0"
    value = np.eye(3)[:, :1]
    tensors = {
        "embed.weight": np.eye(3),
        "embed.bias": np.zeros(3),
        f"{head}.query": query[None],
        f"{head}.key": key[None],
        f"{head}.value": value[None],
        f"{head}.output": value.T[None],
        f"{head}.query_bias": np.array([[0.0, 1.0]]),
        f"{head}.key_bias": np.zeros((1, 2)),
        f"{head}.value_bias": np.zeros((1, 1)),
        "blocks.0.attention.output_bias": np.zeros(3),
        "readout.weight": value,
        "readout.bias": np.zeros(1),
    }
    return Transformer(config, tensors)


def trained_config(task: str, tokens: int, layers: int, heads: int, width: int, key: int, hidden: int) -> Config:
    """A feed-forward layer, then `layers` times attention and feed-forward; `ranked` is read at a register."""
    attention = Attention((Heads(heads, key, width),), bias=True, scale="unit")
    blocks = (Block(ffn=FeedForward(hidden)), *(Block(attention, FeedForward(hidden)) for _ in range(layers)))
    per_token = task == "average"
    readout = Readout("all") if per_token else Readout("register", 0)
    registers = 0 if per_token else 1
    return Config(Input("continuous", tokens, 2), width, 1, readout, blocks, registers, dtype="float32")


def ranked_config(tokens: int, layers: int, width: int, key: int) -> Config:
    """Two layers with one head each, or one layer with two heads and the hidden units of three feed-forward parts in two:
    the number of weights is the same up to the rounding of 3/2 times 2 width, an integer, and a few biases."""
    hidden = 2 * width if layers == 2 else 3 * width
    return trained_config("ranked", tokens, layers, 2 // layers, width, key, hidden)


@partial(jax.jit, static_argnames=("task", "tokens", "classes", "count"))
def sample(
    task: str, tokens: int, classes: int, key: Array, count: int
) -> tuple[Float[Array, "count tokens 2"], Float[Array, "count asked"]]:
    """Draws, and what is asked."""
    drawn = draw_tokens(task, tokens, classes, key, count)
    return drawn, jax.vmap(partial(wanted, task))(drawn)


@partial(jax.jit, static_argnames=("task", "tokens", "classes"))
def unit(task: str, tokens: int, classes: int) -> Float[Array, ""]:
    """The standard deviation of what is asked, over fixed draws: errors are in this unit."""
    return jnp.std(sample(task, tokens, classes, jax.random.key(0), SCALE_SAMPLES)[1]).astype(jnp.float32)
