"""What rooms share about the events that they emit."""

from __future__ import annotations

import math
import time
from typing import Any, Protocol


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


def finite(value: float) -> float | None:
    """A number for JSON."""
    return value if math.isfinite(value) else None
