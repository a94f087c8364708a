"""Running a function of scalars over arrays of node numbers: element by element, row by row, matrix by matrix."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np


def each(function: Callable[..., int], *arrays: np.ndarray) -> np.ndarray:
    """A function of scalars, element by element; scalars are repeated."""
    same = np.broadcast_arrays(*arrays)
    flat = [function(*elements) for elements in zip(*(array.ravel().tolist() for array in same), strict=True)]
    return np.array(flat, dtype=np.int64).reshape(same[0].shape)


def each_row(function: Callable[[list[int]], int], numbers: np.ndarray, axes: Sequence[int]) -> np.ndarray:
    """A function of a list, over the given axes together, for each place of the others."""
    kept = [axis for axis in range(numbers.ndim) if axis not in axes]
    shape = tuple(numbers.shape[axis] for axis in kept)
    rows = np.transpose(numbers, [*kept, *axes]).reshape(math.prod(shape), math.prod(numbers.shape[a] for a in axes))
    return np.array([function(row.tolist()) for row in rows], dtype=np.int64).reshape(shape)


def matrices(numbers: np.ndarray, batch: Sequence[int], summed: Sequence[int]) -> np.ndarray:
    """The array as a batch of matrices, one row for each place of the free axes, the summed axes along it."""
    free = [axis for axis in range(numbers.ndim) if axis not in batch and axis not in summed]
    sizes = [math.prod(numbers.shape[a] for a in axes) for axes in (batch, free, summed)]
    return np.transpose(numbers, [*batch, *free, *summed]).reshape(sizes)
