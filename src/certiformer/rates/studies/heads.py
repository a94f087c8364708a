"""Error against the number of heads: the first open question of Jiang and Li (2024), whose theorem has one head.

Two ways to add heads: at *equal total key size* (heads times key size fixed, so that only the splitting changes) and at
*equal head size* (every head has key size 1, so that heads are added). `graph` has one head of rank r in its target: one
head of key size r represents its scores exactly, several smaller ones do not. `sines` is approximated by attention alone,
one token and a register (the shape of the construction with sigmoid heads, whose key size is 1; surplus columns stay zero).

A third target, `keys` (`several_keys`), asks several places of a table at once, at equal total key size, with and
without LayerNorm; its errors are shares of wrong answers.

Constructed: for `sines` the sigmoid heads, error like heads^-8 at best (`construct.sigmoid_bound`); for `graph` the
kernel truncated to the key size of one head (proved), and terms split among heads (first order, only measured).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from certiformer.errors import BadInput
from certiformer.rates import several_keys, size_summary
from certiformer.rates.size_rows import run_members, seed_chunks, size_jobs
from certiformer.rates.size_summary import TARGETS, chosen, factor, series_of
from certiformer.rates.study import Result, Series, Study
from certiformer.sweep.job import Job, Row

QUESTION = (
    "What do several heads buy, at equal total key size and at equal head size (open question 1 of Jiang and Li)?"
)
X_LABEL = "heads"
TOTAL, EACH = "equal total key size", "equal head size"
KINDS = {"trained": "trained", "built": "constructed", "split": "terms split among heads"}


@dataclass(frozen=True)
class Options:
    """What is trained and built."""

    heads: tuple[int, ...] = (1, 2, 4, 8)
    """Numbers of heads at equal total key size; each must divide the total."""
    more_heads: tuple[int, ...] = (16, 24)
    """Further numbers of heads of key size 1 for sin(x1)+sin(x2)."""
    total: int = 8
    """The total key size that is shared among heads."""
    units: int = 32
    """Hidden units of the feed-forward layer of the target of Jiang and Li's form."""
    seeds: int = 5
    """Trained models of every size."""
    steps: int = 3000
    """Steps of Adam."""
    samples: int = 2048
    """Points of the training sample."""
    batch: int = 32
    """Points of one step."""
    rate: float = 0.01
    """The first learning rate; it falls to zero along a cosine."""
    rank: int = 4
    """Rank of the kernel of the target of Jiang and Li's form."""
    keys: tuple[int, ...] = (2, 4, 8)
    """Places that the target of several keys asks at once; each must divide the table."""
    table: int = 16
    """Entries of the table of that target, and the width of its model."""
    seed: int = 0
    """The first seed."""


