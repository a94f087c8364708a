"""Which tensors write to the residual stream and which read it, and what becomes of them in another code.

If the stream x is held as x @ B, a tensor that writes vectors W (last axis) becomes W @ B, and one that reads with a
matrix M (last but one axis) becomes R @ M with B R = 1 (or an affine map x = s @ R + o, whose offset joins the bias
of the reading tensor).

*Conjugacy.* Suppose that every writing tensor of the new model is exactly W @ B and that B @ M' = M exactly for every
reading tensor M', while all other tensors are the same. Then by induction over the sub-layers the new stream is x @ B
at every place of every input, and everything read from it is the same real number as before: the two models are the
same function. B needs no inverse for this, and no rounding is involved: `is_conjugate` decides it in integers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from certiformer.compiler.realistic.basis import Basis, Matrix
from certiformer.errors import BadInput
from certiformer.model.config import Config

Tensors = dict[str, np.ndarray]

WRITING = ("embed.weight", "registers", "code.table", ".output", ".output_bias", ".down", ".down_bias")
READING = (".query", ".key", ".value", ".up", "readout.weight")


def writes(name: str) -> bool:
    """Whether the last axis of the tensor is the stream."""
    return name.endswith(WRITING)


def reads(name: str) -> bool:
    """Whether the last but one axis of the tensor is the stream."""
    return name.endswith(READING)


def bias_of(name: str) -> str:
    """The bias that is added to what a reading tensor reads."""
    return "readout.bias" if name == "readout.weight" else f"{name}_bias"


def state_read(config: Config, name: str) -> int:
    """The number of the state (see `Transformer.states`) that a reading tensor reads."""
    state = 0
    for index, block in enumerate(config.blocks):
        for part, present in (("attention", block.attention), ("ffn", block.ffn)):
            if name.startswith(f"blocks.{index}.{part}."):
                return state
            state += present is not None
    return state


def as_float64(tensors: Mapping[str, np.ndarray]) -> Tensors:
    """The tensors as numbers that NumPy computes with; exact for all stored types."""
    return {name: np.asarray(tensor).astype(np.float64) for name, tensor in tensors.items()}


def as_stored(tensors: Mapping[str, np.ndarray], dtype: str) -> Tensors:
    """The tensors rounded to the stored type."""
    if dtype == "bfloat16":
        import ml_dtypes  # NumPy has no such type of its own

        return {name: tensor.astype(ml_dtypes.bfloat16) for name, tensor in tensors.items()}
    return {name: tensor.astype(dtype) for name, tensor in tensors.items()}


def in_basis(config: Config, tensors: Mapping[str, np.ndarray], basis: Basis) -> tuple[Config, Tensors]:
    """The model in another code of its stream, in float64."""
    refuse_others(config)
    result = as_float64(tensors)
    for name, tensor in as_float64(tensors).items():
        if writes(name):
            result[name] = tensor @ basis.directions
        elif reads(name):
            reader = basis.reader(state_read(config, name))
            result[name] = reader.matrix @ tensor
            result[bias_of(name)] = result[bias_of(name)] + reader.offset @ tensor
    return replace(config, width=basis.width), result


def refuse_others(config: Config) -> None:
    """Only what the compiler makes has a stream that can be held in another code."""
    plain = all(
        block.norm is None
        and (block.attention is None or (block.attention.bias and block.attention.residual))
        and (block.ffn is None or block.ffn.residual)
        for block in config.blocks
    )
    if not plain or config.code.kind != "table" or config.input.kind != "ids" or config.loops != 1:
        raise BadInput(
            "only the transformer of a compiled program, with biases and without norms, can be given another code"
        )


def is_conjugate(old: Mapping[str, np.ndarray], new: Mapping[str, np.ndarray], directions: Matrix) -> bool:
    """Whether two models are the same function of real numbers, by the lemma above."""
    if set(old) != set(new):
        return False
    return all(_same(name, old[name], new[name], directions) for name in old)


def _same(name: str, old: np.ndarray, new: np.ndarray, directions: Matrix) -> bool:
    if not (writes(name) or reads(name)):
        return old.shape == new.shape and bool((old == new).all())
    axis = old.ndim - 1 if writes(name) else old.ndim - 2
    shape = (*old.shape[:axis], directions.shape[1], *old.shape[axis + 1 :])
    if old.shape[axis] != directions.shape[0] or new.shape != shape:
        return False
    fraction_bits = max(_fraction_bits(array) for array in (old, new, directions))
    a, b, c = (_integers(array, fraction_bits) for array in (old, directions, new))
    if writes(name):
        return bool((a @ b == c << fraction_bits).all())
    return all(
        (b @ part == wanted << fraction_bits).all() for part, wanted in zip(_matrices(c), _matrices(a), strict=True)
    )


def _matrices(array: np.ndarray) -> np.ndarray:
    return array.reshape(-1, *array.shape[-2:])


def _fraction_bits(array: np.ndarray) -> int:
    """The smallest k such that all numbers are multiples of 2^-k; `as_integer_ratio` refuses what is not finite."""
    return max((x.as_integer_ratio()[1].bit_length() - 1 for x in array.astype(np.float64).ravel().tolist()), default=0)


def _integers(array: np.ndarray, fraction_bits: int) -> np.ndarray:
    """The numbers times 2^fraction_bits, as integers of any size."""
    ratios = (x.as_integer_ratio() for x in array.astype(np.float64).ravel().tolist())
    flat = np.empty(array.size, object)
    flat[:] = [(top << fraction_bits) // bottom for top, bottom in ratios]
    return flat.reshape(array.shape)
