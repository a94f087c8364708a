"""The rules of proof trees, one module each, and the walk that applies them.

`prove(node, problem, ...)` returns an upper bound of sup |left - right| that is at most the node's bound, or raises
`Refused`. The rules triangle, sum, outputs and ridges recurse; boxes and theorems are leaves.
"""

from __future__ import annotations

from collections.abc import Callable

from flint import arb

from certiformer.certificate import Boxes, Finite, Inner, Margin, Node, Outputs, Ridges, Theorem, Triangle
from certiformer.certificate.tree import rule_name
from certiformer.checker.rules import outputs, ridges, triangle
from certiformer.checker.rules import sum as sum_rule
from certiformer.checker.rules.stated import stated_bound as stated_bound
from certiformer.kernel.axioms import axiom
from certiformer.kernel.balls import ZERO, larger
from certiformer.kernel.problem import Problem
from certiformer.kernel.refusal import Refused as Refused

BoxProver = Callable[[Boxes, Problem, tuple[int, ...], arb], arb]


def subproblems(node: Inner, problem: Problem) -> tuple[list[Problem], arb]:
    """The problems of a node's children, and what the step itself adds to their bounds."""
    if isinstance(node, Triangle):
        return triangle.children(node, problem), ZERO
    if isinstance(node, Ridges):
        return ridges.split(node, problem)
    if isinstance(node, Outputs):
        problems, spent = outputs.split(problem), ZERO
    else:
        problems, spent = sum_rule.split(problem)
    if len(problems) != len(node.children):
        raise Refused(f"the {rule_name(node)} node has {len(node.children)} children for {len(problems)} parts")
    return problems, spent


def prove(node: Node, problem: Problem, boxes: BoxProver, path: tuple[int, ...] = ()) -> arb:
    """Check a whole proof tree; `boxes` proves the box leaves (in this process or in several)."""
    limit = stated_bound(node)
    if isinstance(node, Boxes):
        proved = boxes(node, problem, path, limit)
    elif isinstance(node, Finite):
        raise Refused("the rule finite needs a claim about a finite set of rows, not about a box")
    elif isinstance(node, Margin):
        raise Refused("the rule margin needs a claim about a compiled program, not about a box")
    elif isinstance(node, Theorem):
        proved = axiom(node.id, "functions on a box").check(node, problem)
    else:
        problems, proved = subproblems(node, problem)
        for position, (child, part) in enumerate(zip(node.children, problems, strict=True)):
            bound = prove(child, part, boxes, (*path, position))
            proved = larger(proved, bound) if isinstance(node, Outputs) else proved + bound
        proved = proved.upper()
    if not proved <= limit:
        raise Refused(
            f"a {type(node).__name__.lower()} node claims {node.bound} but only about {float(proved):.6g} is proved"
        )
    return proved