def members(options: Options, target: str, seeds: Sequence[int]) -> list[dict[str, Any]]:
    """Models of both groups; `graph` has values of total size 8 in the first, of size 1 a head in the second."""
    if any(options.total % heads for heads in options.heads):
        raise BadInput(f"--total {options.total} is not divided by every number of heads")
    sizes = [(TOTAL, heads, options.total // heads) for heads in options.heads]
    sizes += [(EACH, heads, 1) for heads in options.heads]
    if target == "sines":
        sizes += [(EACH, heads, 1) for heads in options.more_heads]
    extra = (
        {"layout": "sink", "units": 0} if target == "sines" else {"layout": "paper", "units": options.units, "depth": 1}
    )
    return [
        {"group": group, "x": heads, "seed": seed, "heads": heads, "key": key, "value": key, **extra}
        for group, heads, key in sizes
        for seed in seeds
    ]


def jobs(options: Options) -> list[Job]:
    parts = []
    for target in TARGETS:
        for chunk in seed_chunks(options):
            parts.append(("trained", target, members(options, target, chunk)))
        for kind in ("built",) if target == "sines" else ("built", "split"):
            parts.append((kind, target, members(options, target, [options.seed])))
    several = [Job(f"{__name__}:run", part) for part in several_keys.keys_parts(options)]
    return [*size_jobs(__name__, options, parts), *several]


def run(config: dict[str, Any]) -> list[Row]:
    """The rows of one job."""
    return several_keys.keys_rows(config) if config["target"] == "keys" else run_members(config)


def summary(rows: Sequence[Row], options: Options) -> Result:
    """Every number of heads against one head, paired by seed; slopes; constructed beside; then several keys."""
    several = [row for row in rows if row["target"] == "keys"]
    rows = [row for row in rows if row["target"] != "keys"]
    series: list[Series] = []
    findings: list[str] = []
    for target, words in TARGETS.items():
        for group in (TOTAL, EACH):
            for kind, name in KINDS.items():
                mine = chosen(rows, target=target, kind=kind, group=group)
                series += series_of(mine, f"{target}, {group}, {name}", f"{X_LABEL} ({target})", seed=options.seed)
            findings += _against_one(words, group, chosen(rows, target=target, kind="trained", group=group))
            findings += _best_built(words, group, chosen(rows, target=target, group=group))
    findings += size_summary.bound_sentence(rows)
    findings += several_keys.keys_findings(several)
    every = jobs(options)
    limits = size_summary.limits_of(rows, [job for job in every if "members" in job.config])
    wanted = sum(
        job.config.get("seeds", 1) for job in every if job.config.get("keys") and job.config["kind"] == "trained"
    )
    if (known := sum(row["kind"] == "trained" for row in several)) < wanted:
        limits.append(f"{wanted - known} of {wanted} models of several keys are missing.")
    few = sorted({int(row["x"]) for row in rows if row["kind"] == "built" and row["test_mse"] != row["test_mse"]})
    if few:
        limits.append(
            f"The construction with sigmoid heads has nothing to offer with {', '.join(map(str, few))} heads."
        )
    limits.append("Several keys: in exact arithmetic one head carries the answer, so no target here *needs* several.")
    table = size_summary.size_table(rows, "Errors by number of heads; medians over seeds", X_LABEL)
    tables = [table, *several_keys.keys_table(several)]
    return Result(
        "heads", QUESTION, vars(options), series, tables, several_keys.keys_picture(several), findings, limits
    )


def _against_one(words: str, group: str, trained: Sequence[Row]) -> list[str]:
    if not trained:
        return []
    fewest = min(row["x"] for row in trained)
    base = [row for row in trained if row["x"] == fewest]
    parts = []
    for heads in sorted({row["x"] for row in trained} - {fewest}):
        found = factor([row for row in trained if row["x"] == heads], base)
        if found is not None:
            parts.append(f"{heads:g} heads {found} ({found.verdict})")
    if not parts:
        return []
    return [f"On {words} at {group}, trained: the error over that with {fewest:g} head(s) is, for {'; '.join(parts)}."]


def _best_built(words: str, group: str, rows: Sequence[Row]) -> list[str]:
    sentences = []
    for kind, name in (("built", "constructed models"), ("split", "models with terms split among heads")):
        parts = []
        for built in sorted((row for row in rows if row["kind"] == kind), key=lambda row: row["x"]):
            same = [row for row in rows if (row["kind"], row["x"]) == ("trained", built["x"])]
            if same:
                better = sum(row["test_mse"] < built["test_mse"] for row in same)
                parts.append(
                    f"{built['x']:g} heads {built['test_mse']:.2g} ({better} of {len(same)} trained are better)"
                )
        if parts:
            sentences.append(f"On {words} at {group} the {name} have mean squared errors: {'; '.join(parts)}.")
    return sentences


STUDY = Study(
    name="heads",
    question=QUESTION,
    options=Options,
    full={
        "heads": (1, 2, 4, 8, 16),
        "more_heads": (32, 64),
        "total": 16,
        "seeds": 20,
        "steps": 40_000,
        "samples": 16_384,
    },
    jobs=jobs,
    summary=summary,
)
