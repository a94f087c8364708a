"""The parts of a study's figures: points, fitted lines with wedges, theory lines, slopes with intervals, axes.

A logarithmic axis has no zero: an error that is exactly zero is drawn as an open triangle on the lower edge.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from certiformer.report.rates_data import (
    fit_line,
    points_of,
    size_text,
    size_ticks,
    slope_of,
    slope_text,
    theory_groups,
    theory_label,
    theory_place,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure
else:
    Axes = Any

    def Figure(*arguments: Any, **named: Any) -> Any:
        """matplotlib's figure, imported when the first one is drawn."""
        from matplotlib.figure import Figure as Made

        return Made(*arguments, **named)


COLOURS = (
    "#1666a8",
    "#c9541a",
    "#1d7a4d",
    "#a1308b",
    "#8a6a12",
    "#5b4bb5",
    "#b3312c",
    "#0f7f86",
    "#6b5d54",
    "#3f4a54",
)
MARKERS = "osD^vPX*<>"
DASHES = ("-", (0, (5, 1.5)), (0, (1.5, 1.5)))
# The looks of theories by `theory_place`: founding note, paper, corrected, then others.
THEORIES = ("#b3312c", "#1d2126", "#1d7a4d", "#5b4bb5", "#8a6a12", "#0f7f86")
THEORY_DASHES = ((0, (1, 1.4)), (0, (6, 2)), (0, (4, 1.2, 1, 1.2)), (0, (2, 1)), (0, (7, 1.5)), (0, (3, 3)))


def colour(number: int) -> str:
    """Ten colours that differ on paper, then again with another dash."""
    return COLOURS[number % len(COLOURS)]


def clipped(text: str, length: int) -> str:
    """A name that fits; a dollar sign is one, not the beginning of a formula.

    >>> clipped("abcdef", 4), clipped("5 $", 9)
    ('abc…', '5 \\\\$')
    """
    text = " ".join(str(text).split())
    short = text if len(text) <= length else f"{text[: length - 1]}…"
    return short.replace("$", r"\$")


def wrapped(text: str, length: int) -> str:
    """A title on two lines at the most."""
    lines = textwrap.wrap(" ".join(str(text).split()), length) or [""]
    return "\n".join([clipped(lines[0], length), *([clipped(" ".join(lines[1:]), length)] if lines[1:] else [])])


def draw_points(axes: Axes, series: Mapping[str, Any], error: str, number: int, named: bool = True) -> None:
    """The measured points, joined by a thin line that breaks where one is missing."""
    known = points_of(series, error)
    dash = DASHES[number // len(COLOURS) % len(DASHES)]
    xs = [x for x, _ in known]
    ys = [y if y is not None and y > 0 else math.nan for _, y in known]
    axes.plot(
        xs,
        ys,
        color=colour(number),
        marker=MARKERS[number % len(MARKERS)],
        markersize=3.6,
        markeredgewidth=0,
        linewidth=0.8,
        linestyle=dash,
        alpha=0.95,
        label=clipped(series["name"], 54) if named else None,
    )
    zeros = [x for x, y in known if y is not None and y <= 0]
    if zeros:
        axes.plot(
            zeros,
            [0.02] * len(zeros),
            transform=axes.get_xaxis_transform(),
            linestyle="none",
            marker="v",
            markersize=5,
            markerfacecolor="white",
            markeredgecolor=colour(number),
            clip_on=False,
        )


def draw_fit(axes: Axes, series: Mapping[str, Any], error: str, number: int, wedge: bool, label: bool = False) -> None:
    """The fitted line over its window, and the wedge of all slopes of the interval."""
    slope, interval = slope_of(series, error)
    if slope is None:
        return
    line = fit_line(series, error, slope)
    if len(line) == 2:
        text = f"fitted ({error.upper()}): {slope_text(series, error)}" if label else None
        style = {"color": colour(number), "linewidth": 2.2, "alpha": 0.5, "solid_capstyle": "butt", "label": text}
        axes.plot(*zip(*line, strict=True), **style)
    if wedge and interval and len(line) == 2:
        edges = [fit_line(series, error, end) for end in interval]
        if all(len(edge) == 2 for edge in edges):
            (x0, a0), (x1, a1) = edges[0]
            (_, b0), (_, b1) = edges[1]
            middle = math.exp(_pivot(series, error))
            height = line[0][1] * (middle / x0) ** slope
            lows, highs = [min(a0, b0), height, min(a1, b1)], [max(a0, b0), height, max(a1, b1)]
            axes.fill_between([x0, middle, x1], lows, highs, color=colour(number), alpha=0.15, linewidth=0)


def _pivot(series: Mapping[str, Any], error: str) -> float:
    """The logarithm of the x in which all lines of `fit_line` meet."""
    window = series.get("window") or (0.0, math.inf)
    logs = [math.log(x) for x, y in points_of(series, error) if y and y > 0 and x > 0 and window[0] <= x <= window[1]]
    return sum(logs) / len(logs)


def draw_theory(axes: Axes, series: Mapping[str, Any], error: str, tone: str | None, labels: bool) -> None:
    """A line for each exponent that speaks of this error, through the middle of the points."""
    known = list(series.get("theory") or ())
    for names, exponent in theory_groups(series, error):
        line = fit_line(series, error, exponent)
        if len(line) == 2:
            axes.plot(
                *zip(*line, strict=True),
                color=tone or THEORIES[theory_place(names[0], known)],
                linestyle=THEORY_DASHES[theory_place(names[0], known)],
                linewidth=0.9,
                label=clipped(theory_label(series, names, exponent), 60) if labels else None,
            )


def scale_axes(axes: Axes, group: Sequence[Mapping[str, Any]], error: str) -> None:
    """Logarithmic where that is possible: no x at or below zero, and an error above zero."""
    xs = [x for each in group for x, _ in points_of(each, error)]
    ys = [y for each in group for _, y in points_of(each, error) if y is not None]
    if any(y > 0 for y in ys):
        axes.set_yscale("log")
    if xs and min(xs) > 0 and max(xs) > min(xs):
        log_x(axes, xs)


def log_x(axes: Axes, xs: Sequence[float]) -> None:
    """A logarithmic axis of sizes, labelled with round numbers."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    axes.set_xscale("log")
    low, high = axes.get_xlim()
    ticks = size_ticks(low, high, sorted(set(xs)))
    if len(ticks) > 1 and high / low < 1e4:  # beyond, powers of ten as matplotlib writes them
        axes.xaxis.set_major_locator(FixedLocator(ticks))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: size_text(value)))
