"""The rules of proof trees, one module each, and the walk that applies them.

`prove(node, problem, ...)` returns an upper bound of sup |left - right| that is at most the node's bound, or raises
`Refused`. The sum and triangle rules recurse; boxes and theorems are leaves.
"""

from __future__ import annotations

from collections.abc import Callable

from flint import arb

from certiformer.certificate import Boxes, Node, Sum, Theorem, Triangle
from certiformer.checker.balls import ZERO, ball
from certiformer.checker.problem import Problem
from certiformer.checker.rules import sum as sum_rule
from certiformer.checker.rules import triangle, voronoi_first_order, voronoi_second_order
from certiformer.checker.rules.refusal import Refused as Refused
from certiformer.errors import BadInput
from certiformer.target import parse_epsilon

THEOREMS = {
    "voronoi_first_order": voronoi_first_order.check,
    "voronoi_second_order": voronoi_second_order.check,
}

BoxProver = Callable[[Boxes, Problem, tuple[int, ...], arb], arb]


def stated_bound(node: Node) -> arb:
    """The bound a node claims, as a ball of its exact decimal text."""
    try:
        return ball(parse_epsilon(node.bound)).lower()
    except BadInput as error:
        raise Refused(f"the bound {node.bound!r} of a proof node is not a positive number: {error}") from None


def subproblems(node: Sum | Triangle, problem: Problem) -> tuple[list[Problem], arb]:
    """The problems of a node's children, and what the step itself adds to the sum of their bounds."""
    if isinstance(node, Triangle):
        return triangle.children(node, problem), ZERO
    problems, spent = sum_rule.split(problem)
    if len(problems) != len(node.children):
        raise Refused(f"the sum node has {len(node.children)} children for {len(problems)} groups of variables")
    return problems, spent


def prove(node: Node, problem: Problem, boxes: BoxProver, path: tuple[int, ...] = ()) -> arb:
    """Check a whole proof tree; `boxes` proves the box leaves (in this process or in several)."""
    limit = stated_bound(node)
    if isinstance(node, Boxes):
        proved = boxes(node, problem, path, limit)
    elif isinstance(node, Theorem):
        if node.id not in THEOREMS:
            raise Refused(f"the certificate rests on a theorem that this checker does not know: {node.id!r}")
        proved = THEOREMS[node.id](node, problem)
    else:
        problems, proved = subproblems(node, problem)
        for position, (child, part) in enumerate(zip(node.children, problems, strict=True)):
            proved = proved + prove(child, part, boxes, (*path, position))
        proved = proved.upper()
    if not proved <= limit:
        raise Refused(
            f"a {type(node).__name__.lower()} node claims {node.bound} but only {float(proved):.6g} is proved"
        )
    return proved
