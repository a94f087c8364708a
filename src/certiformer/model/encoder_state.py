"""The tensors of a PyTorch encoder (`nn.TransformerEncoder` with linear maps before and behind it) as our transformer.

A state dict holds weights by name and shape. What it does not say (`LayerFacts`, the read-out, the mask) is said by whoever
asks. A tensor whose part in the computation its name and shape do not tell is refused, so nothing is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from certiformer.errors import BadInput
from certiformer.model.config import Attention, Block, Code, Config, FeedForward, Heads, Input, Norm, Readout
from certiformer.model.transformer import Transformer

Read = Literal["all", "mean", "sum", "first", "last"]
READS: tuple[Read, ...] = get_args(Read)
ACTIVATIONS = ("relu", "gelu")
NORM_EPSILON = 1e-5  # torch's default
_SIGN = "self_attn.in_proj_weight"
_REQUIRED = ("self_attn.out_proj.weight", "linear1.weight", "linear2.weight", "norm1.weight", "norm2.weight")
_BIASES = (
    "self_attn.in_proj_bias",
    "self_attn.out_proj.bias",
    "linear1.bias",
    "linear2.bias",
    "norm1.bias",
    "norm2.bias",
)
# How the maps before and behind an encoder are called, where both would fit.
_BEFORE = re.compile(r"(^|[._])(embed|embedding|input|inp|proj_in|project_in|linear_in|lift)\d?$")
_BEHIND = re.compile(
    r"(^|[._])(head|readout|read_out|output|out|fc|decoder|classifier|proj_out|project_out|linear_out)\d?$"
)
_LAST_NORM = re.compile(r"(^|[._])(norm|layer_?norm|ln|final_?norm|norm_?f|ln_?f|norm_?out|final_layer_?norm)$")


@dataclass(frozen=True)
class LayerFacts:
    """What the tensors of a layer do not say."""

    heads: int
    activation: str
    norm_first: bool
    norm_epsilon: float = NORM_EPSILON


@dataclass(frozen=True)
class _Tensors:
    """The tensors around the layers, as they enter the computation."""

    layers: list[str]
    embed: str | None
    positions: str | None
    final_norm: str | None
    readout: str | None


class EncoderState:
    """A state dict whose every tensor has its place.

    >>> EncoderState({"weight": np.zeros((2, 2))})
    Traceback (most recent call last):
    ...
    certiformer.errors.BadInput: there is no nn.TransformerEncoderLayer in it: no tensor is called \
