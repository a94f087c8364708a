"""The sentences of the study `gravity`, each computed from rows, with its negation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from certiformer.rates.gravity_models import circle_coefficient
from certiformer.rates.over_seeds import in_words, mean_interval
from certiformer.rates.point_masses import TASKS
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
