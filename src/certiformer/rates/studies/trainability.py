"""What Adam reaches against what the theorem builds, in the same configuration.

Three families: the ridge construction for sin(x1)+sin(x2) (size: hidden units), its sigmoid heads (attention alone; size:
heads), and the built model of Jiang and Li's form (size: hidden units). Each configuration is built; trained from random
weights with several restarts; and trained further from the built weights, which tells a landscape that keeps Adam away from
good weights from weights that are not there. Adam minimises the mean squared error on a sample, the theorems bound the
largest error, so both are shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from certiformer.rates import size_summary
from certiformer.rates.size_rows import run_members, seed_chunks, size_jobs
from certiformer.rates.size_summary import chosen, factor, median, series_of
from certiformer.rates.study import Result, Series, Study, Table
from certiformer.sweep.job import Job, Row

QUESTION = "Does Adam reach what the theorem builds, in the same configuration?"
X_LABEL = "size (hidden units or heads)"
FAMILIES = {
    "ridge units": "sines",
    "sigmoid heads": "sines",
    "kernel features": "graph",
}

FAMILY_LABELS = {
    "ridge units": "hidden units (ridge construction)",
    "sigmoid heads": "heads (sigmoid heads)",
    "kernel features": "hidden units (kernel features)",
}


@dataclass(frozen=True)
class Options:
    """What is trained and built."""

    units: tuple[int, ...] = (4, 8, 16, 32)
    """Hidden units of the ridge construction and of the built model of Jiang and Li's form."""
    heads: tuple[int, ...] = (12, 16, 24, 32)
    """Sigmoid heads."""
    seeds: int = 6
    """Restarts of every configuration."""
    steps: int = 3000
    """Steps of Adam."""
    samples: int = 2048
    """Points of the training sample."""
    batch: int = 32
    """Points of one step."""
    rate: float = 0.01
    """The first learning rate from random weights; it falls to zero along a cosine."""
    continued_rate: float = 0.001
    """The first learning rate from built weights."""
    rank: int = 2
    """Rank of the kernel of the target of Jiang and Li's form."""
    seed: int = 0
    """The first seed."""


def member(family: str, size: int, rank: int, seed: int) -> dict[str, Any]:
    """One model of a family, in the configuration of its construction."""
    common = {"group": family, "x": size, "seed": seed}
    if family == "sigmoid heads":
        return {**common, "layout": "sink", "units": 0, "heads": size, "key": 1, "value": 1}
    shape = {"layout": "paper", "units": size, "value": 1, "depth": 1}
    if family == "ridge units":
        return {**common, **shape, "heads": 2, "key": 1, "width": 4}
    return {**common, **shape, "heads": 1, "key": rank}


def sizes(options: Options, family: str) -> tuple[int, ...]:
    return options.heads if family == "sigmoid heads" else options.units


def jobs(options: Options) -> list[Job]:
    parts = []
    for family, target in FAMILIES.items():
        every = sizes(options, family)
        for chunk in seed_chunks(options):
            parts.append(("trained", target, [member(family, x, options.rank, s) for x in every for s in chunk]))
        one = [member(family, x, options.rank, options.seed) for x in every]
        parts += [("built", target, one), ("continued", target, one)]
    return [_gentle(job, options.continued_rate) for job in size_jobs(__name__, options, parts)]


def _gentle(job: Job, rate: float) -> Job:
    """Built weights would be thrown away by the first steps of a large rate."""
    return Job(job.function, {**job.config, "rate": rate}) if job.config["kind"] == "continued" else job


def run(config: dict[str, Any]) -> list[Row]:
    """The rows of one job."""
    return run_members(config)


