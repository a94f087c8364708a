"""What the study of constructions says about its rows: slopes, bounds against measurements, distance to lower bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from certiformer.errors import BadInput
from certiformer.rates.bit_bound import Class, Curvature, Slopes, contradiction, size_table
from certiformer.rates.constructions import APPROXIMATING, EXACT
from certiformer.rates.slopes import Slope, fit_slope, fitted_series
from certiformer.rates.study import Picture, Result, Series, Table
from certiformer.sweep.job import Row

BITS = 64  # of a stored weight
# Sizes of these depend on the bounds of derivatives alone, so they claim their error for the whole class.
OF_A_CLASS = ("voronoi_first_order", "voronoi_second_order", "shifted_grids")
# Below this an error is the rounding of float64 sums of weights up to about 1e4: no law of size.
ROUNDING = 1e-11
NEAR = 0.05  # slopes over one or two decades: sizes are whole numbers, so exponents cannot be told apart more finely


def report(rows: Sequence[Row], options: Any, question: str, expected: int) -> Result:
    """Series, tables and sentences from the rows of all finished jobs."""
    done = [row for row in rows if not row["refused"]]
    groups: dict[str, list[Row]] = {}
    for row in done:
        groups.setdefault(_name(row), []).append(row)
    groups = {name: _by_size(group) for name, group in groups.items()}
    series = [_series(name, group, options.seed) for name, group in groups.items()]
    slopes = {name: _fit(group, "error_max", "nonzero", options.seed) for name, group in groups.items()}
    parts = {name: _fit(group, "error_max", "parts", options.seed) for name, group in groups.items()}
    claims = _claims(done)
    findings = [*_proved(done), *_orders(groups, parts), *_least(claims), *_smallest(done)]
    return Result(
        "constructive",
        question,
        vars(options) | {"bits_per_weight": BITS},
        series,
        [_slope_table(groups, slopes, parts), _row_table(done), _claim_table(claims), size_table(), _exact_table()],
        _pictures(groups, done),
        findings,
        _limits(rows, expected),
    )


def _name(row: Row) -> str:
    theorem = f", {row['theorem']}" if row["theorem"] not in ("", row["method"].replace("-", "_")) else ""
    return f"{row['method']} on {row['target']}{theorem}"


def _by_size(group: list[Row]) -> list[Row]:
    """Each size once: two tolerances may give the same transformer."""
    return [row for _, row in sorted({row["nonzero"]: row for row in group}.items())]


def _exponents(group: list[Row]) -> list[float]:
    """What the theorem says about the largest error, lowest order first; empty where it gives no exponent."""
    return sorted({-row["order"] / row["axes"] for row in group if row["order"]}, reverse=True)


def _series(name: str, group: list[Row], seed: int) -> Series:
    exponents = _exponents(group)
    labels = ["theorem"] if len(exponents) == 1 else [f"order_{-e:g}" for e in exponents]
    theory = {label: 2 * e for label, e in zip(labels, exponents, strict=True)}
    theory |= {f"{label}_l1": e for label, e in zip(labels, exponents, strict=True)}
    small = [row for row in group if row["error_max"] <= ROUNDING]
    note = f"{len(small)} of {len(group)} sizes are exact up to rounding" if small else ""
    kept = [row for row in group if row["error_max"] > ROUNDING] or group
    columns = ([float(row[key]) for row in kept] for key in ("nonzero", "error_mse", "error_l1"))
    return fitted_series(name, "nonzero weights", *columns, theory=theory, seed=seed, note=note)


def _fit(group: list[Row], error: str, size: str, seed: int) -> Slope | str:
    """The slope, or why there is none."""
    kept = [row for row in group if row[error] > ROUNDING and row[size] > 0]
    if not kept:
        return "exact up to rounding"
    try:
        return fit_slope([float(row[size]) for row in kept], [row[error] for row in kept], seed=seed)
    except BadInput as reason:
        return str(reason)


def _proved(done: list[Row]) -> list[str]:
    proved = [row for row in done if row["proved"]]
    if not proved:
        return []
    broken = [row for row in proved if row["error_max"] > row["bound"]]
    ratios = sorted(row["bound"] / row["error_max"] for row in proved if row["error_max"] > 0)
    middle = f"; the bound is {ratios[len(ratios) // 2]:.2g} times the error at the median" if ratios else ""
    text = f"{len(proved) - len(broken)} of {len(proved)} proved bounds hold on the grid{middle}."
    return [text, *(f"BROKEN: {_name(row)} errs by {row['error_max']:.4g} > {row['bound']:.4g}." for row in broken)]


def _orders(groups: dict[str, list[Row]], parts: dict[str, Slope | str]) -> list[str]:
    """Measured slopes, in what the theorem counts, against its exponent, which is an upper bound of the error."""
    fitted = {name: slope for name, slope in parts.items() if not isinstance(slope, str)}
    verdicts: dict[str, list[str]] = {"agree": [], "steeper": [], "flatter": [], "mixed": [], "none": []}
    for name, slope in fitted.items():
        exponents = _exponents(groups[name])
        text = f"{name} {slope.value:.2f}"
        if len(exponents) == 1:
            low, high = (end + sign * NEAR for end, sign in zip(slope.interval, (-1, 1), strict=True))
            verdict = "steeper" if high < exponents[0] else "flatter" if low > exponents[0] else "agree"
            verdicts[verdict].append(f"{text} (theorem {exponents[0]:.2f})")
        elif exponents:
            verdicts["mixed"].append(f"{text} (orders {exponents[0]:.2f} to {exponents[-1]:.2f} along the line)")
        else:
            verdicts["none"].append(text)
    said = {
        "agree": "The largest error falls with the exponent of the theorem",
        "steeper": "It falls faster than the theorem promises",
        "flatter": "It falls more slowly than the exponent of the theorem over these sizes",
        "mixed": "The order itself grows with the size",
        "none": "No theorem gives an exponent",
    }
    return [
        f"{said[verdict]} for {len(names)} of {len(fitted)} lines: {'; '.join(names)}."
        for verdict, names in verdicts.items()
        if names
    ]


def _between(slope: Slope) -> str:
    return f"({slope.interval[0]:.2f} to {slope.interval[1]:.2f})"


@dataclass(frozen=True)
class Claim:
    """A size and a proved error for a whole class, with the lower bound and what contradicts them."""

    row: Row
    least: int
    wrong: str


def _class(row: Row) -> Class | None:
    """The class for which the theorem of a row proves its bound at this size."""
    if row["theorem"] not in OF_A_CLASS or not row["proved"] or min(row["slopes"]) <= 0:
        return None
    if row["theorem"] != "voronoi_second_order":
        return Slopes(tuple(Fraction(slope) for slope in row["slopes"]))
    if row["dimension"] > 1 or not row["curvature"]:
        return None
    functions = Curvature(Fraction(row["curvature"]), 1)
    # The theorem bounds slopes as well; the bumps of N cells have slopes up to M / (4 N).
    cells = functions.patterns(Fraction(row["bound"])) if row["bound"] > 0 else 0
    return functions if cells and row["curvature"] / (4 * cells) <= row["slopes"][0] else None


def _claims(done: list[Row]) -> list[Claim]:
    claims = []
    for row in done:
        functions = _class(row)
        if functions is not None:
            bound = Fraction(row["bound"])
            least = functions.patterns(bound)
            claims.append(Claim(row, least, contradiction(functions, bound, row["nonzero"], BITS)))
    return claims


def _least(claims: list[Claim]) -> list[str]:
    counted = [claim for claim in claims if claim.least]
    if not counted:
        return []
    wrong = [claim for claim in counted if claim.wrong]
    sentences = [
        f"{len(counted) - len(wrong)} of {len(counted)} claims for a whole class respect the lower bounds for weights that"
        f" depend continuously on the function, and for bits.",
        *(f"IMPOSSIBLE: {_name(claim.row)}: {claim.wrong}." for claim in wrong),
    ]
    for theorem in OF_A_CLASS:
        ratios = [claim.row["nonzero"] / claim.least for claim in counted if claim.row["theorem"] == theorem]
        if ratios:
            sentences.append(
                f"{theorem} uses {min(ratios):.3g} to {max(ratios):.3g} times the least number of weights."
            )
    return sentences


def _smallest(done: list[Row]) -> list[str]:
    """Who is smallest at the smallest tolerance that at least two methods reached."""
    sentences = []
    for target in dict.fromkeys(row["target"] for row in done):
        asked = [row for row in done if row["target"] == target and row["method"] in APPROXIMATING]
        for tolerance in sorted({row["tolerance"] for row in asked}):
            there = sorted((r for r in asked if r["tolerance"] == tolerance), key=lambda r: r["nonzero"])
            if len(there) > 1:
                best, worst = there[0], there[-1]
                sentences.append(
                    f"{target} within {tolerance:g}: {best['method']} is smallest with {best['nonzero']:,} weights,"
                    f" {worst['method']} largest with {worst['nonzero']:,}, of {len(there)}."
                )
                break
    return sentences


def _slope_table(groups: dict[str, list[Row]], slopes: dict, parts: dict) -> Table:
    rows = []
    for name, group in groups.items():
        slope, part = slopes[name], parts[name]
        said = [slope, ""] if isinstance(slope, str) else [round(slope.value, 3), _between(slope)]
        counted = part if isinstance(part, str) else round(part.value, 3)
        exponents = ", ".join(f"{e:.3g}" for e in _exponents(group)) or "none"
        rows.append([name, len(group), *said, counted, exponents])
    headings = ["construction", "sizes", "slope of the largest error", "interval", "slope in parts", "theorem"]
    return Table("Slopes of the largest error, in nonzero weights and in what the theorem counts", headings, rows)


def _row_table(done: list[Row]) -> Table:
    keys = ("nonzero", "dense", "bound", "error_max", "error_mse")
    rows = [[_name(row), row["tolerance"], *(row[key] for key in keys), row["nonzero"] * BITS] for row in done]
    headings = ["construction", "tolerance", "nonzero weights", "all weights", "bound", "largest error", "MSE", "bits"]
    return Table("Everything that was built", headings, rows)


def _claim_table(claims: list[Claim]) -> Table:
    rows = [
        [_name(c.row), c.row["bound"], c.row["nonzero"], c.row["nonzero"] * BITS, c.least, c.wrong or "possible"]
        for c in claims
    ]
    headings = ["construction", "proved error", "weights", "bits", "weights, and bits, at least", "verdict"]
    return Table("Sizes that depend on the class alone, against its lower bound", headings, rows)


def _exact_table() -> Table:
    return Table(
        "Constructions without a law of error against size", ["module", "why"], [[*pair] for pair in EXACT.items()]
    )


def _pictures(groups: dict[str, list[Row]], done: list[Row]) -> list[Picture]:
    """The largest error against size for every target, with the lower bounds of the slopes' class."""
    pictures = []
    for target in dict.fromkeys(row["target"] for row in done):
        inside = {name: group for name, group in groups.items() if group[0]["target"] == target}
        lines = [
            {"name": name.replace(f" on {target}", ""), "x": [row["nonzero"] for row in kept], "y": errors}
            for name, group in inside.items()
            if (kept := [row for row in group if row["error_max"] > ROUNDING])
            for errors in [[row["error_max"] for row in kept]]
        ]
        slopes = next(iter(inside.values()))[0]["slopes"]
        if min(slopes) > 0:
            lines += _bound_lines(slopes, [y for line in lines for y in line["y"]])
        data = {"x_label": "nonzero weights", "y_label": "largest error", "log_x": True, "log_y": True, "lines": lines}
        pictures.append(Picture("curves", f"Largest error against size: {target}", data))
    return pictures


