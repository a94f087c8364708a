"""The proper orthogonal decomposition (POD) of a kernel: its singular values, how fast they fall, and C_1^(alpha).

rho(u, v) = sum_k sigma_k phi_k(u) psi_k(v) with orthonormal phi_k, psi_k in L2 of the uniform measure of [0, 1]. With nodes
u_i and weights w_i the sigma_k are the singular values of sqrt(w_i) rho(u_i, u_j) sqrt(w_j). What that misses is told by
doubling the nodes: `error` is the largest change of a value shown, and a value takes part in the regression only if
it changed by less than 1 %. A value near rounding is not seen at all.

    C_1^(alpha) = max_k k^alpha sigma_k over the values that are resolved (Jiang and Li 2024, eq. 11, for one given rho:
                  the infimum over all representations of a target is not computable).

`centred` subtracts the mean over v first: rho(u, v) + a(u) gives the same softmax for every a, so the centred values are
the gauge-free ones, and the best approximation of rho by a(u) + rank m truncates them.

alpha is a slope of logarithms, whatever the kernel: `note` says so when the values fall like an exponential instead, and
alpha is None, with the reason, when there are too few of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from certiformer.errors import BadInput
from certiformer.rates.kernels import Kernel, Rule, on_nodes, quadrature
from certiformer.spectrum import Decay, decay_exponent, fit_line, singular_values

RESOLVED = 0.01  # relative change under doubling up to which a value takes part in a regression
ROUNDING = 1e-13  # of the largest value
STRAIGHT = 0.98  # R^2 below which logarithms are not called straight
LARGEST = 2048  # nodes


@dataclass(frozen=True, eq=False)
class Pod:
    """Singular values, largest first, of which the first `resolved` are known; `error`: the largest change among these
    under doubling (None where nothing was doubled). `c1` belongs to `exponent`, which is alpha unless one was given."""

    values: Float[np.ndarray, " values"]
    resolved: int
    error: float | None
    measured: str
    centred: bool
    decay: Decay | None = None
    exponent: float | None = None
    c1: float | None = None
    note: str = ""


def pod_of_kernel(
    kernel: Kernel,
    nodes: int = 128,
    rule: Rule = "gauss",
    centred: bool = False,
    window: tuple[int, int] | None = None,
    alpha: float | None = None,
) -> Pod:
    """The POD of a kernel on [0, 1]^2: values with 2 `nodes` nodes, compared with those of `nodes`.

    >>> from certiformer.rates.kernels import sine_mixing
    >>> found = pod_of_kernel(sine_mixing, nodes=32, rule="midpoint")
    >>> found.values[:3].round(6).tolist(), found.resolved, found.decay
    ([1.262169, 0.5, 0.396143], 3, None)
    """
    if not 2 <= nodes <= LARGEST:
        raise BadInput(f"a quadrature for a kernel takes 2 to {LARGEST} nodes, not {nodes}")
    coarse, fine = (_values(kernel, count, rule, centred) for count in (nodes, 2 * nodes))
    change = np.abs(fine[:nodes] - coarse)
    floor = ROUNDING * fine.max(initial=0.0)
    known = (change <= RESOLVED * fine[:nodes]) & (fine[:nodes] > floor)
    resolved = int(np.argmin(known)) if not known.all() else nodes
    how = f"{2 * nodes} nodes, {'Gauss-Legendre' if rule == 'gauss' else 'midpoint'} rule"
    error = float(change[: max(resolved, 1)].max(initial=0.0))
    cut = ""
    if resolved < nodes and fine[resolved] > floor:
        cut = f"value {resolved + 1} is not resolved: it changes by more than {RESOLVED:.0%} when the nodes are doubled"
    return _described(Pod(fine, resolved, error, how, centred, note=cut), window, alpha)


def pod_of_matrix(
    matrix: Float[np.ndarray, "rows columns"],
    centred: bool = False,
    window: tuple[int, int] | None = None,
    alpha: float | None = None,
) -> Pod:
    """The POD of a kernel given by samples: singular values of the matrix over sqrt(rows columns).

    >>> pod_of_matrix(np.ones((4, 9))).values[0].round(12)
    np.float64(1.0)
    """
    matrix = np.asarray(matrix, np.float64)
    if matrix.ndim != 2 or not matrix.size or not np.isfinite(matrix).all():
        raise BadInput("a sampled kernel is a non-empty matrix of finite numbers")
    if centred:
        matrix = matrix - matrix.mean(axis=1, keepdims=True)
    values = np.asarray(singular_values(matrix)) / np.sqrt(matrix.size)
    return pod_of_values(values, f"a {matrix.shape[0]} x {matrix.shape[1]} matrix of samples", centred, window, alpha)


def pod_of_values(
    values: Float[np.ndarray, " values"],
    measured: str,
    centred: bool = False,
    window: tuple[int, int] | None = None,
    alpha: float | None = None,
) -> Pod:
    """What is known when only singular values are: those of a mean over inputs, say."""
    values = np.asarray(values, np.float64)
    resolved = int((values > ROUNDING * values.max(initial=0.0)).sum())
    return _described(Pod(values, resolved, None, measured, centred), window, alpha)


def _values(kernel: Kernel, count: int, rule: Rule, centred: bool) -> np.ndarray:
    nodes, weights = quadrature(count, rule)
    rho = on_nodes(kernel, nodes)
    if centred:
        rho = rho - (rho @ weights)[:, None]
    root = np.sqrt(weights)
    largest = float(np.abs(rho).max()) or 1.0  # squares of very large and very small values overflow and vanish
    return np.asarray(singular_values(root[:, None] * (rho / largest) * root)) * largest


def _described(found: Pod, window: tuple[int, int] | None, alpha: float | None) -> Pod:
    """With alpha, C_1 and the reasons for doubt."""
    values = found.values[: found.resolved]
    notes = [found.note] if found.note else []
    decay = None
    try:
        decay = decay_exponent(values, window, floor=0.0)
        notes += _doubts(values, decay)
    except BadInput as refused:
        notes.append(_too_few(values, found.values) if window is None else str(refused))
    exponent = alpha if alpha is not None else decay and decay.alpha
    c1 = None
    if exponent is not None:
        c1 = float(np.max(np.arange(1, len(values) + 1) ** exponent * values, initial=0.0))
    return replace(found, decay=decay, exponent=exponent, c1=c1, note="; ".join(notes))


def _too_few(known: np.ndarray, values: np.ndarray) -> str:
    what = f"{len(known)} singular value{'s are' if len(known) != 1 else ' is'} above rounding and resolved"
    if not values.any():
        what = "the kernel is zero"
    return f"no alpha: {what}, and a slope with an interval needs 4 from the second on"


def _doubts(values: np.ndarray, decay: Decay) -> list[str]:
    first, last = decay.window
    k = np.arange(first, last + 1, dtype=np.float64)
    exponential = fit_line(k, np.log(values[first - 1 : last]))
    if exponential.straightness > decay.straightness and exponential.slope < 0:
        ratio = float(np.exp(exponential.slope))
        return [
            f"not a power law: the values fall by a factor of about {ratio:.2g} each (R^2 = {exponential.straightness:.3f}"
            f" against k, {decay.straightness:.3f} against log k), so alpha depends on the window and grows with it"
        ]
    if decay.straightness < STRAIGHT:
        return [f"the logarithms are not straight (R^2 = {decay.straightness:.3f}): alpha depends on the window"]
    return []
