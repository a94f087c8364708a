"""Every case is counted: those that were checked, and those that were excluded, each for its reason.

The cases of a check are all combinations of the places of what is read together. One may be left out only because an
equation of the program, evaluated on that very case, says that it occurs on no input. What cannot be listed, placed or
evaluated is refused. At the end, checked and excluded cases must be the product of the domains.
"""

from __future__ import annotations

from collections import Counter

from certiformer.kernel.refusal import Refused


class Contradiction(Refused):
    """A combination of values that contradicts an equation of the program; a refusal wherever it is not counted."""


class Tally:
    """How many cases there are, and what became of them."""

    def __init__(self, total: int = 0):
        self.total, self.checked = total, 0
        self.excluded: Counter[str] = Counter()

    def check(self, count: int = 1) -> None:
        self.checked += count

    def exclude(self, reason: str, count: int = 1) -> None:
        self.excluded[reason] += count

    def close(self) -> None:
        """Refuse when a case was left out, or counted twice."""
        counted = self.checked + self.excluded.total()
        if counted != self.total:
            raise Refused(
                f"{counted:,} of {self.total:,} cases were checked or excluded for a reason, which must be all"
            )

    def take_in(self, finished: Tally) -> None:
        """Add the cases of a check that is finished."""
        finished.close()
        self.total, self.checked = self.total + finished.total, self.checked + finished.checked
        self.excluded.update(finished.excluded)
