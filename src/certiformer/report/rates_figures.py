"""The pictures of a study for publication, as SVG and PDF through matplotlib (the extra `plot`).

The files are the same for the same data: fixed identifiers, no date, letters as outlines. `draw_all` writes

* `figure-rates`: both errors over the size, all series, with fitted lines (and theory where there are few series);
* `figure-panels`: one panel a series, with theory lines, the fitted slope and the wedge of its interval;
* `figure-slopes`: slopes and intervals beside the exponents of theories;
* `figure-KIND-N`: the other pictures, in their order.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from certiformer.errors import MissingExtra
from certiformer.report.rates_data import ERRORS, measured, theory_of
from certiformer.report.rates_figure_kinds import KINDS
from certiformer.report.rates_figure_parts import (
    Axes,
    Figure,
    clipped,
    colour,
    draw_fit,
    draw_points,
    draw_theory,
    scale_axes,
    wrapped,
)
from certiformer.report.rates_figure_slopes import draw_slopes, draw_theory_keys, legend_below, legend_height

STYLE: dict[Any, Any] = {
    "svg.hashsalt": "certiformer",
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
    "font.family": "DejaVu Sans",
    "font.size": 8.0,
    "axes.titlesize": 8.5,
    "axes.labelsize": 8.0,
    "legend.fontsize": 7.0,
    "xtick.labelsize": 7.0,
    "ytick.labelsize": 7.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "axes.grid": True,
    "grid.color": "#e4e2dc",
    "grid.linewidth": 0.5,
    "axes.axisbelow": True,
    "lines.linewidth": 1.2,
    "legend.frameon": False,
    "figure.facecolor": "white",
}
FEW = 3  # series with theory up to which all lines go into one picture
MOST_PANELS = 24
WIDTH = 7.0  # inches: two columns of a page


def draw_all(data: Mapping[str, Any], folder: Path) -> list[str]:
    """Write every figure into a folder that nobody reads yet, twice; returns the names of the files."""
    require_matplotlib()
    names = []
    for name, draw in figures_of(data):
        names += save(draw, folder / name)
    return names


def require_matplotlib() -> None:
    """Ask for matplotlib in one sentence where it is not installed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise MissingExtra("figures need the library matplotlib: pip install 'certiformer[plot]'") from None


def save(draw: Callable[[], Figure], stem: Path) -> list[str]:
    """Draw once and write `stem.svg` and `stem.pdf`."""
    import matplotlib

    names = []
    with matplotlib.rc_context(STYLE), warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # a name in letters that the font lacks, a panel without points: drawn all the same
        figure = draw()
        for kind, metadata in (("svg", {"Date": None, "Creator": None}), ("pdf", {"CreationDate": None})):
            content = io.BytesIO()
            figure.savefig(content, format=kind, metadata=metadata)
            figure.set_layout_engine("none")  # the second file has the layout of the first
            path = stem.with_name(f"{stem.name}.{kind}")
            path.write_bytes(content.getvalue())
            names.append(path.name)
    return names


def figures_of(data: Mapping[str, Any]) -> list[tuple[str, Callable[[], Figure]]]:
    """The name of every figure that the data make, and what draws it."""
    found: list[tuple[str, Callable[[], Figure]]] = []
    for place, group in enumerate(by_axis(data.get("series") or ())):
        end = f"-{place + 1}" if place else ""
        found.append((f"figure-rates{end}", lambda group=group: rates_figure(group)))
        lined = [each for each in group if each.get("theory") and measured(each, "mse")]
        if FEW < len(lined) <= MOST_PANELS:
            found.append((f"figure-panels{end}", lambda lined=lined: panels_figure(lined)))
    fitted = [each for each in data.get("series") or () if each.get("slope_mse") is not None]
    if fitted:
        found.append(("figure-slopes", lambda: slopes_figure(fitted)))
    for place, picture in enumerate(data.get("pictures") or (), 1):
        if picture["kind"] in KINDS:
            draw = KINDS[picture["kind"]]
            found.append((f"figure-{picture['kind']}-{place}", lambda draw=draw, each=picture: draw(each)))
    return found


def by_axis(series: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """The series that have a point, those with the same x together."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for each in series:
        if each["x"] and (measured(each, "mse") or measured(each, "l1")):
            groups.setdefault(each["x_label"], []).append(each)
    return list(groups.values())


def rates_figure(group: Sequence[Mapping[str, Any]]) -> Figure:
    """Both errors of all series over their common axis."""
    kinds = [error for error in ERRORS if any(measured(each, error) for each in group)]
    with_theory = sum(bool(each.get("theory")) for each in group) <= FEW
    names = [clipped(each["name"], 54) for each in group]
    size = (WIDTH if len(kinds) > 1 else 4.4, 2.8 + legend_height(names) + (0.3 if with_theory else 0.0))
    figure = Figure(figsize=size, layout="constrained")
    for place, error in enumerate(kinds):
        axes = figure.add_subplot(1, len(kinds), place + 1)
        for number, each in enumerate(group):
            draw_points(axes, each, error, number)
            draw_fit(axes, each, error, number, wedge=len(group) <= FEW, label=len(group) == 1)
            if with_theory:
                draw_theory(axes, each, error, None if len(group) == 1 else colour(number), labels=len(group) == 1)
        if with_theory and len(group) > 1:
            draw_theory_keys(axes, group, error)
        scale_axes(axes, group, error)
        axes.set_xlabel(clipped(group[0]["x_label"], 60))
        axes.set_title(ERRORS[error])
    legend_below(figure, figure.axes)
    return figure


def panels_figure(group: Sequence[Mapping[str, Any]]) -> Figure:
    """One panel a series: points, the fitted line, the wedge of its interval, and a line for each theory."""
    columns = 2 if len(group) <= 4 else 3
    rows = -(-len(group) // columns)
    figure = Figure(figsize=(WIDTH, 2.15 * rows), layout="constrained")
    first: Axes | None = None
    for place, each in enumerate(group):
        axes = figure.add_subplot(rows, columns, place + 1, sharex=first, sharey=first)
        first = first or axes
        draw_points(axes, each, "mse", place, named=False)
        draw_fit(axes, each, "mse", place, wedge=True, label=True)
        draw_theory(axes, each, "mse", None, labels=True)
        axes.set_title(wrapped(each["name"], 36 if columns == 3 else 56), fontsize=7.0)
        axes.label_outer()
        if axes.get_legend_handles_labels()[1]:
            axes.legend(fontsize=5.8, loc="best", handlelength=1.8, labelspacing=0.25)
    if first is not None:
        scale_axes(first, group, "mse")
        for axes in figure.axes[-columns:]:
            axes.set_xlabel(clipped(group[0]["x_label"], 40))
    figure.supylabel("mean squared error", fontsize=8)
    return figure


def slopes_figure(series: Sequence[Mapping[str, Any]]) -> Figure:
    """Slopes with intervals, one line a series, and the exponents of theories: filled where the interval keeps them."""
    kinds = [error for error in ERRORS if error == "mse" or any(each.get("slope_l1") is not None for each in series)]
    figure = Figure(figsize=(WIDTH, 1.35 + 0.3 * len(series)), layout="constrained")
    theories = list(dict.fromkeys(name for error in kinds for each in series for name in theory_of(each, error)))
    for place, error in enumerate(kinds):
        axes = figure.add_subplot(1, len(kinds), place + 1)
        draw_slopes(axes, series, error, theories, names=place == 0)
        axes.set_title(f"slope of the {ERRORS[error]}")
    legend_below(figure, figure.axes)
    return figure
