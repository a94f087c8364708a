"""Training the models of `sine_model.py` on a sine target: all attention ranks padded into one call, several restarts each.

Two stages, both Adam with a cosine schedule. First the last attention layer alone learns (queries, keys, values,
output), from random queries and keys, while the feed-forward network stays what it starts as, the hat functions: there
the problem is the factorisation of a matrix of values at knots, and large steps are safe (rate 0.2; at 0.1 three of
four restarts for a target of rank 6 ended in a local minimum, at 0.2 one did). Then all weights learn, at a rate of
3e-4; where that does not lower the loss of a model it is taken back (as where the loss is at 1e-7 already, below
what steps of this size can hold). In one stage the rate would have to suit the feed-forward weights, of which hundreds
act together: at 3e-3 the features are destroyed within a hundred steps, and the error stays an order of magnitude
above what the rank allows.

Of two attention layers the first one starts idle (its output is zero). Between the two stages both learn together, at
a rate of 0.02; without that stage the first one stays idle: its largest output weight was 0.002 then, and 0 in five of
twelve models.

`start` = "random" is what the paper does instead: PyTorch's default initialisation of a network of its size (three ReLU
layers of 128 units, n = d_v = 32), one stage, Adam. It is for `--full`.

Batches are drawn from 32,768 inputs whose outputs were computed once in float64; errors are measured on 8,192 others.
Training is in float32, whose floor is far below the errors here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import jax
import numpy as np

from certiformer.model import Attention, Block, Config, FeedForward, Heads, Input, Readout, Transformer, tensor_specs
from certiformer.rates.sine_model import HEAD, INTERVALS, hat_tensors, sine_config
from certiformer.rates.targets import SineTarget
from certiformer.train import Optimiser, Problem, stack, train, transformer_outputs

Start = Literal["knots", "random"]
POOL, HELD_OUT = 32_768, 8_192
RECORDS = 10
FIRST_SCALE = 0.1  # of random queries and keys at the knots
PAPER_WIDTH, PAPER_HIDDEN, PAPER_DEPTH = 32, 128, 3


@dataclass(frozen=True)
class Plan:
    """How long, how wide a batch, from where."""

    steps: int = 3000
    batch: int = 32
    start: Start = "knots"
    layers: int = 1


@dataclass(frozen=True, eq=False)
class Member:
    """One trained model: its rank and restart, errors on held-out inputs, and the model itself."""

    mh: int
    restart: int
    mse: float
    l1: float
    diverged: bool
    model: Transformer


def train_ranks(
    target: SineTarget, ranks: Sequence[int], restarts: int, plan: Plan, key: int, seed: int
) -> list[Member]:
    """Models with keys of size `ranks`, padded to `key`, `restarts` of each.

    The random start and the batches of a member depend on the seed, its rank and its restart alone.
    """
    if plan.start == "knots":
        config = sine_config(target, key, INTERVALS, plan.layers, "float32")
    else:
        config = paper_config(target, key, plan.layers)
    places = [(rank, restart) for rank in ranks for restart in range(restarts)]
    members = [_start(config, plan.start, rank, [seed, rank, restart]) for rank, restart in places]
    seeds = np.array([np.random.default_rng([seed, *place]).integers(2**31) for place in places])
    generator = np.random.default_rng([seed, 1])
    pool = _data(target, generator, POOL)
    held_out = _data(target, generator, HELD_OUT)
    params, free = stack([each for each, _ in members]), stack([each for _, each in members])
    lost, scores = np.zeros(len(places), bool), np.full(len(places), np.inf)
    problem = Problem(transformer_outputs(config), partial(_draw, plan.batch))
    for optimiser, steps, trained in _stages(plan, free):
        found = train(
            problem,
            params,
            seeds=seeds,
            optimiser=optimiser,
            steps=steps,
            shared={"x": pool[0], "y": pool[1]},
            free=trained,
            record=steps // RECORDS,
        )
        # A stage that did not lower the loss of its last record is taken back.
        better = (found.scores < scores) & ~found.diverged
        params = jax.tree.map(partial(_chosen, better), found.params, params)
        lost, scores = (lost | found.diverged) & ~better, np.where(better, found.scores, scores)
    models = [
        Transformer(config, {name: np.asarray(each[i]) for name, each in params.items()}) for i in range(len(places))
    ]
    return [
        Member(*place, *_errors(model, held_out), bool(bad), model)
        for place, model, bad in zip(places, models, lost, strict=True)
    ]


def _stages(plan: Plan, free: Any) -> list[tuple[Optimiser, int, Any]]:
    """The optimiser, the number of steps (a multiple of `RECORDS`) and what is trained, stage by stage."""
    steps = max(1, plan.steps // RECORDS) * RECORDS
    if plan.start == "random":
        return [(Optimiser(rate=1e-3, schedule="cosine"), steps, free)]
    later = max(1, plan.steps // 5 // RECORDS) * RECORDS
    alone = (
        Optimiser(rate=0.2, schedule="cosine", b2=0.99),
        steps,
        _only(free, f"blocks.{plan.layers}.attention.groups."),
    )
    together = (Optimiser(rate=0.02, schedule="cosine", b2=0.99), steps, _only(free, "blocks.", ".attention.groups."))
    everything = (Optimiser(rate=3e-4, schedule="cosine"), later, free)
    return [alone, together, everything] if plan.layers == 2 else [alone, everything]


def _only(free: Any, start: str, part: str = "") -> Any:
    """The masks with everything else frozen."""
    return {n: m if n.startswith(start) and part in n else np.zeros_like(m) for n, m in free.items()}


def paper_config(target: SineTarget, key: int, layers: int = 1) -> Config:
    """The size of the paper: f^ and F^ of three ReLU layers of 128 units between tokens of width 32."""
    feed_forward = FeedForward(PAPER_HIDDEN, residual=False)
    head = Attention(
        (Heads(1, key, PAPER_WIDTH),), scale="unit", mask="table" if target.masked else "none", residual=False
    )
    first = (Block(Attention(head.heads, scale="unit", mask=head.mask)),) if layers == 2 else ()
    return Config(
        Input("continuous", target.length, width=1),
        width=PAPER_WIDTH,
        outputs=1,
        readout=Readout("all"),
        blocks=(
            *[Block(ffn=feed_forward)] * PAPER_DEPTH,
            *first,
            Block(head),
            *[Block(ffn=feed_forward)] * PAPER_DEPTH,
        ),
        dtype="float32",
    )


def _start(config: Config, start: Start, rank: int, seed: list[int]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Weights and the masks of what is trained; keys beyond the rank are zero and stay it."""
    generator = np.random.default_rng(seed)
    tensors = hat_tensors(config) if start == "knots" else _pytorch_tensors(config, generator)
    free = {name: np.ones(each.shape, np.float32) for name, each in tensors.items()}
    for name, tensor in tensors.items():
        if name.endswith((f"{HEAD}.query", f"{HEAD}.key")):
            if start == "knots":
                tensor[:] = generator.normal(size=tensor.shape) * FIRST_SCALE
            tensor[..., rank:] = 0
            free[name][..., rank:] = 0
    dtypes = {name: spec.dtype for name, spec in tensor_specs(config).items()}
    return {name: np.asarray(each, dtypes[name]) for name, each in tensors.items()}, free


