"""What every construction shares: the task it is given, the plan it makes, and what it builds.

A method is a module with `LAYOUTS` (how it can arrange the input in tokens, best first) and `plan(task)`, which raises
`Refused` with the reason when it does not apply. Planning decides sizes and the predicted bound without computing weights,
so that methods can be compared before one of them is built.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from importlib import import_module
from typing import Any, Literal, Protocol

from certiformer.errors import BadInput
from certiformer.kernel.certificate import Node
from certiformer.model import Transformer
from certiformer.target import Program, Target

Layout = Literal["token", "sequence", "output-token"]

# The method names of the command line and the modules behind them.
METHODS = {
    "ridge": "certiformer.construct.ridge",
    "gather": "certiformer.construct.exact_gather",
    "shifted-grids": "certiformer.construct.shifted_grids",
    "ridge-temperatures": "certiformer.construct.ridge_temperatures",
    "temperatures": "certiformer.construct.temperatures",
    "sigmoid-heads": "certiformer.construct.sigmoid_heads",
    "squares-rbf": "certiformer.construct.squares_rbf",
    "korovkin": "certiformer.construct.korovkin",
    "voronoi": "certiformer.construct.voronoi",
    "max-norm": "certiformer.construct.max_norm_prototypes",
}


@dataclass(frozen=True)
class Shape:
    """The map from `tokens` x `width` inputs to `out_tokens` x `out_width` outputs, and how tokens carry it.

    `layout` is `token` (all inputs in one token), `sequence` (a token per row), `output-token` (a token per row, the
    answer read off a special token), or None while the choice is free.
    """

    tokens: int
    width: int
    out_tokens: int
    out_width: int
    layout: Layout | None = None

    @property
    def inputs(self) -> int:
        return self.tokens * self.width

    @property
    def outputs(self) -> int:
        return self.out_tokens * self.out_width

    @property
    def per_position(self) -> bool:
        """Whether every token answers for its own row; otherwise one token answers for all outputs."""
        return self.layout == "sequence" and self.tokens > 1 and self.out_tokens == self.tokens


@dataclass(frozen=True)
class Task:
    """What to construct: a target on its box, the epsilon to stay below, the shape of inputs and outputs, a seed.

    The constructions of this package need a `Target`; a `Teacher` can be imitated by training.
    """

    target: Any
    epsilon: Fraction
    shape: Shape
    seed: int = 0

    @staticmethod
    def of(target: Target, epsilon: Fraction, seed: int = 0) -> Task:
        """The task of a target that has no token structure of its own: one number a token, all outputs together."""
        return Task(target, epsilon, Shape(target.domain.dimension, 1, 1, len(target.program.outputs)), seed)


@dataclass(frozen=True)
class Size:
    """How large a transformer is: nonzero and all weights, heads, hidden units of the feed-forward part, registers."""

    nonzero: int
    dense: int
    heads: int
    units: int
    registers: int

    @staticmethod
    def of(model: Transformer) -> Size:
        config = model.config
        heads = sum(g.count for b in config.blocks if b.attention is not None for g in b.attention.heads)
        units = sum(b.ffn.width for b in config.blocks if b.ffn is not None)
        return Size(model.nonzero_count(), model.parameter_count(), heads, units, config.registers)


@dataclass(frozen=True)
class Construction:
    """A transformer and the proof tree that shows it is good enough, if a theorem gives one, with the tree's leaves.

    `through` is a program close to the transformer and to the target, for a proof by way of it.
    """

    model: Transformer
    proof: Node | None
    leaves: bytes = b""
    through: Program | None = None


class Plan(Protocol):
    """A transformer that has been decided on but not computed."""

    @property
    def theorem(self) -> str:
        """What predicts the bound: the id of a theorem rule, or a few words."""
        ...

    @property
    def bound(self) -> float:
        """The predicted bound of the error."""
        ...

    def size(self) -> Size: ...

    def realise(self) -> Construction: ...


class Method(Protocol):
    """A module that constructs transformers."""

    LAYOUTS: tuple[Layout, ...]

    def plan(self, task: Task) -> Plan: ...


def method(name: str) -> Method:
    """The method of that name."""
    if name not in METHODS:
        raise BadInput(f"--method is one of {', '.join(METHODS)}, not {name!r}")
    return import_module(METHODS[name])  # type: ignore[return-value]


def with_layout(name: str, shape: Shape) -> Shape:
    """The shape with a layout that the method can use; an explicit other choice is a mistake of the request."""
    possible = method(name).LAYOUTS
    if shape.layout is None:
        # One number needs no sequence.
        layout = "token" if shape.inputs == 1 and "token" in possible else possible[0]
        return replace(shape, layout=layout)
    if shape.layout not in possible:
        raise BadInput(f"--method {name} needs --layout {' or '.join(possible)}, not {shape.layout}")
    return shape
