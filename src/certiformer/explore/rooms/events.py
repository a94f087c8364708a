"""What rooms share about the events that they emit."""

from __future__ import annotations

import math
import time
from typing import Any, Protocol

import numpy as np


class Emit(Protocol):
    """Sends an event to the page."""

    def __call__(self, event: str, **facts: Any) -> None: ...


class Throttle:
    """Says yes at most so often, so that a page is never sent more than it can draw.

    >>> throttle = Throttle(3600)
    >>> throttle.due(), throttle.due()
    (True, False)
    """

    def __init__(self, seconds: float):
        self.seconds, self.next = seconds, 0.0

    def due(self) -> bool:
        now = time.monotonic()
        if now < self.next:
            return False
        self.next = now + self.seconds
        return True


def numbers(values: Any, digits: int = 6) -> list[Any]:
    """Numbers as a page draws them: nested lists, shortened, None for what is not finite.

    >>> numbers([1 / 3, float("inf")])
    [0.333333, None]
    """
    array = np.asarray(values, dtype=float)
    if array.ndim > 1:
        return [numbers(row, digits) for row in array]
    return [float(f"{value:.{digits}g}") if math.isfinite(value) else None for value in array.tolist()]


def shortened(picture: dict[str, Any]) -> dict[str, Any]:
    """A picture of a report whose numbers are no longer than a screen can tell apart."""
    lists = {"values": 4, "points": 6, "target": 6, "model": 6, "error": 4}
    return {
        name: numbers([math.nan if x is None else x for x in value], lists[name])
        if name in lists and value and not isinstance(value[0], list)
        else [numbers([math.nan if x is None else x for x in row], lists[name]) for row in value]
        if name in lists
        else value
        for name, value in picture.items()
    }


def finite(value: float) -> float | None:
    """A number for JSON."""
    return value if math.isfinite(value) else None
