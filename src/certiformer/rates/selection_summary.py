"""The rows of the study `selection` as series, tables and sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from certiformer.rates.over_seeds import errors_by_seed, in_words, mean_interval
from certiformer.rates.slopes import fitted_series
from certiformer.rates.study import Result, Table
from certiformer.sweep.job import Row

QUESTION = "Does attention select input-dependent features, at which rank, and what does a second attention layer add?"
LIMITS = [
    "The average by selection is our reading of the example's sizes (tau = 8, d = 2, k = 3): the mean over a token's own"
    " class.",
    "What one attention layer does worse here is measured with one training recipe, not proved: a mean over wide enough"
    " features of the tokens approximates every continuous function of a set (Zaheer et al. 2017), so no floor exists.",
    "The importance task keeps the sorted importances a fixed gap apart; what happens as the gap closes is not measured.",
]
RANK_NEEDED = 2  # of -beta (c_t - c_s)^2, up to a function of t


def summary(rows: Sequence[Row], options: dict[str, Any]) -> Result:
    """Whatever rows there are; what is missing is said in `limits`."""
    built = sorted((row for row in rows if row["kind"] == "built"), key=lambda row: row["size"])
    every = [row for row in rows if row["kind"] == "trained"]
    trained = [row for row in every if not row["diverged"]]
    average = [row for row in trained if row["task"] == "average"]
    ranked = [row for row in trained if row["task"] == "ranked"]
    series = []
    if built:
        size, mse, l1 = ([row[key] for row in built] for key in ("size", "mse", "l1"))
        note = "the error falls geometrically, so a slope on logarithmic axes steepens"
        series.append(fitted_series("average, built, m_h = 2", "beta", size, mse, l1, note=note))
    if average:
        series.append(fitted_series("average, trained", "m_h", *errors_by_seed(average, "rank"), seed=options["seed"]))
    depths = {layers: [row for row in ranked if row["layers"] == layers] for layers in (1, 2)}
    for layers, chosen in depths.items():
        if chosen:
            name = f"importance, {('one attention layer', 'two attention layers')[layers - 1]}"
            columns = errors_by_seed(chosen, "parameters")
            series.append(fitted_series(name, "parameters", *columns, seed=options["seed"]))
    findings = [*_built_findings(built), *_rank_findings(average, options["classes"]), *_depth_findings(depths)]
    tables = [_table(trained)] if trained else []
    return Result(
        "selection", QUESTION, options, series, tables, [], findings, LIMITS + _missing(built, every, options)
    )


def _missing(built: Sequence[Row], every: Sequence[Row], options: dict[str, Any]) -> list[str]:
    expected = options["seeds"] * (len(options["ranks"]) + 2 * len(options["widths"]))
    said = [] if built else ["The built head is not finished."]
    if len(every) < expected:
        said.append(f"Only {len(every)} of {expected} trained models are finished.")
    lost = sum(bool(row["diverged"]) for row in every)
    return said + ([f"{lost} of {len(every)} trained models diverged and are left out."] if lost else [])


def _built_findings(rows: Sequence[Row]) -> list[str]:
    if not rows:
        return []
    last = rows[-1]
    return [
        f"One head of key size 2 with scores -beta (c_t - c_s)^2 selects the class: at beta = {last['size']:g} the largest"
        f" error is {last['largest']:.1e} standard deviations, against {rows[0]['largest']:.1e} at beta ="
        f" {rows[0]['size']:g}."
    ]


def _rank_findings(rows: Sequence[Row], classes: int) -> list[str]:
    below = [row["mse"] for row in rows if row["rank"] < RANK_NEEDED]
    enough = [row["mse"] for row in rows if row["rank"] == RANK_NEEDED]
    if not below or not enough:
        return []
    ratio = float(np.mean(below) / np.mean(enough))
    drop = f"drops by {ratio:.3g} times" if ratio > 1 else f"does NOT drop (ratio {ratio:.3g})"
    sentence = (
        f"Trained, the mean squared error of the average by selection {drop} from m_h = 1 ({in_words(below)}) to m_h = 2"
        f" ({in_words(enough)})."
    )
    if classes > 2:
        sentence += (
            f" A coupling of rank 1 cannot put each of {classes} classes first in its own row (proved); rank 2 can."
        )
    return [sentence]


def _depth_findings(depths: dict[int, list[Row]]) -> list[str]:
    found = []
    for width in sorted({row["width"] for rows in depths.values() for row in rows}):
        one, two = ([row["mse"] for row in depths[layers] if row["width"] == width] for layers in (1, 2))
        if not one or not two:
            continue
        sizes = [next(row["parameters"] for row in depths[n] if row["width"] == width) for n in (1, 2)]
        first, second = mean_interval(one)[1], mean_interval(two)[1]
        if first is None or second is None:
            verdict = "one run each, so no interval tells them apart"
        elif second[1] < first[0]:
            verdict = f"two layers win, {np.mean(one) / np.mean(two):.3g} times, with intervals apart"
        elif first[1] < second[0]:
            verdict = f"ONE layer wins, {np.mean(two) / np.mean(one):.3g} times, with intervals apart"
        else:
            verdict = "the intervals overlap: not conclusive"
        found.append(
            f"Order of importance, width {width}: mean squared error {in_words(one)} with one attention layer ({sizes[0]}"
            f" weights) and {in_words(two)} with two ({sizes[1]} weights); {verdict}."
        )
    at = {(row["layers"], row["width"], row["seed"]): row["mse"] for rows in depths.values() for row in rows}
    pairs = [np.log(at[1, *rest] / at[2, *rest]) for layers, *rest in at if layers == 1 and (2, *rest) in at]
    if len(pairs) > 1:
        mean, interval = mean_interval(pairs)
        low, high = interval or (mean, mean)
        verdict = "two layers win" if low > 0 else "ONE layer wins" if high < 0 else "not conclusive, since 1 is inside"
        found.append(
            f"Over all {len(pairs)} pairs of the same width and seed one layer has {np.exp(mean):.3g} times the error of"
            f" two [{np.exp(low):.3g}, {np.exp(high):.3g}] (geometric mean; {verdict}); two layers are better in"
            f" {sum(pair > 0 for pair in pairs)} of them."
        )
    return found


def _table(rows: Sequence[Row]) -> Table:
    lines = []
    keys = ("task", "layers", "width", "rank", "parameters")
    for key in sorted({tuple(row[name] for name in keys) for row in rows}):
        group = [row for row in rows if tuple(row[name] for name in keys) == key]
        lines.append([*key, *(in_words([row[error] for row in group]) for error in ("mse", "l1"))])
    headings = ["task", "attention layers", "width", "m_h", "weights", "MSE", "L1"]
    return Table("Means over seeds with Student's 95 percent intervals; errors in standard deviations", headings, lines)
