"""Error against depth at equal parameters: the fourth open question of Jiang and Li (2024), whose theorem has one layer.

All models have standard blocks (attention, then feed-forward, residuals), `graph` with a feed-forward layer before
them. The width of the feed-forward layers is the largest even one with which the parameters do not exceed those of the
model with one block. Constructed: the same hidden units as in one block, shared among the blocks (the attention of all
but one adds nothing), so depth costs it the parameters of the idle attention; constructions that use depth itself are not
here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from certiformer.errors import BadInput
from certiformer.rates import size_summary
from certiformer.rates.size_models import parameter_count
from certiformer.rates.size_rows import config_of, run_members, seed_chunks, size_jobs
from certiformer.rates.size_summary import TARGETS, chosen, factor, series_of
from certiformer.rates.size_targets import SizeTarget
from certiformer.rates.study import Result, Series, Study
from certiformer.sweep.job import Job, Row

QUESTION = "Is a deeper transformer better than a wider one with the same parameters (open question 4 of Jiang and Li)?"
X_LABEL = "attention layers"


@dataclass(frozen=True)
class Options:
    """What is trained and built."""

    depths: tuple[int, ...] = (1, 2, 4)
    """Numbers of attention layers."""
    units: int = 64
    """Hidden units of each feed-forward layer with one attention layer; it sets the parameters of all models."""
    heads: int = 2
    """Heads of every layer, of key size 2 each."""
    seeds: int = 5
    """Trained models of every depth."""
    steps: int = 2000
    """Steps of Adam."""
    samples: int = 2048
    """Points of the training sample."""
    batch: int = 32
    """Points of one step."""
    rate: float = 0.005
    """The first learning rate; it falls to zero along a cosine."""
    rank: int = 2
    """Rank of the kernel of the target of Jiang and Li's form."""
    seed: int = 0
    """The first seed."""


def equal_units(target: str, depth: int, options: Options) -> int:
    """The largest even number of hidden units whose parameters do not exceed those of one layer."""
    shape = SizeTarget(target, rank=options.rank)

    def parameters(depth: int, units: int) -> int:
        return parameter_count(config_of(shape, member(target, depth, units, options, 0)))

    budget = parameters(1, options.units)
    fitting = [units for units in range(2, options.units + 1, 2) if parameters(depth, units) <= budget]
    if not fitting:
        raise BadInput(f"{budget} parameters are too few for {depth} attention layers; raise --units")
    return fitting[-1]


def member(target: str, depth: int, units: int, options: Options, seed: int) -> dict[str, Any]:
    """One model of a depth and a width."""
    sizes = {"heads": options.heads, "key": 2, "value": 2, "units": units, "depth": depth}
    return {"group": "", "x": depth, "seed": seed, "layout": "blocks", **sizes}


def jobs(options: Options) -> list[Job]:
    parts = []
    for target in TARGETS:
        units = {depth: equal_units(target, depth, options) for depth in options.depths}
        for depth in options.depths:
            for chunk in seed_chunks(options):
                parts.append(("trained", target, [member(target, depth, units[depth], options, s) for s in chunk]))
        built = [member(target, depth, units[depth], options, options.seed) for depth in options.depths]
        parts.append(("built", target, built))
    return size_jobs(__name__, options, parts)


def run(config: dict[str, Any]) -> list[Row]:
    """The rows of one job."""
    return run_members(config)


def summary(rows: Sequence[Row], options: Options) -> Result:
    """Every depth against one layer, paired by seed."""
    series: list[Series] = []
    findings: list[str] = []
    for target, words in TARGETS.items():
        trained, built = (chosen(rows, target=target, kind=kind) for kind in ("trained", "built"))
        series += series_of(trained, f"{target}, trained", f"{X_LABEL} ({target})", seed=options.seed)
        series += series_of(built, f"{target}, constructed", f"{X_LABEL} ({target})", seed=options.seed)
        findings += _against_one(words, trained)
        findings += _built(words, built)
    findings += size_summary.bound_sentence(rows)
    limits = size_summary.limits_of(rows, jobs(options))
    limits.append("Equal parameters within one step of the width; steps are equal, so deeper models cost more time.")
    limits.append("Two smooth targets that one layer can do; targets that need several layers are not here.")
    table = size_summary.size_table(rows, "Errors by depth at equal parameters; medians over seeds", X_LABEL)
    return Result("depth", QUESTION, vars(options), series, [table], [], findings, limits)


def _against_one(words: str, trained: Sequence[Row]) -> list[str]:
    if not trained:
        return []
    least = min(row["x"] for row in trained)
    base = [row for row in trained if row["x"] == least]
    parts, verdicts = [], set()
    for depth in sorted({row["x"] for row in trained} - {least}):
        found = factor([row for row in trained if row["x"] == depth], base)
        if found is not None:
            verdicts.add(found.verdict)
            parts.append(f"{depth:g} layers {found} ({found.verdict})")
    if not parts:
        return []
    text = (
        f"On {words}, trained at equal parameters, the error over that of {least:g} layer(s) is, for {'; '.join(parts)}"
    )
    if verdicts == {"not distinguishable"}:
        return [f"{text}: no effect of depth is supported."]
    if verdicts <= {"smaller", "not distinguishable"}:
        return [f"{text}: depth helps where it shows."]
    if verdicts <= {"larger", "not distinguishable"}:
        return [f"{text}: depth harms where it shows."]
    return [f"{text}: depth helps at one number of layers and harms at another."]


def _built(words: str, built: Sequence[Row]) -> list[str]:
    if len(built) < 2:
        return []
    ordered = sorted(built, key=lambda row: row["x"])
    errors = ", ".join(f"{row['test_mse']:.2g} ({row['x']:g})" for row in ordered)
    worse = ordered[-1]["test_mse"] > ordered[0]["test_mse"]
    verb = "loses" if worse else "gains"
    shared = "the construction, which only shares its units among layers,"
    return [f"On {words} {shared} {verb} with depth at equal parameters: {errors}."]


STUDY = Study(
    name="depth",
    question=QUESTION,
    options=Options,
    full={"depths": (1, 2, 3, 4, 6, 8), "units": 256, "seeds": 20, "steps": 40_000, "samples": 16_384},
    jobs=jobs,
    summary=summary,
)