...self_attn.in_proj_weight
    """

    def __init__(self, state: Mapping[str, np.ndarray], dtype: str = "float64"):
        self.state, self.dtype = {name: np.asarray(array, np.float64) for name, array in state.items()}, dtype
        layers = _layer_prefixes(self.state)
        self.width = self.state[f"{layers[0]}{_SIGN}"].shape[-1]
        self._unread = set(self.state)
        for prefix in layers:
            self._take_layer(prefix)
        self.parts = _Tensors(layers, *self._around(layers))
        if self._unread:
            raise BadInput(
                f"the tensor {min(self._unread)} is no part of an encoder that is read here (see docs: from_torch)"
            )

    @property
    def input_width(self) -> int:
        """How many numbers a token has."""
        return self.width if self.parts.embed is None else self.state[f"{self.parts.embed}weight"].shape[1]

    @property
    def tokens(self) -> int | None:
        """The number of tokens, if there is a table of positions to say it."""
        return None if self.parts.positions is None else self._positions().shape[0]

    def transformer(
        self,
        tokens: int,
        facts: Callable[[str], LayerFacts],
        read: Read,
        causal: bool = False,
        final_epsilon: float = NORM_EPSILON,
    ) -> Transformer:
        """The transformer that computes what the module does in evaluation mode.

        `facts` says for each layer, by the prefix of its names, what its tensors do not; `read` says of which tokens the
        read-out is taken.
        """
        if self.tokens is not None and tokens != self.tokens:
            raise BadInput(f"the table of positions is for {self.tokens} tokens, not for {tokens}")
        tensors = self._linear("embed", self.parts.embed, self.input_width)
        tensors |= self._linear("readout", self.parts.readout, self.width)
        if self.parts.positions is not None:
            tensors["code.table"] = self._positions()
        blocks = []
        for index, prefix in enumerate(self.parts.layers):
            block, block_tensors = self._layer(prefix, f"blocks.{index}", facts(prefix), causal)
            blocks.append(block)
            tensors |= block_tensors
        if self.parts.final_norm is not None:
            blocks.append(Block(None, FeedForward(1, "identity"), Norm("post", epsilon=final_epsilon)))
            tensors |= self._norm_alone(f"blocks.{len(blocks) - 1}", self.parts.final_norm)
        readout = {"first": Readout("token", 0), "last": Readout("token", tokens - 1)}
        config = Config(
            Input("continuous", tokens=tokens, width=self.input_width),
            self.width,
            tensors["readout.weight"].shape[1],
            readout.get(read) or Readout(read),
            tuple(blocks),
            code=Code("none" if self.parts.positions is None else "table"),
            dtype=self.dtype,
        )
        return Transformer(config, tensors)

    def _take(self, name: str, *shape: int) -> None:
        """Mark a tensor of this shape as read."""
        if self.state[name].shape != shape:
            raise BadInput(f"the tensor {name} has the shape {self.state[name].shape}, where an encoder has {shape}")
        self._unread.discard(name)

    def _take_layer(self, prefix: str) -> None:
        missing = [name for name in _REQUIRED if prefix + name not in self.state]
        if missing:
            raise BadInput(f"the layer {prefix.rstrip('.') or 'itself'} has no tensor {missing[0]}")
        d, hidden = self.width, self.state[f"{prefix}linear1.weight"].shape[0]
        shapes: dict[str, tuple[int, ...]] = {
            _SIGN: (3 * d, d),
            "self_attn.in_proj_bias": (3 * d,),
            "self_attn.out_proj.weight": (d, d),
            "linear1.weight": (hidden, d),
            "linear1.bias": (hidden,),
            "linear2.weight": (d, hidden),
        }
        for name in (_SIGN, *_REQUIRED, *_BIASES):
            if prefix + name in self.state:
                self._take(prefix + name, *shapes.get(name, (d,)))

    def _around(self, layers: list[str]) -> tuple[str | None, str | None, str | None, str | None]:
        """The names of what stands before and behind the layers: embedding, positions, last norm, read-out."""
        d = self.width
        positions = [n for n in sorted(self._unread) if "pos" in n.lower() and self.state[n].shape[-1:] == (d,)]
        if len(positions) == 1:
            self._unread.discard(positions[0])
        weights = [name.removesuffix("weight") for name in sorted(self._unread) if re.search(r"(^|\.)weight$", name)]
        norms = [name for name in weights if self.state[f"{name}weight"].ndim == 1]
        maps = [name for name in weights if self.state[f"{name}weight"].ndim == 2]
        if len(norms) > 1 or len(maps) > 2 or len(positions) > 1:
            named = norms if len(norms) > 1 else maps if len(maps) > 2 else positions
            many = "norms" if len(norms) > 1 else "linear maps" if len(maps) > 2 else "tables of positions"
            raise BadInput(
                f"around the encoder there are {len(named)} {many} ({', '.join(map(_plain, named))}); one is read"
            )
        for name in norms:
            if not self._is_behind(name, layers[0]):
                raise BadInput(f"the norm {_plain(name)} could stand before or behind the encoder; call it norm")
            self._take(f"{name}weight", d)
        before, behind = self._which(maps, layers[0])
        for name, rows in [(before, d), *((name, None) for name in (behind,))]:
            if name is not None:
                shape = self.state[f"{name}weight"].shape
                self._take(f"{name}weight", shape[0] if rows is None else rows, shape[1] if rows is not None else d)
        for name in (before, behind, *norms):
            if name is not None and f"{name}bias" in self.state:
                self._take(f"{name}bias", self.state[f"{name}weight"].shape[0])
        return before, positions[0] if positions else None, norms[0] if norms else None, behind

    def _which(self, maps: list[str], layer: str) -> tuple[str | None, str | None]:
        """Which linear map stands before the encoder and which behind it: by shape, by number, or by name."""
        before = [name for name in maps if self._is_before(name, layer)]
        behind = [name for name in maps if name not in before]
        if len(before) > 1 or len(behind) > 1:
            names = " and ".join(map(_plain, before if len(before) > 1 else behind))
            raise BadInput(
                f"both {names} would stand {'before' if len(before) > 1 else 'behind'} the encoder; one is read"
            )
        return (before or [None])[0], (behind or [None])[0]

    def _is_before(self, name: str, layer: str) -> bool:
        rows, columns = self.state[f"{name}weight"].shape
        if rows != self.width or columns != self.width:
            return rows == self.width
        plain, first = _plain(name), layer.partition(".")[0]
        if plain.isdigit() and first.isdigit():
            return int(plain) < int(first)
        if _BEFORE.search(plain) or _BEHIND.search(plain):
            return bool(_BEFORE.search(plain))
        raise BadInput(f"the linear map {plain} could stand before or behind the encoder; call it embed or readout")

    def _is_behind(self, norm: str, layer: str) -> bool:
        plain, first = _plain(norm), layer.partition(".")[0]
        if plain.isdigit() and first.isdigit():
            return int(plain) > int(first)
        return bool(_LAST_NORM.search(plain))

    def _positions(self) -> np.ndarray:
        """The table of positions, one row a token."""
        array = self.state[str(self.parts.positions)]
        if array.ndim == 3 and 1 in array.shape[:2]:
            array = array.reshape(-1, self.width)
        if array.ndim != 2:
            raise BadInput(
                f"the table of positions {self.parts.positions} has the shape {array.shape}, not (tokens, width)"
            )
        return array

    def _linear(self, ours: str, theirs: str | None, width: int) -> dict[str, np.ndarray]:
        """A linear map from rows of `width` numbers; the identity where there is none."""
        if theirs is None:
            return {f"{ours}.weight": np.eye(self.width), f"{ours}.bias": np.zeros(self.width)}
        weight = self.state[f"{theirs}weight"].T
        return {f"{ours}.weight": weight, f"{ours}.bias": self.state.get(f"{theirs}bias", np.zeros(weight.shape[1]))}

    def _layer(self, theirs: str, ours: str, facts: LayerFacts, causal: bool) -> tuple[Block, dict[str, np.ndarray]]:
        d, heads = self.width, facts.heads
        if heads < 1 or d % heads:
            raise BadInput(f"{heads} heads do not divide the width, which is {d}")
        if facts.activation not in ACTIVATIONS:
            raise BadInput(f"the activation is one of {', '.join(ACTIVATIONS)}, not {facts.activation!r}")
        size, tensors = d // heads, {}
        group = f"{ours}.attention.groups.0"
        bias = self.state.get(f"{theirs}self_attn.in_proj_bias", np.zeros(3 * d))
        for part, role in enumerate(("query", "key", "value")):
            rows = slice(part * d, (part + 1) * d)
            tensors[f"{group}.{role}"] = self.state[theirs + _SIGN][rows].reshape(heads, size, d).transpose(0, 2, 1)
            tensors[f"{group}.{role}_bias"] = bias[rows].reshape(heads, size)
        tensors[f"{group}.output"] = self.state[f"{theirs}self_attn.out_proj.weight"].T.reshape(heads, size, d)
        tensors[f"{ours}.attention.output_bias"] = self.state.get(f"{theirs}self_attn.out_proj.bias", np.zeros(d))
        for part, name in (("up", "linear1"), ("down", "linear2")):
            tensors |= {
                f"{ours}.ffn.{end}": value
                for end, value in zip(
                    (part, f"{part}_bias"), self._linear("x", f"{theirs}{name}.", 0).values(), strict=True
                )
            }
        for part, name in (("attention", "norm1"), ("ffn", "norm2")):
            tensors |= self._norm(f"{ours}.norm.{part}", f"{theirs}{name}.")
        attention = Attention((Heads(heads, size, size),), bias=True, mask="causal" if causal else "none")
        hidden = FeedForward(tensors[f"{ours}.ffn.up"].shape[1], facts.activation)
        return Block(
            attention, hidden, Norm("pre" if facts.norm_first else "post", epsilon=facts.norm_epsilon)
        ), tensors

    def _norm(self, ours: str, theirs: str) -> dict[str, np.ndarray]:
        shift = self.state.get(f"{theirs}bias", np.zeros(self.width))
        return {f"{ours}.scale": self.state[f"{theirs}weight"], f"{ours}.shift": shift}

    def _norm_alone(self, ours: str, theirs: str) -> dict[str, np.ndarray]:
        """A norm of the stream is a block that adds nothing and has its norm behind it."""
        d = self.width
        nothing = {"up": (d, 1), "up_bias": (1,), "down": (1, d), "down_bias": (d,)}
        return {f"{ours}.ffn.{name}": np.zeros(shape) for name, shape in nothing.items()} | self._norm(
            f"{ours}.norm.ffn", theirs
        )


def _layer_prefixes(state: Mapping[str, np.ndarray]) -> list[str]:
    """What the names of each layer begin with, in the order in which they are applied: by their numbers."""
    prefixes = [name.removesuffix(_SIGN) for name in state if re.search(rf"(^|\.){re.escape(_SIGN)}$", name)]
    if not prefixes:
        raise BadInput(f"there is no nn.TransformerEncoderLayer in it: no tensor is called ...{_SIGN}")
    if len(prefixes) == 1:
        return prefixes
    numbered = [re.fullmatch(r"(.*?)(\d+)\.", prefix) for prefix in prefixes]
    stems = {"" if match is None else match[1] for match in numbered}
    numbers = sorted(-1 if match is None else int(match[2]) for match in numbered)
    if len(stems) > 1 or numbers != list(range(numbers[0], numbers[0] + len(numbers))) or numbers[0] < 0:
        raise BadInput(f"the layers {', '.join(map(_plain, sorted(prefixes)))} are not numbered one after the other")
    return [f"{min(stems)}{number}." for number in numbers]


def _plain(prefix: str) -> str:
    return prefix.rstrip(".")
