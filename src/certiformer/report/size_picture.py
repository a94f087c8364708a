"""The picture of `certiformer size`: upper and lower bounds over epsilon or a parameter, as one SVG file of its own.

The region between the two bounds on bits is shaded: what the smallest transformer needs lies in it. Sizes are whole
numbers of any length, so they are placed by their logarithms; a lower bound of zero has no place and leaves a hole.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from html import escape

from certiformer.report.numbers import short
from certiformer.report.rates_figure_parts import COLOURS

WIDTH, HEIGHT = 640, 400
LEFT, RIGHT, TOP, BOTTOM = 64, 190, 34, 46
MOST_TICKS = 8

Line = tuple[str, Sequence[int | None]]


def size_picture(
    title: str, axis: str, places: Sequence[Fraction], upper: Line, lower: Line, more: Sequence[Line]
) -> str:
    """An SVG with a line for each series over `places`; epsilon runs from large to small on a logarithmic axis.

    >>> drawn = size_picture("bits", "n", [Fraction(1), Fraction(2)], ("above", [8, 16]), ("below", [4, None]), [])
    >>> drawn.count("<polyline"), drawn.count("<circle")
    (1, 3)
    """
    log = axis == "eps"
    across = [-math.log10(place) if log else float(place) for place in places]
    lines = [upper, lower, *more]
    sizes = [math.log10(value) for _, values in lines for value in values if value]
    x, y = _scale(across, LEFT, WIDTH - RIGHT), _scale([0.0, *sizes], HEIGHT - BOTTOM, TOP)
    parts = [f'<text x="{LEFT}" y="18" class="title">{escape(title)}</text>']
    step = max(1, math.ceil(max(sizes, default=1.0) / MOST_TICKS))
    for power in range(0, math.floor(max(sizes, default=1.0)) + 1, step):
        parts.append(f'<path class="grid" d="M{LEFT} {y(power):.1f}H{WIDTH - RIGHT}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y(power) + 4:.1f}" class="end">{_power(power)}</text>')
    for place, at in list(zip(places, across, strict=True))[:: max(1, math.ceil(len(places) / MOST_TICKS))]:
        parts.append(f'<text x="{x(at):.1f}" y="{HEIGHT - BOTTOM + 18}" class="middle">{short(float(place))}</text>')
    parts.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{HEIGHT - 8}" class="middle">{escape(axis)}</text>')
    between = [(at, a, b) for at, a, b in zip(across, upper[1], lower[1], strict=True) if a and b]
    if len(between) > 1:
        edge = [(at, a) for at, a, _ in between] + [(at, b) for at, _, b in reversed(between)]
        corners = " ".join(f"{x(at):.1f},{y(math.log10(value)):.1f}" for at, value in edge)
        parts.append(f'<polygon points="{corners}" fill="{COLOURS[0]}" opacity="0.13"/>')
    for number, (name, values) in enumerate(lines):
        points = [(x(at), y(math.log10(value))) for at, value in zip(across, values, strict=True) if value]
        colour, dash = COLOURS[number], "" if number < 2 else ' stroke-dasharray="5 3"'
        if len(points) > 1:
            corners = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
            parts.append(f'<polyline points="{corners}" stroke="{colour}"{dash}/>')
        parts += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="2.4" fill="{colour}"/>' for a, b in points]
        down = TOP + 18 * number + 6
        parts.append(f'<path d="M{WIDTH - RIGHT + 14} {down}h22" stroke="{colour}" stroke-width="2"{dash}/>')
        parts.append(f'<text x="{WIDTH - RIGHT + 42}" y="{down + 4}">{escape(name)}</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(title)}">'
        "<style>text{font:12px sans-serif;fill:#1d2126}.title{font-weight:bold}.end{text-anchor:end}"
        ".middle{text-anchor:middle}.grid{stroke:#e4e2dc}polyline{fill:none;stroke-width:1.8}</style>"
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>{"".join(parts)}</svg>\n'
    )


def _scale(values: Sequence[float], start: float, end: float):
    low, high = min(values, default=0.0), max(values, default=1.0)
    span = high - low or 1.0
    return lambda value: start + (end - start) * (value - low) / span


def _power(exponent: int) -> str:
    return f"{10**exponent:,}" if exponent < 5 else f"1e{exponent}"