def summary(rows: Sequence[Row], options: Options) -> Result:
    """Median and best of the restarts over the built error, size by size."""
    series: list[Series] = []
    findings: list[str] = []
    lines: list[list[Any]] = []
    for family in FAMILIES:
        mine = {kind: chosen(rows, group=family, kind=kind) for kind in ("trained", "built", "continued")}
        restarts = mine["trained"]
        label = FAMILY_LABELS[family]
        series += series_of(restarts, f"{family}, Adam, median of restarts", label, seed=options.seed)
        series += series_of(restarts, f"{family}, Adam, best of restarts", label, replicates="best", seed=options.seed)
        series += series_of(mine["built"], f"{family}, built", label, seed=options.seed)
        series += series_of(mine["continued"], f"{family}, Adam from the built weights", label, seed=options.seed)
        parts = [_at(x, {k: [r for r in v if r["x"] == x] for k, v in mine.items()}) for x in sizes(options, family)]
        lines += [[family, *line] for line, _ in filter(None, parts)]
        findings += _sentences(family, [words for _, words in filter(None, parts)])
    findings += size_summary.bound_sentence(rows)
    limits = size_summary.limits_of(rows, jobs(options))
    limits.append(f"One optimiser, {options.steps} steps, one learning rate: not reached here is not unreachable.")
    headings = ["family", X_LABEL, "parameters", "built MSE", "Adam median", "Adam best", "Adam from built"]
    headings += ["mean factor Adam / built", "built largest error", "Adam best largest error"]
    tables = [Table("Mean squared errors on fresh points, restarts against the theorem", headings, lines)]
    return Result("trainability", QUESTION, vars(options), series, tables, [], findings, limits)


def _at(x: int, kinds: dict[str, list[Row]]) -> tuple[list[Any], tuple[int, str, float, float, float | None]] | None:
    """The line of a table for one size, and (size, verdict, built, best, continued)."""
    if not kinds["built"] or not kinds["trained"]:
        return None
    (built, *_), trained = kinds["built"], kinds["trained"]
    # Restarts are replicates against the one built error.
    over = factor(trained, [{"seed": row["seed"], "test_mse": built["test_mse"]} for row in trained])
    best = min(trained, key=lambda row: row["test_mse"])
    further = kinds["continued"][0]["test_mse"] if kinds["continued"] else None
    line = [x, built["parameters"], f"{built['test_mse']:.3g}", f"{median(trained, 'test_mse'):.3g}"]
    line += [f"{best['test_mse']:.3g}", "" if further is None else f"{further:.3g}", str(over)]
    line += [f"{built['test_sup']:.3g}", f"{min(row['test_sup'] for row in trained):.3g}"]
    verdict = "not distinguishable" if over is None else over.verdict
    return line, (x, verdict, built["test_mse"], best["test_mse"], further)


def _sentences(family: str, found: Sequence[tuple[int, str, float, float, float | None]]) -> list[str]:
    if not found:
        return []
    names = {"larger": "worse than the theorem", "smaller": "better than the theorem"}
    texts = []
    for verdict in ("larger", "smaller", "not distinguishable"):
        where = ", ".join(str(x) for x, v, *_ in found if v == verdict)
        if where:
            texts.append(f"{names.get(verdict, 'not distinguishable from it')} at size {where}")
    ahead = [f"{x}" for x, _, built, best, _ in found if best < built]
    ratios = ", ".join(f"{best / built:.3g} ({x})" for x, _, built, best, _ in found if built > 0)
    result = [
        f"{family}: the restarts of Adam are on average (95 % interval over restarts) {'; '.join(texts)}.",
        f"{family}: the best restart beats the built weights at size {', '.join(ahead) if ahead else 'none'};"
        f" best over built, by size: {ratios}.",
    ]
    further = [(x, done / built, best / done) for x, _, built, best, done in found if done and built > 0]
    if further:
        gains = ", ".join(f"{ratio:.3g} ({x})" for x, ratio, _ in further)
        hidden = [str(x) for x, _, ratio in further if ratio > 1]
        text = f"{family}: Adam from the built weights ends at these multiples of their error, by size: {gains}"
        where = (
            f"; at size {', '.join(hidden)} these weights are better than every restart, so there the search fell short"
        )
        result.append(text + (where if hidden else "") + ".")
    return result


STUDY = Study(
    name="trainability",
    question=QUESTION,
    options=Options,
    full={
        "units": (4, 8, 16, 32, 64, 128),
        "heads": (12, 16, 24, 32, 48, 64),
        "seeds": 60,
        "steps": 40_000,
        "samples": 16_384,
    },
    jobs=jobs,
    summary=summary,
)
