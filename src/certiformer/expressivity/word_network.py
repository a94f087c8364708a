"""Small networks on words in the shapes of real models, run in float64 or in balls by one and the same code.

Five places of the norms, with N the norm, A attention and F hidden units:

| place | a block |
|---|---|
| `none` | y = x + A(x), then y + F(y) |
| `pre` | y = x + A(N(x)), then y + F(N(y)) |
| `post` | y = N(x + A(x)), then N(y + F(y)) |
| `queries` | y = N(N(x) + A(N(x) asks x)), then y + F(y), as SASRec has it |
| `parallel` | x + A(N(x)) + F(N(x)) |

A norm stands before the read-out for `pre`, `queries` and `parallel`. Tokens are rows, maps act as W x.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from flint import arb, ctx
from jaxtyping import Float

from certiformer.errors import BadInput

PLACES = ("none", "pre", "post", "queries", "parallel")
FINAL = ("pre", "queries", "parallel")  # where a norm stands before the read-out
PRECISION = 200
Rows = np.ndarray  # of floats, or of balls as objects


@dataclass(frozen=True)
class NormedShape:
    """What a network looks like, whatever its size: where norms are and which, the units, what a token sees, positions.

    `start`: no codes are added, and a start token comes first; `rotary`: the angle by which the first two coordinates of
    queries and keys turn from token to token.
    """

    place: str = "pre"
    norm: str = "layer"  # "layer" | "rms"
    epsilon: float = 1e-5
    activation: str = "gelu"
    gated: bool = False
    biased: bool = True
    causal: bool = True
    start: bool = False
    rotary: float | None = None

    def __post_init__(self) -> None:
        if self.place not in PLACES or self.norm not in ("layer", "rms") or self.activation not in UNITS:
            raise BadInput(
                f"there is no shape with {self.norm} norms at {self.place!r} and {self.activation!r} units; places are"
                f" {', '.join(PLACES)}, norms layer and rms, units {', '.join(UNITS)}"
            )
        if self.start and not self.causal:
            raise BadInput("a start token tells positions to causal attention only")


@dataclass(frozen=True)
class WordBlock:
    """One head and hidden units; `gate` and `up_bias` may be absent."""

    query: Float[np.ndarray, "size width"]
    key: Float[np.ndarray, "size width"]
    value: Float[np.ndarray, "size width"]
    output: Float[np.ndarray, "width size"]
    up: Float[np.ndarray, "units width"]
    down: Float[np.ndarray, "width units"]
    gate: Float[np.ndarray, "units width"] | None = None
    up_bias: Float[np.ndarray, " units"] | None = None


@dataclass(frozen=True)
class WordNetwork:
    """The weights; `codes` has a row for each position, or is None where a start token stands first."""

    shape: NormedShape
    table: Float[np.ndarray, "words width"]
    codes: Float[np.ndarray, "positions width"] | None
    blocks: tuple[WordBlock, ...]
    readout: Float[np.ndarray, "outputs width"]

    @property
    def units(self) -> int:
        """The hidden units of all blocks."""
        return sum(len(block.up) for block in self.blocks)


@dataclass(frozen=True)
class Arithmetic:
    """Numbers of one kind: how floats become such numbers, and functions of arrays of them."""

    lift: Callable[[np.ndarray], np.ndarray]
    exp: Callable[[Any], Any]
    sqrt: Callable[[Any], Any]
    units: dict[str, Callable[[Any], Any]]


def _float_units() -> dict[str, Callable[[Any], Any]]:
    return {
        "relu": lambda x: np.maximum(x, 0.0),
        "gelu": lambda x: x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2,
        "gelu-tanh": lambda x: x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2,
        "gelu-sigmoid": lambda x: x / (1 + np.exp(-1.702 * x)),
        "silu": lambda x: x / (1 + np.exp(-x)),
        "tanh": np.tanh,
    }


def _ball_units() -> dict[str, Callable[[Any], Any]]:
    def gelu_tanh(x: arb) -> arb:
        return x * (1 + ((2 / arb.pi()).sqrt() * (x + arb("0.044715") * x * x * x)).tanh()) / 2

    units = {
        "relu": lambda x: x.max(arb(0)),
        "gelu": lambda x: x * (1 + (x / arb(2).sqrt()).erf()) / 2,
        "gelu-tanh": gelu_tanh,
        "gelu-sigmoid": lambda x: x / (1 + (-arb("1.702") * x).exp()),
        "silu": lambda x: x / (1 + (-x).exp()),
        "tanh": lambda x: x.tanh(),
    }
    return {name: np.vectorize(unit, otypes=[object]) for name, unit in units.items()}


UNITS = tuple(_float_units())
FLOATS = Arithmetic(lambda a: np.asarray(a, float), np.exp, np.sqrt, _float_units())
BALLS = Arithmetic(
    np.vectorize(lambda x: arb(float(x)), otypes=[object]),
    np.vectorize(lambda x: x.exp(), otypes=[object]),
    np.vectorize(lambda x: x.sqrt(), otypes=[object]),
    _ball_units(),
)


def outputs(network: WordNetwork, word: Sequence[int], kind: Arithmetic = FLOATS) -> Rows:
    """The output at every token of a word; with `BALLS` each is an enclosure of the real number.

    The start token, where the shape has one, is part of the word.
    """
    with ctx.workprec(PRECISION):
        rows = stream(network, word, kind)
        if network.shape.place in FINAL:
            rows = normed(network.shape, rows, kind)
        return rows @ kind.lift(network.readout).T


def stream(network: WordNetwork, word: Sequence[int], kind: Arithmetic = FLOATS) -> Rows:
    """The tokens behind the last block."""
    rows = _embedded(network, word, kind)
    for block in network.blocks:
        rows = _block(network.shape, block, rows, kind)
    return rows


def before_hidden_units(network: WordNetwork, word: Sequence[int]) -> tuple[Rows, Rows]:
    """What the hidden units of the last block read, and what their output is added to, in float64."""
    rows = _embedded(network, word, FLOATS)
    for block in network.blocks[:-1]:
        rows = _block(network.shape, block, rows, FLOATS)
    return _attended(network.shape, network.blocks[-1], rows, FLOATS)


def before_attention(network: WordNetwork, word: Sequence[int]) -> tuple[Rows, Rows]:
    """What the queries and what the keys of the last block read, in float64."""
    rows = _embedded(network, word, FLOATS)
    for block in network.blocks[:-1]:
        rows = _block(network.shape, block, rows, FLOATS)
    return _asked(network.shape, rows, FLOATS)


def normed(shape: NormedShape, rows: Rows, kind: Arithmetic) -> Rows:
    """The norm of the shape, with gain 1 and shift 0, row by row."""
    if shape.place == "none":
        return rows
    width = rows.shape[1]
    centred = rows - rows.sum(axis=1, keepdims=True) / width if shape.norm == "layer" else rows
    squares = (centred * centred).sum(axis=1, keepdims=True) / width
    return centred / kind.sqrt(squares + kind.lift(np.array(shape.epsilon)))


def silent(block: WordBlock, *, attention: bool = False, hidden: bool = False) -> WordBlock:
    """The block without the output of its attention, or of its hidden units, or of both."""
    if attention:
        block = replace(block, output=np.zeros_like(block.output))
    return replace(block, down=np.zeros_like(block.down)) if hidden else block


def _embedded(network: WordNetwork, word: Sequence[int], kind: Arithmetic) -> Rows:
    rows = network.table[list(word)]
    return kind.lift(rows) if network.codes is None else kind.lift(rows) + kind.lift(network.codes[: len(word)])


def _block(shape: NormedShape, block: WordBlock, rows: Rows, kind: Arithmetic) -> Rows:
    read, kept = _attended(shape, block, rows, kind)
    raised = read @ kind.lift(block.up).T
    if block.up_bias is not None:
        raised = raised + kind.lift(block.up_bias)
    unit = kind.units[shape.activation]
    hidden = unit(raised) if block.gate is None else unit(read @ kind.lift(block.gate).T) * raised
    after = kept + hidden @ kind.lift(block.down).T
    return normed(shape, after, kind) if shape.place == "post" else after


def _asked(shape: NormedShape, rows: Rows, kind: Arithmetic) -> tuple[Rows, Rows]:
    inside = rows if shape.place == "post" else normed(shape, rows, kind)
    return inside, rows if shape.place == "queries" else inside


def _attended(shape: NormedShape, block: WordBlock, rows: Rows, kind: Arithmetic) -> tuple[Rows, Rows]:
    asking, asked = _asked(shape, rows, kind)
    heard = _attention(shape, block, asking, asked, kind)
    if shape.place == "parallel":
        return asking, rows + heard
    after = (asking if shape.place == "queries" else rows) + heard
    inside = normed(shape, after, kind)
    return inside, after if shape.place == "pre" else inside


def _attention(shape: NormedShape, block: WordBlock, asking: Rows, asked: Rows, kind: Arithmetic) -> Rows:
    query, key = asking @ kind.lift(block.query).T, asked @ kind.lift(block.key).T
    value = asked @ kind.lift(block.value).T
    if shape.rotary is not None:
        query, key = _turned(query, shape.rotary, kind), _turned(key, shape.rotary, kind)
    heard = []
    for place, row in enumerate(query):
        seen = place + 1 if shape.causal else len(query)
        weights = kind.exp(key[:seen] @ row)
        heard.append((weights @ value[:seen]) / weights.sum())
    return np.stack(heard) @ kind.lift(block.output).T


def _turned(rows: Rows, angle: float, kind: Arithmetic) -> Rows:
    """Row i with its first two coordinates turned by i times the angle."""
    turned = rows.copy()
    for place, row in enumerate(rows):
        if kind is BALLS:
            turn = arb(angle) * place
            cosine, sine = turn.cos(), turn.sin()
        else:
            cosine, sine = math.cos(angle * place), math.sin(angle * place)
        turned[place, 0], turned[place, 1] = cosine * row[0] - sine * row[1], sine * row[0] + cosine * row[1]
    return turned
