"""The rows of the study `gravity` as series, tables, pictures and sentences; each sentence is computed from rows, with its
negation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from certiformer.errors import BadInput
from certiformer.rates.gravity_models import circle_coefficient
from certiformer.rates.over_seeds import errors_by_seed, in_words, mean_interval
from certiformer.rates.point_masses import SOFTENING, TASKS
from certiformer.rates.slopes import fitted_series
from certiformer.rates.study import Picture, Result, Series, Table
from certiformer.spectrum.decay import decay_exponent
from certiformer.sweep.job import Row

ROUNDING = 1e-9  # outputs of order 1 in float64 with weights of order 10: a larger change is not rounding
EXACT_RANK = {"centre": 1, "nearest": 3}  # what the built heads need


def by_rank(rows: Sequence[Row], task: str) -> dict[int, list[Row]]:
    """The rows of a task without positions, by rank."""
    chosen = [row for row in rows if row["task"] == task and not row["positions"]]
    return {rank: [r for r in chosen if r["rank"] == rank] for rank in sorted({row["rank"] for row in chosen})}


def built_findings(rows: Sequence[Row]) -> list[str]:
    """What is exact, and what is proved to be impossible."""
    found = []
    for row in rows:
        if row["kind"] == "built" and row["task"] == "centre":
            exact = "exactly up to rounding" if row["largest"] < ROUNDING else "NOT exactly"
            found.append(
                f"Scores ln m with key size 1 give the centre of gravity {exact}: the largest error is {row['largest']:.1e}"
                " standard deviations."
            )
        if row["kind"] == "built" and row["task"] == "acceleration":
            verdict = "recovers" if row["largest"] < ROUNDING else "does NOT recover"
            found.append(
                f"A head with the physical weights and one register, followed by one division, {verdict} the accelerations:"
                f" largest error {row['largest']:.1e}."
            )
    nearest = [row for row in rows if row["kind"] == "built" and row["task"] == "nearest"]
    if nearest:
        last = max(nearest, key=lambda row: row["size"])
        found.append(
            f"Scores -beta |u - v|^2 with key size 3 give the nearest point in the limit: at beta = {last['size']:g} the"
            f" mean squared error is {last['mse']:.2g}."
        )
    doubled = {row["task"]: row for row in rows if row["kind"] == "doubled"}
    if {"pull", "acceleration"} <= doubled.keys():
        holds = max(row["largest"] for row in doubled.values()) < ROUNDING
        found.append(
            "No softmax model without positions, registers and masks computes accelerations for every number of points"
            " (proved: with every point fed twice its outputs stay and the accelerations double; checked on a built"
            f" model to {doubled['pull']['largest']:.0e} and {doubled['acceleration']['largest']:.0e}"
            + (")." if holds else ", which is NOT rounding).")
        )
        decay = circle_coefficient(2, 0.5) / circle_coefficient(1, 0.5) * 2
        found.append(
            "No head with a finite key size has the weights of gravity exactly (proved: on a circle the coupling has the"
            f" Fourier coefficients (3/2) q^k / k, none zero; q = {decay:.3f} at radius 1/2)."
        )
    return found


def drop_findings(rows: Sequence[Row], task: str) -> list[str]:
    """Between which neighbouring ranks the trained error falls most, against the rank that suffices."""
    means = {rank: float(np.mean([row["mse"] for row in group])) for rank, group in by_rank(rows, task).items()}
    pairs = list(zip(means, list(means)[1:], strict=False))
    if not pairs:
        return []
    low, high = max(pairs, key=lambda pair: means[pair[0]] / means[pair[1]])
    step = means[low] / means[high]
    sentence = f"{task}: the largest step of the trained error is from m_h = {low} to {high}, {step:.3g} times"
    if task not in EXACT_RANK:
        return [f"{sentence}; no finite rank is exact."]
    needed = EXACT_RANK[task]
    if needed <= min(means):
        return [f"{sentence}; rank {needed} suffices, so no step was expected."]
    met = (
        "where the built head becomes exact"
        if high == needed
        else f"NOT at {needed}, where the built head becomes exact"
    )
    return [f"{sentence}, {met}."]


def attention_findings(rows: Sequence[Row], task: str) -> list[str]:
    """Learned attention against the physical weights, at the largest rank."""
    groups = by_rank(rows, task)
    if not groups:
        return []
    rank, group = list(groups.items())[-1]
    distance = [row["distance"] for row in group]
    uniform = float(np.mean([row["distance_of_uniform"] for row in group]))
    mean, interval = mean_interval(distance)
    closer = "closer to them than" if (interval or (mean, mean))[1] < uniform else "NOT closer to them than"
    return [
        f"{task}, m_h = {rank}: learned attention is at total variation {in_words(distance)} from the physical weights,"
        f" {closer} uniform attention ({uniform:.3g}), and correlates with them at"
        f" {in_words([row['correlation'] for row in group])}; mean squared error"
        f" {in_words([row['mse'] for row in group])} of the variance."
    ]


def permutation_findings(rows: Sequence[Row]) -> list[str]:
    """What happens when points change places."""
    found = []
    without = [row["permuted_largest"] for row in rows if not row["positions"]]
    if without:
        verdict = "only rounding" if max(without) < ROUNDING else "MORE than rounding"
        found.append(
            f"Without positions, points that change places take their outputs with them in all {len(without)} trained"
            f" models: the largest difference is {max(without):.1e} standard deviations, {verdict}."
        )
    for task in TASKS:
        moved = [row["permuted_rms"] for row in rows if row["positions"] and row["task"] == task]
        if moved:
            mse = [row["mse"] for row in rows if row["positions"] and row["task"] == task]
            found.append(
                f"{task} with trained positions: permuting the points changes the outputs by {in_words(moved)} standard"
                f" deviations (root mean square), at a mean squared error of {in_words(mse)}."
            )
    return found


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