def _bound_lines(slopes: list[float], errors: list[float]) -> list[dict[str, Any]]:
    """The least number of weights (chosen continuously; or of 64 bits each) for the class of these slopes."""
    functions = Slopes(tuple(Fraction(slope) for slope in slopes))
    low, high = min(errors, default=0.01), max(errors, default=0.3)
    epsilons = [high * (low / high) ** (k / 12) for k in range(13)] if 0 < low < high else [low]
    least = [(e, functions.patterns(Fraction(e))) for e in epsilons if e > 0]
    least = [(e, k) for e, k in least if k]
    continuous = {"name": "lower bound, continuous", "x": [k for _, k in least], "y": [e for e, _ in least]}
    stored = {"name": "lower bound, bits", "x": [-(-k // BITS) for _, k in least], "y": [e for e, _ in least]}
    return [continuous, stored]


def _limits(rows: Sequence[Row], expected: int) -> list[str]:
    limits = [
        "Lower bounds are for classes of functions; a construction that uses the form of one target may be below them.",
        "Errors are the largest on a grid, so the true ones may be a little larger; proved bounds hold everywhere.",
        "The bound of ridge is the builder's own; it is proved by a search, which this study does not run.",
    ]
    if len(rows) < expected:
        limits.append(f"{expected - len(rows)} of {expected} sizes are missing: their jobs have not finished.")
    refused: dict[str, int] = {}
    for row in rows:
        if row["refused"]:
            key = f"{row['method']} on {row['target']}: {row['refused']}"
            refused[key] = refused.get(key, 0) + 1
    return limits + [f"{reason} ({count} tolerances)" for reason, count in refused.items()]
