"""The largest length that is proved exact, for each dtype: by doubling, then bisection, with the rule *situations* itself.

A length counts when the program compiled for it in that dtype is accepted by the checker. The search ends when
its time is over; what it says then is a lower bound. It assumes that a shorter length is never harder, which saves time but
is not needed for the answer: each length that it names was proved by itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

DTYPES = ("float64", "float32", "bfloat16")
LARGEST = 2**20


@dataclass(frozen=True)
class Limit:
    """The largest length that was proved (0: none), and the smallest that was refused with the reason, if there is one."""

    dtype: str
    proved: int
    refused: int | None
    reason: str

    @property
    def settled(self) -> bool:
        """Whether the two lengths are next to each other: a longer input cannot be carried."""
        return self.refused is not None and self.refused == self.proved + 1

    def __str__(self) -> str:
        if self.settled:
            return f"{self.dtype} up to {self.proved:,}" if self.proved else f"{self.dtype} not at all"
        return (
            f"{self.dtype} up to {self.proved:,} at least" if self.proved else f"{self.dtype}: no answer in this time"
        )


Attempt = Callable[[int, str], str | None]
"""Try a length in a dtype; None when it is proved, otherwise the reason."""


def largest_length(attempt: Attempt, dtype: str, start: int, seconds: float) -> Limit:
    """The limit for one dtype, looking for at most about `seconds`.

    >>> print(largest_length(lambda n, dtype: None if n < 1000 else "too long", "float32", 16, 10.0))
    float32 up to 999
    """
    began = time.monotonic()
    proved, refused, reason, longest = 0, None, "", 0.0
    length = max(1, start)
    while proved < LARGEST:
        before = time.monotonic()
        why = attempt(length, dtype)
        longest = max(longest, time.monotonic() - before)
        if why is None:
            proved = length
        else:
            refused, reason = length, why
        # The next attempt takes about twice as long when the length doubles; it must still fit.
        left = seconds - (time.monotonic() - began)
        if (refused is not None and refused <= proved + 1) or left < (2.5 if refused is None else 1.0) * longest:
            break
        length = 2 * proved if refused is None else (proved + refused) // 2
    return Limit(dtype, proved, refused, reason)
