"""Float64 boxes around cells, outward.

The real edge of a cell is a + (b - a) k / 2^m. In float64 it is computed with a handful of operations on numbers of size
at most S = |a| + |b|, each off by at most 2^-53 of its size, so the error is below 16 * 2^-53 S; the radius is padded by
2^-47 S, four times as much.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from certiformer.kernel.balls import BallDomain

PAD = 2.0**-47


class FloatDomain:
    """The box of a claim in float64.

    >>> from certiformer.kernel.balls import BallDomain
    >>> from certiformer.target import parse_domain
    >>> domain = FloatDomain(BallDomain(parse_domain("[0, 2*pi]")))
    >>> centre, radius = domain.boxes(np.array([[1]]), np.array([[1]]))
    >>> float(centre[0, 0]), bool(radius[0, 0] > np.pi / 2)
    (4.71238898038469, True)
    """

    def __init__(self, domain: BallDomain):
        ends = domain.ends
        self.low = np.array([float(low.mid()) for low, _ in ends])
        self.high = np.array([float(high.mid()) for _, high in ends])
        self.size = np.abs(self.low) + np.abs(self.high)
        # The largest float64 box inside the domain: points of it are exact witnesses.
        inside = [(_inward(low, up=True), _inward(high, up=False)) for low, high in ends]
        self.inner_low, self.inner_high = np.array(inside).T

    @property
    def dimension(self) -> int:
        return len(self.low)

    def boxes(
        self, depth: Int[np.ndarray, "n D"], index: Int[np.ndarray, "n D"]
    ) -> tuple[Float[np.ndarray, "n D"], Float[np.ndarray, "n D"]]:
        """Centres and radii of boxes that contain the given cells."""
        scale = np.ldexp(1.0, -depth)
        width = self.high - self.low
        centre = self.low + width * ((2 * index + 1) * (scale / 2))
        return centre, width * scale / 2 + PAD * self.size


def _inward(end, up: bool) -> float:
    """The nearest double on the inner side of a real end."""
    value = float(end.mid())
    while not (end <= value if up else end >= value):
        value = float(np.nextafter(value, np.inf if up else -np.inf))
    return value
