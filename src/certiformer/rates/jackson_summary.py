"""What the rows of the study `jackson` say: slopes, drops at the rank of the target, training against truncation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from certiformer.rates.slopes import fitted_series
from certiformer.rates.study import Picture, Result, Series, Table
from certiformer.rates.truncation import exponents
from certiformer.sweep.job import Row

WINDOWS = {"constructed": (2, 16), "trained": (2, 8)}
WORDS = {
    "founding_note": "the -(2a+1) of a note on the first version",
    "paper": "the -(2a-1) of the paper",
    "corrected_mse": "the corrected exponent of the MSE",
    "corrected_l1": "the corrected exponent of the L1 error",
}
DROP = 100  # times by which the error should fall at the rank of the target


@dataclass(frozen=True)
class Trained:
    """How models were trained, in short."""

    start: str
    layers: int
    restarts: int
    steps: int


@dataclass(frozen=True, eq=False)
class Curve:
    """Errors of one kind of model for one target."""

    kind: str
    alpha: float
    rank: str
    diagonal: str
    mh: list[int]
    mse: np.ndarray
    l1: np.ndarray

    @property
    def name(self) -> str:
        return f"{self.kind}, alpha {self.alpha:g}, rank {self.rank}, diagonal {self.diagonal}"

    @property
    def shown(self) -> np.ndarray:
        """What stands for all replicates: their mean, or the best restart."""
        return self.mse.mean(axis=0) if self.kind == "constructed" else np.nanmin(self.mse, axis=0)


def summarised(question: str, rows: Sequence[Row], options: Any, trained: Trained, missing: int) -> Result:
    """The result of the study."""
    curves = _curves(rows)
    series = [_series(curve, options.seed) for curve in curves]
    findings = [
        sentence
        for curve, line in zip(curves, series, strict=True)
        if curve.rank == "inf"
        for sentence in _slope_findings(curve, line)
    ]
    findings += _exact_ends(curves)
    findings += [sentence for curve in curves if curve.rank != "inf" for sentence in _drop_finding(curve)]
    findings += _against_construction(curves)
    return Result(
        study="jackson",
        question=question,
        options=asdict(options),
        series=series,
        tables=_tables(curves, series),
        pictures=_pictures(rows),
        findings=findings,
        limits=_limits(curves, trained, missing, options),
    )


def _curves(rows: Sequence[Row]) -> list[Curve]:
    groups: dict[tuple, dict[tuple[int, int], Row]] = {}
    for row in rows:
        place = tuple(row[name] for name in ("kind", "alpha", "rank", "diagonal"))
        groups.setdefault(place, {})[row["replicate"], row["mh"]] = row
    curves = []
    for place in sorted(groups, key=lambda p: (p[0], p[1], p[2] == "inf", p[2].zfill(9), p[3] == "kept")):
        found = groups[place]
        mh = sorted({rank for _, rank in found})
        replicates = sorted({replicate for replicate, _ in found})
        mse, l1 = (
            np.array([[_figure(found.get((each, rank)), name) for rank in mh] for each in replicates])
            for name in ("mse", "l1")
        )
        # Samples belong together, so a rank needs all of them; of restarts one is enough.
        enough = np.all if place[0] == "constructed" else np.any
        kept = np.flatnonzero(enough(~np.isnan(mse), axis=0))
        kind, alpha, rank, diagonal = place
        curves.append(Curve(kind, alpha, rank, diagonal, [mh[i] for i in kept], mse[:, kept], l1[:, kept]))
    return [curve for curve in curves if curve.mh]


def _figure(row: Row | None, name: str) -> float:
    return float("nan") if row is None or row.get("diverged") else float(row[name])


def _series(curve: Curve, seed: int) -> Series:
    theory = exponents(curve.alpha, curve.diagonal == "masked") if curve.rank == "inf" else {}
    window = WINDOWS[curve.kind]
    mse, l1 = curve.mse, curve.l1
    if curve.kind == "trained":
        # A restart that is missing is never the best one.
        mse, l1 = (np.where(np.isnan(each), np.nanmax(each, axis=0), each) for each in (mse, l1))
    combined = "mean" if curve.kind == "constructed" else "best"
    line = fitted_series(curve.name, "attention dimension m_h", curve.mh, mse, l1, theory, combined, window, seed)
    if curve.rank == "inf":
        return line
    none = {"slope_mse": None, "slope_interval": None, "slope_l1": None, "slope_l1_interval": None, "window": None}
    return replace(line, **none, note=f"no slope: the error of a target of rank {curve.rank} ends at its rank")


def _slope_findings(curve: Curve, line: Series) -> list[str]:
    if line.slope_mse is None or line.slope_interval is None or line.window is None:
        return [f"{curve.name}: no slope ({line.note})."]
    low, high = line.slope_interval
    text = (
        f"{curve.name}: MSE ~ m_h^{line.slope_mse:.2f} [{low:.2f}, {high:.2f}] on m_h = {line.window[0]:g} to"
        f" {line.window[1]:g}"
    )
    if line.slope_l1 is not None:
        text += f", L1 ~ m_h^{line.slope_l1:.2f}"
    of_mse = [name for name in line.theory if not name.endswith("_l1")]
    measured = line.slope_mse
    nearest = min(of_mse, key=lambda name: abs(line.theory[name] - measured))
    text += f"; nearest is {WORDS[nearest]} ({line.theory[nearest]:g})"
    out = [f"{WORDS[name]} ({line.theory[name]:g})" for name in line.excluded]
    return [text + (f"; outside the interval: {', '.join(out)}." if out else "; no exponent is outside the interval.")]


def _exact_ends(curves: list[Curve]) -> list[str]:
    """The curves that are exactly zero from the rank of the target on, in one sentence."""
    before = [drop[0] for drop in map(_drop, curves) if drop is not None and drop[1] == 0]
    if not before:
        return []
    return [
        f"For {len(before)} targets of finite rank r the constructed MSE is 0 at m_h = r; at m_h = r - 1 it is"
        f" {min(before):.1e} to {max(before):.1e}."
    ]


def _drop(curve: Curve) -> tuple[float, float] | None:
    """The errors just before and at the rank of the target."""
    rank = 0 if curve.rank == "inf" else int(curve.rank)
    if rank not in curve.mh or rank - 1 not in curve.mh:
        return None
    before, after = (float(curve.shown[curve.mh.index(mh)]) for mh in (rank - 1, rank))
    return before, after


def _drop_finding(curve: Curve) -> list[str]:
    drop = _drop(curve)
    if drop is None or drop[1] == 0:
        return []
    rank, (before, after) = curve.rank, drop
    times = before / after
    verdict = f"at least {DROP} times" if times >= DROP else f"less than the {DROP} times that were expected"
    return [
        f"{curve.name}: the MSE drops from {before:.2e} to {after:.2e} at m_h = {rank}, {times:.3g} times; {verdict}."
    ]


def _against_construction(curves: list[Curve]) -> list[str]:
    """Training against truncation at the same rank."""
    found = []
    for curve in curves:
        for other in curves:
            same = (curve.alpha, curve.rank, curve.diagonal) == (other.alpha, other.rank, other.diagonal)
            if curve.kind != "trained" or other.kind != "constructed" or not same or curve.rank != "inf":
                continue
            common = [mh for mh in curve.mh if mh in other.mh]
            ratios = [curve.shown[curve.mh.index(mh)] / other.shown[other.mh.index(mh)] for mh in common]
            if ratios:
                better = sum(ratio < 1 for ratio in ratios)
                found.append(
                    f"alpha {curve.alpha:g}, diagonal {curve.diagonal}: the trained MSE is {min(ratios):.2f} to"
                    f" {max(ratios):.2f} times that of POD truncation, below it at {better} of {len(ratios)} ranks"
                    + (": truncation is the best kernel in L2, not the best model." if better else ".")
                )
    return found


def _tables(curves: list[Curve], series: list[Series]) -> list[Table]:
    slopes = [
        [
            curve.kind,
            curve.alpha,
            curve.diagonal,
            line.slope_mse,
            f"[{line.slope_interval[0]:.3f}, {line.slope_interval[1]:.3f}]" if line.slope_interval else "",
            line.slope_l1,
            line.theory["paper"],
            line.theory.get("corrected_mse"),
            line.theory.get("corrected_l1"),
            line.theory["founding_note"],
        ]
        for curve, line in zip(curves, series, strict=True)
        if curve.rank == "inf"
    ]
    headings = ["models", "alpha", "diagonal", "slope MSE", "interval", "slope L1"]
    headings += ["paper", "corrected MSE", "corrected L1", "founding note"]
    ranks = sorted({mh for curve in curves for mh in curve.mh})
    errors = [
        [curve.name, *(f"{curve.shown[curve.mh.index(mh)]:.2e}" if mh in curve.mh else "" for mh in ranks)]
        for curve in curves
    ]
    return [
        Table("Slopes of log error against log m_h, infinite targets", headings, slopes),
        Table("Mean squared errors by attention dimension", ["models", *map(str, ranks)], errors),
    ]


def _pictures(rows: Sequence[Row]) -> list[Picture]:
    """The singular values that the best models have learned, beside those of the target."""
    best: dict[tuple[float, str], Row] = {}
    for row in rows:
        if row["kind"] != "trained" or row["rank"] != "inf" or row["diverged"]:
            continue
        place = (row["alpha"], row["diagonal"])
        if place not in best or (-row["mh"], row["mse"]) < (-best[place]["mh"], best[place]["mse"]):
            best[place] = row
    pictures = []
    for (alpha, diagonal), row in sorted(best.items()):
        learned = [float(value) for value in row["singular_values"]][: row["mh"]]
        wanted = [float(k**-alpha) for k in range(1, len(learned) + 1)]
        names = [f"learned, m_h = {row['mh']} (centred)", f"target, k^-{alpha:g}"]
        title = f"Singular values of the scores, alpha {alpha:g}, diagonal {diagonal}"
        pictures.append(Picture("spectrum", title, {"names": names, "values": [learned, wanted]}))
    return pictures


def _limits(curves: list[Curve], trained: Trained, missing: int, options: Any) -> list[str]:
    found = [
        "The infinite targets are cut off (at 128 terms for alpha up to 1, at 64 above, unless --cut says otherwise); for"
        " alpha <= 1 slopes depend on where.",
        "Constructed models use exact sines in float64: they show the error of the attention rank alone.",
        "Intervals of constructed models are sampling noise only: a slope on few ranks is not its limit, so an interval"
        " may exclude the exponent that holds asymptotically.",
    ]
    if any(curve.kind == "trained" for curve in curves):
        how = "piecewise linear features" if trained.start == "knots" else "PyTorch's random weights"
        found.append(
            f"Trained models: best of {trained.restarts} restarts from {how}, {trained.layers} attention"
            f" layer{'s' if trained.layers > 1 else ''}, {trained.steps:,} steps; a better optimiser might find a smaller"
            " error, so trained errors are upper bounds of what the rank allows."
        )
    if options.layers == 2:
        found.append(
            "Constructed models with two layers are those with one: a first layer with W_O = 0 changes nothing"
            " (theorem expressivity.two_layer_density)."
        )
    if missing > 0:
        found.append(f"{missing:,} rows are missing: their jobs have not finished or have failed.")
    return found
