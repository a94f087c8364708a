"""Pictures over two variables: one colour a pixel, with its scale."""

from __future__ import annotations

from html import escape
from typing import Any

from certiformer.report.frame import axis_ticks, figure, frame, value_ticks
from certiformer.report.palette import STEPS, index, scale
from certiformer.report.png import data_uri


def colour_map(picture: dict[str, Any]) -> str:
    """A map of values, its colour scale below it."""
    colours = scale(picture["palette"])
    low, high = picture["low"], picture["high"]
    rows = [bytes(index(value, low, high) for value in row) for row in reversed(picture["values"])]
    label = escape(f"{picture['title']}: {picture['unit']} over {picture['x']['label']} and {picture['y']['label']}")
    image = f'<img src="{data_uri(rows, colours)}" alt="{label}">'
    x, y = axis_ticks(picture["x"]), axis_ticks(picture["y"])
    name = f"{picture['x']['label']} →, {picture['y']['label']} ↑"
    drawn = frame(image, x, y, name, shape="square")
    return figure(picture["title"], picture["caption"], drawn + _legend(picture, colours))


def _legend(picture: dict[str, Any], colours: list[tuple[int, int, int]]) -> str:
    bar = data_uri([bytes(range(STEPS))], colours)
    low, high = picture["low"], picture["high"]
    whole = picture["palette"] == "depth"
    ticks = [tick for tick in value_ticks(low, high, 3) if not (whole and "." in tick[1])]
    labels = "".join(
        f'<span class="{_place(at)}" style="left:{100 * at:.2f}%">{escape(text)}</span>' for at, text in ticks
    )
    return (
        f'<div class="legend"><img src="{bar}" alt="colour scale"><div class="below">{labels}</div>'
        f'<div class="name">{escape(picture["unit"])}</div></div>'
    )


def _place(at: float) -> str:
    return "first" if at < 0.05 else "last" if at > 0.95 else "inner"
