"""The continuous piecewise linear function with the fewest pieces inside a tube around a curve, and its ReLU units.

A hidden ReLU unit bends its ridge at one knot. So the fewest units for a profile g on [low, high] within `tolerance` is
the fewest links of a path inside the tube |p - g| <= tolerance, minus one: the first slope is free (it joins the linear
part). Knots and values are both free, which is worth a factor sqrt(2) over interpolation at the knots: a piece of length
h and curvature c leaves c h^2 / 16 instead of c h^2 / 8. Asymptotically

    pieces = (1/4) integral sqrt(|g''|) / sqrt(tolerance):   sin on [0, 2 pi] at 0.005: 4.793 / (4 * 0.0707) = 16.9.

The path is found greedily (Imai and Iri 1986; Suri 1986): the link that reaches furthest right touches the tube on both
sides; beyond its last contact it cuts the tube from one side to the other, so every longer path crosses that *window*,
and every point of the window is reached with one link. The next link is the furthest reaching line through the window.

The tube is polygonal: g is sampled until chords are closer than `MARGIN` of the tolerance, and the path stays within
(1 - 2 `MARGIN`) tolerance of the chords. For that polygon the number of links is the true minimum; nothing here is a
proof of sup |p - g|, which is for the checker.

>>> import numpy as np
>>> path = fewest_pieces(np.sin, 0.0, 2 * np.pi, 0.005)
>>> path.pieces, f"{path.error:.5f}"
(17, '0.00471')
>>> fewest_pieces(np.abs, -1.0, 2.0, 0.005)
PiecewiseLinear(knots=array([-1.,  0.,  2.]), values=array([1., 0., 2.]), error=0.0)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from certiformer.construct.curve_samples import Curve, Samples, sample

# Chords are this close to the curve, relative to the tolerance; the path keeps twice that distance from the tube.
MARGIN = 5e-4
# The tolerance that a given number of pieces needs is found to this relative accuracy.
ACCURACY = 1e-3
LARGEST_PIECES = 50_000


@dataclass(frozen=True)
class PiecewiseLinear:
    """The function with the given values at the knots (both ends included), linear between them.

    `error` is its largest distance to the curve over the samples, an estimate for planning.
    """

    knots: Float[np.ndarray, " knots"]
    values: Float[np.ndarray, " knots"]
    error: float

    @property
    def pieces(self) -> int:
        return len(self.knots) - 1

    def __call__(self, s: Float[np.ndarray, "*batch"]) -> Float[np.ndarray, "*batch"]:
        return np.interp(s, self.knots, self.values)


@dataclass(frozen=True)
class Units:
    """constant + slope s + sum_u coefficients[u] relu(signs[u] (s - knots[u]))."""

    constant: float
    slope: float
    signs: Float[np.ndarray, " units"]
    knots: Float[np.ndarray, " units"]
    coefficients: Float[np.ndarray, " units"]

    def __call__(self, s: Float[np.ndarray, "*batch"]) -> Float[np.ndarray, "*batch"]:
        hidden = np.maximum(self.signs * (np.asarray(s)[..., None] - self.knots), 0.0)
        return self.constant + self.slope * np.asarray(s) + hidden @ self.coefficients


def fewest_pieces(
    curve: Curve, low: float, high: float, tolerance: float, kinks: Sequence[float] = ()
) -> PiecewiseLinear:
    """The path with the fewest pieces in the tube, and among those (about) the smallest error.

    Arguments: `curve` maps float64 arrays to float64 arrays; `kinks` are points where it is known to bend.
    Raises ValueError when the curve is not finite, jumps, or needs more than `LARGEST_PIECES` pieces.
    """
    samples = sample(curve, low, high, MARGIN * tolerance, kinks)
    inner = tolerance * (1 - 2 * MARGIN)
    path = shortest_path(samples, inner)
    exact = through_the_bends(samples, curve, path)
    return exact if exact is not None else smallest_error(samples, path, inner)


def smallest_error(samples: Samples, path: PiecewiseLinear, tolerance: float) -> PiecewiseLinear:
    """A path with as many pieces as `path`, which fits into `tolerance`, and nearly the smallest error.

    Errors fall like 1 / pieces^2, so the search starts just below the share of the tolerance that one piece more needs.
    """
    low, high, best = 0.0, tolerance, path
    middle = tolerance * (1 - 1 / (path.pieces + 1)) ** 2
    while high - low > ACCURACY * high:
        shorter = shortest_path(samples, middle, path.pieces)
        if shorter.pieces <= path.pieces:
            high, best = middle, shorter
        else:
            low = middle
        middle = (low + high) / 2
    return best


def shortest_path(samples: Samples, tolerance: float, limit: int = LARGEST_PIECES) -> PiecewiseLinear:
    """The path with the fewest links in the polygonal tube of the samples; cut off after `limit` + 1 links."""
    points, middle = samples.points, samples.values
    lower, upper = middle - tolerance, middle + tolerance
    lines: list[tuple[float, float]] = []  # slope and value at the left end of the box of every link
    window: _Window | None = None
    reach = 64
    while len(lines) <= limit:
        line, window, reach = _next_link(points, lower, upper, window, reach)
        lines.append(line)
        if window is None:
            break
    else:
        if limit == LARGEST_PIECES:
            raise ValueError(f"the profile needs more than {LARGEST_PIECES:,} pieces")
    knots = [points[0], *(_crossing(a, b) + points[0] for a, b in zip(lines, lines[1:], strict=False)), points[-1]]
    knots = np.maximum.accumulate(np.clip(np.array(knots), points[0], points[-1]))
    slopes, offsets = np.array(lines).T
    values = np.append(offsets + slopes * (knots[:-1] - points[0]), offsets[-1] + slopes[-1] * (knots[-1] - points[0]))
    keep = np.append(np.diff(knots) > 0, True)
    path = PiecewiseLinear(knots[keep], values[keep], 0.0)
    return PiecewiseLinear(path.knots, path.values, samples.distance(path))


def units(path: PiecewiseLinear) -> Units:
    """The units of a path: one per interior knot, facing outward from the flattest piece.

    relu(s - k) bends right of the knot and relu(k - s) left of it. Facing away from one piece, that piece's slope is the
    linear part and no unit is active there; taking the piece with the smallest slope keeps the parts from cancelling.

    >>> import numpy as np
    >>> units(PiecewiseLinear(np.array([-1.0, 0.0, 2.0]), np.array([1.0, 0.0, 2.0]), 0.0))
    Units(constant=0.0, slope=-1.0, signs=array([1.]), knots=array([0.]), coefficients=array([2.]))
    """
    slopes = np.diff(path.values) / np.diff(path.knots)
    base = int(np.argmin(np.abs(slopes)))
    inner = path.knots[1:-1]
    signs = np.where(np.arange(len(inner)) < base, -1.0, 1.0)
    constant = path.values[base] - slopes[base] * path.knots[base]
    return Units(float(constant), float(slopes[base]), signs, inner, np.diff(slopes))


def through_the_bends(samples: Samples, curve: Curve, path: PiecewiseLinear) -> PiecewiseLinear | None:
    """The curve itself, if it is piecewise linear with its bends near the knots of the path; None if it is not.

    The straight parts, extended, meet at the bends. A bend that is a short decimal up to rounding is taken to be one.
    """
    ends = path.knots[:-1] + np.diff(path.knots) * np.array([[0.25], [0.75]])
    values = np.asarray(curve(ends.ravel())).reshape(2, -1)
    slopes = (values[1] - values[0]) / (ends[1] - ends[0])
    offsets = values[0] - slopes * (ends[0] - path.knots[0])
    lines = list(zip(slopes.tolist(), offsets.tolist(), strict=True))
    inner = [path.knots[0] + _crossing(a, b) for a, b in zip(lines, lines[1:], strict=False)]
    knots = np.array([path.knots[0], *(float(f"{k:.12g}") for k in inner), path.knots[-1]])
    if not np.all(np.diff(knots) > 0):
        return None
    exact = PiecewiseLinear(knots, np.asarray(curve(knots), dtype=np.float64), 0.0)
    error = samples.distance(exact)
    # Twelve digits of the knots, times slopes of the size of the values over the length of the interval.
    return PiecewiseLinear(exact.knots, exact.values, error) if error <= 2**12 * samples.rounding else None


@dataclass(frozen=True)
class _Window:
    """Where a link cuts the tube, from its last contact on one side to its exit on the other.

    `rising` says that it leaves through the upper side, so that the next link must bend down. `failed` is the number of
    the first sample that it misses.
    """

    start: float
    start_value: float
    end: float
    end_value: float
    failed: int
    rising: bool


def _next_link(
    points: np.ndarray, lower: np.ndarray, upper: np.ndarray, window: _Window | None, reach: int
) -> tuple[tuple[float, float], _Window | None, int]:
    """The line through the window that reaches furthest, the window that it makes (None at the end), and its reach."""
    while True:
        last = min((0 if window is None else window.failed) + reach, len(points))
        index, s, low, high = _constraints(points, lower, upper, window, last)
        line, stop, rising, contact = _furthest(s, low, high, points[0])
        if stop is None and last < len(points):
            reach *= 2
            continue
        if stop is None:
            return line, None, reach
        failed = int(index[stop])
        break
    at = points[failed - 1 : failed + 1]
    gap = (upper if rising else lower)[failed - 1 : failed + 1] - (line[1] + line[0] * (at - points[0]))
    # The exit: where the line meets the side of the tube between the last sample it hits and the first that it misses.
    share = min(max(gap[0] / (gap[0] - gap[1]), 0.0), 1.0)
    end = float(at[0] + share * (at[1] - at[0]))
    start = float(min(s[contact], end))
    begin = 0 if window is None else window.failed
    new = _Window(start, _on(line, start, points[0]), end, _on(line, end, points[0]), failed, rising)
    return line, new, max(8, (failed - begin) * 5 // 4 + 4)


def _on(line: tuple[float, float], s: float, origin: float) -> float:
    return line[1] + line[0] * (s - origin)


def _constraints(
    points: np.ndarray, lower: np.ndarray, upper: np.ndarray, window: _Window | None, last: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Vertical segments that the next link must meet: sample numbers (-1: none), positions, lower and upper ends.

    Let the old link rise out of the tube; the new one crosses it at some u in the window and bends down. Left of u the
    new line is above the old one, right of u below it. So it is above the start of the window, below its end, and above
    the lower side of the tube at every sample between: necessary right of u, automatic left of u, and together
    sufficient. Beyond the window both sides count. Leaving through the lower side is the mirror image.
    """
    if window is None:
        return np.arange(last), points[:last], lower[:last], upper[:last]
    first = int(np.searchsorted(points, window.start, side="right"))
    inside = slice(first, max(first, window.failed))
    index = np.concatenate([[-1], np.arange(inside.start, inside.stop), [-1], np.arange(window.failed, last)])
    s = np.concatenate([[window.start], points[inside], [window.end], points[window.failed : last]])
    count = inside.stop - inside.start
    free = np.full(count, np.inf)
    if window.rising:
        low = np.concatenate([[window.start_value], lower[inside], [-np.inf], lower[window.failed : last]])
        high = np.concatenate([[np.inf], free, [window.end_value], upper[window.failed : last]])
    else:
        low = np.concatenate([[-np.inf], -free, [window.end_value], lower[window.failed : last]])
        high = np.concatenate([[window.start_value], upper[inside], [np.inf], upper[window.failed : last]])
    return index, s, low, high


