"""Depth against width for targets that need composition: built and proved, impossible for one narrow layer, and trained.

Six targets (`composition_tasks`): tables composed, four pointers followed, two hops of induction, parity, the depth of
brackets, and a product of permutations. For each three things stand side by side: the transformer that is compiled and
certified for all inputs; what one layer must bring of a block of tokens, heads (size + 1) bits, by the theorem
`expressivity.blind_block`; and trained models of several depths, deeper ones narrower, so that none has more weights
than the one with a single block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from certiformer.errors import BadInput
from certiformer.rates.composition_built import answers, built
from certiformer.rates.composition_tasks import TASKS, Task, task
from certiformer.rates.over_seeds import bootstrap_mean, share_in_words
from certiformer.rates.study import Picture, Result, Study, Table
from certiformer.rates.token_models import equal_width, token_config, trained_rows
from certiformer.sweep.job import Job, Row

QUESTION = "What does depth buy against width, at equal weights, for targets that need composition?"
TABLES = ("composition", "pointers")  # the tasks whose size is that of a table
BUILT_INPUTS = 200
BITS = 32  # of a number of a trained model
LEARNED = 0.01  # the share of wrong answers below which a target counts as learned


@dataclass(frozen=True)
class Options:
    """What is trained and built."""

    tasks: tuple[str, ...] = tuple(TASKS)
    """the targets, of composition, pointers, induction, parity, depth, chain"""
    depths: tuple[int, ...] = (1, 2, 3, 4, 6)
    """numbers of blocks; the first one sets the weights of all"""
    tables: int = 6
    """entries of a table"""
    letters: int = 10
    """letters, bits, brackets or factors of the other targets"""
    width: int = 32
    """width of the model with one block, whose weights no other one exceeds"""
    heads: int = 2
    """heads of every block"""
    norm: Literal["none", "pre", "post"] = "pre"
    """LayerNorm in every block"""
    seeds: int = 5
    """independent models of every depth"""
    steps: int = 2000
    """steps of Adam"""
    samples: int = 65_536
    """sequences of the training sample"""
    batch: int = 32
    """sequences of one step"""
    rates: tuple[float, ...] = (0.01, 0.003)
    """learning rates; of every model the run with the smallest training loss counts"""
    seed: int = 0
    """the first seed"""


def task_of(name: str, options: Options) -> Task:
    """The task in the size that the options say."""
    return task(name, options.tables if name in TABLES else options.letters)


def jobs(options: Options) -> list[Job]:
    """For every task one job that builds, and one for every depth."""
    if not options.depths or min(options.depths) < 1:
        raise BadInput("--depths are whole numbers from 1 on")
    base = {**asdict(options), "depths": [], "tasks": [], "rates": list(options.rates)}
    made = []
    for name in options.tasks:
        sized = task_of(name, options)
        shared = {**base, "task": name, "n": sized.n}
        made.append(Job(f"{__name__}:run", {**shared, "kind": "built", "depth": 0, "width": 0}))
        for depth in options.depths:
            width = equal_width(sized, options.width, depth, options.heads, options.norm)
            made.append(Job(f"{__name__}:run", {**shared, "kind": "trained", "depth": depth, "width": width}))
    return made


def run(config: dict[str, Any]) -> list[Row]:
    """The rows of one job."""
    asked = task(config["task"], config["n"])
    if config["kind"] == "built":
        return [_built_row(asked)]
    shape = token_config(
        asked, width=config["width"], depth=config["depth"], heads=config["heads"], norm=config["norm"]
    )
    seeds = range(config["seed"], config["seed"] + config["seeds"])
    facts = {"task": asked.name, "kind": "trained", "depth": config["depth"], "certified": False}
    facts |= {"brought": config["heads"] * (config["width"] // config["heads"] + 1) * BITS}
    facts |= {"needed": -1 if asked.one_layer is None else asked.one_layer}
    return [{**facts, **row} for row in trained_rows(asked, shape, config, seeds)]


def _built_row(asked: Task) -> Row:
    made = built(asked)
    model = made.model
    inputs, wanted = asked.sample(BUILT_INPUTS, seed=0)
    wrong = float(np.mean(np.array(answers(made, asked, inputs)) != wanted))
    layers, weights = (
        (0, 0) if model is None else (len(model.config.blocks) * model.config.loops, model.nonzero_count())
    )
    facts = {"task": asked.name, "kind": "built", "depth": layers, "certified": made.certified}
    facts |= {"brought": 0, "needed": -1 if asked.one_layer is None else asked.one_layer}
    numbers = {"seed": 0, "weights": weights, "width": 0 if model is None else model.config.width, "wrong": wrong}
    return {**facts, **numbers, "loss": 0.0, "seen_wrong": wrong, "rate": 0.0, "diverged": False}


def summary(rows: Sequence[Row], options: Options) -> Result:
    """Built, proved and trained side by side, with bootstrap intervals over seeds."""
    trained = [row for row in rows if row["kind"] == "trained" and not row["diverged"]]
    made = {row["task"]: row for row in rows if row["kind"] == "built"}
    shares = partial(_shares, trained)
    lines, findings = [], []
    for name in options.tasks:
        by_depth = [shares(name, depth) for depth in options.depths]
        lines.append([name, *map(share_in_words, by_depth)])
        findings += _finding(name, made.get(name), options, by_depth)
    expected = sum(1 if job.config["kind"] == "built" else options.seeds for job in jobs(options))
    limits = [
        *([f"{expected - len(rows)} of {expected} models are missing."] if len(rows) < expected else []),
        "Equal weights within one step of the width; steps are equal, so deeper models cost more time.",
        "What training does not reach at a depth may exist there: only the built models and the theorem are proofs.",
        "Short inputs are few: of the bits and brackets the training sample holds every one there is.",
    ]
    lost = sum(bool(row["diverged"]) for row in rows)
    limits += [f"{lost} models diverged at every rate and are left out."] if lost else []
    headings = ["target", *(_count(depth, "block") for depth in options.depths)]
    caption = "Wrong answers of trained models at equal weights, in percent: mean and 95 percent bootstrap interval"
    tables = [Table(caption, headings, lines), _proved(made, trained, options)]
    return Result("composition", QUESTION, asdict(options), [], tables, _picture(trained, options), findings, limits)


def _shares(rows: Sequence[Row], name: str, depth: int) -> list[float]:
    return [row["wrong"] for row in rows if (row["task"], row["depth"]) == (name, depth)]


def _proved(made: dict[str, Row], trained: Sequence[Row], options: Options) -> Table:
    lines = []
    for name in options.tasks:
        sized, row = task_of(name, options), made.get(name)
        brought = [one["brought"] for one in trained if (one["task"], one["depth"]) == (name, 1)]
        cells = ["not finished"] * 3
        if row is not None:
            cells = [str(row["depth"]), f"{row['weights']:,}", "yes" if row["certified"] else "no"]
        least = "none is proved" if sized.one_layer is None else _count(sized.one_layer, "bit")
        lines.append([name, str(sized.n), *cells, least, f"{brought[0]:,} bits" if brought else "not measured"])
    headings = ["target", "n", "layers of the built model", "its nonzero weights", "certified"]
    headings += ["one layer must bring at least", "one trained layer may bring"]
    return Table("What is proved: built for all inputs, and needed of one layer", headings, lines)


def _finding(name: str, made: Row | None, options: Options, by_depth: Sequence[Sequence[float]]) -> list[str]:
    parts = []
    if made is not None:
        word = "certified for all inputs" if made["certified"] else "not certified"
        parts.append(f"a transformer with {_count(made['depth'], 'layer')} is built and {word}")
    known = [(depth, share) for depth, share in zip(options.depths, by_depth, strict=True) if share]
    if known:
        learned = [depth for depth, share in known if max(share) < LEARNED]
        if learned:
            parts.append(f"trained models get below 1 % wrong in every seed with {_count(learned[0], 'block')} first")
        else:
            depth, best = min(known, key=lambda pair: float(np.mean(pair[1])))
            parts.append(f"no depth gets below 1 % wrong in every seed; best is {depth}, {share_in_words(best)} %")
        parts += _against_one(known)
    return [f"{name}: {'; '.join(parts)}."] if parts else []


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _against_one(known: Sequence[tuple[int, Sequence[float]]]) -> list[str]:
    """The best deeper model against the first depth, by the intervals of both means."""
    if len(known) < 2 or len(known[0][1]) < 3:
        return []
    (least, base), *deeper = known
    depth, best = min(deeper, key=lambda pair: float(np.mean(pair[1])))
    if len(best) < 3:
        return []
    (_, first), (_, second) = bootstrap_mean(base), bootstrap_mean(best)
    if second[1] < first[0]:
        return [f"{_count(depth, 'block')} beat {least} at equal weights, with intervals apart"]
    if first[1] < second[0]:
        return [f"{least} block beats every deeper one at equal weights, with intervals apart"]
    return ["no effect of depth is seen: the intervals overlap"]


def _picture(trained: Sequence[Row], options: Options) -> list[Picture]:
    lines = []
    for name in options.tasks:
        known = [(depth, _shares(trained, name, depth)) for depth in options.depths]
        points = [(float(depth), float(np.mean(share))) for depth, share in known if share]
        if points:
            lines.append({"name": name, "x": [x for x, _ in points], "y": [y for _, y in points]})
    data = {"x_label": "blocks, at equal weights", "y_label": "share of wrong answers", "lines": lines}
    title = "Depth against width for targets that need composition"
    return [Picture("curves", title, {**data, "log_x": False, "log_y": False})] if lines else []


STUDY = Study(
    name="composition",
    question=QUESTION,
    options=Options,
    full={
        "depths": (1, 2, 3, 4, 5, 6),
        "tables": 16,
        "letters": 16,
        "width": 128,
        "seeds": 20,
        "steps": 20_000,
        "batch": 64,
    },
    jobs=jobs,
    summary=summary,
)
