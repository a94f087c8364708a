"""Sharing one tolerance among several profiles so that their piecewise linear versions have the fewest pieces together.

A profile needs about c_i / sqrt(tau_i) pieces, c_i = (1/4) integral sqrt(|g_i''|). Under sum tau_i = tau the total is
least for tau_i proportional to c_i^(2/3) and then equals (sum c_i^(2/3))^(3/2) / sqrt(tau). Pieces are whole numbers, so
what rounding up leaves over is given back: pieces are taken away singly where the rest of the tolerance still allows it.
That is worth two units for sin(x1) + sin(x2) at 1e-3: an odd count splits sin at its inflection better than an even one,
so 55 + 53 pieces (106 units) do what 54 + 54 cannot.

>>> sine = Profile(np.sin, 0.0, 2 * np.pi)
>>> [path.pieces for path in shared([sine, sine], 0.01)], sorted(path.pieces for path in shared([sine, sine], 0.001))
([17, 17], [53, 55])
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np

from certiformer.construct.curve_samples import Curve, Samples, sample
from certiformer.construct.piecewise_linear import (
    ACCURACY,
    LARGEST_PIECES,
    MARGIN,
    PiecewiseLinear,
    shortest_path,
    through_the_bends,
)

# Single pieces are moved while there are at most this many together: beyond, one piece is half a percent.
SINGLE_PIECES = 200


class Profile:
    """A curve on an interval that remembers its samples and the paths already found."""

    def __init__(self, curve: Curve, low: float, high: float, kinks: Sequence[float] = ()):
        self.curve, self.low, self.high, self.kinks = curve, low, high, kinks
        self._samples: tuple[float, Samples] | None = None
        self._paths: dict[int, PiecewiseLinear] = {}

    def samples(self, tolerance: float) -> Samples:
        """Samples good for this tolerance and a little below."""
        if self._samples is None or not self._samples[0] <= tolerance <= 16 * self._samples[0]:
            fine = 0.7 * tolerance
            self._samples = fine, sample(self.curve, self.low, self.high, MARGIN * fine, self.kinks)
        return self._samples[1]

    def path(self, tolerance: float, limit: int = LARGEST_PIECES) -> PiecewiseLinear:
        """The path with the fewest pieces within the tolerance; cut off beyond `limit` pieces."""
        return shortest_path(self.samples(tolerance), tolerance * (1 - 2 * MARGIN), limit)

    def exact(self, path: PiecewiseLinear) -> PiecewiseLinear | None:
        """The curve itself, if it is piecewise linear with its bends near the knots of the path."""
        samples = None if self._samples is None else self._samples[1]
        return None if samples is None or path.pieces > SINGLE_PIECES else through_the_bends(samples, self.curve, path)

    def best(self, pieces: int, near: float) -> PiecewiseLinear:
        """The path with at most so many pieces and nearly the smallest error, which is expected `near` a tolerance."""
        if pieces not in self._paths:
            high = near
            while (path := self.path(high, pieces)).pieces > pieces:
                high *= 1.25  # ends: half the range of the values allows a single piece
            low = high / 1.25
            # A curve that so many pieces meet exactly: chords nearer than the rounding of its values would look like jumps.
            least = self.samples(high).rounding / MARGIN
            while low > least and (shorter := self.path(low, pieces)).pieces <= pieces:
                path, high, low = shorter, low, low / 1.25
            while high - low > ACCURACY * high:
                middle = (low + high) / 2
                shorter = self.path(middle, pieces)
                path, low, high = (path, middle, high) if shorter.pieces > pieces else (shorter, low, middle)
            self._paths[pieces] = path
        return self._paths[pieces]


def shared(profiles: Sequence[Profile], tolerance: float) -> list[PiecewiseLinear]:
    """A path for every profile, as few pieces as possible, with errors that sum to at most the tolerance.

    Raises ValueError as `shortest_path` and `sample` do.
    """
    count = len(profiles)
    taus = np.full(count, tolerance / max(count, 1))
    paths = [profile.path(tau) for profile, tau in zip(profiles, taus, strict=True)]
    exact = [profile.exact(path) for profile, path in zip(profiles, paths, strict=True)]
    bent = [i for i in range(count) if exact[i] is None]
    result = [path if same is None else same for path, same in zip(paths, exact, strict=True)]
    room = tolerance - sum(result[i].error for i in range(count) if i not in bent)
    for _ in range(2):
        # Half a piece less than the count, on average, would do.
        size = np.array([(result[i].pieces - 0.5) * sqrt(taus[i]) for i in bent])
        for i, share in zip(bent, size ** (2 / 3) / (size ** (2 / 3)).sum(), strict=True):
            taus[i] = room * share
            result[i] = profiles[i].path(taus[i])
    return _without_spare_pieces(profiles, bent, taus, result, room)


def _without_spare_pieces(
    profiles: Sequence[Profile], bent: list[int], taus: np.ndarray, result: list[PiecewiseLinear], room: float
) -> list[PiecewiseLinear]:
    """Fewer pieces where the tolerance that rounding up has left over allows it, one or two at a time."""
    if sum(result[i].pieces for i in bent) > SINGLE_PIECES:
        return result
    for i in bent:
        result[i] = profiles[i].best(result[i].pieces, taus[i])
    movable = [i for i in bent if result[i].pieces > 1]
    failed: set[tuple[int, int]] = set()
    while True:
        slack = room - sum(result[i].error for i in bent)
        moves = []
        for i in movable:
            for fewer in (1, 2):
                left = result[i].pieces - fewer
                if left >= 1 and (i, left) not in failed:
                    # Expected cost of the move per piece saved. An odd or even count may be 10 % better than expected.
                    cost = result[i].error * ((result[i].pieces / left) ** 2 - 1)
                    if cost - 0.1 * result[i].error <= slack:
                        moves.append((cost / fewer, i, left))
        if not moves:
            return result
        _, i, left = min(moves)
        path = profiles[i].best(left, result[i].error * (result[i].pieces / left) ** 2)
        if path.error - result[i].error <= slack:
            result[i] = path
        else:
            failed.add((i, left))
