"""The networks that are compared on sequences, how they start, and how they are trained and tested.

The transformer is that of Jiang & Li (2023): pointwise feed-forward layers with a position code, one attention head
without residual and without scale, feed-forward layers, one output per step. In `certiformer.model` the feed-forward
networks before and after the attention are blocks without attention; they carry a residual, without which three of them
in a row hardly train. Their hidden layers are joined through the width of the model, not directly.

Position codes are a trained table that starts at 3 times the unit vectors; everything else starts as PyTorch's linear
layers do, uniform on +-1/sqrt(inputs). The start decides how far training gets: at length 16 and width 24 (5,000 steps,
one seed) the target e^(-s) is learned to 1.7e-5 from there, 2.8e-5 from normal numbers, and 5.1e-4 from sines and
cosines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from certiformer.model import Attention, Block, Code, Config, FeedForward, Heads, Input, Readout, tensor_specs
from certiformer.rates import recurrent
from certiformer.rates.sequence_batches import linear_batches
from certiformer.train import LOSSES, Optimiser, Problem, Trained, stack, train, transformer_outputs

CODE_SCALE = 3.0
TEST_DRAWS = 1_000_000_000  # batches of a test are drawn with numbers from here on, which no training reaches
TEST_SEQUENCES = 4096

Params = dict[str, Any]
Apply = Callable[[Any, Array], Array]


def sequence_transformer(
    length: int, width: int, hidden: int, depth: int, mask: str = "none", code: str = "table"
) -> Config:
    """One head between `depth` feed-forward blocks on either side; `code`: table, sinusoidal or none."""
    pointwise = Block(ffn=FeedForward(hidden))
    heads = (Heads(1, width, width),)
    attention = Block(attention=Attention(heads, scale="unit", mask=mask, residual=False))
    codes = {"table": Code("table"), "sinusoidal": Code("sinusoidal", offset=0, width=width), "none": Code()}
    return Config(
        Input("continuous", length, width=1),
        width=width,
        outputs=1,
        readout=Readout("all"),
        blocks=(pointwise,) * depth + (attention,) + (pointwise,) * depth,
        code=codes[code],
        dtype="float32",
    )


def transformer_start(config: Config, seed: int) -> Params:
    """Random weights as described above, in float32."""
    generator, tensors = np.random.default_rng(seed), {}
    for name, spec in tensor_specs(config).items():
        if name == "code.table":
            tensor = CODE_SCALE * np.eye(config.tokens, config.width)
        else:
            tensor = generator.uniform(-1, 1, spec.shape) / np.sqrt(_summands(config, name, spec.shape))
        tensors[name] = tensor.astype(np.float32)
    return tensors


def _summands(config: Config, name: str, shape: tuple[int, ...]) -> int:
    """How many products the layer of this tensor adds up: that of a bias is its matrix's."""
    owner = {"up_bias": config.width, "bias": 1 if name == "embed.bias" else config.width}
    role = name.rpartition(".")[2]
    if role == "down_bias":
        return next(block.ffn.width for block in config.blocks if block.ffn is not None)
    return owner.get(role, shape[-2] if len(shape) > 1 else config.width)


def network(name: str, *, config: Config | None = None, units: int = 0) -> tuple[Apply, Callable[[int], Params]]:
    """How the network `name` (transformer, linear or gated) computes, and how it starts from a seed."""
    if name == "transformer" and config is not None:
        return _transformer_apply(config), partial(transformer_start, config)
    if name == "linear":
        return recurrent.linear_outputs, partial(recurrent.linear_start, units)
    if name == "gated":
        return recurrent.gated_outputs, partial(recurrent.gated_start, units)
    raise ValueError(f"there is no network {name!r}, or its configuration is missing")


# The same functions for the same arguments: the training loop is compiled anew for every new function it is given.
_transformer_apply = cache(transformer_outputs)


def learn(
    problem: Problem,
    starts: Sequence[Params],
    member: Any,
    *,
    seed: int,
    steps: int,
    rate: float,
    free: Params | None = None,
    records: int = 20,
) -> Trained:
    """Every start trained with Adam on its own target; the rate rises over a tenth of the steps and falls to zero."""
    return train(
        problem,
        stack(starts),
        seeds=seed + np.arange(len(starts), dtype=np.int32),
        optimiser=Optimiser(rate=rate, schedule="warmup-cosine"),
        steps=steps,
        member=member,
        free=free,
        # The loop takes whole records: the longest that divides the steps and leaves at least `records` of them.
        record=max(size for size in range(1, max(1, steps // records) + 1) if steps % size == 0),
    )


def fresh_errors(problem: Problem, params: Any, member: Any, *, seed: int) -> Float[np.ndarray, "members 2"]:
    """The mean squared and the mean absolute error of every member over sequences that it never saw."""
    return np.asarray(_fresh_errors(problem, params, member, jax.random.key(seed)))


@partial(jax.jit, static_argnames=("problem",))
def _fresh_errors(problem: Problem, params: Any, member: Any, key: Array) -> Array:
    def one(inputs: Any) -> Array:
        params, member = inputs

        def batch(number: Array) -> Array:
            x, wanted = problem.draw(jax.random.fold_in(key, number), member, None)
            outputs = problem.apply(params, x)
            return jnp.stack([LOSSES["squared"](outputs, wanted), jnp.mean(jnp.abs(outputs - wanted))])

        x, _ = jax.eval_shape(lambda: problem.draw(key, member, None))
        count = max(1, TEST_SEQUENCES // x.shape[0])
        return jnp.mean(jax.lax.map(batch, TEST_DRAWS + jnp.arange(count)), axis=0)

    return jax.lax.map(one, (params, member))


def train_on_matrices(
    config: Mapping[str, Any], matrices: Sequence[Float[np.ndarray, "length length"]]
) -> tuple[Float[np.ndarray, "targets 2"], Float[np.ndarray, "targets records"], np.ndarray]:
    """One network for every matrix: errors on fresh sequences, training losses, and who diverged.

    `config` is that of a job: `network`, `seed`, `batch`, and what `options_of` reads.
    """
    apply, start, steps, rate = options_of(config, len(matrices[0]))
    problem = Problem(apply, linear_batches(config["batch"]))
    member, seed = jnp.asarray(np.stack(matrices), jnp.float32), config["seed"]
    starts = [start(seed) for _ in matrices]
    trained = learn(problem, starts, member, seed=1000 * seed, steps=steps, rate=rate)
    return fresh_errors(problem, trained.params, member, seed=seed), trained.losses, trained.diverged


def options_of(
    config: Mapping[str, Any], length: int, mask: str = "none", code: str = "table"
) -> tuple[Apply, Callable[[int], Params], int, float]:
    """How the network of a job computes and starts, its steps and its rate."""
    name = config["network"]
    if name == "transformer":
        sizes = sequence_transformer(length, config["width"], config["hidden"], config["depth"], mask, code)
        return *network(name, config=sizes), config["steps"], config["rate"]
    if name == "patient":  # the linear network, trained longer and at another rate
        return *network("linear", units=config["units"]), config["patient_steps"], config["patient_rate"]
    units = config["units"] if name == "linear" else config["gated_units"]
    return *network(name, units=units), config["recurrent_steps"], config[f"{name}_rate"]
