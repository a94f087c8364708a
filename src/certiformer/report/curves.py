"""Pictures over one variable: transformer and target, their difference against the tolerance, and depths of cuts."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from certiformer.report.frame import axis_ticks, figure, frame, value_ticks

COLUMNS = 600  # of a drawn curve; each keeps the smallest and the largest of its samples

Point = tuple[float, float]


def curves(picture: dict[str, Any]) -> str:
    """Two panels: T over f, and T - f inside the band of +- epsilon."""
    x, points = picture["x"], picture["points"]
    values = [v for v in (*picture["target"], *picture["model"]) if v is not None]
    low, high = _padded(min(values, default=0.0), max(values, default=1.0), 0.06)
    both = _svg(
        _path(points, picture["target"], x, low, high, "wide") + _path(points, picture["model"], x, low, high, "thin"),
        f"{picture['title']}: the transformer and the target",
    )
    keys = '<p class="keys"><span class="key wide">target f</span><span class="key thin">transformer T</span></p>'
    upper = frame(both, axis_ticks(x), value_ticks(low, high), x["label"], shape="wide")
    return figure(picture["title"], picture["caption"], keys + upper + _difference(picture))


def steps(picture: dict[str, Any]) -> str:
    """How often the proof had to cut, along the axis."""
    x, values = picture["x"], picture["values"]
    high = max(max(values), 1) * 1.1
    count = len(values)
    corners: list[Point] = [(0.0, 0.0)]
    for place, value in enumerate(values):
        corners += [(place / count, value / high), ((place + 1) / count, value / high)]
    outline = _line([*corners, (1.0, 0.0)]) + "Z"
    drawn = _svg(f'<path class="filled" d="{outline}"/>', f"{picture['title']}: depth along {x['label']}")
    ticks = [tick for tick in value_ticks(0, high) if "." not in tick[1]]
    return figure(picture["title"], picture["caption"], frame(drawn, axis_ticks(x), ticks, x["label"], shape="flat"))


def _difference(picture: dict[str, Any]) -> str:
    x, epsilon = picture["x"], picture["epsilon"]
    largest = max([epsilon, *(abs(v) for v in picture["error"] if v is not None)])
    low, high = -1.2 * largest, 1.2 * largest
    top, bottom = (_height(value, low, high) for value in (epsilon, -epsilon))
    band = f'<rect class="band" x="0" width="1000" y="{top:.1f}" height="{bottom - top:.1f}"/>'
    edges = "".join(f'<path class="edge" d="M0 {y:.1f}H1000"/>' for y in (top, bottom))
    line = _path(picture["points"], picture["error"], x, low, high, "error")
    drawn = _svg(band + edges + line, f"{picture['title']}: the difference and the band of plus minus epsilon")
    keys = '<p class="keys"><span class="key error">difference T − f</span><span class="key band">± ε</span></p>'
    return keys + frame(drawn, axis_ticks(x), value_ticks(low, high), x["label"], shape="wide")


def _path(
    points: Sequence[float], values: Sequence[float | None], x: dict[str, Any], low: float, high: float, kind: str
) -> str:
    span = x["high"] - x["low"]
    scaled = [
        ((point - x["low"]) / span, None if value is None else (value - low) / (high - low))
        for point, value in zip(points, values, strict=True)
    ]
    pieces, piece = [], []
    for at, height in thinned(scaled):
        if height is None:
            pieces, piece = [*pieces, piece], []
        else:
            piece.append((at, height))
    drawn = "".join(_line(part) for part in [*pieces, piece] if len(part) > 1)
    return f'<path class="curve {kind}" d="{drawn}"/>'


def thinned(samples: Sequence[tuple[float, float | None]]) -> list[tuple[float, float | None]]:
    """At most about two samples a column, keeping each column's smallest and largest: no peak is lost.

    >>> thinned([(0.0, 0.0), (0.25, 5.0), (0.5, None), (1.0, 1.0)])
    [(0.0, 0.0), (0.25, 5.0), (0.5, None), (1.0, 1.0)]
    """
    if len(samples) <= 2 * COLUMNS:
        return list(samples)
    kept = []
    for column in range(COLUMNS):
        part = samples[column * len(samples) // COLUMNS : (column + 1) * len(samples) // COLUMNS]
        known = [(at, height) for at, height in part if height is not None]
        if len(known) < len(part):
            kept.append((part[0][0], None))
        if known:
            ends = {min(known, key=lambda sample: sample[1]), max(known, key=lambda sample: sample[1])}
            kept.extend(sorted(ends))
    return kept


def _line(points: Sequence[Point]) -> str:
    return "M" + "L".join(f"{1000 * at:.1f} {1000 * (1 - height):.1f}" for at, height in points)


def _height(value: float, low: float, high: float) -> float:
    return 1000 * (1 - (value - low) / (high - low))


def _padded(low: float, high: float, share: float) -> tuple[float, float]:
    margin = share * (high - low) or max(abs(low), 1.0) * share
    return low - margin, high + margin


def _svg(content: str, label: str) -> str:
    box = 'viewBox="0 0 1000 1000" preserveAspectRatio="none"'
    return f'<svg {box} role="img" aria-label="{escape(label)}">{content}</svg>'
