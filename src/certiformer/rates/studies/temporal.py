"""Study `temporal`: from graph-like targets to purely temporal ones, who wins where.

The target is sqrt(1 - share) g + sqrt(share) c. g is attention over values (`sequence_batches.graph_values`, over the
past only), c is a convolution; both have mean 0 and variance 1 over steps and sequences, so `share` is the temporal
part of the variance. Everything is causal, the transformer by its mask, so a recurrent network sees all it needs at
every share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from certiformer.rates.sequence_batches import graph_moments, member_of, mixed_batches
from certiformer.rates.sequence_models import fresh_errors, learn, options_of
from certiformer.rates.sequence_options import PAPER, SequenceOptions
from certiformer.rates.sequence_rows import FEWEST_SEEDS, crossing, errors, missing, select, shown, winner
from certiformer.rates.sequence_targets import MEAN, Matrix, causal_matrix, constant_error
from certiformer.rates.slopes import fitted_series
from certiformer.rates.study import Picture, Result, Series, Study, Table
from certiformer.sweep.job import Job, Row
from certiformer.train import Problem, best_of, stack

NAMES = {"transformer": "the transformer", "linear": "the linear RNN", "gated": "the gated RNN"}
QUESTION = "From graph-like to purely temporal targets: where does the recurrent network overtake the transformer?"


@dataclass(frozen=True)
class Options(SequenceOptions):
    shares: tuple[float, ...] = (0.0, 0.3, 0.6, 0.8, 0.9, 0.97, 1.0)
    """temporal parts of the variance of the target"""
    kernel: Literal["oscillating", "decay"] = "oscillating"
    """the convolution: e^(-s/4) cos(pi s/3), or e^(-s)"""
    restarts: int = 3
    """starts of every network, of which the one with the smallest training loss counts"""


FULL = PAPER


def convolution(kernel: str, length: int) -> Matrix:
    """The temporal end of the spectrum, with variance 1."""
    lag = np.arange(length)
    matrix = causal_matrix(np.exp(-lag) if kernel == "decay" else np.exp(-lag / 4) * np.cos(np.pi * lag / 3))
    return matrix / np.sqrt(constant_error(matrix))


def run(config: dict[str, Any]) -> list[Row]:
    """One network, one seed, all shares, the best of some restarts."""
    length, seed = config["length"], config["seed"]
    apply, start, steps, rate = options_of(config, length, mask="causal")
    problem = Problem(apply, mixed_batches(config["batch"], causal=True))
    matrix = convolution(config["kernel"], length)
    mean, deviation = graph_moments(length, causal=True)
    centre = MEAN * float(matrix.sum(axis=1).mean())
    members = []
    for share in config["shares"]:
        temporal, graph = share**0.5, (1 - share) ** 0.5
        offset = -(temporal * centre + graph * mean / deviation)
        members.append(member_of(matrix, temporal=temporal, graph=graph / deviation, offset=offset))
    restarts = config["restarts"]
    starts = [start(restarts * seed + number) for _ in members for number in range(restarts)]
    repeated = stack([member for member in members for _ in range(restarts)])
    trained = best_of(learn(problem, starts, repeated, seed=1000 * seed, steps=steps, rate=rate), restarts)
    found = fresh_errors(problem, trained.params, stack(members), seed=seed)
    return [
        {
            "network": config["network"],
            "share": float(share),
            "seed": seed,
            "mse": float(mse),
            "l1": float(l1),
            "diverged": bool(lost),
        }
        for share, (mse, l1), lost in zip(config["shares"], found, trained.diverged, strict=True)
    ]


def jobs(options: Options) -> list[Job]:
    """One job for each network and seed."""
    base = {**asdict(options), "shares": list(options.shares)}
    return [
        Job(f"{__name__}:run", {**base, "network": network, "seed": options.seed + number})
        for number in range(options.seeds)
        for network in NAMES
    ]


def summary(rows: Sequence[Row], options: Options) -> Result:
    """Error against the temporal share for the three networks, and where the lines cross."""
    headings = ["temporal share", *NAMES]
    lines = [
        [share, *(shown(errors(rows, network=network, share=share)) for network in NAMES)] for share in options.shares
    ]
    return Result(
        "temporal",
        QUESTION,
        asdict(options),
        _series(rows, options),
        [Table("Mean squared error (variance of the target about 1)", headings, lines)],
        _curves(rows, options),
        [*_ends(rows, options), *_crossings(rows, options)],
        [
            *missing(len(NAMES) * len(options.shares) * options.seeds, len(rows)),
            "One graph-like target (coupling of rank 1) and one convolution; where the lines cross depends on both.",
            "Networks have about the same training time, not the same size; each is the best of its restarts.",
        ],
    )


def _ends(rows: Sequence[Row], options: Options) -> list[str]:
    found = []
    for share, place in ((min(options.shares), "Graph-like end"), (max(options.shares), "Temporal end")):
        parts = [
            winner(
                rows,
                (NAMES["transformer"], NAMES[other]),
                {"network": "transformer", "share": share},
                {"network": other, "share": share},
            )
            for other in ("linear", "gated")
        ]
        found.append(f"{place} (share {share:g}): {'; '.join(parts)}.")
    return found


def _crossings(rows: Sequence[Row], options: Options) -> list[str]:
    found = []
    for other in ("linear", "gated"):
        places, whole = [], 0
        for seed in sorted({row["seed"] for row in rows}):
            lines = [
                [errors(rows, network=network, share=share, seed=seed) for share in options.shares]
                for network in ("transformer", other)
            ]
            if all(len(values) == 1 for line in lines for values in line):
                whole += 1
                places.append(crossing(options.shares, *([values[0] for values in line] for line in lines)))
        crossed = [place for place in places if place is not None]
        pair = f"{NAMES[other]} and the transformer"
        if whole < FEWEST_SEEDS:
            found.append(f"Crossing of {pair}: {whole} seeds are too few for a statement.")
        elif len(crossed) < whole:
            found.append(f"The errors of {pair} cross in {len(crossed)} of {whole} seeds: no crossing is claimed.")
        else:
            found.append(
                f"{pair[0].upper()}{pair[1:]} are equal at a temporal share of {np.median(crossed):.3f}"
                f" ({min(crossed):.3f} to {max(crossed):.3f} over {whole} seeds)."
            )
    return found


def _series(rows: Sequence[Row], options: Options) -> list[Series]:
    """Error against the graph-like share: on logarithmic axes its slope is 1 where that part alone is missed."""
    shares = [share for share in options.shares if share < 1]
    series = []
    for network in NAMES:
        columns = [select(rows, network=network, share=share) for share in shares]
        if shares and all(columns) and len({len(column) for column in columns}) == 1:
            mse, l1 = (np.transpose([[row[name] for row in column] for column in columns]) for name in ("mse", "l1"))
            x = [1 - share for share in shares]
            series.append(fitted_series(network, "graph-like share of the variance", x, mse, l1, {"missed part": 1.0}))
    return series


def _curves(rows: Sequence[Row], options: Options) -> list[Picture]:
    lines = []
    for network in NAMES:
        medians = [errors(rows, network=network, share=share) for share in options.shares]
        if all(medians):
            lines.append({"name": network, "x": list(options.shares), "y": [float(np.median(m)) for m in medians]})
    data = {"x_label": "temporal share", "y_label": "mean squared error", "log_x": False, "log_y": True, "lines": lines}
    return [Picture("curves", "From graph-like to temporal", data)] if lines else []


STUDY = Study("temporal", QUESTION, Options, FULL, jobs, summary)
