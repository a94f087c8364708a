"""The figures of a study's other pictures: singular values, attention over points, heat maps and curves."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from certiformer.report.rates_figure_parts import (
    COLOURS,
    DASHES,
    MARKERS,
    Axes,
    Figure,
    clipped,
    colour,
    log_x,
)
from certiformer.report.rates_figure_slopes import legend_below, legend_height

FAINT = 0.02  # weights below this share of the largest are not drawn
TICKS = 12  # labels along one side of a heat map


def spectrum_figure(picture: Mapping[str, Any]) -> Figure:
    """Singular values over their place, both axes logarithmic."""
    data = picture["data"]
    lines = [
        {"name": name, "x": list(range(1, len(values) + 1)), "y": values}
        for name, values in zip(data["names"], data["values"], strict=False)
    ]
    labels = {"x_label": "k", "y_label": "singular value", "log_x": True, "log_y": True}
    return curves_figure({"title": picture["title"], "data": {**labels, "lines": lines}})


def curves_figure(picture: Mapping[str, Any]) -> Figure:
    """Lines over a common axis; what a logarithm cannot show is left out."""
    data = picture["data"]
    lines = data["lines"]
    figure = Figure(
        figsize=(4.6, 2.9 + 1.5 * legend_height([clipped(line["name"], 44) for line in lines])), layout="constrained"
    )
    axes = figure.add_subplot()
    log_x_wanted, log_y = bool(data.get("log_x")), bool(data.get("log_y"))
    xs: list[float] = []
    for number, line in enumerate(lines):
        known = [
            (x, y if y is not None and (y > 0 or not log_y) else math.nan)
            for x, y in zip(line["x"], line["y"], strict=False)
            if x is not None and (x > 0 or not log_x_wanted)
        ]
        xs += [x for x, _ in known]
        few = len(known) <= 40
        axes.plot(
            [x for x, _ in known],
            [y for _, y in known],
            color=colour(number),
            linestyle=DASHES[number // len(COLOURS) % len(DASHES)],
            marker=MARKERS[number % len(MARKERS)] if few else None,
            markersize=3.2,
            markeredgewidth=0,
            linewidth=1.0,
            label=clipped(line["name"], 44),
        )
    if log_y:
        axes.set_yscale("log")
    if log_x_wanted and len(set(xs)) > 1:
        log_x(axes, xs)
    axes.set_xlabel(clipped(data.get("x_label", ""), 60))
    axes.set_ylabel(clipped(data.get("y_label", ""), 48))
    axes.set_title(clipped(picture["title"], 70))
    legend_below(figure, [axes])
    return figure


def heat_figure(picture: Mapping[str, Any]) -> Figure:
    """One cell a value, with its colour scale; a missing value stays white."""
    data = picture["data"]
    values = [[math.nan if value is None else float(value) for value in row] for row in data["values"]]
    wide = max((len(row) for row in values), default=0)
    size = (2.2 + 0.24 * min(max(wide, 4), 16), 1.5 + 0.24 * min(max(len(values), 4), 16))
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.add_subplot()
    axes.grid(False)
    axes.set_title(clipped(picture["title"], 60))
    if wide:
        filled = [row + [math.nan] * (wide - len(row)) for row in values]
        image = axes.imshow(filled, cmap="viridis", aspect="auto", interpolation="nearest")
        figure.colorbar(image, ax=axes, shrink=0.9)
    columns = _ticks(data.get("columns") or range(wide))
    axes.set_xticks(*columns, rotation=45 if max(map(len, columns[1]), default=0) > 4 else 0)
    axes.set_yticks(*_ticks(data.get("rows") or range(len(values))))
    return figure


def _ticks(labels: Sequence[Any]) -> tuple[list[int], list[str]]:
    step = max(1, -(-len(labels) // TICKS))
    places = list(range(0, len(labels), step))
    return places, [
        clipped(f"{each:.3g}" if isinstance(each, float) else each, 24) for each in (labels[p] for p in places)
    ]


def graph_figure(picture: Mapping[str, Any]) -> Figure:
    """Attention between points, line width by weight, size of a point by its own weight; beside it what was wanted."""
    data = picture["data"]
    shown = [("attention", data["weights"])]
    if data.get("wanted") is not None:
        shown.append(("wanted", data["wanted"]))
    figure = Figure(figsize=(3.3 * len(shown), 3.4), layout="constrained")
    for place, (title, weights) in enumerate(shown):
        axes = figure.add_subplot(1, len(shown), place + 1)
        _draw_graph(axes, data["points"], weights)
        axes.set_title(title)
    figure.suptitle(clipped(picture["title"], 70), fontsize=8.5)
    return figure


def _draw_graph(axes: Axes, points: Sequence[Sequence[float]], weights: Sequence[Sequence[float | None]]) -> None:
    places = [(point[0], point[1]) for point in points]
    between = [weight for t, row in enumerate(weights) for s, weight in enumerate(row) if weight and s != t]
    largest = max(between, default=0.0) or 1.0
    for start, row in enumerate(weights[: len(points)]):
        for end, weight in enumerate(row[: len(points)]):
            if weight and weight > FAINT * largest and start != end:
                axes.annotate(
                    "",
                    places[end],
                    places[start],
                    arrowprops={
                        "arrowstyle": "-|>,head_length=0.25,head_width=0.12",
                        "connectionstyle": "arc3,rad=0.08",
                        "linewidth": 0.3 + 2.2 * weight / largest,
                        "alpha": min(1.0, 0.12 + 0.8 * weight / largest),
                        "color": "#1666a8",
                        "shrinkA": 5,
                        "shrinkB": 5,
                    },
                )
    own = [row[place] or 0.0 if place < len(row) else 0.0 for place, row in enumerate(weights[: len(points)])]
    sizes = [50 + 170 * weight for weight in (own + [0.0] * len(points))[: len(points)]]
    axes.scatter(
        [p[0] for p in points], [p[1] for p in points], s=sizes, color="#fbfaf7", edgecolor="#1d2126", zorder=3
    )
    for number, place in enumerate(places, 1):
        axes.annotate(str(number), place, ha="center", va="center", fontsize=6, zorder=4)
    axes.margins(0.12)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.grid(False)
    axes.spines[:].set_visible(False)
    axes.set_aspect("equal", adjustable="datalim")


KINDS: dict[str, Callable[[Mapping[str, Any]], Figure]] = {
    "spectrum": spectrum_figure,
    "curves": curves_figure,
    "heat": heat_figure,
    "graph": graph_figure,
}
