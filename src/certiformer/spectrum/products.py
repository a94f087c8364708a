"""Singular values of products of two thin maps, W_Q^T W_K or W_O W_V, without ever forming the d x d product.

With A = Q R (thin factors, d x e each), A B^T = Q_A (R_A R_B^T) Q_B^T: the values of the product are those of the e x
e core. The product has rank at most e, and the core keeps all digits, which multiplying the Gram matrices would not."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float


def product_values(
    left: Float[np.ndarray, "*heads width size"], right: Float[np.ndarray, "*heads width size"]
) -> Float[np.ndarray, "*heads values"]:
    """The singular values of `left @ right^T` for every head, largest first; factors wider than long are multiplied.

    >>> a = np.array([[1.0], [2.0], [2.0]])
    >>> product_values(a, a).tolist()
    [9.0]
    """
    left, right = np.asarray(left, np.float64), np.asarray(right, np.float64)
    if left.shape[-2] <= left.shape[-1] or right.shape[-2] <= right.shape[-1]:
        return np.linalg.svd(left @ np.swapaxes(right, -1, -2), compute_uv=False)
    core = np.linalg.qr(left, mode="r") @ np.swapaxes(np.linalg.qr(right, mode="r"), -1, -2)
    return np.linalg.svd(core, compute_uv=False)
