"""What a transformer is made of, as frozen records that are always legal.

A `Config` is the content of `config.json`. Making one checks it (`schema.problems`) and raises a single `BadInput` with
every reason, so no other code has to doubt it. The kinds are plain strings, each looked up in one table: a new option
is a new kind, never a second transformer.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import Any

from certiformer.errors import BadInput
from certiformer.model import schema


@dataclass(frozen=True)
class Input:
    """`tokens` data tokens: `continuous` with `width` numbers each, or `ids` below `vocabulary` (then any length
    from 1 to `tokens` may be fed)."""

    kind: str
    tokens: int
    width: int | None = None
    vocabulary: int | None = None


@dataclass(frozen=True)
class Code:
    """What is added to data token t: `none`, `one-hot`, `sinusoidal`, `circle`, or a stored `table`."""

    kind: str = "none"
    offset: int | None = None
    width: int | None = None
    period: int | None = None


@dataclass(frozen=True)
class Heads:
    """A group of `count` heads with the same key and value size."""

    count: int
    key: int
    value: int


@dataclass(frozen=True)
class Attention:
    """One attention sub-layer; its heads come in groups of equal size."""

    heads: tuple[Heads, ...]
    kind: str = "softmax"
    bias: bool = False
    scale: str = "inverse-sqrt"
    mask: str = "none"
    score_bias: str = "none"
    residual: bool = True


@dataclass(frozen=True)
class FeedForward:
    """One position-wise sub-layer with `width` hidden units and the activation `kind`."""

    width: int
    kind: str = "relu"
    residual: bool = True


@dataclass(frozen=True)
class Norm:
    """A normalisation of each sub-layer of a block, before (`pre`) or after (`post`) it."""

    place: str
    kind: str = "layer"
    epsilon: float = 1e-5


@dataclass(frozen=True)
class Block:
    """Attention, then feed-forward; each may be absent, not both."""

    attention: Attention | None = None
    ffn: FeedForward | None = None
    norm: Norm | None = None


@dataclass(frozen=True)
class Readout:
    """What the linear read-out sees: data token number `token`, the `mean` or the `sum` of the data tokens, `all` of
    them one by one, or the `register` number `token`."""

    kind: str
    token: int | None = None


@dataclass(frozen=True)
class Config:
    """The whole transformer; see the page "The model" of the documentation for the meaning of every entry.

    >>> Config(Input("continuous", tokens=0, width=1), width=2, outputs=1, readout=Readout("token", 0), registers=-1)
    Traceback (most recent call last):
    ...
    certiformer.errors.BadInput: this is not a transformer we can build: registers must be a non-negative integer, not \
-1; input.tokens must be a positive integer, not 0
    """

    input: Input
    width: int
    outputs: int
    readout: Readout
    blocks: tuple[Block, ...] = ()
    registers: int = 0
    code: Code = Code()
    loops: int = 1
    dtype: str = "float64"

    def __post_init__(self) -> None:
        _refuse(schema.problems(self.to_json()))

    @property
    def tokens(self) -> int:
        """The (largest) number of data tokens."""
        return self.input.tokens

    @property
    def length(self) -> int:
        """The (largest) length of the whole sequence: registers first, then data tokens."""
        return self.registers + self.input.tokens

    @property
    def shortest(self) -> int:
        """The smallest number of data tokens that the read-out can do with."""
        return self.readout.token + 1 if self.readout.kind == "token" and self.readout.token is not None else 1

    def to_json(self) -> dict[str, Any]:
        """The object of `config.json`."""
        return {"format": schema.FORMAT, **_to_json(self)}

    @staticmethod
    def from_json(data: Any) -> Config:
        """The configuration that `to_json` wrote; anything else is refused with every reason."""
        _refuse(schema.problems(data))
        blocks = tuple(
            Block(
                _read_attention(block["attention"]),
                _read(FeedForward, block["ffn"]),
                _read(Norm, block["norm"]),
            )
            for block in data["blocks"]
        )
        entries = {name: data[name] for name in ("width", "registers", "loops", "outputs", "dtype")}
        parts = {"input": Input(**data["input"]), "code": Code(**data["code"]), "readout": Readout(**data["readout"])}
        return Config(**entries, **parts, blocks=blocks)

    def to_bytes(self) -> bytes:
        """The canonical bytes of `config.json`: sorted keys, one-space indent, final newline."""
        return (json.dumps(self.to_json(), sort_keys=True, indent=1, allow_nan=False) + "\n").encode("ascii")


def _refuse(reasons: list[str]) -> None:
    if reasons:
        raise BadInput(f"this is not a transformer we can build: {'; '.join(reasons)}")


# An absent sub-layer is written as null; an entry that its kind does not have is not written at all.
_WRITTEN_AS_NULL = ("attention", "ffn", "norm")


def _to_json(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        entries = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return {name: _to_json(v) for name, v in entries.items() if v is not None or name in _WRITTEN_AS_NULL}
    if isinstance(value, tuple):
        return [_to_json(v) for v in value]
    return value


def _read(part: type, entries: dict[str, Any] | None) -> Any:
    return None if entries is None else part(**entries)


def _read_attention(entries: dict[str, Any] | None) -> Attention | None:
    if entries is None:
        return None
    return Attention(**{**entries, "heads": tuple(Heads(**group) for group in entries["heads"])})
