"""Singular values of products of two thin maps, W_Q^T W_K or W_O W_V, without ever forming the d x d product.

With A = Q R (thin factors, d x e each), A B^T = Q_A (R_A R_B^T) Q_B^T: the values of the product are those of the e x
e core. The product has rank at most e, and the core keeps all digits, which multiplying the Gram matrices would not.

R is also the Cholesky factor of A^T A, which is three times as fast for many small heads. A Gram matrix errs by n u |A|^2,
so that factor is (I + F) R with |F| of about n u k^2 / 2, k = sigma_1 / sigma_e the condition of A: every value of the core
keeps all digits but those of n u (k_A^2 + k_B^2). With k up to 10^3 that is 10^-7 of each value, with a k of 30, usual in
trained heads, 10^-10. Heads with a larger k go through their QR factors, together with those beside them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from certiformer.spectrum.values import SAFE, UNIT

Heads = Float[np.ndarray, "heads width size"]
TINY = 1e-150  # squared lengths between this and its inverse are computed without underflow that matters


@dataclass(frozen=True, eq=False)
class Products:
    """The products P = left right^T of several heads: their singular values, largest first, how far the largest may be from
    the true one, the spectral norms of both factors, and the lengths of the rows and the columns of P."""

    left: Heads
    right: Float[np.ndarray, "heads width2 size"]
    values: Float[np.ndarray, "heads values"]
    errors: Float[np.ndarray, " heads"]
    left_norms: Float[np.ndarray, " heads"]
    right_norms: Float[np.ndarray, " heads"]
    row_lengths: Float[np.ndarray, "heads width"]
    column_lengths: Float[np.ndarray, "heads width2"]


def products(left: Heads, right: Float[np.ndarray, "heads width2 size"]) -> Products:
    """What is known of the products of two stacks of heads in float64.

    >>> a = np.array([[[1.0], [2.0], [2.0]]])
    >>> found = products(a, a)
    >>> found.values.round(9).tolist(), found.left_norms.round(9).tolist()
    ([[9.0]], [3.0])
    """
    with np.errstate(over="ignore", invalid="ignore"):
        grams = [np.matmul(w.swapaxes(1, 2), w) for w in (left, right)]
    if not all(((t > TINY) & (t < 1 / TINY)).all() for t in (np.trace(gram, axis1=1, axis2=2) for gram in grams)):
        return _extreme(left, right)
    squares = np.split(np.linalg.eigvalsh(np.concatenate(grams)), 2)
    largest = [np.maximum(each[:, -1], 0.0) for each in squares]
    side = max(left.shape[1], right.shape[1])
    frobenius = [np.sqrt(np.trace(gram, axis1=1, axis2=2)) for gram in grams]
    errors = 16 * side * UNIT * frobenius[0] * frobenius[1]
    if all((each[:, 0] > SAFE * each[:, -1]).all() for each in squares):
        lower = np.split(np.linalg.cholesky(np.concatenate(grams)), 2)
        values = np.linalg.svd(np.matmul(lower[0].swapaxes(1, 2), lower[1]), compute_uv=False)
        conditions = [each[:, -1] / each[:, 0] for each in squares]
        errors = errors + 2 * side * UNIT * values[:, 0] * (conditions[0] + conditions[1])
    else:
        values = product_values(left, right)
    # |P[i]|^2 = a_i B^T B a_i for the row a_i of A.
    lengths = [
        np.sqrt(np.maximum(np.einsum("hde,hde->hd", np.matmul(w, gram), w), 0.0))
        for w, gram in ((left, grams[1]), (right, grams[0]))
    ]
    return Products(left, right, values, errors, np.sqrt(largest[0]), np.sqrt(largest[1]), *lengths)


def _extreme(left: Heads, right: Float[np.ndarray, "heads width2 size"]) -> Products:
    """Where squares overflow or vanish: every factor of every head is brought to entries of at most one, by a power of two.
    Raises `LinAlgError` where the product is not finite."""
    sizes = [np.abs(w).max(axis=(1, 2), initial=0.0) for w in (left, right)]
    powers = [np.frexp(size)[1] for size in sizes]
    # What takes the place of a factor of zeros is multiplied by zero in the end.
    scaled = [
        np.where((size == 0)[:, None, None], 1.0, np.ldexp(w, -power[:, None, None]))
        for w, size, power in zip((left, right), sizes, powers, strict=True)
    ]
    each = [np.where(size == 0, 0.0, np.ldexp(1.0, power)) for size, power in zip(sizes, powers, strict=True)]
    with np.errstate(over="ignore"):
        total = np.ldexp(1.0, powers[0] + powers[1])
    both = np.where((each[0] == 0) | (each[1] == 0), 0.0, total)
    if not all(np.isfinite(numbers).all() for numbers in (*scaled, *each, both)):
        raise np.linalg.LinAlgError("the product of two factors is not finite")
    found = products(*scaled)
    return Products(
        left,
        right,
        found.values * both[:, None],
        found.errors * both,
        found.left_norms * each[0],
        found.right_norms * each[1],
        found.row_lengths * both[:, None],
        found.column_lengths * both[:, None],
    )


def product_values(
    left: Float[np.ndarray, "*heads width size"], right: Float[np.ndarray, "*heads width size"]
) -> Float[np.ndarray, "*heads values"]:
    """The singular values of `left @ right^T` for every head by QR factors; factors wider than long are multiplied.

    >>> a = np.array([[1.0], [2.0], [2.0]])
    >>> product_values(a, a).round(9).tolist()
    [9.0]
    """
    left, right = np.asarray(left, np.float64), np.asarray(right, np.float64)
    if left.shape[-2] <= left.shape[-1] or right.shape[-2] <= right.shape[-1]:
        return np.linalg.svd(left @ np.swapaxes(right, -1, -2), compute_uv=False)
    core = np.linalg.qr(left, mode="r") @ np.swapaxes(np.linalg.qr(right, mode="r"), -1, -2)
    return np.linalg.svd(core, compute_uv=False)
