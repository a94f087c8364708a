"""How much can be cut out of one trained layer, by magnitude and by rank, and does the certificate of the scores hold?

Every seed trains the one-layer model of Jiang and Li's form (one head, no residual past the attention) and is then pruned
part by part (`pruned_layers`), without training again. Pruning the scores has a pointwise certificate, which must lie above
the measured change at every point and token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from certiformer.model.transformer import Transformer
from certiformer.rates.pruned_layers import PARTS, ROUNDING, by_magnitude, by_rank, score_bound, singular_values
from certiformer.rates.pruning_findings import (
    METHODS,
    X_LABEL,
    certificate_sentence,
    half_sentence,
    kept_sentence,
    pruning_table,
    spectrum_pictures,
    spectrum_sentence,
)
from certiformer.rates.size_models import STREAM, padded, size_config, start
from certiformer.rates.size_rows import seed_chunks
from certiformer.rates.size_summary import by_size, chosen
from certiformer.rates.size_targets import SizeTarget
from certiformer.rates.size_training import TEST_SEED, Schedule, train_members
from certiformer.rates.study import Result, Series, Study
from certiformer.sweep.job import Job, Row

QUESTION = "How much of one trained layer can be cut away, by magnitude and by rank, and how tight is the certificate?"
POINTS = 2048


@dataclass(frozen=True)
class Options:
    """What is trained and pruned."""

    units: int = 32
    """Hidden units of the feed-forward layer."""
    seeds: int = 12
    """Trained models."""
    steps: int = 5000
    """Steps of Adam."""
    samples: int = 2048
    """Points of the training sample."""
    batch: int = 32
    """Points of one step."""
    rate: float = 0.01
    """The first learning rate; it falls to zero along a cosine."""
    rank: int = 3
    """Rank of the kernel of the target."""
    seed: int = 0
    """The first seed."""


def jobs(options: Options) -> list[Job]:
    shared = {name: value for name, value in vars(options).items() if name not in ("seed", "seeds")}
    return [Job(f"{__name__}:run", {**shared, "seeds": list(chunk)}) for chunk in seed_chunks(options)]


def run(config: dict[str, Any]) -> list[Row]:
    """A row for every seed, part, method and kept share (eighths: the stream has 8 coordinates)."""
    target = SizeTarget("graph", rank=config["rank"])
    shape = size_config(target, units=config["units"], heads=1, key=STREAM, value=STREAM)
    placed = [padded(shape, start(shape, seed, target.high), shape) for seed in config["seeds"]]
    schedule = Schedule(config["steps"], config["samples"], config["batch"], config["rate"])
    starts, free = zip(*placed, strict=True)
    members, diverged = train_members(target, shape, starts, free, config["seeds"], schedule)
    rows = []
    for seed, tensors, lost in zip(config["seeds"], members, diverged, strict=True):
        rows += pruned_rows(target, shape, {n: np.asarray(t, np.float64) for n, t in tensors.items()}, seed, lost)
    return rows


def pruned_rows(target: SizeTarget, shape: Any, tensors: dict[str, np.ndarray], seed: int, diverged: bool) -> list[Row]:
    """What pruning does to one model, on fresh points, in float64."""
    shape, rows = replace(shape, dtype="float64"), []
    x, wanted = target.sample(POINTS, TEST_SEED)
    full = Transformer(shape, tensors).evaluate(x)
    for part in PARTS:
        values = singular_values(tensors, part)
        for eighth in range(STREAM + 1):
            for method in METHODS:
                cut = (
                    by_rank(tensors, part, eighth) if method == "rank" else by_magnitude(tensors, part, eighth / STREAM)
                )
                outputs = Transformer(shape, cut).evaluate(x)
                change = np.abs(outputs - full)
                bound = score_bound(shape, tensors, cut, x) if part == "QK" else None
                rows.append(
                    {
                        "part": part,
                        "method": method,
                        "x": eighth / STREAM,
                        "seed": seed,
                        "test_mse": float(np.mean((outputs - wanted) ** 2)),
                        "test_l1": float(np.mean(np.abs(outputs - wanted))),
                        "change": float(change.max()),
                        "bound": None if bound is None else float(bound.max()),
                        "above_bound": 0 if bound is None else int((change > bound + ROUNDING).sum()),
                        "points": 0 if bound is None else int(change.size),
                        "tightness": None if bound is None or not bound.max() else float(change.mean() / bound.mean()),
                        "singular_values": [float(v) for v in values],
                        "diverged": diverged,
                    }
                )
    return rows


def summary(rows: Sequence[Row], options: Options) -> Result:
    """Errors against the kept share, singular values, and the certificate."""
    series: list[Series] = []
    findings: list[str] = []
    mine = chosen(rows)
    for part in PARTS:
        for method in METHODS:
            line = [row for row in mine if (row["part"], row["method"]) == (part, method) and row["x"] > 0]
            if line:
                x, mse = by_size(line, "test_mse")
                _, l1 = by_size(line, "test_l1")
                name, errors = f"{part} by {method}", [np.median(table, axis=0).tolist() for table in (mse, l1)]
                series.append(Series(name, x, X_LABEL, *errors, note="a curve, not a rate: no slope is fitted"))
                findings += kept_sentence(name, line)
        findings += half_sentence(part, mine)
    findings += certificate_sentence(mine)
    findings += spectrum_sentence(mine, options.rank)
    limits = []
    if len({row["seed"] for row in rows}) < options.seeds:
        limits.append(f"{options.seeds - len({row['seed'] for row in rows})} of {options.seeds} models are missing.")
    if any(row["diverged"] for row in rows):
        limits.append(f"{len({r['seed'] for r in rows if r['diverged']})} models diverged and are left out.")
    limits.append(
        "Pruned once, without training again; one head and one layer; the pruned model is judged on fresh points."
    )
    return Result(
        "pruning", QUESTION, vars(options), series, [pruning_table(mine)], spectrum_pictures(mine), findings, limits
    )


STUDY = Study(
    name="pruning",
    question=QUESTION,
    options=Options,
    full={"units": 128, "seeds": 20, "steps": 60_000, "samples": 16_384},
    jobs=jobs,
    summary=summary,
)
