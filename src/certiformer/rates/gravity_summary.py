"""The rows of the study `gravity` as series, tables and pictures; the sentences are in `gravity_findings`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from certiformer.errors import BadInput
from certiformer.rates.gravity_findings import (
    attention_findings,
    built_findings,
    by_rank,
    drop_findings,
    permutation_findings,
)
from certiformer.rates.over_seeds import errors_by_seed, in_words
from certiformer.rates.point_masses import SOFTENING, TASKS
from certiformer.rates.slopes import fitted_series
from certiformer.rates.study import Picture, Result, Series, Table
from certiformer.spectrum.decay import decay_exponent
from certiformer.sweep.job import Row

QUESTION = "Does attention find the physical weights of point masses, and which of them can a softmax head represent?"
SHARP = (100.0, float("inf"))  # beta from which 1 / beta is below the squared distance of neighbours, about 1 / 12
LIMITS = [
    "The centre of gravity is that of all points; the prediction token and the segments of the paper's example are not"
    " imitated.",
    "The nearest point is asked of the first half of the points only, and |p|^2 is given to the built head, since no ReLU"
    " layer squares exactly.",
    f"Gravity is softened with length {SOFTENING:g} of the side of the square; without it accelerations have infinite"
    " variance.",
]


def summary(rows: Sequence[Row], options: dict[str, Any]) -> Result:
    """Whatever rows there are; what is missing is said in `limits`."""
    built = [row for row in rows if row["kind"] != "trained"]
    trained = [row for row in rows if row["kind"] == "trained" and not row["diverged"]]
    series, findings = _built_series(built), built_findings(built)
    for task in TASKS:
        chosen = [row for row in trained if row["task"] == task and not row["positions"]]
        if chosen:
            columns = errors_by_seed(chosen, "rank")
            series.append(fitted_series(f"{task}, trained", "m_h", *columns, seed=options["seed"]))
    for task in TASKS:
        findings += drop_findings(trained, task) + attention_findings(trained, task)
    findings += permutation_findings(trained)
    return Result(
        "gravity",
        QUESTION,
        options,
        series,
        [_table(trained)] if trained else [],
        _pictures(built, trained),
        findings,
        LIMITS + _missing(rows, options),
    )


def _missing(rows: Sequence[Row], options: dict[str, Any]) -> list[str]:
    trained = [row for row in rows if row["kind"] == "trained"]
    expected = len(TASKS) * options["seeds"] * (len(options["ranks"]) + 1)
    said = [] if len(trained) >= expected else [f"Only {len(trained)} of {expected} trained models are finished."]
    if len(trained) == len(rows):
        said.append("The built heads are not finished.")
    lost = sum(bool(row["diverged"]) for row in trained)
    return said + ([f"{lost} of {len(trained)} trained models diverged and are left out."] if lost else [])


def _built_series(rows: Sequence[Row]) -> list[Series]:
    nearest = [row for row in rows if row["kind"] == "built" and row["task"] == "nearest"]
    pull = [row for row in rows if row["kind"] == "built" and row["task"] == "pull"]
    found = []
    if nearest:
        theory = {"gap_of_distances": -1.0, "gap_of_distances_l1": -1.0}
        found.append(_series("nearest point, built, m_h = 3", "beta", nearest, theory, SHARP))
    if pull:
        found.append(_series("pull, built from eigenfunctions", "m_h", pull, _pull_theory(rows)))
    return found


def _pull_theory(rows: Sequence[Row]) -> dict[str, float]:
    """The exponents of a power law through the eigenvalues that the built heads leave out or keep last."""
    values = np.array([row["largest"] for row in rows if row["kind"] == "eigenvalue"])
    try:
        alpha = decay_exponent(values).alpha
    except BadInput:
        return {}
    return {"corrected_mse": -(2 * alpha - 1), "corrected_l1": -(alpha - 0.5)}


def _series(
    name: str,
    label: str,
    rows: Sequence[Row],
    theory: dict[str, float],
    window: tuple[float, float] | None = None,
) -> Series:
    rows = sorted(rows, key=lambda row: row["size"])
    size, mse, l1 = ([row[key] for row in rows] for key in ("size", "mse", "l1"))
    return fitted_series(name, label, size, mse, l1, theory=theory, window=window)


def _table(rows: Sequence[Row]) -> Table:
    headings = ["task", "m_h", "positions", "MSE", "L1", "total variation", "of uniform", "correlation", "permuted"]
    lines = []
    for task, positions in ((task, positions) for task in TASKS for positions in (False, True)):
        chosen = [row for row in rows if row["task"] == task and row["positions"] == positions]
        for rank in sorted({row["rank"] for row in chosen}):
            group = [row for row in chosen if row["rank"] == rank]
            columns = ("mse", "l1", "distance", "distance_of_uniform", "correlation", "permuted_rms")
            line = [in_words([row[name] for row in group]) for name in columns]
            lines.append([task, rank, "trained" if positions else "none", *line])
    return Table("Means over seeds with Student's 95 percent intervals; errors in standard deviations", headings, lines)


def _pictures(built: Sequence[Row], trained: Sequence[Row]) -> list[Picture]:
    values = [row["largest"] for row in built if row["kind"] == "eigenvalue"]
    found = []
    if values:
        data = {"names": ["coupling of gravity, doubly centred"], "values": [values]}
        found.append(Picture("spectrum", "Eigenvalues of the coupling of gravity", data))
    for task in TASKS:
        groups = by_rank(trained, task)
        if groups:
            best = min(list(groups.values())[-1], key=lambda row: row["mse"])
            points = np.reshape(best["points"], (-1, 2)).tolist()
            weights, wanted = (np.reshape(best[name], (-1, len(points))).tolist() for name in ("weights", "wanted"))
            title = f"{task}: learned attention and physical weights, m_h = {best['rank']}"
            found.append(Picture("graph", title, {"points": points, "weights": weights, "wanted": wanted}))
    return found
