"""Study `time`: which temporal targets one block learns, and what must change when the inputs are permuted.

*Codes.* One block in five versions that differ only in how it is told about positions (`position_models`), on five
linear targets of variance 1. That distances alone cannot reverse a sequence is proved (`toeplitz_cannot_reverse`).

*Absorbed.* A summary of the rate paper says that a permutation of the inputs is absorbed by the first feed-forward
layer and not by the attention. In weights that is possible: `rates ordering` builds it, with the table of positions alone.
Here it is asked of training: a transformer that has learned one order goes on to another with only some weights free,
each part at several learning rates, of which the one with the smallest training loss counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import jax
import numpy as np

from certiformer.errors import BadInput
from certiformer.rates.over_seeds import bootstrap_mean
from certiformer.rates.position_models import POSITIONS, position_model
from certiformer.rates.sequence_batches import linear_batches
from certiformer.rates.sequence_models import fresh_errors, learn
from certiformer.rates.sequence_rows import FEWEST_SEEDS, errors
from certiformer.rates.sequence_targets import Matrix, causal_matrix, reordered, swapped, variance
from certiformer.rates.study import Picture, Result, Study, Table
from certiformer.sweep.job import Job, Row
from certiformer.train import Problem, stack

QUESTION = "Which temporal targets does a block learn, and what absorbs a permutation of its inputs?"
FIRST_UNITS = "blocks.0.ffn."
PARTS: dict[str, Callable[[str], bool]] = {
    "positions": lambda name: name == "code.table",
    "first feed-forward": lambda name: name.startswith(FIRST_UNITS),
    "both of them": lambda name: name == "code.table" or name.startswith(FIRST_UNITS),
    "attention": lambda name: ".attention." in name,
    "everything": lambda name: True,
}


@dataclass(frozen=True)
class Options:
    """What is trained."""

    length: int = 12
    """tokens of a sequence"""
    width: int = 24
    """width of the model, its keys and its values"""
    hidden: int = 64
    """hidden units of its two feed-forward layers"""
    exchanged: int = 4
    """inputs at either end that change places where a permutation is learned"""
    steps: int = 3000
    """training steps"""
    rate: float = 5e-3
    """largest learning rate of the first training"""
    rates: tuple[float, ...] = (2e-3, 5e-3, 1e-2)
    """largest learning rates tried where only a part is free"""
    batch: int = 32
    """sequences in a batch"""
    seeds: int = 5
    """independent models"""
    seed: int = 0
    """the first seed"""


def targets(length: int) -> dict[str, Matrix]:
    """The five targets, each with variance 1 about its means."""
    lag, rows = np.arange(length), np.arange(1, length + 1)
    found = {
        "delay by 3": causal_matrix((lag == 3).astype(float)),
        "decay": causal_matrix(np.exp(-lag / 2)),
        "oscillation": causal_matrix(np.exp(-lag / 4) * np.cos(np.pi * lag / 3)),
        "mean so far": np.tri(length) / rows[:, None],
        "reversal": np.eye(length)[::-1],
    }
    return {name: matrix / np.sqrt(variance(matrix)) for name, matrix in found.items()}


def jobs(options: Options) -> list[Job]:
    """One job for every kind of positions, and one for the permutation."""
    if options.width % 2 or not 0 < 2 * options.exchanged <= options.length or options.length < 4:
        raise BadInput("--width is even, --length at least 4 and at least twice --exchanged")
    base = {**asdict(options), "rates": list(options.rates)}
    kinds = [{"part": "codes", "positions": kind} for kind in POSITIONS] + [{"part": "absorbed", "positions": "table"}]
    return [Job(f"{__name__}:run", {**base, **kind}) for kind in kinds]


def run(config: dict[str, Any]) -> list[Row]:
    """All seeds of one kind of positions, or of the permutation."""
    apply, start = position_model(config["positions"], config["length"], config["width"], config["hidden"])
    problem = Problem(apply, linear_batches(config["batch"]))
    seeds = list(range(config["seed"], config["seed"] + config["seeds"]))
    return (_codes if config["part"] == "codes" else _absorbed)(config, problem, start, seeds)


def _codes(config: dict[str, Any], problem: Problem, start: Callable, seeds: Sequence[int]) -> list[Row]:
    members = [(name, matrix, seed) for name, matrix in targets(config["length"]).items() for seed in seeds]
    goals = stack([np.asarray(matrix, np.float32) for _, matrix, _ in members])
    starts = [start(seed) for *_, seed in members]
    trained = learn(problem, starts, goals, seed=1000 * seeds[0], steps=config["steps"], rate=config["rate"])
    found = fresh_errors(problem, trained.params, goals, seed=seeds[0])
    return [
        _row(config, name, seed, mse, lost, sum(tensor.size for tensor in starts[0].values()))
        for (name, _, seed), (mse, _), lost in zip(members, found, trained.diverged, strict=True)
    ]


def _absorbed(config: dict[str, Any], problem: Problem, start: Callable, seeds: Sequence[int]) -> list[Row]:
    matrix = targets(config["length"])["decay"]
    before = np.asarray(matrix, np.float32)
    after = np.asarray(reordered(matrix, swapped(config["length"], config["exchanged"])), np.float32)
    training = {"seed": 1000 * seeds[0], "steps": config["steps"]}
    first = learn(problem, [start(s) for s in seeds], stack([before] * len(seeds)), rate=config["rate"], **training)
    learned = [jax.tree.map(lambda leaf, m=m: np.asarray(leaf[m]), first.params) for m in range(len(seeds))]
    goals = stack([after] * len(seeds))
    rows = [
        _row(config, "nothing", seed, mse, lost, 0)
        for seed, (mse, _), lost in zip(
            seeds, fresh_errors(problem, first.params, goals, seed=seeds[0]), first.diverged, strict=True
        )
    ]
    for part, freed in PARTS.items():
        masks = {name: np.full_like(tensor, freed(name)) for name, tensor in learned[0].items()}
        size = int(sum(mask.sum() for mask in masks.values()))
        runs = [
            learn(problem, learned, goals, rate=rate, free=stack([masks] * len(seeds)), **training)
            for rate in config["rates"]
        ]
        for place, seed in enumerate(seeds):
            best = min(runs, key=lambda each, m=place: np.inf if each.diverged[m] else float(each.scores[m]))
            one = best.take(np.array([place]))
            (mse, _), *_ = fresh_errors(problem, one.params, stack([after]), seed=seeds[0])
            rows.append(_row(config, part, seed, mse, best.diverged[place], size))
    return rows


def _row(config: dict[str, Any], name: str, seed: int, mse: float, diverged: bool, weights: int) -> Row:
    facts = {"part": config["part"], "positions": config["positions"], "what": name, "seed": seed}
    return {**facts, "mse": float(mse), "weights": int(weights), "diverged": bool(diverged)}


def summary(rows: Sequence[Row], options: Options) -> Result:
    """Geometric means over seeds with bootstrap intervals; sentences only where intervals are apart."""
    kept = [row for row in rows if not row["diverged"]]
    expected = options.seeds * (len(POSITIONS) * len(targets(options.length)) + 1 + len(PARTS))
    limits = [
        *([f"{expected - len(rows)} of {expected} models are missing."] if len(rows) < expected else []),
        "Linear targets on independent inputs, one length, one width; what a block does not learn here it may represent.",
        "A fixed exchange of blocks of inputs; other permutations were not measured.",
    ]
    lost = len(rows) - len(kept)
    limits += [f"{lost} models diverged and are left out."] if lost else []
    tables = [_codes_table(kept, options), _absorbed_table(kept)]
    findings = [*_codes_findings(kept, options), *_absorbed_findings(kept)]
    return Result("time", QUESTION, asdict(options), [], tables, _pictures(kept, options), findings, limits)


def geometric(values: Sequence[float]) -> tuple[float, tuple[float, float]]:
    """The geometric mean and its bootstrap interval.

    >>> [round(number, 9) for number in (geometric([0.1, 10.0])[0], *geometric([2.0, 2.0])[1])]
    [1.0, 2.0, 2.0]
    """
    mean, (low, high) = bootstrap_mean(np.log(values).tolist())
    return float(np.exp(mean)), (float(np.exp(low)), float(np.exp(high)))


def _shown(values: Sequence[float]) -> str:
    if not values:
        return "not measured"
    mean, (low, high) = geometric(values)
    return f"{mean:.2g} [{low:.2g}, {high:.2g}]"


def _of(rows: Sequence[Row], name: str, positions: str | None = None) -> list[float]:
    where = {"part": "absorbed", "what": name}
    return errors(rows, **(where if positions is None else {"part": "codes", "what": name, "positions": positions}))


def _codes_table(rows: Sequence[Row], options: Options) -> Table:
    lines = [[name, *(_shown(_of(rows, name, kind)) for kind in POSITIONS)] for name in targets(options.length)]
    caption = "Mean squared error of one block (the variance is 1): geometric mean and 95 percent bootstrap interval"
    return Table(caption, ["target", *POSITIONS], lines)


def _absorbed_table(rows: Sequence[Row]) -> Table:
    weights = {row["what"]: row["weights"] for row in rows if row["part"] == "absorbed"}
    lines = [[name, weights.get(name, ""), _shown(_of(rows, name))] for name in ("nothing", *PARTS)]
    caption = "After the inputs are permuted (variance 1): what may move, its weights, the error at its best rate"
    return Table(caption, ["free", "weights", "mean squared error"], lines)


def _codes_findings(rows: Sequence[Row], options: Options) -> list[str]:
    found = []
    for name in targets(options.length):
        by_kind = {kind: _of(rows, name, kind) for kind in POSITIONS}
        if min(map(len, by_kind.values())) < FEWEST_SEEDS:
            continue
        best = min(POSITIONS, key=lambda kind, by_kind=by_kind: geometric(by_kind[kind])[0])
        top = geometric(by_kind[best])[1][1]
        worse = [kind for kind in POSITIONS if geometric(by_kind[kind])[1][0] > top]
        even = [kind for kind in POSITIONS if kind != best and kind not in worse]
        words = (
            f"; not distinguishable from it: {', '.join(even)}" if even else "; all others are worse, intervals apart"
        )
        found.append(f"{name}: least error with {best} ({_shown(by_kind[best])}){words}.")
    return found


def _absorbed_findings(rows: Sequence[Row]) -> list[str]:
    pairs = []
    by_seed = {(row["what"], row["seed"]): row["mse"] for row in rows if row["part"] == "absorbed"}
    for name in ("positions", "first feed-forward", "both of them"):
        seeds = [seed for part, seed in by_seed if part == name and ("attention", seed) in by_seed]
        if len(seeds) < FEWEST_SEEDS:
            continue
        factor, (low, high) = geometric([by_seed[name, seed] / by_seed["attention", seed] for seed in seeds])
        won = sum(by_seed["attention", seed] < by_seed[name, seed] for seed in seeds)
        verdict = "not distinguishable"
        if low > 1 or high < 1:
            verdict = "the attention alone does better" if low > 1 else "the attention alone does worse"
        pairs.append(
            f"{name} alone leave {factor:.3g} [{low:.3g}, {high:.3g}] times the error of the attention alone, which is"
            f" better in {won} of {len(seeds)} seeds ({verdict})"
        )
    if not pairs:
        return ["What absorbs a permutation: fewer than three seeds, nothing is claimed."]
    return [f"Permuted inputs, every part at its best rate: {'; '.join(pairs)}."]


def _pictures(rows: Sequence[Row], options: Options) -> list[Picture]:
    names = list(targets(options.length))
    values = [[_of(rows, name, kind) for kind in POSITIONS] for name in names]
    if not all(cell for line in values for cell in line):
        return []
    cells = [[float(np.log10(geometric(cell)[0])) for cell in line] for line in values]
    data = {"rows": names, "columns": list(POSITIONS), "values": cells}
    return [Picture("heat", "log10 of the mean squared error", data)]


STUDY = Study(
    name="time",
    question=QUESTION,
    options=Options,
    full={"length": 32, "width": 32, "hidden": 128, "exchanged": 10, "steps": 12_000, "seeds": 20},
    jobs=jobs,
    summary=summary,
)
