"""The tensors of transformers that are made, by NumPy alone: compiling should not wait for JAX.

Weights are counted from the configuration before any of them is made, written from the nonzero entries that a
construction lists, and rounded to the stored type.
"""

from __future__ import annotations

from math import prod

import numpy as np

from certiformer.errors import BadInput
from certiformer.kernel.construction import Construction
from certiformer.kernel.weights import expected_shapes
from certiformer.model.config import Config
from certiformer.model.layout import tensor_specs


def stored(tensor: np.ndarray, dtype: str) -> np.ndarray:
    """The tensor in float64, float32 or bfloat16."""
    if dtype == "bfloat16":
        from ml_dtypes import bfloat16

        return tensor.astype(bfloat16)
    return tensor.astype(dtype)


# A weight takes up to 100 bytes while it is made, written and read back by the checker; together they stay below 1 GiB.
MAX_WEIGHTS = 2**30 // 100


def require_room(config: Config, advice: str) -> Config:
    """The configuration, unless its weights are too many; `advice` says what makes them fewer.

    >>> from certiformer.model.config import Input, Readout
    >>> config = Config(Input("continuous", tokens=1, width=10**5), 10**5, 1, Readout("mean"))
    >>> require_room(config, "take fewer features")
    Traceback (most recent call last):
    ...
    certiformer.errors.BadInput: the transformer would have 10,000,200,001 weights, but at most 10,737,418 are made, for \
which 1 GiB of memory is enough; take fewer features
    """
    weights = sum(prod(spec.shape) for spec in tensor_specs(config).values())
    if weights > MAX_WEIGHTS:
        raise BadInput(
            f"the transformer would have {weights:,} weights, but at most {MAX_WEIGHTS:,} are made, for which 1 GiB of"
            f" memory is enough; {advice}"
        )
    return config


def dense(made: Construction, advice: str) -> tuple[Config, dict[str, np.ndarray]]:
    """Configuration and tensors; `advice` says what makes a transformer smaller that has no room."""
    return require_room(Config.from_json(made.config), advice), arrays(made)


def arrays(made: Construction) -> dict[str, np.ndarray]:
    """The tensors."""
    tensors = {name: np.zeros(shape) for name, shape in expected_shapes(made.config).items()}
    for name, entries in made.entries.items():
        for index, weight in entries.items():
            tensors[name][index] = weight
    return tensors
