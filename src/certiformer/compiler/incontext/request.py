"""What a user may ask of a learner: every flag of `compile incontext`, None where it was not given."""

from __future__ import annotations

import math
from dataclasses import dataclass

from certiformer.errors import BadInput

ROUNDING = 1e-12  # of the largest eigenvalue: d features cost a few d 2^-53, and there are at most 1000


@dataclass(frozen=True, kw_only=True)
class Request:
    """A learner by its word and the flags; each learner says which of them it knows."""

    learner: str
    features: int
    rows: int = 100
    layers: int | None = None
    step: float | None = None
    schedule: str | None = None
    spectrum: tuple[float, float] | None = None
    strength: str | None = None
    attention: str | None = None
    looped: bool = False
    bound: float = 1.0
    label_bound: float = 1.0
    error: float | None = None
    margin: float | None = None
    validation: int | None = None
    tolerance: float | None = None
    dtype: str = "float64"

    def refuse(self, *names: str) -> None:
        """One sentence for a flag that says nothing about this learner."""
        for name in names:
            if getattr(self, name) not in (None, False):
                raise BadInput(f"--{name.replace('_', '-')} is not for the learner {self.learner}")

    def eigenvalues(self) -> tuple[float, float] | None:
        """--spectrum, with 0 for a LOW that differs from it by no more than a computation of eigenvalues may err.

        The matrix is never negative, so a LOW of -1e-17 is a user's 0, and one of 1e-17 may be.

        >>> Request(learner="relu", features=2, spectrum=(-1.75e-17, 1.2)).eigenvalues()
        (0.0, 1.2)
        """
        if self.spectrum is None:
            return None
        low, high = map(float, self.spectrum)
        return (0.0 if abs(low) <= ROUNDING * high else low), high

    def strengths(self, default: str | None = None) -> tuple[float, ...]:
        """The numbers of --strength, with commas between them."""
        text = self.strength if self.strength is not None else default
        if text is None:
            raise BadInput(f"the learner {self.learner} needs --strength, for instance --strength 0.1")
        return tuple(_positive(part, "--strength") for part in text.split(","))


def _positive(text: str, flag: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise BadInput(f"{flag} is a positive number, not {text.strip()[:40]!r}") from None
    if not (math.isfinite(value) and value > 0):
        raise BadInput(f"{flag} is a positive number, not {text.strip()[:40]!r}")
    return value
