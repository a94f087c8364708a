"""The tensors that go into a model: checked against its configuration, or drawn at random."""

from __future__ import annotations

from collections.abc import Mapping

import jax.numpy as jnp
import numpy as np
from jaxtyping import ArrayLike

from certiformer.errors import BadInput
from certiformer.model.config import Config
from certiformer.model.layout import Spec, tensor_specs


def validated(config: Config, tensors: Mapping[str, ArrayLike]) -> dict[str, np.ndarray]:
    """The tensors in their stored types; `BadInput` with every reason when they do not fit the configuration."""
    specs = tensor_specs(config)
    reasons = [f"the tensor {name} is missing" for name in specs if name not in tensors]
    reasons += [f"the tensor {name} has no place in this configuration" for name in tensors if name not in specs]
    converted: dict[str, np.ndarray] = {}
    for name, spec in specs.items():
        if name in tensors:
            converted[name], reason = _converted(name, tensors[name], spec)
            reasons += reason
    if reasons:
        raise BadInput(f"these are not the tensors of this transformer: {'; '.join(reasons)}")
    return converted


def _converted(name: str, tensor: ArrayLike, spec: Spec) -> tuple[np.ndarray, list[str]]:
    """The tensor in its stored type, and what is wrong with it."""
    given = np.asarray(tensor)
    if given.shape != spec.shape:
        return given, [f"the tensor {name} has shape {given.shape} instead of {spec.shape}"]
    with np.errstate(over="ignore", invalid="ignore"):
        array = given.astype(jnp.dtype(spec.dtype))
    if spec.dtype == "uint8" and not np.isin(given, (0, 1)).all():
        return array, [f"the mask {name} holds something besides 0 and 1"]
    if not np.isfinite(array.astype(np.float64)).all():
        return array, [f"the tensor {name} holds a number that is not finite in {spec.dtype}"]
    return array, []


def random_tensor(generator: np.random.Generator, name: str, spec: Spec) -> np.ndarray:
    """A random tensor of a size that suits its role."""
    role = name.rpartition(".")[2]
    if role == "mask":
        return np.ones(spec.shape, np.uint8)
    noise = generator.standard_normal(spec.shape)
    if role == "scale":
        return 1.0 + 0.1 * noise
    if role in ("registers", "table") or name == "embed.weight":
        return noise
    # Matrices: variance one over the number of summands. Biases and shifts: small.
    matrix = role in ("weight", "query", "key", "value", "output", "up", "down")
    return noise / np.sqrt(spec.shape[-2]) if matrix else 0.1 * noise
