r"""Graded streams: coordinate i is multiplied by base^grade(i) wherever a sub-layer or the read-out reads the stream.

A *grading* splits a space into parts V_0, V_1, ... and lets a number act on part q by its q-th power. Let D be the diagonal
matrix of these powers, base > 0. A graded transformer reads x D where a plain one reads x; so its weights W do what the
plain weights W' = D W do, and W -> D W is one to one and onto. Hence both kinds compute exactly the same functions with
exactly as many weights. What differs is the geometry in which training moves. With G' the gradient by W':

* a step of gradient descent, W <- W - r D G', is W' <- W' - r D^2 G': another rate for every grade;
* a step of Adam (epsilon 0), whose direction does not depend on the size of a gradient's entries, is W' <- W' - r D A(G').
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Array, Float

from certiformer.errors import BadInput
from certiformer.model.config import Config
from certiformer.train.problem import transformer_outputs


def grading(width: int, base: float, parts: int = 2) -> Float[np.ndarray, " width"]:
    """The diagonal of D: the coordinates in `parts` parts of grades 0, 1, ...

    >>> grading(4, 0.5).tolist()
    [1.0, 1.0, 0.5, 0.5]
    """
    if base <= 0 or not 1 <= parts <= width:
        raise BadInput("a grading has a positive base and from one part up to as many as there are coordinates")
    return float(base) ** (np.arange(width) * parts // width)


def plain(config: Config, tensors: Mapping[str, Any], base: float, parts: int = 2) -> dict[str, Any]:
    """The weights with which an ungraded transformer computes what the graded one does with `tensors`."""
    if any(block.norm is not None and block.norm.place == "pre" for block in config.blocks):
        raise BadInput("with a normalisation before the sub-layers these do not read the stream itself")
    factors = grading(config.width, base, parts).astype(np.float32)
    return {name: tensor * factors[:, None] if _reads(name) else tensor for name, tensor in tensors.items()}


def graded_outputs(
    config: Config, tensors: Mapping[str, Array], x: Array, base: float, parts: int = 2
) -> Float[Array, "batch outputs"]:
    """The outputs of the graded transformer."""
    return transformer_outputs(config)(plain(config, tensors, base, parts), x)


def _reads(name: str) -> bool:
    return name == "readout.weight" or name.rpartition(".")[2] in ("query", "key", "value", "up")
