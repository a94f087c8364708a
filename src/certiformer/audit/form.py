"""The one form that every checkpoint is read into: layers with per-head maps, each weight with where it came from.

Conventions. A token is a column vector x of width d and a map acts as y = W x, so a `Weight` has the shape (out, in), the
layout of `torch.nn.Linear`, whatever the file says. Heads are the leading axis: `query` is (H, e, d), `key` and `value`
(G, e, d) with G key-value heads, query head h using group h // (H / G), and `output` (H, d, e): head h contributes
`output[h] @ value[h // (H / G)]`. Scores are `scale` times q . k. What neither file nor config says is None, never
guessed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

FIXED_CODES = ("sinusoidal", "one-hot", "circle")  # added to the tokens, and not trained


def _weights_in(record: Any) -> Iterator[Weight]:
    """The weights of a record and of the records in it, field by field."""
    for place in fields(record):
        held = getattr(record, place.name)
        parts = held.values() if isinstance(held, dict) else held if isinstance(held, tuple) else (held,)
        for part in parts:
            if isinstance(part, Weight):
                yield part
            elif isinstance(part, (Norm, Attention, FeedForward, Layer)):
                yield from _weights_in(part)


@dataclass(frozen=True)
class Source:
    """Where numbers come from: `tensor` of `file`, the part that was taken, whether it was transposed, and what was
    done to it (for instance `1 + w` for a gain, `g v / |v|` for a weight norm)."""

    tensor: str
    file: str
    part: str = ""
    transposed: bool = False
    made: str = ""


@dataclass(frozen=True)
class Weight:
    """A weight that is loaded when it is needed, and not kept.

    `count` is how many stored numbers it accounts for. `stored` is the type in the file; `load` gives float32 where that
    holds every number of the file, else float64.
    """

    source: Source
    shape: tuple[int, ...]
    stored: str
    load: Callable[[], np.ndarray]

    def read(self) -> np.ndarray:
        """The weight in float64, which figures are computed in."""
        return np.asarray(self.load(), np.float64)

    @property
    def count(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True)
class Norm:
    """A layer norm or RMS norm: the gain as it multiplies (offsets applied), the shift, and the epsilon."""

    kind: str  # "layer" | "rms"
    gain: Weight | None
    shift: Weight | None = None
    epsilon: float | None = None


@dataclass(frozen=True)
class Attention:
    """One attention sub-layer; `scale` multiplies the scores (None: not known), `cap` is a soft cap of the scores."""

    query: Weight
    key: Weight
    value: Weight
    output: Weight | None  # None: the architecture has no output projection
    query_bias: Weight | None = None
    key_bias: Weight | None = None
    value_bias: Weight | None = None
    output_bias: Weight | None = None
    query_norm: Norm | None = None
    key_norm: Norm | None = None
    scale: float | None = None
    cap: float | None = None
    causal: bool | None = None
    window: int | None = None
    softmax: bool = True
    cross: bool = False  # keys and values come from another sequence


@dataclass(frozen=True)
class FeedForward:
    """Hidden units: down (activation(up x)), or down (activation(gate x) * up x) where there is a gate."""

    up: Weight
    down: Weight
    gate: Weight | None = None
    up_bias: Weight | None = None
    down_bias: Weight | None = None
    gate_bias: Weight | None = None
    activation: str | None = None


@dataclass(frozen=True)
class Layer:
    """One block; it is applied `repeats` times (shared layers).

    `norms` by what they stand before (`norm_place` "pre", "sandwich", "parallel") or behind ("post"): "attention",
    "cross", "ffn"; in a sandwich "attention_post" and "ffn_post" stand behind. Several attentions are groups of heads
    side by side, or self- and then cross-attention (`cross`).
    """

    name: str
    attention: tuple[Attention, ...] = ()
    ffn: tuple[FeedForward, ...] = ()  # several for a mixture of experts
    norms: dict[str, Norm] = field(default_factory=dict)
    others: dict[str, Weight] = field(default_factory=dict)  # routers and the like: counted, measured as matrices
    repeats: int = 1
    heads_known: bool = True  # False: the number of heads is in no file; the maps are then one head


@dataclass(frozen=True)
class Checkpoint:
    """A trained transformer as its files say it is."""

    family: str
    layers: tuple[Layer, ...]
    width: int
    # "learned" | "sinusoidal" | "one-hot" | "circle" | "rope" | "alibi" | "relative" | "none" | None: not known
    positions: str | None = None
    # "pre" | "post" | "parallel" | "sandwich" | "queries" (keys and values come from tokens no norm has seen)
    # | "late" (before the parts, and residuals are what they gave) | None
    norm_place: str | None = None
    embeddings: dict[str, Weight] = field(default_factory=dict)  # tokens, positions, types, patches ...
    embedding_scale: float = 1.0
    head: Weight | None = None  # None: tied to the token embedding, or absent
    head_tied: bool = False
    head_bias: Weight | None = None
    final_norm: Norm | None = None
    norms: dict[str, Norm] = field(default_factory=dict)  # outside the layers
    others: dict[str, Weight] = field(default_factory=dict)
    context: int | None = None  # the longest input it was made for
    vocabulary: int | None = None
    config: dict = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def token_table(self) -> str | None:
        """The name of the table of tokens among the embeddings."""
        return next((name for name in ("word", "item", "token") if name in self.embeddings), None)

    @property
    def adds_codes(self) -> bool:
        """Whether codes of positions are added to the tokens."""
        return self.positions in ("learned", *FIXED_CODES)

    def weights(self) -> Iterator[Weight]:
        """Every weight of the checkpoint, in a fixed order, each once."""
        yield from _weights_in(self)


@dataclass(frozen=True)
class Coverage:
    """How many stored parameters are accounted for; the rest by name. Buffers that are no weights are listed apart,
    and so are copies: tied tensors that were written twice, and that count once."""

    total: int
    accounted: int
    missing: tuple[tuple[str, tuple[int, ...]], ...] = ()
    buffers: tuple[str, ...] = ()
    copies: tuple[str, ...] = ()
