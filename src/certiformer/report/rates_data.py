"""The result of a study as plain JSON data, and what every picture and table of it shares: names, points, sentences.

| entry | what it holds |
|---|---|
| `study`, `question` | texts |
| `options` | the options of the study by name |
| `series` | `name`, `x`, `x_label`, `error_mse`, `error_l1`, slopes, intervals, `theory`, `excluded`, `window`, `note` |
| `tables` | `caption`, `headings`, `rows` |
| `pictures` | `kind` (`spectrum`, `graph`, `heat` or `curves`), `title`, `data` |
| `findings`, `limits` | lists of sentences |
| `jobs` | optional: `total`, `done`, and the lists `missing` and `failed` |
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

SCHEMA = "certiformer-rates-1"
ERRORS = {"mse": "mean squared error", "l1": "mean absolute error"}
_SLOPES = {"mse": ("slope_mse", "slope_interval"), "l1": ("slope_l1", "slope_l1_interval")}
_NUMERIC = ("series", "pictures")  # here a number that is not finite is null; elsewhere it is a word

Point = tuple[float, float]


def plain(result: Any) -> dict[str, Any]:
    """The JSON data of a result (a dataclass or a dictionary): lists for tuples, numbers of Python, nothing infinite.

    >>> plain({"study": "a", "series": [{"x": (1, float("nan"))}], "options": {"rank": (2.0, float("inf"))}})
    {'schema': 'certiformer-rates-1', 'study': 'a', 'series': [{'x': [1, None]}], 'options': {'rank': [2.0, 'inf']}}
    """
    data = result if isinstance(result, Mapping) else dataclasses.asdict(result)
    return {"schema": SCHEMA, **{key: _plain(value, key in _NUMERIC) for key, value in data.items()}}


def _plain(value: Any, numeric: bool) -> Any:
    if isinstance(value, Mapping):
        # Exponents of a theory are numbers or nothing to draw; a missing one is left out by whoever reads it.
        return {str(key): _plain(each, numeric) for key, each in value.items()}
    if isinstance(value, bool | str | int | None):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None if numeric else str(float(value))
    if hasattr(value, "tolist"):  # an array, or a number that is not Python's own
        return _plain(value.tolist(), numeric)
    if isinstance(value, Sequence):
        return [_plain(each, numeric) for each in value]
    return str(value)


def slope_of(series: Mapping[str, Any], error: str) -> tuple[float | None, Sequence[float] | None]:
    """The slope and its interval for an error (`mse` or `l1`)."""
    slope, interval = _SLOPES[error]
    known = series.get(interval)
    complete = known if known and all(isinstance(end, int | float) for end in known) else None
    return series.get(slope), complete


def theory_of(series: Mapping[str, Any], error: str) -> dict[str, float]:
    """The exponents that speak of an error: names that end in `_l1` speak of L1, all others of the squared error."""
    theory = series.get("theory") or {}
    return {
        name: value for name, value in theory.items() if value is not None and name.endswith("_l1") == (error == "l1")
    }


def theory_groups(series: Mapping[str, Any], error: str) -> list[tuple[list[str], float]]:
    """The same with equal exponents together, as lists of names: they make one line of a picture.

    >>> theory_groups({"theory": {"note": -3.0, "paper": -1.0, "corrected_mse": -1.0}}, "mse")
    [(['note'], -3.0), (['paper', 'corrected_mse'], -1.0)]
    """
    groups: dict[float, list[str]] = {}
    for name, exponent in theory_of(series, error).items():
        near = next((known for known in groups if math.isclose(known, exponent, abs_tol=1e-9)), exponent)
        groups.setdefault(near, []).append(name)
    return [(names, exponent) for exponent, names in groups.items()]


def theory_label(series: Mapping[str, Any], names: Sequence[str], exponent: float) -> str:
    """How a line of theory is called in a legend."""
    verdict = ", excluded" if all(name in (series.get("excluded") or ()) for name in names) else ""
    return f"{_listed([theory_name(name) for name in names])}: {signed(exponent)}{verdict}"


def points_of(series: Mapping[str, Any], error: str) -> list[tuple[float, float | None]]:
    """Pairs of x and the error; None where there is no number."""
    return [(x, y) for x, y in zip(series["x"], series[f"error_{error}"], strict=False) if x is not None]


def measured(series: Mapping[str, Any], error: str) -> bool:
    """Whether there is any number at all."""
    return any(y is not None for _, y in points_of(series, error))


def fit_line(series: Mapping[str, Any], error: str, exponent: float) -> list[Point]:
    """The two ends of the line with this exponent through the middle of the points, on logarithmic axes, over the window.

    >>> [(x, round(y, 9)) for x, y in fit_line({"x": [1, 2, 4], "error_mse": [1.0, 0.25, 0.0625]}, "mse", -2.0)]
    [(1, 1.0), (4, 0.0625)]
    """
    known = [(x, y) for x, y in points_of(series, error) if y is not None and y > 0 and x > 0]
    window = series.get("window")
    if window:
        known = [(x, y) for x, y in known if window[0] <= x <= window[1]]
    if len(known) < 2:
        return []
    middle_x = sum(math.log(x) for x, _ in known) / len(known)
    middle_y = sum(math.log(y) for _, y in known) / len(known)
    ends = (min(x for x, _ in known), max(x for x, _ in known))
    heights = [middle_y + exponent * (math.log(x) - middle_x) for x in ends]
    return [(x, math.exp(height)) for x, height in zip(ends, heights, strict=True) if abs(height) < 700]


def slope_text(series: Mapping[str, Any], error: str) -> str:
    """The slope with its interval.

    >>> slope_text({"slope_mse": -1.234, "slope_interval": [-1.3, -1.1]}, "mse"), slope_text({}, "mse")
    ('−1.23 [−1.30, −1.10]', 'none')
    """
    slope, interval = slope_of(series, error)
    if slope is None:
        return "none"
    ends = f" [{signed(interval[0])}, {signed(interval[1])}]" if interval else ""
    return f"{signed(slope)}{ends}"


def signed(value: float) -> str:
    """An exponent with two decimals and a real minus sign."""
    return f"{value:.2f}".replace("-", "−")


def theory_name(name: str) -> str:
    """How a theory is called in a sentence.

    >>> theory_name("founding_note"), theory_name("corrected_mse")
    ('founding note', 'corrected (MSE)')
    """
    for end, word in (("_mse", " (MSE)"), ("_l1", " (L1)")):
        if name.endswith(end):
            return f"{name.removesuffix(end).replace('_', ' ')}{word}"
    return name.replace("_", " ")


def theory_place(name: str, names: Sequence[str]) -> int:
    """Which of six looks a theory has: the known ones keep theirs in every picture, and both errors share one.

    >>> [theory_place(name, ["paper", "barron_mse", "barron_l1"]) for name in ("paper", "barron_mse", "barron_l1")]
    [1, 3, 3]
    """
    known = ["founding_note", "paper", "corrected"]
    base, *bases = [each.removesuffix("_mse").removesuffix("_l1") for each in (name, *names)]
    others = list(dict.fromkeys(each for each in bases if each not in known))
    return known.index(base) if base in known else 3 + (others.index(base) % 3 if base in others else 0)


def exclusions(series: Mapping[str, Any]) -> str:
    """Which exponents the interval of a slope excludes, as a sentence; empty where there is no theory.

    >>> exclusions({"theory": {"paper": -1.0, "founding_note": -3.0}, "excluded": ["founding_note"], "slope_mse": -1.0})
    'The interval excludes founding note −3.00 and keeps paper −1.00.'
    """
    theory = {name: value for name, value in (series.get("theory") or {}).items() if value is not None}
    fitted = {error: slope_of(series, error)[0] is not None for error in ERRORS}
    judged = {name: value for name, value in theory.items() if fitted["l1" if name.endswith("_l1") else "mse"]}
    if not theory:
        return ""
    if not judged:
        return "No slope was fitted, so nothing is excluded."
    named = {name: f"{theory_name(name)} {signed(value)}" for name, value in judged.items()}
    out = [text for name, text in named.items() if name in series.get("excluded", ())]
    kept = [text for name, text in named.items() if name not in series.get("excluded", ())]
    if not out:
        return f"The interval keeps {_listed(kept)}."
    rest = f" and keeps {_listed(kept)}" if kept else ""
    return f"The interval excludes {_listed(out)}{rest}."


def _listed(words: Sequence[str]) -> str:
    return ", ".join(words)


def size_ticks(low: float, high: float, values: Sequence[float]) -> list[float]:
    """Round numbers on a logarithmic axis: powers of two where the data are counted in them, else 1, 2, 5, 10, ...

    >>> size_ticks(1, 16, [1, 2, 3, 4, 8, 16]), size_ticks(3, 107, [3, 14, 107]), size_ticks(1, 1e9, [])[:3]
    ([1.0, 2.0, 4.0, 8.0, 16.0], [5.0, 10.0, 20.0, 50.0, 100.0], [1.0, 1000.0, 1000000.0])
    """
    twos = [value for value in values if value > 0 and math.log2(value).is_integer()]
    first, last = math.log10(low), math.log10(high)
    if len(twos) > 2 and max(values) == max(twos):
        step = max(1, round((last - first) / math.log10(2) / 6))
        found = [2.0**k for k in range(math.floor(math.log2(low)), math.ceil(math.log2(high)) + 1, step)]
    elif last - first > 4:
        step = math.ceil((last - first) / 4)
        found = [10.0**k for k in range(math.floor(first), math.ceil(last) + 1, step)]
    else:
        factors = (1, 2, 5) if last - first < 2.5 else (1,)
        found = [f * 10.0**k for k in range(math.floor(first), math.ceil(last) + 1) for f in factors]
    return [value for value in found if low <= value * (1 + 1e-9) and value <= high * (1 + 1e-9)]


def size_text(value: float) -> str:
    """A size on an axis.

    >>> size_text(1024.0), size_text(0.5), size_text(2e6)
    ('1,024', '0.5', '2e+06')
    """
    return f"{int(value):,}" if value == int(value) and abs(value) < 1e6 else f"{value:.3g}"


def cell_text(value: Any, digits: int = 4) -> str:
    """A cell of a table.

    >>> [cell_text(each) for each in (0.000123456, 7, "a", None, True, 12345678.0, -0.5, [1, 0.25])]
    ['0.0001235', '7', 'a', '–', 'yes', '1.235e+07', '-0.5', '1, 0.25']
    """
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.{digits}g}"
    if isinstance(value, list):
        return ", ".join(cell_text(each, digits) for each in value)
    return str(value)
