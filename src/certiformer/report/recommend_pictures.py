"""The pictures of a recommender as SVG: hit rates beside what is proved of them, and the stream over time."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from certiformer.report.frame import round_numbers
from certiformer.report.numbers import short

WIDTH, LEFT, RIGHT, ROW = 640, 190, 40, 30
MEASURED, PROVED, LOWER = "#b9c7cf", "#1b6e8a", "#b3412c"
STYLE = (
    "<style>text{font:12px sans-serif;fill:#1d2126}.title{font-weight:bold}.end{text-anchor:end}"
    ".middle{text-anchor:middle}.grid{stroke:#e4e2dc}polyline{fill:none;stroke-width:1.8}</style>"
)

Bar = tuple[str, float, bool]  # name, value, whether it is proved


def hit_rates(title: str, bars: Sequence[Bar]) -> str:
    """Horizontal bars: grey for what was measured, blue for what is proved.

    >>> hit_rates("HR@10", [("popularity", 0.15, False), ("proved", 0.19, True)]).count("<rect")
    3
    """
    largest = max([value for _, value, _ in bars] + [1e-6]) * 1.12
    height = 54 + ROW * len(bars)
    scale = (WIDTH - LEFT - RIGHT) / largest
    parts = [f'<text x="12" y="20" class="title">{escape(title)}</text>']
    for place, (name, value, proved) in enumerate(bars):
        top = 36 + ROW * place
        colour = PROVED if proved else MEASURED
        parts.append(f'<text x="{LEFT - 8}" y="{top + 14}" class="end">{escape(name)}</text>')
        parts.append(f'<rect x="{LEFT}" y="{top}" width="{max(value * scale, 1):.1f}" height="20" fill="{colour}"/>')
        parts.append(f'<text x="{LEFT + value * scale + 6:.1f}" y="{top + 14}">{value:.3f}</text>')
    parts.append(f'<text x="{LEFT}" y="{height - 8}">grey: measured; blue: proved lower bounds</text>')
    return _svg(title, height, parts)


def stream_picture(title: str, points: Sequence[Sequence[float]]) -> str:
    """The running hit rate over the events, and the lower bound that holds at every moment.

    >>> stream_picture("stream", [[1, 0.0, 0.0], [10, 0.3, 0.1]]).count("<polyline")
    2
    """
    height, bottom, top = 320, 276, 36
    last = max(points[-1][0], 1)
    largest = max(max(point[1] for point in points[len(points) // 20 :]), 1e-6) * 1.15

    def x(event: float) -> float:
        return 64 + (WIDTH - 64 - RIGHT) * event / last

    def y(value: float) -> float:
        return bottom - (bottom - top) * min(value / largest, 1.0)

    parts = [f'<text x="12" y="20" class="title">{escape(title)}</text>']
    for value in round_numbers(0.0, largest, 4):
        parts.append(f'<path class="grid" d="M64 {y(value):.1f}H{WIDTH - RIGHT}"/>')
        parts.append(f'<text x="58" y="{y(value) + 4:.1f}" class="end">{short(value)}</text>')
    for event in round_numbers(0.0, float(last), 4):
        parts.append(f'<text x="{x(event):.1f}" y="{bottom + 18}" class="middle">{event:,.0f}</text>')
    for column, colour in ((1, "#5d666f"), (2, LOWER)):
        corners = " ".join(f"{x(point[0]):.1f},{y(point[column]):.1f}" for point in points)
        parts.append(f'<polyline points="{corners}" stroke="{colour}"/>')
    parts.append(
        f'<text x="64" y="{height - 8}">events from T0 on; grey: hits so far, measured; red: the lower bound</text>'
    )
    return _svg(title, height, parts)


def _svg(title: str, height: int, parts: Sequence[str]) -> str:
    page = f'{STYLE}<rect width="{WIDTH}" height="{height}" fill="white"/>{"".join(parts)}'
    box = f'viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {box}>{page}</svg>\n'
