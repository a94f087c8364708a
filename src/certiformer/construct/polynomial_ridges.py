"""A smooth target as an affine function plus polynomials along a few directions, chosen to need few ReLU units.

Every polynomial of total degree k is a sum of polynomials along enough directions, in very many ways; x1*x2 is
((x1 + x2)^2 - (x1 - x2)^2) / 4, and infinitely many other things. What a representation costs is known: with
c_i = (1/4) integral sqrt(|g_i''|) the profiles need (sum c_i^(2/3))^(3/2) / sqrt(tau) pieces for the tolerance tau
(`construct.share_tolerance`). So among all representations over a pool of directions we look for

    minimise  mean square residual + strength * sum_i q_i^(1/6),    q_i = sum_j j^4 w_ij^2,    g_i = sum_j w_ij T_j.

q stands for c: with the weight (1 - t^2)^(3/2), Hoelder's inequality gives
integral sqrt(|g''|) <= pi^(3/4) (integral g''^2 (1 - t^2)^(3/2))^(1/4), and the last integral is about (pi/2) q since
T_j'' is about j^2 / (1 - t^2) times a cosine of size 1; so c^(2/3) is about q^(1/6). The sum is concave in the profiles:
its minima have few directions. It is minimised by iteratively reweighted least squares (group FOCUSS: Gorodnitsky and
Rao 1997; Cotter et al. 2005): q^(1/6) is replaced by weight * q with weight = (q + delta)^(-5/6), and delta shrinks.

Least squares is turned toward the sup norm by Lawson's reweighting of the sample points (Lawson 1961) in the same loop.
Everything happens in the polynomials of total degree k, whose dimension (C(k + D, D), at most a few hundred) is far below
the number of sample points; the affine part is projected out.

The strength is not chosen beforehand: for every strength of an increasing sequence the residual r is measured, and the
fit with the smallest predicted count, size / sqrt(epsilon - r - room), wins. That also splits epsilon between |P - f|
and the pieces. Residuals are sampled here; that |P - f| is really small is for the checker.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from math import comb, inf, sqrt

import numpy as np
from jaxtyping import Float, Int

from certiformer.construct.ridge_frame import (
    Frame,
    polynomials,
    predicted_size,
    primitive_directions,
    profile_values,
)

Function = Callable[[Float[np.ndarray, "points axes"]], Float[np.ndarray, " points"]]

DEGREES = (2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 18, 20, 24, 28, 32)
# Polynomials of one degree: at most, and at most once a lower degree has a fit.
LARGEST_SPACE, LARGE_SPACE = 600, 250
# Largest entries of the directions in the pool by the number of variables: 40, 49 and 40 directions.
POOL = {1: 1, 2: 5, 3: 2, 4: 1}
LARGER_POOL = {4: 2}  # 272 directions, when the first pool is not enough
GRID = {1: 129, 2: 37, 3: 15, 4: 7}  # Chebyshev points an axis, corners included
RANDOM_POINTS, CHECK_POINTS = 1_000, 10_000
STRENGTHS = 10.0 ** np.arange(-5.5, 0.0, 0.5)
PATIENCE = 3  # strengths in a row that bring no improvement
SPARSE_STEPS, LAWSON_STEPS = 14, 6
TAIL = 3.0  # a degree is tried when least squares without any economy comes within this many epsilon
AFFINE = 0.3  # of epsilon: an affine function that is so close needs no profile
EXACT = 1e-12  # a residual that is rounding, relative to the range
NEGLIGIBLE = 1e-10  # of the largest q: directions below are dropped on the way


@dataclass(frozen=True)
class RidgeFit:
    """affine[0] + affine[1:] . z + sum_i sum_j coefficients[i, j] T_{j+2}(directions_i . z / |directions_i|_1)."""

    frame: Frame
    affine: Float[np.ndarray, " affine"]
    directions: Int[np.ndarray, "directions axes"]
    coefficients: Float[np.ndarray, "directions powers"]
    residual: float
    predicted: float  # pieces, at the epsilon of the fit

    @property
    def degree(self) -> int:
        return self.coefficients.shape[1] + 1

    def __call__(self, x: Float[np.ndarray, "points axes"]) -> Float[np.ndarray, " points"]:
        z = self.frame.scaled(x)
        bent = profile_values(z, self.directions, self.degree).reshape(len(z), self.coefficients.size)
        bent = bent @ self.coefficients.ravel()
        return self.affine[0] + z @ self.affine[1:] + bent


def fit_ridges(
    function: Function, low: Float[np.ndarray, " axes"], high: Float[np.ndarray, " axes"], epsilon: float
) -> RidgeFit | None:
    """The cheapest fit found whose sampled residual is below epsilon; None when there is none.

    >>> found = fit_ridges(lambda x: x[:, 0] * x[:, 1], np.zeros(2), np.ones(2), 0.01)
    >>> found.directions.tolist(), found.degree, found.residual < 1e-14
    ([[1, -1], [1, 1]], 2, True)
    """
    low, high = np.asarray(low, float), np.asarray(high, float)
    points = _points(low, high)
    data = _Data(Frame.of(low, high), points, function(points), _check_points(low, high), function)
    if not np.all(np.isfinite(data.values)):
        return None
    plain = data.judged(_affine_fit(data), epsilon)
    if plain.residual <= AFFINE * epsilon:
        return plain
    dimension, best = len(low), None
    for size in (POOL.get(dimension), LARGER_POOL.get(dimension)):
        if size is None or best is not None:
            continue
        directions = primitive_directions(dimension, size)
        best = _best_degree(data, directions, epsilon)
    return best


def _best_degree(data: _Data, directions: np.ndarray, epsilon: float) -> RidgeFit | None:
    """The best fit over all degrees, from the first that has one; a better fit leaves more of epsilon to the pieces."""
    best, worse, dimension = None, 0, directions.shape[1]
    for degree in DEGREES:
        if comb(degree + dimension, dimension) > (LARGEST_SPACE if best is None else LARGE_SPACE) or worse >= 2:
            break
        found = _of_degree(data, directions, degree, epsilon)
        if best is not None and (found is None or found.predicted > 0.95 * best.predicted - 1):
            worse += 1
        elif found is not None:
            best, worse = found, 0
            if best.residual <= EXACT * float(np.ptp(data.values)):
                break  # a polynomial of this degree: a higher one has nothing to add
    return best


@dataclass(frozen=True)
class _Data:
    """The target at the points of the fit, and further points to judge it by."""

    frame: Frame
    points: np.ndarray
    values: np.ndarray
    checks: np.ndarray
    function: Function

    def judged(self, fit: RidgeFit, epsilon: float) -> RidgeFit:
        """The fit with its residual over all points and the count that it predicts."""
        gaps = [np.abs(fit(self.points) - self.values), np.abs(fit(self.checks) - self.function(self.checks))]
        residual = float(max(gap.max() for gap in gaps))
        size = predicted_size(fit.coefficients) if len(fit.directions) else 0.0
        left = epsilon - spent(residual, epsilon)
        predicted = size / sqrt(left) if left > 0 else inf
        if residual <= EXACT * float(np.ptp(self.values)):
            predicted *= 0.98  # what is proved about an exact representation is proved at once
        return RidgeFit(fit.frame, fit.affine, fit.directions, fit.coefficients, residual, predicted)


def spent(residual: float, epsilon: float) -> float:
    """What a fit takes of epsilon: its sampled residual and some room, without which a proof of |P - f| is expensive."""
    if residual <= 1e-6 * epsilon:  # an exact representation: what is left is rounding
        return 2 * residual
    return 1.3 * residual + 0.07 * epsilon


def _affine_fit(data: _Data) -> RidgeFit:
    count, dimension = data.points.shape
    nothing = _Space(np.zeros((count, 1)), np.zeros((1, 0, 1)), np.zeros((0, dimension), dtype=np.int64))
    return _completed(data, nothing, np.arange(0), np.zeros(0), np.full(count, 1.0 / count))[0]


def _points(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Chebyshev points with the corners, and random points half of which lie on faces of the box."""
    line = -np.cos(np.pi * np.arange(GRID[len(low)]) / (GRID[len(low)] - 1))
    grid = np.array(list(product(line, repeat=len(low))))
    z = np.concatenate([grid, _random(RANDOM_POINTS, len(low), 0)])
    return (low + high) / 2 + z * (high - low) / 2


