"""A claim as the search sees it: the model and the target prepared once, and what has been found about them so far.

Nothing here is trusted: trees are proposals for the checker, and the lower end counts only with its enclosure in balls.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np

from certiformer.kernel import Refused
from certiformer.kernel.balls import BallDomain, decimal, working_precision
from certiformer.kernel.certificate import Boxes, Inner, Node, Split, Witness
from certiformer.kernel.check import error_lower
from certiformer.kernel.layers import as_prototypes
from certiformer.kernel.problem import Network, Problem, ProgramFunction
from certiformer.kernel.weights import read_model
from certiformer.model import Transformer
from certiformer.model.store import tensors_to_bytes
from certiformer.search.request import Options, teacher_model
from certiformer.search.watching import show
from certiformer.target import Program, Target, Teacher
from certiformer.target.floating import as_jax
from certiformer.verify import Falsifier, FloatDomain

Progress = Callable[[str, float, float | None, str], None]


@dataclass(frozen=True)
class Tree:
    """A proof tree with its leaves and the bound that it is hoped to give.

    The nodes state what would do. `goal` says, in decimals, how far below that the leaves of a boxes node are worth some
    effort of the kernel.
    """

    proof: Node
    leaves: bytes
    upper: Fraction
    goal: str | None = None


def confirmed(tree: Tree, covers: Mapping[tuple[int, ...], bytes]) -> tuple[Node, bytes]:
    """The proof and its leaves with the covers that the kernel accepted in the place of those that the search proposed."""
    if not covers:
        return tree.proof, tree.leaves
    leaves = bytearray()

    def node_at(path: tuple[int, ...], node: Node) -> Node:
        if isinstance(node, Boxes):
            leaves.extend(covers[path])
            return replace(node, offset=len(leaves) - len(covers[path]), length=len(covers[path]))
        if isinstance(node, Inner):
            return replace(node, children=tuple(node_at((*path, i), child) for i, child in enumerate(node.children)))
        return node

    return node_at((), tree.proof), bytes(leaves)


@dataclass
class Evidence:
    """What was found: trees (tightest first), a proved lower end with its witness, and why a rule failed.

    `limit` says what no weights of the architecture can repair, if that is more than epsilon.
    """

    trees: list[Tree] = field(default_factory=list)
    witness: Witness | None = None
    lower: Fraction = Fraction(0)
    limit: str = ""
    reasons: list[str] = field(default_factory=list)
    boxes: int = 0
    seconds: dict[str, float] = field(default_factory=dict)


class Case:
    """A model and a target, with everything that several rules need prepared once."""

    def __init__(self, model: Transformer, target: Target | Teacher, epsilon: Fraction, options: Options):
        working_precision()
        self.model, self.target, self.epsilon, self.options = model, target, epsilon, options
        network = Network(*read_model(model.config.to_bytes(), tensors_to_bytes(model)))
        left = as_prototypes(network) or network
        if isinstance(target, Teacher):
            right = Network(*read_model(target.config, target.tensors))
        else:
            right = ProgramFunction(target.program)
        self.problem = Problem(left, right, BallDomain(target.domain))
        self.domain = FloatDomain(self.problem.domain)
        self.end = time.monotonic() + options.seconds
        self.one_part: Split | None = None  # the node that reads the whole claim as one sum of units

    @property
    def seconds_left(self) -> float:
        """What is left of the seconds that search and check may take together."""
        return max(0.0, self.end - time.monotonic())

    @property
    def wanted(self) -> Program | Transformer:
        """What is approximated, for the float64 search."""
        return teacher_model(self.target) if isinstance(self.target, Teacher) else self.target.program

    @property
    def points_at_once(self) -> int:
        """How many points can be evaluated together in a moderate amount of memory."""
        wanted = self.wanted
        return min(part.points_at_once for part in (self.model, wanted) if isinstance(part, Transformer))

    def error_rows(self) -> Callable:
        """T - f in float64 on rows of points."""
        wanted = self.wanted
        rows = _model_rows(wanted) if isinstance(wanted, Transformer) else as_jax(wanted)
        own = _model_rows(self.model)
        return lambda points: own(points) - rows(points)


def _model_rows(model: Transformer) -> Callable:
    """The outputs of a model on rows of points, to be traced."""
    shape = (model.config.tokens, model.config.input.width)
    tensors = jax.tree.map(jnp.asarray, model)
    return lambda points: jax.vmap(lambda p: tensors(p.reshape(shape)))(points)


def raise_lower(case: Case, found: Evidence, falsifier: Falsifier, extra: np.ndarray | None) -> None:
    """Look for a larger error; keep it only with its enclosure in balls."""
    point, value = falsifier.search(extra)
    if not value > float(found.lower):
        return
    witness = falsifier.witness(point)
    try:
        proved = decimal(error_lower(case.problem, witness), up=False)
    except Refused:
        return
    if Fraction(proved) > found.lower:
        found.witness, found.lower = replace(witness, error=proved), Fraction(proved)
        show("lower", lambda: (found,))


def tight_goal(lower: Fraction, epsilon: Fraction, quality: float) -> float:
    """The threshold that makes the bracket tight: (1 + quality) times the lower end, never above epsilon."""
    return min(float(lower) * (1 + quality), float(epsilon))
