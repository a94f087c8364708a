"""The rows of the study `smoothness` as series, tables and sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from certiformer.rates.over_seeds import errors_by_seed
from certiformer.rates.slopes import fitted_series
from certiformer.rates.spectral_smoothness import harmonic
from certiformer.rates.study import Picture, Result, Series, Table
from certiformer.sweep.job import Row

QUESTION = "Do errors fall with size and sample size at the exponents that the smoothness of the target predicts?"
LIMITS = [
    "The exponents are those of upper bounds in L2, up to powers of logarithms, for empirical risk minimisers over sparse"
    " networks; nothing here bounds a largest error.",
    "Truncation is measured on a finite window: the number of frequencies of an axis is 2^(k+1) - 1 and not a power, and"
    " where many blocks share a level the error has a power of log T more; both make slopes smaller than in the limit.",
    "The trained target is a finite sum: below the size of its finest wave no exponent is meant.",
    "For least squares and for the trained models the level, or the width, is the best one on the test points (an oracle's"
    " choice), as the theory assumes.",
]


def summary(rows: Sequence[Row], options: dict[str, Any]) -> Result:
    """Whatever rows there are; what is missing is said in `limits`."""
    a = options["exponents"]
    dagger = {"anisotropic": harmonic(a), "mixed": min(a)}
    truncated = [row for row in rows if row["kind"] == "truncation"]
    squares = [row for row in rows if row["kind"] == "least squares"]
    every = [row for row in rows if row["kind"] == "trained"]
    trained = [row for row in every if not row["diverged"]]
    series = [_truncation(row, dagger[row["gamma"]]) for row in truncated]
    for kind, value in dagger.items():
        chosen = [row for row in squares if row["gamma"] == kind]
        if chosen:
            series.append(_sampled(f"least squares, {kind}", chosen, {kind: value}, options["seed"]))
    clean, noisy = ([row for row in trained if bool(row["samples"]) == flag] for flag in (False, True))
    if clean:
        theory = _both({kind: (-2 * value, -value) for kind, value in dagger.items()})
        at = errors_by_seed(clean, "parameters")
        series.append(
            fitted_series("trained, against parameters", "parameters", *at, theory=theory, seed=options["seed"])
        )
    if noisy:
        series.append(_sampled("trained, against samples", noisy, dagger, options["seed"]))
    findings = [*_smoothness_findings(truncated, a), *(sentence for line in series for sentence in _compared(line))]
    tables = [_exponents(truncated)] if truncated else []
    if noisy:
        tables.append(_widths(noisy))
    return Result(
        "smoothness",
        QUESTION,
        options,
        series,
        tables,
        _pictures(truncated),
        findings,
        LIMITS + _missing(truncated, squares, every, options),
    )


def _missing(truncated: Sequence[Row], squares: Sequence[Row], every: Sequence[Row], options: Any) -> list[str]:
    models = len(options["widths"]) * options["seeds"] * (len(options["samples"]) + 1)
    said = [] if truncated else ["The Fourier analysis is not finished."]
    if len(squares) < 2 * options["seeds"] * len(options["samples"]):
        said.append("Not all least-squares fits are finished.")
    if len(every) < models:
        said.append(f"Only {len(every)} of {models} trained models are finished.")
    lost = sum(bool(row["diverged"]) for row in every)
    return said + ([f"{lost} of {len(every)} trained models diverged and are left out."] if lost else [])


def _both(exponents: dict[str, tuple[float, float]]) -> dict[str, float]:
    return {
        f"{kind}{end}": value for kind, pair in exponents.items() for end, value in zip(("", "_l1"), pair, strict=True)
    }


def _truncation(row: Row, dagger: float) -> Series:
    theory = _both({row["gamma"]: (-2 * dagger, -dagger)})
    name = f"truncation, {row['target'].removesuffix(', ' + row['gamma'])}, {row['gamma']}"
    return fitted_series(name, "terms kept", row["terms"], row["mse"], row["l1"], theory=theory)


def _sampled(name: str, rows: Sequence[Row], dagger: dict[str, float], seed: int) -> Series:
    exponents = {kind: (-2 * value / (2 * value + 1), -value / (2 * value + 1)) for kind, value in dagger.items()}
    return fitted_series(name, "samples", *errors_by_seed(rows, "samples"), theory=_both(exponents), seed=seed)


def _smoothness_findings(rows: Sequence[Row], a: Sequence[float]) -> list[str]:
    found = []
    for target in dict.fromkeys(row["target"] for row in rows):
        row = next(row for row in rows if row["target"] == target)
        off = max(abs(one - other) for one, other in zip(row["a"], a, strict=True))
        kind = "no block off the axes" if row["found"] == "both" else f"{row['found']} smoothness"
        found.append(
            f"{target}: the FFT finds a = {', '.join(f'{each:.4f}' for each in row['a'])}, {off:.1e} or less from the"
            f" prescribed exponents, and {kind}."
        )
    return found


def _compared(line: Series) -> list[str]:
    """What the slope of the mean squared error says about each exponent of the theory."""
    if line.slope_mse is None or line.slope_interval is None:
        return [f"{line.name}: no slope ({line.note})."]
    low, high = line.slope_interval
    parts = []
    for name, value in line.theory.items():
        if name.endswith("_l1"):
            continue
        if low <= value <= high:
            verdict = "in the interval"
        elif high < value:
            verdict = "excluded: the error falls faster, as an upper bound allows"
        else:
            verdict = "excluded: the error falls more slowly"
        parts.append(f"{name} predicts {value:.3f} ({verdict}; {abs(line.slope_mse - value):.2f} away)")
    slope = (
        f"{line.name}: mean squared error against {line.x_label} has slope {line.slope_mse:.3f} [{low:.3f}, {high:.3f}]"
    )
    return [f"{slope}; {'; '.join(parts)}."]


def _exponents(rows: Sequence[Row]) -> Table:
    lines = []
    for target in dict.fromkeys(row["target"] for row in rows):
        row = next(row for row in rows if row["target"] == target)
        fits = zip(row["a"], row["a_low"], row["a_high"], strict=True)
        a = [f"{value:.4f} [{low:.4f}, {high:.4f}]" for value, low, high in fits]
        lines.append([target, ", ".join(a), row["found"], row["misfit_mixed"], row["misfit_anisotropic"]])
    headings = ["target", "a by FFT", "kind found", "misfit of mixed", "misfit of anisotropic"]
    return Table(
        "Exponents along the axes, and which gamma the other blocks follow (variance of log2)", headings, lines
    )


def _widths(rows: Sequence[Row]) -> Table:
    widths, counts = sorted({row["width"] for row in rows}), sorted({row["samples"] for row in rows})
    lines = []
    for count in counts:
        means = []
        for width in widths:
            chosen = [row["mse"] for row in rows if row["samples"] == count and row["width"] == width]
            means.append(float(np.mean(chosen)) if chosen else None)
        lines.append([count, *means])
    return Table(
        "Test error (MSE, mean over seeds) of every width", ["samples", *(f"width {w}" for w in widths)], lines
    )


def _pictures(rows: Sequence[Row]) -> list[Picture]:
    lines = [
        {
            "name": f"{row['target']}, {row['gamma']}",
            "x": [float(x) for x in row["terms"]],
            "y": list(np.sqrt(row["mse"])),
        }
        for row in rows
    ]
    data = {"x_label": "terms kept", "y_label": "L2 error", "log_x": True, "log_y": True, "lines": lines}
    return [Picture("curves", "Truncation to dyadic blocks", data)] if lines else []