def _check_points(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    return (low + high) / 2 + _random(CHECK_POINTS, len(low), 1) * (high - low) / 2


def _random(count: int, dimension: int, seed: int) -> np.ndarray:
    """Random points of [-1, 1]^D, denser near the boundary, half of them with some coordinates on it."""
    generator = np.random.default_rng(seed)
    z = np.cos(np.pi * generator.random((count, dimension)))
    ends = generator.random((count, dimension)) < 0.3
    ends[: count // 2] = False
    return np.where(ends, np.sign(z), z)


@dataclass(frozen=True)
class _Space:
    """The polynomials of one degree: an orthonormal basis at the points (affine ones first), all profiles in it."""

    basis: Float[np.ndarray, "points polynomials"]
    profiles: Float[np.ndarray, "polynomials directions powers"]
    directions: Int[np.ndarray, "directions axes"]

    def weighted(
        self, active: np.ndarray, values: np.ndarray, weights: np.ndarray
    ) -> tuple[Float[np.ndarray, "polynomials columns"], Float[np.ndarray, " polynomials"]]:
        """Profiles and target in a basis that is orthonormal for the weighted points, modulo affine functions.

        With L L^T the weighted Gram matrix of the basis B: coordinates L^T M of B M, and L^-1 B^T weights f of the target.
        L is triangular and the affine functions come first, so the other rows are what is orthogonal to them.
        """
        size, affine = self.basis.shape[1], self.directions.shape[1] + 1
        gram = (self.basis * weights[:, None]).T @ self.basis
        triangle = np.linalg.cholesky(gram + 1e-14 * np.trace(gram) / size * np.eye(size))
        wanted = np.linalg.solve(triangle, self.basis.T @ (weights * values))
        columns = self.profiles[affine:, active].reshape(size - affine, -1)
        return triangle[affine:, affine:].T @ columns, wanted[affine:]


def _of_degree(data: _Data, directions: np.ndarray, degree: int, epsilon: float) -> RidgeFit | None:
    """The best fit of one degree over all strengths."""
    z = data.frame.scaled(data.points)
    basis = np.linalg.qr(polynomials(z, degree))[0]
    if not np.abs(data.values - basis @ (basis.T @ data.values)).max() <= TAIL * epsilon:
        return None
    columns = profile_values(z, directions, degree)
    profiles = (basis.T @ columns.reshape(len(z), -1)).reshape(-1, *columns.shape[1:])
    space = _Space(basis, profiles, directions)
    best, worse = None, 0
    # The weakest first: if even that has no fit, no stronger economy has one.
    for strength in STRENGTHS:
        judged = [data.judged(fit, epsilon) for fit in _sparse(data, space, strength * epsilon**2)]
        found = min(judged, key=lambda fit: fit.predicted, default=None)
        if found is not None and found.predicted < (inf if best is None else best.predicted * (1 - 1e-6)):
            best, worse = found, 0
        elif best is None:
            return None
        else:
            worse += 1
        if worse >= PATIENCE:
            break
    return best


def _sparse(data: _Data, space: _Space, penalty: float) -> list[RidgeFit]:
    """One minimisation of the module docstring: the economical fit, and plain least squares over its directions."""
    count = len(data.values)
    scale = float(np.ptp(data.values)) or 1.0
    values, penalty = data.values / scale, penalty / scale**2
    powers = np.arange(2, space.profiles.shape[2] + 2.0) ** 4
    active, weights = np.arange(len(space.directions)), np.full(count, 1.0 / count)
    rows, wanted = space.weighted(active, values, weights)
    q, delta, w = np.ones(len(active)), 1.0, np.zeros(rows.shape[1])
    for step in range(SPARSE_STEPS + LAWSON_STEPS):
        if step >= SPARSE_STEPS:
            gap = np.abs(_completed(data, space, active, scale * w, weights)[1])
            weights = weights * (gap + 0.05 * gap.max())
            weights /= weights.sum()
            rows, wanted = space.weighted(active, values, weights)
        free = np.repeat((q + delta) ** (5 / 6), len(powers)) / np.tile(powers, len(active))
        system = (rows * free) @ rows.T
        system[np.diag_indices(len(system))] += penalty + 1e-15 * np.trace(system) / len(system)
        w = free * (rows.T @ np.linalg.solve(system, wanted))
        q = (w.reshape(len(active), -1) ** 2 * powers).sum(1)
        delta = 0.1 * q.max() if step == 0 else max(0.3 * delta, 1e-14 * q.max())
        keep = q > NEGLIGIBLE * q.max()
        if not np.any(keep):
            return []
        if not np.all(keep):
            active, q = active[keep], q[keep]
            rows = rows.reshape(len(rows), len(keep), -1)[:, keep].reshape(len(rows), -1)
            w = w.reshape(len(keep), -1)[keep].ravel()
    # What economy and reweighting have left out, added in the same spirit: exact where the target is a polynomial along
    # these directions.
    rows, wanted = space.weighted(active, values, np.full(count, 1.0 / count))
    root = np.sqrt(np.repeat((q + delta) ** (5 / 6), len(powers)) / np.tile(powers, len(active)))
    plain = w + root * np.linalg.lstsq(rows * root, wanted - rows @ w, rcond=1e-10)[0]
    return [_completed(data, space, active, scale * solution, weights)[0] for solution in (w, plain)]


def _completed(
    data: _Data, space: _Space, active: np.ndarray, w: np.ndarray, weights: np.ndarray
) -> tuple[RidgeFit, np.ndarray]:
    """The fit with the affine part that suits the profiles best, and its residuals."""
    z, powers = data.frame.scaled(data.points), space.profiles.shape[2]
    rest = data.values - space.basis @ (space.profiles[:, active].reshape(space.basis.shape[1], w.size) @ w)
    design = np.column_stack([np.ones(len(z)), z])
    root = np.sqrt(weights)
    affine = np.linalg.lstsq(design * root[:, None], rest * root, rcond=None)[0]
    gaps = rest - design @ affine
    middle = (gaps.max() + gaps.min()) / 2
    affine[0] += middle
    coefficients = w.reshape(len(active), powers)
    fit = RidgeFit(data.frame, affine, space.directions[active], coefficients, float(np.abs(gaps - middle).max()), inf)
    return fit, gaps
