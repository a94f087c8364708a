"""Lines with points on linear or logarithmic axes, as SVG that the page's script can highlight.

A group `<g class="s" data-s="N">` holds one series. Points are strokes of length zero with round ends: they stay round when
the plot is stretched to the width of the page. What a reader may hover has its text in `data-tip`. An axis that is
logarithmic has no zero: such points are pale and lie on the lower edge.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from certiformer.report.frame import Tick, frame, value_ticks
from certiformer.report.numbers import short
from certiformer.report.rates_data import size_text, size_ticks

COLOURS, DASHES = 10, 3  # that the style sheet knows
MOST_POINTS = 64  # of one line that are drawn as points; of a longer one only the line is

Point = tuple[float, float | None]


@dataclass(frozen=True)
class Scale:
    """One axis: its ends and whether it is logarithmic."""

    low: float
    high: float
    log: bool

    def share(self, value: float) -> float:
        """Where a value is, from 0 to 1; outside the ends beyond them."""
        if self.log:
            first, last = math.log(self.low), math.log(self.high)  # quotients of the ends may overflow
            return (math.log(value) - first) / (last - first)
        return (value - self.low) / (self.high - self.low)

    def shows(self, value: float | None) -> bool:
        """Whether a value has a place on the axis."""
        return value is not None and (value > 0 or not self.log)

    def ticks(self, wanted: int = 5) -> list[Tick]:
        """Powers of ten, or round numbers where there are not two of them."""
        if not self.log:
            return value_ticks(self.low, self.high, wanted)
        first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
        step = max(1, math.ceil((last - first) / 6))
        if last > first:
            return [(self.share(10.0**k), _power(k)) for k in range(first, last + 1, step)]
        values = [self.low * (self.high / self.low) ** (step / 3) for step in range(4)]
        rounded = sorted({float(f"{value:.2g}") for value in values})
        return [(self.share(value), short(value)) for value in rounded if self.low <= value <= self.high]


def _power(exponent: int) -> str:
    return short(10.0**exponent) if -4 < exponent < 5 else f"1e{exponent}"


def scale_for(values: Iterable[float | None], log: bool, pad: float = 0.04) -> Scale:
    """An axis with a little room at both ends; logarithmic only if it is wanted and something is above zero.

    >>> scale_for([1.0, 100.0, 0.0, None], log=True, pad=0.0)
    Scale(low=1.0, high=100.0, log=True)
    >>> scale_for([], log=True), scale_for([3.0], log=False, pad=0.5)
    (Scale(low=0.0, high=1.0, log=False), Scale(low=1.5, high=4.5, log=False))
    """
    known = [value for value in values if value is not None and math.isfinite(value)]
    positive = [value for value in known if value > 0]
    if log and positive:
        low, high = min(positive), max(positive)
        room = math.exp(pad * (math.log(high) - math.log(low))) if high > low else 2.0
        # The smallest and the largest floats have no room beside them.
        return Scale(max(low / room, 5e-324), min(high * room, 1.7e308), True)
    if not known:
        return Scale(0.0, 1.0, False)
    low, high = min(known), max(known)
    room = pad * (high - low) or pad * max(abs(low), 1.0) or 0.5
    return Scale(low - room, high + room, False)


def data_ticks(scale: Scale, values: Sequence[float]) -> list[Tick]:
    """Ticks of an axis of sizes; two at the least where it is logarithmic."""
    if not scale.log:
        return scale.ticks()
    ticks = [(scale.share(value), size_text(value)) for value in size_ticks(scale.low, scale.high, values)]
    return ticks if len(ticks) > 1 else scale.ticks()


def style_of(number: int) -> str:
    """The classes of the colour and the dash of a series."""
    return f"s{number % COLOURS} d{number // COLOURS % DASHES}"


def line(points: Sequence[Point], x: Scale, y: Scale, kind: str) -> str:
    """A path through the points, broken where one has no place."""
    pieces: list[list[str]] = [[]]
    for a, b in points:
        if b is None or not x.shows(a) or not y.shows(b):
            pieces.append([])
        else:
            pieces[-1].append(_at(a, b, x, y))
    drawn = "".join("M" + "L".join(piece) for piece in pieces if len(piece) > 1)
    return f'<path class="{kind}" d="{drawn}"/>' if drawn else ""


def dots(points: Sequence[Point], tips: Sequence[str], x: Scale, y: Scale) -> str:
    """The points, each with its text; zeros of a logarithmic axis lie pale on the lower edge. Of a line with very many
    points only some are there, unseen, for the pointer."""
    drawn = ""
    step = max(1, -(-len(points) // MOST_POINTS))
    for (a, b), tip in list(zip(points, tips, strict=True))[::step]:
        if b is None or not x.shows(a):
            continue
        zero = not y.shows(b)
        place = f"{1000 * x.share(a):.1f} 990" if zero else _at(a, b, x, y)
        kind = "pt zero" if zero else "pt ghost" if step > 1 else "pt"
        drawn += f'<path class="{kind}" d="M{place}h.01" data-tip="{escape(tip)}"/>'
    return drawn


def area(upper: Sequence[tuple[float, float]], lower: Sequence[tuple[float, float]], x: Scale, y: Scale) -> str:
    """The region between two lines that run from left to right."""
    corners = [_at(a, b, x, y) for a, b in (*upper, *reversed(lower)) if x.shows(a) and y.shows(b)]
    return f'<path class="wedge" d="M{"L".join(corners)}Z"/>' if len(corners) > 2 else ""


def plot(content: str, x: Scale, y: Scale, x_label: str, label: str, x_ticks: Sequence[Tick] | None = None) -> str:
    """The drawn content with its grid and its axes."""
    across, up = x.ticks() if x_ticks is None else x_ticks, y.ticks()
    lines = "".join(f'<path class="grid" d="M{1000 * at:.1f} 0V1000"/>' for at, _ in across)
    lines += "".join(f'<path class="grid" d="M0 {1000 * (1 - at):.1f}H1000"/>' for at, _ in up)
    box = 'viewBox="0 0 1000 1000" preserveAspectRatio="none" role="img"'
    svg = f'<svg {box} aria-label="{escape(label)}">{lines}{content}</svg>'
    return frame(svg, across, up, x_label, shape="wide tall chart")


def legend(names: Sequence[str]) -> str:
    """A button for each series, which the script lets show and hide it."""
    items = "".join(
        f'<button type="button" class="item {style_of(number)}" data-s="{number}" aria-pressed="true">'
        f"<svg viewBox='0 0 28 10' aria-hidden='true'><path class='swatch' d='M1 5H27'/></svg>{escape(name)}</button>"
        for number, name in enumerate(names)
    )
    return f'<div class="items">{items}</div>'


def _at(a: float, b: float, x: Scale, y: Scale) -> str:
    across, up = (min(max(share, -9.0), 9.0) for share in (x.share(a), y.share(b)))
    return f"{1000 * across:.1f} {1000 * (1 - up):.1f}"
