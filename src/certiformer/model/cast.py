"""The same transformer with its weights rounded to another stored type.

A certificate speaks of the weights *as stored*, so a model that is to be run in float32 is cast before it is proved:
the proof then includes what rounding the weights has changed, and `kernel.rounding.runs` bounds the rest.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from certiformer.model.transformer import Transformer


def cast(model: Transformer, dtype: str) -> Transformer:
    """The model with every weight rounded to `dtype` (`float64`, `float32` or `bfloat16`), to nearest.

    `BadInput` names the tensor when a weight is too large for the type.

    >>> from certiformer.model import Config, Input, Readout
    >>> config = Config(Input("continuous", tokens=1, width=1), width=1, outputs=1, readout=Readout("sum"))
    >>> weights = {"embed.weight": [[0.1]], "embed.bias": [0], "readout.weight": [[1]], "readout.bias": [0]}
    >>> float(cast(Transformer(config, weights), "bfloat16").tensors["embed.weight"][0, 0])
    0.10009765625
    """
    if dtype == model.config.dtype:
        return model
    tensors = {name: np.asarray(tensor) for name, tensor in model.tensors.items()}
    return Transformer(replace(model.config, dtype=dtype), tensors)
