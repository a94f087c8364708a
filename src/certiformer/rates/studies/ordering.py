"""Study `ordering`: what another order of the inputs costs a transformer and a recurrent network.

Three parts. *Trained*: every network on H_t = sum_s e^(-s) x(t - s) with the first and the last k inputs exchanged,
beside the least error of any causal network, which is computed. *Adapted*: the transformer that has learned the
original order, with only its first pointwise layer (embedding, table of positions, first feed-forward block) free, or
only its attention, or all of it; and the same question for a target whose queries read values. *Built*: exact weights
for the original order, turned into exact weights for the other by changing the table of positions alone.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import jax
import numpy as np

from certiformer.model import Transformer
from certiformer.rates.order_construction import exact_model, relabelled_model, reordered_model
from certiformer.rates.sequence_batches import graph_moments, member_of, mixed_batches
from certiformer.rates.sequence_models import fresh_errors, learn, options_of, sequence_transformer, train_on_matrices
from certiformer.rates.sequence_options import PAPER, SequenceOptions
from certiformer.rates.sequence_targets import (
    causal_floor,
    causal_floor_l1,
    causal_matrix,
    constant_error,
    invariant_floor,
    moved,
    reordered,
    swapped,
)
from certiformer.rates.studies.ordering_summary import summary
from certiformer.rates.study import Study
from certiformer.sweep.job import Job, Row
from certiformer.train import Problem, stack

NETWORKS = ("transformer", "linear", "gated")
FIRST = ("embed.", "code.", "blocks.0.")  # the tensors of the first pointwise layer


@dataclass(frozen=True)
class Options(SequenceOptions):
    counts: tuple[int, ...] = (0, 1, 3, 5)
    """inputs at either end that change places; the largest one also in the parts adapted and built"""


FULL = {**PAPER, "counts": (0, 1, 2, 5, 10), "recurrent_steps": 4000}


def run(config: dict[str, Any]) -> list[Row]:
    """One part of one seed."""
    return {"trained": _trained, "adapted": _adapted, "built": _built}[config["part"]](config)


def _decay(config: dict[str, Any]) -> np.ndarray:
    return causal_matrix(np.exp(-np.arange(config["length"])))


def _trained(config: dict[str, Any]) -> list[Row]:
    matrices = [reordered(_decay(config), swapped(config["length"], count)) for count in config["counts"]]
    found, _, diverged = train_on_matrices(config, matrices)
    return [
        _row(config, "swapped", count, *map(float, errors), matrix=matrix, diverged=bool(lost))
        for count, matrix, errors, lost in zip(config["counts"], matrices, found, diverged, strict=True)
    ]


def _adapted(config: dict[str, Any]) -> list[Row]:
    length, count, seed = config["length"], max(config["counts"]), config["seed"]
    apply, start, steps, rate = options_of(config, length)
    problem = Problem(apply, mixed_batches(config["batch"], causal=False))
    order, decay, (mean, deviation) = swapped(length, count), _decay(config), graph_moments(length, causal=False)
    # Both targets with variance 1 over steps and sequences, so that their errors can stand side by side.
    temporal: dict[str, Any] = {"temporal": constant_error(decay) ** -0.5}
    content: dict[str, Any] = {"temporal": 0.0, "graph": 1 / deviation, "offset": -mean / deviation}
    members = {
        "temporal": member_of(decay, **temporal),
        "temporal reordered": member_of(decay, **temporal, inputs=order),
        "content": member_of(decay, **content),
        "content reordered": member_of(decay, **content, inputs=order),
        "content relabelled": member_of(decay, **content, inputs=order, outputs=order),
    }
    member = stack(list(members.values()))
    trained = learn(problem, [start(seed)] * len(members), member, seed=1000 * seed, steps=steps, rate=rate)
    rows = _rows(config, list(members), problem, trained, member)

    original = jax.tree.map(lambda tensor: np.asarray(tensor[0]), trained.params)
    goal = stack([members["temporal reordered"]] * len(FREED))
    free = stack([{name: np.full_like(t, freed(name)) for name, t in original.items()} for freed in FREED.values()])
    adapted = learn(problem, [original] * len(FREED), goal, seed=1000 * seed + 500, steps=steps, rate=rate, free=free)
    rows += _rows(config, list(FREED), problem, adapted, goal)
    errors = fresh_errors(problem, stack([original]), stack([members["temporal reordered"]]), seed=seed)[0]
    return [*rows, _row(config, "nothing free", count, *map(float, errors))]


FREED = {
    "first layer free": lambda name: name.startswith(FIRST),
    "attention free": lambda name: ".attention." in name,
    "all free": lambda name: True,
}


def _rows(config: dict[str, Any], variants: list[str], problem: Problem, trained: Any, member: Any) -> list[Row]:
    found = fresh_errors(problem, trained.params, member, seed=config["seed"])
    return [
        _row(config, variant, max(config["counts"]), *map(float, errors), diverged=bool(lost))
        for variant, errors, lost in zip(variants, found, trained.diverged, strict=True)
    ]


def _built(config: dict[str, Any]) -> list[Row]:
    length, count = config["length"], max(config["counts"])
    decay, model = _decay(config), exact_model(_decay(config))
    x = np.random.default_rng(config["seed"]).uniform(size=(512, length))
    wanted, rows = x @ decay.T, []
    orders = {"original": np.arange(length), "swapped": swapped(length, count), "moved": moved(length, count)}
    for variant, order in orders.items():
        changed = reordered_model(model, order)
        rows.append(_built_row(config, variant, changed.evaluate(x[:, order]), wanted, model, changed))
    shape = sequence_transformer(length, config["width"], config["hidden"], config["depth"])
    any_model = Transformer.random(shape, config["seed"])
    changed, order = relabelled_model(any_model, orders["swapped"]), orders["swapped"]
    outputs = changed.evaluate(x[:, order])
    return [
        *rows,
        _built_row(config, "random model relabelled", outputs, any_model.evaluate(x)[:, order], any_model, changed),
    ]


def _built_row(
    config: dict[str, Any], variant: str, outputs: np.ndarray, wanted: np.ndarray, old: Transformer, new: Transformer
) -> Row:
    error = np.abs(outputs - wanted)
    touched = [name for name, tensor in old.tensors.items() if not np.array_equal(tensor, new.tensors[name])]
    figures = {"worst": float(error.max()), "changed": ", ".join(touched)}
    return _row(config, variant, max(config["counts"]), float(np.mean(error**2)), float(np.mean(error)), **figures)


def _row(
    config: dict[str, Any],
    variant: str,
    count: int,
    mse: float,
    l1: float,
    *,
    matrix: np.ndarray | None = None,
    worst: float = float("nan"),
    changed: str = "",
    diverged: bool = False,
) -> Row:
    return {
        "part": config["part"],
        "network": config["network"],
        "variant": variant,
        "count": count,
        "seed": config["seed"],
        "mse": mse,
        "l1": l1,
        "worst": worst,
        "changed": changed,
        "diverged": diverged,
        "causal_floor": float("nan") if matrix is None else causal_floor(matrix),
        "causal_floor_l1": float("nan") if matrix is None else causal_floor_l1(matrix),
        "invariant_floor": float("nan") if matrix is None else invariant_floor(matrix),
    }


def jobs(options: Options) -> list[Job]:
    """For every seed the three networks trained, the transformer adapted, and the exact weights."""
    parts = [*(("trained", network) for network in NETWORKS), ("adapted", "transformer"), ("built", "built")]
    base = {**asdict(options), "counts": list(options.counts)}
    return [
        Job(f"{__name__}:run", {**base, "part": part, "network": network, "seed": options.seed + number})
        for number in range(options.seeds)
        for part, network in parts
    ]


STUDY = Study(
    "ordering",
    "What does another order of the inputs cost a transformer and a recurrent network, and what must change?",
    Options,
    FULL,
    jobs,
    summary,
)