def _pytorch_tensors(config: Config, generator: np.random.Generator) -> dict[str, np.ndarray]:
    """Weights and biases uniform within 1 / sqrt(inputs), as torch.nn.Linear starts."""
    tensors = {}
    for name, spec in tensor_specs(config).items():
        inputs = spec.shape[-2] if len(spec.shape) > 1 else _inputs_beside(config, name)
        tensors[name] = generator.uniform(-1, 1, spec.shape) / np.sqrt(inputs)
        if name.endswith(".mask"):
            tensors[name] = 1 - np.eye(config.length)
    return tensors


def _inputs_beside(config: Config, name: str) -> int:
    """How many inputs the layer with this bias has."""
    if name == "embed.bias":
        return 1
    return PAPER_HIDDEN if name.endswith("down_bias") else config.width


def _data(target: SineTarget, generator: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Inputs as they are stored, in float32, and the outputs for exactly these, computed in float64."""
    x = target.draw(generator, count).astype(np.float32)
    y = np.concatenate([target.outputs(part.astype(np.float64)) for part in np.array_split(x, max(1, count // 512))])
    return x, y.astype(np.float32)


def _chosen(first: np.ndarray, one: Any, other: Any) -> np.ndarray:
    return np.where(first.reshape(-1, *[1] * (np.ndim(one) - 1)), one, other)


def _draw(batch: int, key: Any, member: Any, shared: Any) -> tuple[Any, Any]:
    chosen = jax.random.randint(key, (batch,), 0, shared["x"].shape[0], np.int32)  # the default depends on x64
    return shared["x"][chosen][..., None], shared["y"][chosen]


def _errors(model: Transformer, held_out: tuple[np.ndarray, np.ndarray]) -> tuple[float, float]:
    difference = model.evaluate(held_out[0], "float32").astype(np.float64) - held_out[1]
    return float((difference**2).mean()), float(np.abs(difference).mean())
