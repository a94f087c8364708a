"""The other pictures of a study on its page: singular values, curves, heat maps, and attention as a graph over points."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from certiformer.report.numbers import short
from certiformer.report.palette import STEPS, index, scale
from certiformer.report.rates_chart import data_ticks, dots, legend, line, plot, scale_for, style_of
from certiformer.report.rates_html import values_table

MOST_NUMBERS = 160  # cells of a heat map up to which each shows its number
MOST_ROWS = 1500  # of the table under a picture
FAINT = 0.02  # weights below this share of the largest are not drawn


def picture(data: Mapping[str, Any]) -> str:
    """A picture of any kind; one that nobody knows is said to be so."""
    draw = {"spectrum": _spectrum, "curves": _curves, "heat": _heat, "graph": _graph}.get(data["kind"])
    content = draw(data) if draw else f"<p>A picture of the unknown kind {escape(str(data['kind']))}.</p>"
    return f'<figure class="picture broad"><h3>{escape(data["title"])}</h3>{content}</figure>'


def _spectrum(data: Mapping[str, Any]) -> str:
    given = data["data"]
    lines = [
        {"name": name, "x": list(range(1, len(values) + 1)), "y": values}
        for name, values in zip(given["names"], given["values"], strict=False)
    ]
    labels = {"x_label": "k", "y_label": "singular value", "log_x": True, "log_y": True}
    return _curves({"title": data["title"], "data": {**labels, "lines": lines}})


def _curves(data: Mapping[str, Any]) -> str:
    given = data["data"]
    lines = [
        (each["name"], [(a, b) for a, b in zip(each["x"], each["y"], strict=False) if a is not None])
        for each in given["lines"]
    ]
    xs = [a for _, points in lines for a, _ in points]
    x = scale_for(xs, log=bool(given.get("log_x")))
    y = scale_for([b for _, points in lines for _, b in points], log=bool(given.get("log_y")))
    drawn = ""
    x_label, y_label = given.get("x_label", ""), given.get("y_label", "")
    for number, (name, points) in enumerate(lines):
        tips = [f"{name}\n{x_label} = {short(a)}\n{y_label} {'none' if b is None else f'{b:.4g}'}" for a, b in points]
        marks = dots(points, tips, x, y)
        drawn += f'<g class="s {style_of(number)}" data-s="{number}">{line(points, x, y, "line")}{marks}</g>'
    chart = plot(drawn, x, y, x_label, f"{data['title']}: {y_label} over {x_label}", data_ticks(x, xs))
    rows = [[name, a, b] for name, points in lines for a, b in points]
    few = values_table(["line", x_label, y_label], rows) if len(rows) <= MOST_ROWS else ""
    return f'<p class="err quiet">{escape(y_label)}</p>{chart}{legend([name for name, _ in lines])}{few}'


def _columns(given: Mapping[str, Any]) -> int:
    return max((len(row) for row in given["values"]), default=0)


def _heat(data: Mapping[str, Any]) -> str:
    given = data["data"]
    values, wide = given["values"], _columns(given)
    rows, columns = given.get("rows") or range(1, len(values) + 1), given.get("columns") or range(1, wide + 1)
    known = [value for row in values for value in row if value is not None]
    low, high = min(known, default=0.0), max(known, default=1.0)
    colours = scale("value")
    numbers = len(values) * wide <= MOST_NUMBERS
    head = "".join(f"<th>{escape(_label(name))}</th>" for name in columns)
    body = ""
    for name, row in zip(rows, values, strict=False):
        cells = ""
        for column, value in zip(columns, row, strict=False):
            tip = escape(f"{_label(name)}, {_label(column)}\n{'none' if value is None else f'{value:.4g}'}")
            if value is None:
                cells += f'<td data-tip="{tip}">{"–" if numbers else ""}</td>'
                continue
            red, green, blue = colours[min(index(value, low, high), STEPS - 1)]
            dark = 0.299 * red + 0.587 * green + 0.114 * blue < 140
            style = f"background:rgb({red},{green},{blue});color:{'#fff' if dark else '#000'}"
            cells += f'<td style="{style}" data-tip="{tip}">{escape(short(value)) if numbers else ""}</td>'
        body += f'<tr><th scope="row">{escape(_label(name))}</th>{cells}</tr>'
    kind = "heat" if numbers else "heat small"
    caption = f"Dark is {short(low)}, bright is {short(high)}." if known else "There is no value."
    return (
        f'<div class="scroll"><table class="{kind}"><thead><tr><th></th>{head}</tr></thead><tbody>{body}</tbody></table>'
        f"</div><figcaption>{escape(caption)}</figcaption>"
    )


def _label(name: Any) -> str:
    return short(name) if isinstance(name, float) else str(name)


def _graph(data: Mapping[str, Any]) -> str:
    given = data["data"]
    points, weights, wanted = given["points"], given["weights"], given.get("wanted")
    panels = _network(points, weights, "attention")
    caption = (
        "A line is wide at the point that looks and narrow at what it looks at; a point's size is its weight on itself."
    )
    if wanted is not None:
        panels += _network(points, wanted, "wanted")
        pairs = [pair for mine, its in zip(weights, wanted, strict=False) for pair in zip(mine, its, strict=False)]
        gaps = [abs(a - b) for a, b in pairs if a is not None and b is not None]
        caption += f" The largest difference of two weights is {short(max(gaps, default=0.0))}."
    rows = [
        [t + 1, s + 1, weight, wanted[t][s] if wanted else None]
        for t, row in enumerate(weights)
        for s, weight in enumerate(row)
    ]
    choice = '<p class="tools quiet">Choose a point to see only where it looks; choose it again for all.</p>'
    return (
        f'{choice}<div class="graphs">{panels}</div><figcaption>{escape(caption)}</figcaption>'
        f"{values_table(['from', 'to', 'attention', 'wanted'], rows)}"
    )


def _network(points: Sequence[Sequence[float]], weights: Sequence[Sequence[float | None]], title: str) -> str:
    across, up = [p[0] for p in points], [p[1] for p in points]
    span = max(max(across, default=1) - min(across, default=0), max(up, default=1) - min(up, default=0)) or 1.0
    middle = [(max(side, default=1) + min(side, default=0)) / 2 for side in (across, up)]
    places = [
        (50 + 80 * (a - middle[0]) / span, 50 - 80 * (b - middle[1]) / span) for a, b in zip(across, up, strict=True)
    ]
    count = len(places)
    between = [w for t, row in enumerate(weights[:count]) for s, w in enumerate(row[:count]) if w and s != t]
    largest = max(between, default=0.0) or 1.0
    edges, nodes = "", ""
    for t, row in enumerate(weights[:count]):
        for s, weight in enumerate(row[:count]):
            if weight and weight > FAINT * largest and s != t:
                tip = f"{t + 1} → {s + 1}\n{title} {weight:.3g}"
                edges += _edge(places[t], places[s], weight / largest, t, tip)
        own = (row[t] if t < len(row) else 0.0) or 0.0
        x, y = places[t]
        radius = 2.4 + 2.6 * min(math.sqrt(max(own, 0.0)), 1.0)
        tip = escape(f"point {t + 1}\n{title} to itself {own:.3g}")
        nodes += (
            f'<g class="node" data-t="{t}" tabindex="0" role="button" aria-label="point {t + 1}" data-tip="{tip}">'
            f'<circle cx="{x:.2f}" cy="{y:.2f}" r="{radius:.2f}"/><text x="{x:.2f}" y="{y:.2f}">{t + 1}</text></g>'
        )
    svg = f'<svg viewBox="0 0 100 100" role="img" aria-label="{title} between {count} points">{edges}{nodes}</svg>'
    return f'<div class="graph"><h4>{title}</h4>{svg}</div>'


def _edge(start: tuple[float, float], end: tuple[float, float], share: float, t: int, tip: str) -> str:
    """A wedge from the point that looks to what it looks at; a little to the side, so that the way back is seen too."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    length = math.hypot(dx, dy) or 1.0
    nx, ny = -dy / length, dx / length
    side, width = 0.5, 0.15 + 1.0 * share
    a = (start[0] + nx * (side + width), start[1] + ny * (side + width))
    b = (start[0] + nx * (side - width), start[1] + ny * (side - width))
    c = (end[0] + nx * side, end[1] + ny * side)
    corners = "L".join(f"{x:.2f} {y:.2f}" for x, y in (a, b, c))
    opacity = 0.15 + 0.75 * share
    return f'<path class="edge-fill" data-from="{t}" opacity="{opacity:.2f}" d="M{corners}Z" data-tip="{escape(tip)}"/>'
