"""Layer normalisation, heads and depth: open questions 2, 1 and 4 of Jiang and Li (2024), answered with data.

Their theorem has no normalisation, one head and one layer. Here the same model is trained with none, with normalisation
before every sub-layer (`pre`) and after it (`post`), with one head and several (equal head size), with one attention
layer and two; every combination from the same seeds. The effect of one choice is the factor of the errors of two models
that differ in it alone and share the seed. Factors are averaged over seeds with all other choices held fixed, and over
those choices too: a seed then counts once, with the mean of its logarithms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from certiformer.rates import size_summary
from certiformer.rates.size_rows import run_members, seed_chunks, size_jobs
from certiformer.rates.size_summary import TARGETS, Factor, chosen, factor, series_of
from certiformer.rates.study import Result, Series, Study, Table
from certiformer.sweep.job import Job, Row

QUESTION = "What do layer normalisation, heads and depth change (open questions 2, 1 and 4 of Jiang and Li)?"
NORMS = ("none", "pre", "post")
X_LABEL = "heads"


@dataclass(frozen=True)
class Options:
    """What is trained."""

    heads: tuple[int, ...] = (1, 4)
    """Numbers of heads, each of key size 2."""
    depths: tuple[int, ...] = (1, 2)
    """Numbers of attention layers."""
    units: int = 16
    """Hidden units of every feed-forward layer."""
    seeds: int = 5
    """Trained models of every combination."""
    steps: int = 1500
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


def member(norm: str, heads: int, depth: int, units: int, seed: int) -> dict[str, Any]:
    """One model of a combination."""
    sizes = {"heads": heads, "key": 2, "value": 2, "units": units, "depth": depth}
    group = f"{norm} normalisation, {depth} layer(s)"
    return {"group": group, "x": heads, "seed": seed, "norm": norm, "layout": "blocks", **sizes}


def jobs(options: Options) -> list[Job]:
    parts = []
    for target in TARGETS:
        for norm in NORMS:
            for depth in options.depths:
                for chunk in seed_chunks(options, 6):
                    mine = [member(norm, h, depth, options.units, s) for h in options.heads for s in chunk]
                    parts.append(("trained", target, mine))
    return size_jobs(__name__, options, parts)


def run(config: dict[str, Any]) -> list[Row]:
    """The rows of one job."""
    return run_members(config)


def effect(rows: Sequence[Row], entry: str, value: Any, against: Any, others: Sequence[str]) -> Factor | None:
    """The factor of changing `entry` from `against` to `value`, averaged over `others`; seeds are the replicates."""
    known = {(row["seed"], *(row[o] for o in others)): row["test_mse"] for row in rows if row[entry] == against}
    logs: dict[int, list[float]] = {}
    for row in rows:
        before = known.get((row["seed"], *(row[o] for o in others)))
        if row[entry] == value and before and row["test_mse"] > 0:
            logs.setdefault(row["seed"], []).append(math.log(row["test_mse"] / before))
    complete = max(map(len, logs.values()), default=0)
    # A seed that lacks a combination would be an average over other models than the rest.
    first = [{"seed": s, "test_mse": math.exp(sum(v) / len(v))} for s, v in logs.items() if len(v) == complete]
    return factor(first, [{"seed": row["seed"], "test_mse": 1.0} for row in first])


def summary(rows: Sequence[Row], options: Options) -> Result:
    """The effect of every choice for each target, with what the data support and what not."""
    series: list[Series] = []
    findings: list[str] = []
    lines: list[list[Any]] = []
    for target, words in TARGETS.items():
        mine = chosen(rows, target=target, kind="trained")
        for group in dict.fromkeys(row["group"] for row in mine):
            series += series_of(
                [r for r in mine if r["group"] == group],
                f"{target}, {group}",
                f"{X_LABEL} ({target})",
                seed=options.seed,
            )
        for question, change, found in _effects(mine, options):
            if found is None:
                continue
            lines.append([target, question, change, str(found), found.verdict])
            supported = {
                "larger": "the data support that it makes the error larger",
                "smaller": "the data support that it makes the error smaller",
            }.get(found.verdict, "the data support neither a gain nor a loss")
            findings.append(
                f"Open question {question}, on {words}: {change} multiplies the error by {found}; {supported}."
            )
    limits = size_summary.limits_of(rows, jobs(options))
    limits.append("One learning rate for all: normalisation may allow a larger one, which is not tried.")
    limits.append(
        "Parameters are not equal here: heads and layers add some (the studies heads and depth hold them equal)."
    )
    tables = [
        Table("Effects on the mean squared test error", ["target", "question", "change", "factor", "verdict"], lines),
        size_summary.size_table(rows, "Errors of all combinations; medians over seeds", X_LABEL),
    ]
    return Result("layernorm", QUESTION, vars(options), series, tables, [], findings, limits)


def _effects(rows: Sequence[Row], options: Options) -> list[tuple[str, str, Factor | None]]:
    rest = ("heads", "depth")
    found = [
        ("2", "normalisation before every sub-layer instead of none", effect(rows, "norm", "pre", "none", rest)),
        ("2", "normalisation after every sub-layer instead of none", effect(rows, "norm", "post", "none", rest)),
        ("2", "normalisation after instead of before every sub-layer", effect(rows, "norm", "post", "pre", rest)),
    ]
    for heads in options.heads[1:]:
        change = f"{heads} heads instead of {options.heads[0]}"
        found.append(("1", change, effect(rows, "heads", heads, options.heads[0], ("norm", "depth"))))
    for depth in options.depths[1:]:
        change = f"{depth} attention layers instead of {options.depths[0]}"
        found.append(("4", change, effect(rows, "depth", depth, options.depths[0], ("norm", "heads"))))
    return found


STUDY = Study(
    name="layernorm",
    question=QUESTION,
    options=Options,
    full={"heads": (1, 2, 4, 8), "depths": (1, 2, 4), "units": 64, "seeds": 20, "steps": 40_000, "samples": 16_384},
    jobs=jobs,
    summary=summary,
)
