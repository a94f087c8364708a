"""Numbers in a stored type, by NumPy alone: compiling should not wait for JAX."""

from __future__ import annotations

import numpy as np


def stored(tensor: np.ndarray, dtype: str) -> np.ndarray:
    """The tensor in float64, float32 or bfloat16."""
    if dtype == "bfloat16":
        from ml_dtypes import bfloat16

        return tensor.astype(bfloat16)
    return tensor.astype(dtype)
