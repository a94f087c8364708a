"""Study `length`: trained at one length, tested at longer ones.

Two causal targets: the exponential memory sum_s e^(-s) x(t - s), which is temporal, and attention over the values of
the past, which is graph-like. Transformers with a causal mask and no positions, sines and cosines, or a trained table
of positions (which has no rows beyond the trained length: there it cannot be run), a linear and a gated recurrent
network, and the exact weights of `length_construction`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from certiformer.model import Transformer
from certiformer.rates.length_construction import exponential_memory, graph_model
from certiformer.rates.sequence_batches import graph_moments, graph_values, member_of, mixed_batches
from certiformer.rates.sequence_models import fresh_errors, learn, options_of
from certiformer.rates.sequence_options import PAPER, SequenceOptions
from certiformer.rates.sequence_rows import FEWEST_SEEDS, errors, missing, select, shown
from certiformer.rates.sequence_targets import causal_matrix, constant_error
from certiformer.rates.slopes import fitted_series
from certiformer.rates.study import Result, Series, Study, Table
from certiformer.sweep.job import Job, Row
from certiformer.train import Problem, stack

TASKS = ("memory", "graph")
KINDS = {
    "no positions": ("transformer", "none"),
    "sines and cosines": ("transformer", "sinusoidal"),
    "table": ("transformer", "table"),
    "linear RNN": ("linear", ""),
    "gated RNN": ("gated", ""),
    "built": ("built", ""),
}
QUESTION = "What happens at lengths that were not trained?"


@dataclass(frozen=True)
class Options(SequenceOptions):
    lengths: tuple[int, ...] = (16, 24, 32, 64)
    """tokens of a sequence in the tests"""


FULL = {**PAPER, "lengths": (32, 48, 64, 128, 256)}


def run(config: dict[str, Any]) -> list[Row]:
    """One kind of network, one seed, both targets, all lengths."""
    kind, seed = KINDS[config["kind"]][0], config["seed"]
    if kind == "built":
        return [row for length in config["lengths"] for row in _built(config, length)]
    factors = _factors(config["length"])
    apply, start, steps, rate = options_of({**config, "network": kind}, config["length"], "causal", _code(config))
    problem = Problem(apply, mixed_batches(config["batch"], causal=True))
    member = _members(config["length"], factors)
    trained = learn(problem, [start(seed)] * len(TASKS), member, seed=1000 * seed, steps=steps, rate=rate)
    rows = []
    for length in config["lengths"]:
        if _code(config) == "table" and length > config["length"]:
            continue
        apply, *_ = options_of({**config, "network": kind}, length, "causal", _code(config))
        longer = Problem(apply, problem.draw)
        found = fresh_errors(longer, _cut(trained.params, length), _members(length, factors), seed=seed)
        rows += [_row(config, task, length, *map(float, pair)) for task, pair in zip(TASKS, found, strict=True)]
    return rows


def _code(config: dict[str, Any]) -> str:
    return KINDS[config["kind"]][1]


def _cut(params: Any, length: int) -> Any:
    """A table of positions holds as many rows as there are tokens."""
    return {name: tensor[:, :length] if name == "code.table" else tensor for name, tensor in params.items()}


def _factors(length: int) -> tuple[float, float]:
    """What makes the variance of either target 1 at the trained length; the same factors hold at every length."""
    memory = causal_matrix(np.exp(-np.arange(length)))
    return constant_error(memory) ** -0.5, 1 / graph_moments(length, causal=True)[1]


def _members(length: int, factors: tuple[float, float]) -> Any:
    memory = causal_matrix(np.exp(-np.arange(length)))
    return stack([member_of(memory, temporal=factors[0]), member_of(memory, temporal=0.0, graph=factors[1])])


def _built(config: dict[str, Any], length: int) -> list[Row]:
    factors = _factors(config["length"])
    x = np.random.default_rng(config["seed"]).uniform(size=(256, length))
    with jax.enable_x64(True):
        graph = np.asarray(graph_values(jnp.asarray(x), causal=True))
    memory = x @ causal_matrix(np.exp(-np.arange(length))).T
    models: list[tuple[Transformer, np.ndarray]] = [(exponential_memory(length), memory), (graph_model(length), graph)]
    rows = []
    for task, factor, (model, wanted) in zip(TASKS, factors, models, strict=True):
        error = factor * np.abs(model.evaluate(x) - wanted)
        rows.append(_row(config, task, length, float(np.mean(error**2)), float(np.mean(error))))
    return rows


def _row(config: dict[str, Any], task: str, length: int, mse: float, l1: float) -> Row:
    return {"kind": config["kind"], "task": task, "length": length, "seed": config["seed"], "mse": mse, "l1": l1}


def jobs(options: Options) -> list[Job]:
    """One job for each kind and seed."""
    base = {**asdict(options), "lengths": list(options.lengths)}
    return [
        Job(f"{__name__}:run", {**base, "kind": kind, "seed": options.seed + number})
        for number in range(options.seeds)
        for kind in KINDS
    ]


def summary(rows: Sequence[Row], options: Options) -> Result:
    """Error against length for every kind and target."""
    tables = []
    for task in TASKS:
        lines = []
        for kind in KINDS:
            cells = [
                "no rows beyond" if kind == "table" and n > options.length else _cell(rows, kind, task, n)
                for n in options.lengths
            ]
            lines.append([kind, *cells])
        headings = ["network", *(f"length {n}" for n in options.lengths)]
        tables.append(
            Table(f"Mean squared error on {task} (variance 1), trained at length {options.length}", headings, lines)
        )
    reachable = [n for n in options.lengths if n <= options.length]
    wanted = options.seeds * len(TASKS) * ((len(KINDS) - 1) * len(options.lengths) + len(reachable))
    return Result(
        "length",
        QUESTION,
        asdict(options),
        [series for task in TASKS for kind in KINDS for series in _series(rows, options, kind, task)],
        tables,
        [],
        [sentence for task in TASKS for kind in KINDS for sentence in _finding(rows, options, kind, task)],
        [
            *missing(wanted, len(rows)),
            f"A table of positions has no rows beyond length {options.length}: it cannot be run there and has no error.",
            "Errors are means over all steps of a sequence, also over those within the trained length.",
        ],
    )


def _cell(rows: Sequence[Row], kind: str, task: str, length: int) -> str:
    return shown(errors(rows, kind=kind, task=task, length=length))


def _finding(rows: Sequence[Row], options: Options, kind: str, task: str) -> list[str]:
    first, last = (errors(rows, kind=kind, task=task, length=n) for n in (options.length, max(options.lengths)))
    if kind == "table" or max(options.lengths) <= options.length:
        return []
    if min(len(first), len(last)) < FEWEST_SEEDS:
        return [f"{task}, {kind}: fewer than three seeds, nothing is claimed."]
    near, far = float(np.median(first)), float(np.median(last))
    verdict = "carries over" if far <= 2 * near else "grows"
    return [
        f"{task}, {kind}: the error {verdict}, from {near:.2e} at the trained length {options.length} to {far:.2e} at"
        f" {max(options.lengths)} ({far / near:.3g} times)."
    ]


def _series(rows: Sequence[Row], options: Options, kind: str, task: str) -> list[Series]:
    columns = [select(rows, kind=kind, task=task, length=n) for n in options.lengths]
    x = [float(n) for n, column in zip(options.lengths, columns, strict=True) if column]
    columns = [column for column in columns if column]
    if not columns or len({len(column) for column in columns}) > 1:
        return []
    mse, l1 = (np.transpose([[row[name] for row in column] for column in columns]) for name in ("mse", "l1"))
    return [fitted_series(f"{task}, {kind}", "length", x, mse, l1)]


STUDY = Study("length", QUESTION, Options, FULL, jobs, summary)
