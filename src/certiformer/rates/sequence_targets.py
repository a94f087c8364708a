"""Linear targets on sequences, and what no causal network can do about them.

Every target of Tables 2 and 3 of Jiang & Li (2023, arXiv 2305.18475) is a matrix: H_t(x) = sum_j A[t, j] x(j), with
x(0), x(1), ... independent and uniform on [0, 1] (variance 1/12).

* a kernel rho gives A[t, j] = rho(t - j) for j <= t, and 0 otherwise;
* another order of the inputs, y(s) = x(p(s)), asks for the same outputs H_t(x) from y: the matrix A[t, p(s)];
* mixing, x -> theta * x, gives A times the matrix of theta.

A causal network sees only y(0), ..., y(t) when it gives output t, and the unseen inputs are independent of the seen
ones. So its mean squared error is at least the variance of the unseen part, 1/12 sum_{j > t} A[t, j]^2, averaged over
t, and the best causal predictor attains it (Proposition 6.1 with its constant). A *linear* recurrent network that
starts from zero is moreover the same at every step: output t is sum_s k(s) y(t - s) and a bias, with one k. The best
k(s) is the mean of the s-th lower diagonal of A, which gives the second, larger floor.

For e^(-s), length 32, the first ten inputs swapped with the last ten: 0.0301 and 0.0526. The paper prints 0.0357 for
the linear network, below the second. With the first ten inputs moved to the end (as in its Table 1) both floors are
0.0301.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from certiformer.errors import BadInput

VARIANCE = 1 / 12  # of a number uniform on [0, 1]
MEAN = 1 / 2

Matrix = Float[np.ndarray, "length length"]
Order = Int[np.ndarray, " length"]


def causal_matrix(kernel: Float[np.ndarray, " length"]) -> Matrix:
    """The target sum_s kernel(s) x(t - s).

    >>> causal_matrix(np.array([1.0, 0.5]))
    array([[1. , 0. ],
           [0.5, 1. ]])
    """
    length = len(kernel)
    lag = np.arange(length)[:, None] - np.arange(length)[None, :]
    return np.where(lag >= 0, np.asarray(kernel)[np.maximum(lag, 0)], 0.0)


def filter_matrix(theta: Float[np.ndarray, " _"], length: int) -> Matrix:
    """The filter (theta * x)(t) = sum_s theta(s) x(t - s), which looks back and stays causal."""
    if len(theta) > length:
        raise BadInput(f"a filter of length {len(theta)} does not fit into sequences of length {length}")
    return causal_matrix(np.concatenate([theta, np.zeros(length - len(theta))]))


def swapped(length: int, count: int) -> Order:
    """The order with the first `count` inputs and the last `count` exchanged.

    >>> swapped(5, 2)
    array([3, 4, 2, 0, 1])
    """
    if not 0 <= 2 * count <= length:
        raise BadInput(f"the first {count} and the last {count} of {length} inputs cannot be exchanged: they overlap")
    middle = np.arange(count, length - count)
    return np.concatenate([np.arange(length - count, length), middle, np.arange(count)])


def moved(length: int, count: int) -> Order:
    """The order with the first `count` inputs moved to the end.

    >>> moved(5, 2)
    array([2, 3, 4, 0, 1])
    """
    if not 0 <= count <= length:
        raise BadInput(f"{count} of {length} inputs cannot be moved")
    return np.roll(np.arange(length), -count)


def reordered(matrix: Matrix, order: Order) -> Matrix:
    """The same outputs, asked from the inputs y(s) = x(order[s])."""
    return matrix[:, order]


def relabelled(matrix: Matrix, order: Order) -> Matrix:
    """Outputs and inputs in the new order: output s is the old output order[s]."""
    return matrix[order][:, order]


def causal_floor(matrix: Matrix) -> float:
    """The least mean squared error of any predictor that sees inputs 0 to t at step t."""
    return float(VARIANCE * np.sum(np.triu(matrix, 1) ** 2) / len(matrix))


def causal_floor_l1(matrix: Matrix, sequences: int = 16384) -> float:
    """The least mean absolute error of such a predictor, from a fixed sample: what is unseen is symmetric about its mean,
    which is therefore also its median and the best guess."""
    x = np.random.default_rng(0).uniform(-0.5, 0.5, size=(sequences, len(matrix)))
    return float(np.mean(np.abs(x @ np.triu(matrix, 1).T)))


def invariant_floor(matrix: Matrix) -> float:
    """The least mean squared error of sum_s k(s) y(t - s) + b(t), the same k for all t, any b."""
    length = len(matrix)
    unlike = sum((length - lag) * np.var(np.diagonal(matrix, -lag)) for lag in range(length))
    return causal_floor(matrix) + float(VARIANCE * unlike / length)


def variance(matrix: Matrix) -> float:
    """The mean squared error of the mean of each output: what a network gets that knows the bias at every step."""
    return float(VARIANCE * np.sum(matrix**2) / len(matrix))


def constant_error(matrix: Matrix) -> float:
    """The mean squared error of the best constant, one number for all steps."""
    return variance(matrix) + float(np.var(MEAN * matrix.sum(axis=1)))
