"""Slopes with their intervals beside the exponents of theories, and the legends of all figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from certiformer.report.rates_data import slope_of, theory_groups, theory_name, theory_of, theory_place
from certiformer.report.rates_figure_parts import THEORIES, THEORY_DASHES, Axes, Figure, wrapped


def draw_slopes(
    axes: Axes, series: Sequence[Mapping[str, Any]], error: str, theories: Sequence[str], names: bool
) -> None:
    """One line a series from the top down; a theory's mark is filled where the interval keeps it."""
    for place, each in enumerate(series):
        slope, interval = slope_of(each, error)
        if slope is None:
            continue
        ends = [[max(slope - interval[0], 0)], [max(interval[1] - slope, 0)]] if interval else None
        label = "fitted slope with its interval" if names and place == 0 else None
        axes.errorbar(
            [slope],
            [place],
            xerr=ends,
            fmt="o",
            color="#1666a8",
            markersize=4,
            capsize=2.5,
            elinewidth=1.4,
            label=label,
        )
        for name, exponent in theory_of(each, error).items():
            place_of, kept = theory_place(name, theories), name not in (each.get("excluded") or ())
            tone = THEORIES[place_of]
            axes.plot(
                [exponent],
                [place + 0.3],
                marker="^",
                markersize=6.5 - 1.25 * (place_of % 3),  # of two at the same place both can be seen
                markeredgecolor=tone,
                markerfacecolor=tone if kept else "white",
                linestyle="none",
                zorder=1.5,
            )
    for name in theories:
        if any(name in theory_of(each, error) for each in series):
            axes.plot([], [], "^", color=THEORIES[theory_place(name, theories)], markersize=5, label=theory_name(name))
    axes.set_yticks(range(len(series)), [wrapped(each["name"], 38) for each in series] if names else [])
    axes.set_ylim(len(series) - 0.3, -0.6)
    axes.set_xlabel("exponent (an open mark is excluded by the interval)" if names and theories else "exponent")


def legend_columns(labels: Sequence[str]) -> int:
    """How many columns of a legend fit under a figure of full width.

    >>> legend_columns(["a", "b"]), legend_columns(["long enough to need half of it"] * 9), legend_columns(["x" * 60] * 3)
    (2, 3, 1)
    """
    longest = max(map(len, labels), default=0)
    return max(1, min(len(labels), 4, 110 // (longest + 6)))


def legend_height(labels: Sequence[str]) -> float:
    """Inches that the legend needs."""
    return 0.15 * -(-len(labels) // legend_columns(labels)) if labels else 0.0


def legend_below(figure: Figure, axes: Sequence[Axes]) -> None:
    """One legend under all panels."""
    handles, labels = [], []
    for each in axes:
        for handle, label in zip(*each.get_legend_handles_labels(), strict=True):
            if label not in labels:
                handles, labels = [*handles, handle], [*labels, label]
    if labels:
        wide = 1.0 if figure.get_figwidth() > 5 else 0.6  # a narrow figure has room for fewer
        columns = max(1, int(wide * legend_columns(labels)))
        figure.legend(handles, labels, loc="outside lower center", ncols=columns)


def draw_theory_keys(axes: Axes, group: Sequence[Mapping[str, Any]], error: str) -> None:
    """What the dashes mean, where lines have the colours of their series."""
    known = list(dict.fromkeys(name for each in group for name in each.get("theory") or ()))
    for names in dict.fromkeys(tuple(names) for each in group for names, _ in theory_groups(each, error)):
        label = ", ".join(theory_name(name) for name in names)
        dash = THEORY_DASHES[theory_place(names[0], known)]
        axes.plot([], [], color="#5d666f", linestyle=dash, linewidth=0.9, label=label)
