"""Gaussian noise on every weight, zeros and biases included, and how much of it a program bears.

The noise is sigma times one fixed draw of independent standard normal numbers, in units of the weights themselves
(the smallest weight of a compiled program that matters is about 1). `largest_noise` finds by bisection the largest
sigma on that ray at which all inputs were answered rightly. Nothing says that a smaller one is never worse, so each
size that is named was tried by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from certiformer.compiler.realistic.stream import Tensors, as_float64
from certiformer.errors import BadInput

SMALLEST, LARGEST, FACTOR = 2.0**-40, 2.0**4, 4.0
STEPS = 6  # of bisection in the logarithm: the last interval is a factor 4^(1/64) = 1.022 wide


def with_noise(tensors: Mapping[str, np.ndarray], size: float, seed: int) -> Tensors:
    """The weights plus `size` times a Gaussian draw that depends on the seed alone."""
    if not (np.isfinite(size) and size >= 0):
        raise BadInput(f"the noise is a number from 0 on, not {size}")
    generator = np.random.default_rng(seed)
    numbers = as_float64(tensors)
    return {name: numbers[name] + size * generator.normal(size=numbers[name].shape) for name in sorted(numbers)}


def largest_noise(right: Callable[[float], bool], at_most: float = LARGEST) -> float:
    """The largest size at which `right` was found to hold, up to `at_most`; 0 when there is none.

    >>> round(largest_noise(lambda size: size < 0.01), 4)
    0.0099
    """
    size = at_most
    while not right(size):
        size /= FACTOR
        if size < SMALLEST:
            return 0.0
    if size == at_most:
        return size
    low, high = size, size * FACTOR
    for _ in range(STEPS):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if right(middle) else (low, middle)
    return low