def _furthest(
    s: np.ndarray, low: np.ndarray, high: np.ndarray, origin: float
) -> tuple[tuple[float, float], int | None, bool, int]:
    """The line that meets as many of the first segments as possible: (line, first missed, rising, last contact).

    A line of slope a meets all segments iff low_i - a s_i <= high_j - a s_j for every pair, that is, iff a lies between
    the largest (low_j - high_i) / (s_j - s_i) and the smallest (high_j - low_i) / (s_j - s_i) over pairs i < j.
    The line that misses the next segment from above by the least has the smallest slope allowed, and touches
    high_i, then low_j; the other case is its mirror image.
    """
    distance = s[None, :] - s[:, None]
    ordered = distance > 0
    with np.errstate(invalid="ignore", divide="ignore"):
        least = np.where(ordered, (low[None, :] - high[:, None]) / distance, -np.inf)
        most = np.where(ordered, (high[None, :] - low[:, None]) / distance, np.inf)
    least_of, most_of = least.max(0), most.min(0)
    smallest, largest = np.maximum.accumulate(least_of), np.minimum.accumulate(most_of)
    missed = np.flatnonzero(smallest > largest)
    if len(missed) == 0:
        slope = _finite_middle(float(smallest[-1]), float(largest[-1]))
        offset = _finite_middle(float((low - slope * (s - origin)).max()), float((high - slope * (s - origin)).min()))
        return (slope, offset), None, False, len(s) - 1
    stop = int(missed[0])
    rising = bool(most_of[stop] < smallest[stop - 1])
    if rising:
        slope = float(smallest[stop - 1])
        contact = int(np.argmax(least_of[:stop]))
        value = float(low[contact])
    else:
        slope = float(largest[stop - 1])
        contact = int(np.argmin(most_of[:stop]))
        value = float(high[contact])
    return (slope, value - slope * float(s[contact] - origin)), stop, rising, contact


def _finite_middle(a: float, b: float) -> float:
    """The middle of an interval, or its finite end."""
    if np.isfinite(a) and np.isfinite(b):
        return (a + b) / 2
    return a if np.isfinite(a) else b if np.isfinite(b) else 0.0


def _crossing(a: tuple[float, float], b: tuple[float, float]) -> float:
    """Where two lines meet, measured from the origin of their offsets."""
    return (b[1] - a[1]) / (a[0] - b[0]) if a[0] != b[0] else np.inf
