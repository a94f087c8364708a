"""The frame around every picture: labels in HTML around a plot that stretches.

Labels are positioned in per cent beside the plot instead of being drawn inside it, so they keep their size when the page
shrinks to the width of a telephone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any

from certiformer.report.numbers import short

Tick = tuple[float, str]  # position between 0 and 1, text

CROWDED = 0.13  # inner labels nearer than this to an end would touch its label


def axis_ticks(axis: dict[str, Any]) -> list[Tick]:
    """The two ends as the user wrote them, and round numbers between.

    >>> axis_ticks({"label": "x1", "low": 0.0, "high": 6.2832, "low_text": "0", "high_text": "2*pi"})
    [(0.0, '0'), (0.31830914183855363, '2'), (0.6366182836771073, '4'), (1.0, '2*pi')]
    """
    low, high = axis["low"], axis["high"]
    inner = [((value - low) / (high - low), short(value)) for value in round_numbers(low, high, 4)]
    kept = [tick for tick in inner if CROWDED < tick[0] < 1 - CROWDED]
    return [(0.0, _clip(axis["low_text"])), *kept, (1.0, _clip(axis["high_text"]))]


def value_ticks(low: float, high: float, wanted: int = 4) -> list[Tick]:
    """Round numbers on a scale from `low` to `high`."""
    return [((value - low) / (high - low), short(value)) for value in round_numbers(low, high, wanted)]


def round_numbers(low: float, high: float, wanted: int) -> list[float]:
    """About `wanted` multiples of 1, 2 or 5 times a power of ten between `low` and `high`.

    >>> round_numbers(-0.11, 0.11, 4), round_numbers(3.0, 3.0, 4)
    ([-0.1, -0.05, 0.0, 0.05, 0.1], [])
    """
    span = high - low
    if not (math.isfinite(span) and span > 0):
        return []
    power = 10.0 ** math.floor(math.log10(span / wanted))
    step = next(power * factor for factor in (1, 2, 5, 10) if span / (power * factor) <= wanted + 1)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [number * step for number in range(first, last + 1)]


def frame(plot: str, x: Sequence[Tick], y: Sequence[Tick], x_label: str, *, shape: str, height: str = "") -> str:
    """A plot (an `<svg>` or `<img>` that fills its box) with labels left and below; `shape` is a CSS class."""
    left = "".join(f'<span style="bottom:{100 * at:.2f}%">{escape(text)}</span>' for at, text in y)
    below = "".join(f'<span class="{_place(at)}" style="left:{100 * at:.2f}%">{escape(text)}</span>' for at, text in x)
    return (
        f'<div class="frame {shape}"{height}><div class="left">{left}</div><div class="plot">{plot}</div>'
        f'<div class="below">{below}</div><div class="name">{escape(x_label)}</div></div>'
    )


def figure(title: str, caption: str, content: str) -> str:
    """A titled picture with its caption."""
    head = f"<h3>{escape(title)}</h3>" if title else ""
    foot = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    return f"<figure>{head}{content}{foot}</figure>"


def _place(at: float) -> str:
    return "first" if at <= 0 else "last" if at >= 1 else "inner"


def _clip(text: str) -> str:
    return text if len(text) <= 12 else f"{text[:11]}…"
