"""Errors over sizes on logarithmic axes: points, fitted lines with the wedges of their intervals, lines of theories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from certiformer.report.numbers import short
from certiformer.report.rates_chart import (
    Scale,
    area,
    data_ticks,
    dots,
    legend,
    line,
    plot,
    scale_for,
    style_of,
)
from certiformer.report.rates_data import (
    ERRORS,
    fit_line,
    measured,
    points_of,
    slope_of,
    slope_text,
    theory_groups,
    theory_label,
    theory_name,
    theory_place,
)
from certiformer.report.rates_html import values_table

FEW = 3  # series with theory up to which all their lines are shown from the start
MANY = 6  # series from which on there are buttons for all and none


def rates_chart(group: Sequence[Mapping[str, Any]]) -> str:
    """One picture for the series of one axis: both errors, one of them shown, with everything that can be switched."""
    kinds = [error for error in ERRORS if any(measured(each, error) for each in group)]
    x_label = group[0]["x_label"]
    panels = "".join(f'<div class="panel" data-error="{error}">{_panel(group, error)}</div>' for error in kinds)
    shown = sum(bool(each.get("theory")) for each in group) <= FEW
    notes = "".join(
        f"<li><b>{escape(each['name'])}</b>: {escape(each['note'])}</li>" for each in group if each.get("note")
    )
    notes = f'<details><summary>Notes on the series</summary><ul class="plain">{notes}</ul></details>' if notes else ""
    return (
        f'<figure class="broad rates fit{" theory" if shown else ""}"><h3>Error over {escape(x_label)}</h3>'
        f"{_tools(kinds, group, shown)}{panels}{legend([each['name'] for each in group])}"
        f"<figcaption>{_caption(group)}</figcaption>{notes}{_values(group)}</figure>"
    )


def _tools(kinds: Sequence[str], group: Sequence[Mapping[str, Any]], shown: bool) -> str:
    switch = "".join(
        f'<button type="button" data-error="{error}" aria-pressed="{str(place == 0).lower()}">{ERRORS[error]}</button>'
        for place, error in enumerate(kinds)
    )
    boxes = [("fit", "fitted lines", True)] if any(each.get("slope_mse") is not None for each in group) else []
    boxes += [("theory", "theory lines", shown)] if any(each.get("theory") for each in group) else []
    checks = "".join(
        f'<label><input type="checkbox" data-show="{name}"{" checked" if on else ""}> {text}</label>'
        for name, text, on in boxes
    )
    every = '<button type="button" data-all="true">all</button><button type="button" data-all="false">none</button>'
    sets = f'<span class="switch">{every}</span>' if len(group) >= MANY else ""
    return f'<div class="tools"><span class="switch">{switch}</span>{checks}{sets}</div>'


def _panel(group: Sequence[Mapping[str, Any]], error: str) -> str:
    xs = [x for each in group for x, _ in points_of(each, error)]
    x = scale_for(xs, log=bool(xs) and min(xs) > 0)
    y = scale_for([value for each in group for _, value in points_of(each, error)], log=True, pad=0.06)
    theories = list(dict.fromkeys(name for each in group for names, _ in theory_groups(each, error) for name in names))
    content = "".join(_series(each, number, error, theories, x, y) for number, each in enumerate(group))
    label = f"{ERRORS[error]} over {group[0]['x_label']}, {len(group)} series"
    swatch = '<svg viewBox="0 0 28 10" aria-hidden="true"><path class="swatch" d="M1 5H27"/></svg>'
    keys = "".join(
        f'<span class="tkey t{theory_place(name, theories)}">{swatch}{escape(theory_name(name))}</span>'
        for name in theories
    )
    return (
        f'<p class="err quiet">{ERRORS[error]}</p>{plot(content, x, y, group[0]["x_label"], label, data_ticks(x, xs))}'
        f'<p class="theory-keys">{keys}</p>'
    )


def _series(series: Mapping[str, Any], number: int, error: str, theories: Sequence[str], x: Scale, y: Scale) -> str:
    points = points_of(series, error)
    slope, interval = slope_of(series, error)
    about = f"\nslope {slope_text(series, error)}" if slope is not None else ""
    tips = [
        f"{series['name']}\n{series['x_label']} = {short(a)}\n{ERRORS[error]} {'none' if b is None else f'{b:.4g}'}{about}"
        for a, b in points
    ]
    drawn = line(points, x, y, "line")
    if slope is not None and x.log and y.log:
        fitted = fit_line(series, error, slope)
        edges = [fit_line(series, error, end) for end in interval or ()]
        if len(edges) == 2 and all(len(edge) == 2 for edge in edges):
            (x0, a0), (x1, a1), (_, b0), (_, b1) = *edges[0], *edges[1]
            drawn += area([(x0, max(a0, b0)), (x1, min(a1, b1))], [(x0, min(a0, b0)), (x1, max(a1, b1))], x, y)
        drawn += line(fitted, x, y, "fitline") if len(fitted) == 2 else ""
    for names, exponent in theory_groups(series, error) if x.log and y.log else ():
        ends = fit_line(series, error, exponent)
        if len(ends) == 2:
            drawn += line(ends, x, y, f"theoryline t{theory_place(names[0], theories)}")
            tip = escape(f"{series['name']}\n{theory_label(series, names, exponent)}")
            drawn += line(ends, x, y, "hit theoryline").replace("/>", f' data-tip="{tip}"/>')
    return f'<g class="s {style_of(number)}" data-s="{number}">{drawn}{dots(points, tips, x, y)}</g>'


def _caption(group: Sequence[Mapping[str, Any]]) -> str:
    parts = []
    if any(slope_of(each, error)[0] is not None for each in group for error in ERRORS):
        parts.append(
            "Both axes logarithmic. Thick: the fitted line over its window; shaded: the slopes of its interval."
        )
    if any(each.get("theory") for each in group):
        parts.append("Dashed: exponents of theories, through the middle of the points.")
    values = [y for each in group for error in ERRORS for _, y in points_of(each, error)]
    if any(value is not None and value <= 0 for value in values):
        parts.append("Pale points on the lower edge are exactly zero.")
    if any(value is None for value in values):
        parts.append("Where a line breaks, there is no finite number.")
    return " ".join(parts)


def _values(group: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        [each["name"], x, mse, l1]
        for each in group
        for x, mse, l1 in zip(each["x"], each["error_mse"], each["error_l1"], strict=False)
    ]
    return values_table(["series", group[0]["x_label"], ERRORS["mse"], ERRORS["l1"]], rows)
