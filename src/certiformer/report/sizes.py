"""How large the transformer is: its numbers, the candidates it was chosen from, and size against tolerance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any

from certiformer.report.frame import Tick, figure, frame
from certiformer.report.numbers import short, size_text

NEAR = 0.07  # dots closer than this share of the height do not both get a label

_FACTS = (
    ("not zero", "nonzero"),
    ("weights", "dense"),
    ("heads", "heads"),
    ("hidden units", "units"),
    ("registers", "registers"),
    ("width", "width"),
    ("blocks", "blocks"),
)


def size_facts(sizes: dict[str, int] | None) -> str:
    """The numbers that say how large a transformer is."""
    if sizes is None:
        return "<p>No transformer was made.</p>"
    facts = [(name, f"{sizes[key]:,}") for name, key in _FACTS if key in sizes]
    facts.append(("file size", size_text(sizes["bytes"])))
    items = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in facts)
    return f'<dl class="facts">{items}</dl>'


def candidate_table(candidates: Sequence[dict[str, Any]] | None) -> str:
    """The transformers that were considered, or nothing when there was no choice."""
    if not candidates or len(candidates) < 2:
        return ""
    columns = ("nonzero", "dense", "heads", "bound")
    head = "".join(
        f"<th>{name}</th>" for name in ("method", "not zero", "weights", "heads", "predicted bound", "outcome")
    )
    rows = []
    for candidate in candidates:
        cells = "".join(f'<td class="number">{_cell(candidate.get(name))}</td>' for name in columns)
        outcome = escape(str(candidate.get("outcome") or ""))
        method = escape(str(candidate.get("method") or ""))
        rows.append(f'<tr><td class="mono">{method}</td>{cells}<td class="outcome">{outcome}</td></tr>')
    note = "Certified from the smallest up; the first that is proved is kept."
    return (
        f'<h3 class="spaced">What was considered</h3><p class="quiet">{note}</p>'
        f'<div class="scroll"><table class="candidates">'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _cell(value: float | int | None) -> str:
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else short(value)


def size_plot(picture: dict[str, Any]) -> str:
    """Weights against tolerance, both in powers of ten; dots and their names are HTML, so they keep their shape."""
    x, y = picture["x"], picture["y"]
    drawn = "".join(_curve(curve, x, y) for curve in picture["curves"])
    box = 'viewBox="0 0 1000 1000" preserveAspectRatio="none"'
    label = escape(f"{picture['title']}: weights that are not zero over the tolerance")
    svg = f'<svg {box} role="img" aria-label="{label}">{drawn}</svg>'
    keys = "".join(
        f'<span class="key {escape(c["style"])}">{escape(c["label"])}</span>' for c in picture["curves"] if c["points"]
    )
    plot = frame(svg + _dots(picture["dots"], x, y), powers(*x), powers(*y), picture["name"], shape="wide tall")
    return figure(picture["title"], picture["caption"], f'<p class="keys">{keys}</p>{plot}')


def powers(low: float, high: float) -> list[Tick]:
    """The powers of ten between the ends of a logarithmic axis, at most about six of them.

    >>> powers(0.001, 10.0)
    [(0.0, '0.001'), (0.25, '0.01'), (0.5, '0.1'), (0.75, '1'), (1.0, '10')]
    """
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    step = max(1, math.ceil((last - first) / 6))
    span = math.log10(high / low)
    return [((k - math.log10(low)) / span, _power(k)) for k in range(first, last + 1, step)]


def _power(exponent: int) -> str:
    if -4 < exponent < 5:
        return f"{10**exponent:,}" if exponent >= 0 else f"{10.0**exponent:.{-exponent}f}"
    return f"1e{exponent}"


def _share(value: float, axis: Sequence[float]) -> float:
    return math.log(value / axis[0]) / math.log(axis[1] / axis[0])


def _curve(curve: dict[str, Any], x: Sequence[float], y: Sequence[float]) -> str:
    points = [(1000 * _share(a, x), 1000 * (1 - _share(b, y))) for a, b in curve["points"]]
    if len(points) < 2:
        return ""
    line = "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in points)
    area = ""
    if curve["style"] == "limit":  # below it nothing can serve the whole class
        area = f'<path class="never" d="{line}L{points[-1][0]:.1f} 1000L{points[0][0]:.1f} 1000Z"/>'
    return f'{area}<path class="curve {escape(curve["style"])}" d="{line}"/>'


def _dots(dots: Sequence[dict[str, Any]], x: Sequence[float], y: Sequence[float]) -> str:
    drawn, named = [], []
    for dot in sorted(dots, key=lambda d: d["style"] != "ours"):
        left, bottom = _share(dot["x"], x), _share(dot["y"], y)
        free = all(abs(bottom - other) > NEAR or abs(left - place) > 0.35 for place, other in named)
        side = "flip" if left > 0.6 else ""
        text = f'<b class="{side}">{escape(dot["label"])}</b>' if free else ""
        if free:
            named.append((left, bottom))
        place = f"left:{100 * left:.2f}%;bottom:{100 * bottom:.2f}%"
        drawn.append(f'<span class="dot {escape(dot["style"])}" style="{place}">{text}</span>')
    return "".join(drawn)
