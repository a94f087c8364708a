"""`Transformer`: a configuration with its tensors.

It is a pytree (an Equinox module), so `jax.grad`, `jax.vmap` and optimisers see the tensors as leaves. Tensors are kept
as they are stored, in NumPy unless they were replaced by JAX arrays: saving loses nothing, whatever the precision JAX
is set to.

`cast` rounds the weights to another stored type. A certificate speaks of the weights *as stored*, so a model that is
to be run in float32 is cast before it is proved: the proof then includes what rounding the weights has changed, and
`kernel.rounding.runs` bounds the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, ArrayLike, Float, Num

from certiformer.errors import BadInput
from certiformer.model.config import Config
from certiformer.model.forward import Inputs, forward, trace_states, trace_weights
from certiformer.model.layout import tensor_specs
from certiformer.model.weights import random_tensor, validated

if TYPE_CHECKING:
    from certiformer.model.cost import Cost


# Arrays of one chunk of `evaluate` together stay below this.
CHUNK_BYTES = 2**27
CHUNK_POINTS = 4096
SHARED_LENGTH = 64  # shorter sequences are filled up to it where the model has room


class Transformer(eqx.Module):
    """The one transformer.

    **Arguments:**

    - `config`: what it is made of.
    - `tensors`: every tensor that `tensor_specs(config)` names, as anything NumPy can read; they are converted to the
      stored type. Missing, unexpected, ill-shaped and non-finite tensors are refused, all in one `BadInput`.

    >>> from certiformer.model import Config, Input, Readout, tensor_specs
    >>> config = Config(Input("continuous", tokens=2, width=1), width=1, outputs=1, readout=Readout("sum"))
    >>> ones = {name: np.ones(spec.shape) for name, spec in tensor_specs(config).items()}
    >>> model = Transformer(config, ones)
    >>> model
    Transformer(2 tokens of width 1 -> 1 output, width 1, 0 registers, 0 blocks, 4 parameters)
    >>> model.evaluate([[3.0, 4.0], [0.0, 0.0]])
    array([[10.],
           [ 3.]])
    """

    config: Config = eqx.field(static=True)
    tensors: dict[str, Any]

    def __init__(self, config: Config, tensors: Mapping[str, ArrayLike]):
        self.config = config
        self.tensors = validated(config, tensors)

    @staticmethod
    def random(config: Config, seed: int) -> Transformer:
        """A model with random weights: normal, each product keeping its size; the same seed gives the same model."""
        generator = np.random.default_rng(seed)
        return Transformer(config, {n: random_tensor(generator, n, spec) for n, spec in tensor_specs(config).items()})

    def __call__(self, x: Inputs) -> Float[Array, " outputs"]:
        """The outputs for one input: `(tokens, width)` numbers or `(tokens,)` ids.

        A plain JAX function, in the precision of the tensors and of `x`; `evaluate` is for many points at once.
        """
        return forward(self.config, self.tensors, self._input(x))

    def attention_weights(self, x: Inputs | np.ndarray) -> list[list[Float[np.ndarray, "heads length length"]]]:
        """The attention weights for one input: by applied block, then by group of heads. Registers come first."""
        with jax.enable_x64(True):
            blocks = _attention_weights(self.config, self.tensors, self._input(x))
            return [[np.asarray(weights) for weights in groups] for groups in blocks]

    def states(self, x: Inputs | np.ndarray) -> list[Float[np.ndarray, "length width"]]:
        """The sequence for one input, registers first: before the first block, then after every sub-layer that exists."""
        with jax.enable_x64(True):
            return [np.asarray(state) for state in _states(self.config, self.tensors, self._input(x))]

    def evaluate(self, points: Num[ArrayLike, "points size"], dtype: str = "float64") -> Float[np.ndarray, "points _"]:
        """The outputs for every row of `points`, computed in `dtype` chunk by chunk.

        A row is (x1, ..., xD), the tokens one after the other; for ids it is the tokens.
        """
        with jax.enable_x64(True):
            rows = self._rows(points, dtype)
            tensors = {n: jnp.asarray(t, None if t.dtype == np.uint8 else dtype) for n, t in self.tensors.items()}
            largest = self.points_at_once
            # A power of two, so that calls with different numbers of points share their compilations.
            chunk = max(1, min(1 << max(0, len(rows) - 1).bit_length(), largest))
            # One shape, hence one compilation: the last chunk is filled up with copies of its last row.
            chunks = [rows[start : start + chunk] for start in range(0, len(rows), chunk)]
            outputs = []
            for part in chunks:
                filled = np.concatenate([part, np.repeat(part[-1:], chunk - len(part), axis=0)])
                outputs.append(np.asarray(_forward_rows(self.config, tensors, filled))[: len(part)])
            return np.concatenate(outputs) if outputs else np.zeros((0, self.output_size), dtype)

    def evaluate_sequences(
        self, sequences: Sequence[ArrayLike], dtype: str = "float64"
    ) -> list[Float[np.ndarray, "tokens outputs"]]:
        """The outputs at every token of several sequences of ids, of any lengths, computed in `dtype`.

        All are filled up to one of few lengths, and no token looks at the fillers: nearly all calls share a compilation.
        The read-out must be `all`.

        >>> from certiformer.model import Config, Input, Readout
        >>> config = Config(Input("ids", tokens=4, vocabulary=2), width=1, outputs=1, readout=Readout("all"))
        >>> model = Transformer(config, {"embed.weight": [[1], [2]], "readout.weight": [[3]], "readout.bias": [0]})
        >>> [outputs.ravel().tolist() for outputs in model.evaluate_sequences([[0, 1, 1], [1]])]
        [[3.0, 6.0, 6.0], [6.0]]
        """
        if self.config.readout.kind != "all" or self.config.input.kind != "ids":
            raise BadInput("sequences of several lengths are read by a model of ids that answers at every token")
        arrays = [np.asarray(sequence) for sequence in sequences]
        if not arrays:
            return []
        longest = max(map(len, arrays))
        room = min(self.config.tokens, max(SHARED_LENGTH, 1 << (longest - 1).bit_length()))
        for array in arrays:
            self._input(array)
        ids = np.stack([np.pad(array, (0, max(room, longest) - len(array))) for array in arrays])
        tokens = np.array([len(array) for array in arrays])
        with jax.enable_x64(True):
            tensors = {n: jnp.asarray(t, None if t.dtype == np.uint8 else dtype) for n, t in self.tensors.items()}
            chunk = max(1, min(1 << (len(arrays) - 1).bit_length(), self.points_at_once))
            outputs = []
            for start in range(0, len(arrays), chunk):
                part = np.resize(np.arange(start, min(start + chunk, len(arrays))), chunk)  # one shape for all chunks
                outputs += list(np.asarray(_forward_some(self.config, tensors, ids[part], tokens[part])))
            return [row.reshape(room, -1)[:n] for row, n in zip(outputs, tokens, strict=False)]

    @property
    def points_at_once(self) -> int:
        """How many points can be evaluated together in a moderate amount of memory."""
        return max(1, min(CHUNK_POINTS, CHUNK_BYTES // (8 * _floats_per_point(self.config))))

    @property
    def output_size(self) -> int:
        """The number of outputs for one input of full length."""
        return self.config.outputs * (self.config.tokens if self.config.readout.kind == "all" else 1)

    def parameter_count(self) -> int:
        """The number of stored weights, registers and codes included, masks excluded."""
        return sum(t.size for n, t in self.tensors.items() if t.dtype != np.uint8)

    def nonzero_count(self) -> int:
        """The number of stored weights that are not zero."""
        return sum(int(np.count_nonzero(np.asarray(t))) for t in self.tensors.values() if t.dtype != np.uint8)

    def cost(self, length: int | None = None) -> Cost:
        """Operations and bytes of one forward pass over `length` data tokens; see `cost.Cost`."""
        from certiformer.model.cost import cost

        return cost(self.config, length)

    def __repr__(self) -> str:
        c = self.config
        size = f"width {c.input.width}" if c.input.kind == "continuous" else f"{c.input.vocabulary} ids"
        blocks = _plural(len(c.blocks), "block") + (f" applied {c.loops} times" if c.loops > 1 else "")
        return (
            f"Transformer({_plural(c.tokens, 'token')} of {size} -> {_plural(self.output_size, 'output')}, width"
            f" {c.width}, {_plural(c.registers, 'register')}, {blocks}, {_plural(self.parameter_count(), 'parameter')})"
        )

    def _input(self, x: Inputs | np.ndarray) -> Inputs:
        config = self.config
        if config.input.kind == "continuous":
            x, wanted = jnp.asarray(x), (config.tokens, config.input.width)
            if x.shape != wanted:
                raise BadInput(f"one input of this model has shape {wanted}, not {x.shape}")
            return x if jnp.issubdtype(x.dtype, jnp.floating) else x.astype(jnp.result_type(float))
        if not isinstance(x, Tracer):
            x = self._checked_ids(np.asarray(x)[None])[0]
        x = jnp.asarray(x)
        if x.ndim != 1 or not config.shortest <= x.shape[0] <= config.tokens:
            raise BadInput(f"one input of this model is {self._lengths()} ids, not an array of shape {x.shape}")
        return x

    def _rows(self, points: ArrayLike, dtype: str) -> np.ndarray:
        config = self.config
        if config.input.kind == "ids":
            rows = self._checked_ids(np.asarray(points))
            if rows.ndim != 2 or not config.shortest <= rows.shape[1] <= config.tokens:
                raise BadInput(f"points are rows of {self._lengths()} ids, not an array of shape {rows.shape}")
            return rows
        rows = np.asarray(points, dtype)
        size = config.tokens * (config.input.width or 1)
        if rows.ndim != 2 or rows.shape[1] != size:
            raise BadInput(f"points are rows of {size} numbers, not an array of shape {rows.shape}")
        return rows.reshape(len(rows), config.tokens, size // config.tokens)

    def _checked_ids(self, ids: np.ndarray) -> np.ndarray:
        vocabulary = self.config.input.vocabulary or 0
        if not np.issubdtype(ids.dtype, np.integer) or ((ids < 0) | (ids >= vocabulary)).any():
            raise BadInput(f"token ids are integers from 0 to {vocabulary - 1}")
        return ids

    def _lengths(self) -> str:
        shortest, longest = self.config.shortest, self.config.tokens
        return f"{shortest}" if shortest == longest else f"{shortest} to {longest}"


@partial(jax.jit, static_argnames=("config",))
def _forward_rows(config: Config, tensors: Mapping[str, Array], rows: Array) -> Float[Array, "points outputs"]:
    return jax.vmap(lambda x: forward(config, tensors, x))(rows)


@partial(jax.jit, static_argnames=("config",))
def _forward_some(
    config: Config, tensors: Mapping[str, Array], rows: Array, tokens: Array
) -> Float[Array, "points outputs"]:
    return jax.vmap(lambda x, n: forward(config, tensors, x, n))(rows, tokens)


@partial(jax.jit, static_argnames=("config",))
def _attention_weights(config: Config, tensors: Mapping[str, Array], x: Inputs) -> list[list[Array]]:
    return trace_weights(config, tensors, x)


@partial(jax.jit, static_argnames=("config",))
def _states(config: Config, tensors: Mapping[str, Array], x: Inputs) -> list[Array]:
    return trace_states(config, tensors, x)


def _floats_per_point(config: Config) -> int:
    """How many numbers a chunk holds per point at once, roughly and rather too many: the scores, and the tokens with
    their projections. The registers of a single block are shared by all points."""
    length = config.length
    single = config.loops * len(config.blocks) == 1
    tokens = config.tokens if single else length
    queries = 1 if single and config.readout.kind == "token" else tokens
    most = config.width
    for block in config.blocks:
        heads = block.attention.heads if block.attention is not None else ()
        scores = 4 * queries * length * sum(group.count for group in heads)
        projections = sum(group.count * (2 * group.key + 2 * group.value) for group in heads)
        hidden = 2 * block.ffn.width if block.ffn is not None else 0
        most = max(most, scores + tokens * (4 * config.width + projections + hidden))
    return most


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


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
