"""Step sizes of least-squares learners: equal ones, those of Chebyshev, and those with whitening.

The eigenvalues t of A lie in [a, b]; what is left to learn is multiplied by prod (1 - eta_k t_k). The claims are
proved by the checker from the stored numbers (`axioms.in_context_gradient`); nothing here has to be exact.
"""

from __future__ import annotations

import math

import numpy as np

from certiformer.compiler.tensors import stored


def constant(low: float, high: float, layers: int) -> tuple[float, ...]:
    """The best equal steps, 2 / (a + b): the factor is (b - a) / (b + a) each time."""
    return (2.0 / (low + high),) * layers


def chebyshev(low: float, high: float, layers: int) -> tuple[float, ...]:
    """The inverses of Chebyshev's nodes, in an order that keeps the partial products small.

    >>> [round(step, 3) for step in chebyshev(1.0, 3.0, 4)]
    [0.342, 0.929, 0.42, 0.618]
    """
    # The node (a + b) / 2 + (b - a) / 2 cos(2 s) is b cos(s)^2 + a sin(s)^2; both are sines of small angles where they are
    # small, so that no digit is lost.
    unit = math.pi / (4 * layers)
    sines = [(math.sin((2 * (layers - k) + 1) * unit), math.sin((2 * k - 1) * unit)) for k in lebedev(layers)]
    return tuple(1 / (high * cosine**2 + low * sine**2) for cosine, sine in sines)


def lebedev(layers: int) -> list[int]:
    """1, ..., L in the order of Lebedev and Finogenov (1971): small and large steps alternate at every scale.

    The order doubles: after k comes 2 m + 1 - k. Where L is not a power of two, larger numbers are left out.

    >>> lebedev(8), lebedev(6)
    ([1, 8, 4, 5, 2, 7, 3, 6], [1, 4, 5, 2, 3, 6])
    """
    order = [1]
    while len(order) < layers:
        order = [k for number in order for k in (number, 2 * len(order) + 1 - number)]
    return [k for k in order if k <= layers]


def whitening(low: float, high: float, layers: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Steps and whitening steps: eta = 2 / (a + b), then a, b are those of the whitened features.

    f(t) = t (1 - beta t)^2 has f(a) = f(b) for beta = 1 / (a + sqrt(a b) + b), its largest value on [a, b] is 4 / (27
    beta). For b / a = 1 + s the new ratio is 1 + 3 s^2 / 16 + ...; for large b / a it is 4 / 27 of the old one. The
    last layer does not whiten: nobody would read it.

    >>> steps, betas = whitening(0.01, 1.0, 4)
    >>> [round(step, 2) for step in steps], [round(beta, 2) for beta in betas]
    ([1.98, 11.48, 49.13, 134.15], [0.9, 4.66, 17.37, 0.0])
    """
    steps, betas = [], []
    for layer in range(layers):
        steps.append(2.0 / (low + high))
        beta = 1.0 / (low + math.sqrt(low * high) + high)
        betas.append(beta if layer + 1 < layers else 0.0)
        low, high = low * (1 - beta * low) ** 2, 4 / (27 * beta)
        # At the limit of the type both ends meet; the checker bounds what is really there.
        low = min(low, high)
    return tuple(steps), tuple(betas)


def left_after(low: float, high: float, schedule: str, layers: int) -> float:
    """What a schedule leaves to learn, in floating point; for choosing the number of layers."""
    if schedule == "constant":
        return ((high - low) / (high + low)) ** layers
    if schedule == "chebyshev":
        ratio = math.sqrt(high / low)
        return 1 / math.cosh(layers * math.log((ratio + 1) / (ratio - 1))) if ratio > 1 else 0.0
    left = 1.0
    for _ in range(layers):
        left *= (high - low) / (high + low)
        beta = 1.0 / (low + math.sqrt(low * high) + high)
        low, high = low * (1 - beta * low) ** 2, 4 / (27 * beta)
        low = min(low, high)
    return left


def in_type(values: tuple[float, ...], dtype: str) -> tuple[float, ...]:
    """The values as numbers of the stored type."""
    return tuple(stored(np.array(values), dtype).astype(float).tolist())
