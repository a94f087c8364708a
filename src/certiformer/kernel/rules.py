"""The rules of proof trees: one function each, and the walk that applies them.

`prove(node, problem, ...)` returns an upper bound of sup |left - right| that is at most the node's bound, or raises
`Refused`; `prove_finite` does the same for a finite list of rows. Boxes, finite and theorems are leaves, the other rules
recurse.
"""

from __future__ import annotations

from collections.abc import Callable

from flint import arb

from certiformer.errors import BadInput
from certiformer.kernel.axioms import axiom
from certiformer.kernel.balls import ZERO, ball, larger
from certiformer.kernel.certificate import (
    Boxes,
    Finite,
    Inner,
    Node,
    Outputs,
    Situations,
    Split,
    Theorem,
    Triangle,
    rule_name,
)
from certiformer.kernel.numbers import positive
from certiformer.kernel.problem import FiniteProblem, Problem, ProgramFunction, select
from certiformer.kernel.programs import Program
from certiformer.kernel.refusal import Refused
from certiformer.kernel.split import split

BoxProver = Callable[[Boxes, Problem, tuple[int, ...], arb], arb]
MAX_ROWS = 1_000_000


def stated_bound(node: Node) -> arb:
    """The bound a node claims, as a ball of its exact decimal text."""
    try:
        return ball(positive(node.bound)).lower()
    except BadInput as error:
        raise Refused(f"the bound {node.bound!r} of a proof node is not a positive number: {error}") from None


def prove(node: Node, problem: Problem, boxes: BoxProver, path: tuple[int, ...] = ()) -> arb:
    """Check a whole proof tree; `boxes` proves the box leaves (in this process or in several)."""
    limit = stated_bound(node)
    if isinstance(node, Boxes):
        proved = boxes(node, problem, path, limit)
    elif isinstance(node, Finite):
        raise Refused("the rule finite needs a claim about a finite set of rows, not about a box")
    elif isinstance(node, Situations):
        raise Refused("the rule situations needs a claim about a compiled program, not about a box")
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


def subproblems(node: Inner, problem: Problem) -> tuple[list[Problem], arb]:
    """The problems of a node's children, and what the step itself adds to their bounds."""
    if isinstance(node, Triangle):
        return triangle(node, problem), ZERO
    problems, spent = split(node, problem) if isinstance(node, Split) else (outputs(problem), ZERO)
    if len(problems) != len(node.children):
        raise Refused(f"the {rule_name(node)} node has {len(node.children)} children for {len(problems)} parts")
    return problems, spent


def outputs(problem: Problem) -> list[Problem]:
    """Rule *outputs*: one problem for each output.

    Statement. If |A_o - B_o| <= u_o on the domain for every output o, then max_o sup |A_o - B_o| <= max_o u_o. (By
    definition.)
    """
    return [
        Problem(select(problem.left, o), select(problem.right, o), problem.domain) for o in range(problem.left.outputs)
    ]


def triangle(node: Triangle, problem: Problem) -> list[Problem]:
    """Rule *triangle*: the two problems A - P and P - B, through a function P that the certificate carries.

    Statement. If sup |A - P| <= u and sup |P - B| <= v on the domain for some program P, then sup |A - B| <= u + v.

    Proof. The triangle inequality at every point and for every output. P is any program of the target language; it is read
    from the certificate and needs no relation to A or B beyond the two bounds. QED.
    """
    try:
        program = Program.from_json(node.through)
    except BadInput as error:
        raise Refused(str(error)) from None
    if program.inputs != problem.domain.dimension or len(program.outputs) != problem.left.outputs:
        raise Refused("the intermediate program does not have the inputs and outputs of the claim")
    middle = ProgramFunction(program)
    return [Problem(problem.left, middle, problem.domain), Problem(middle, problem.right, problem.domain)]


def prove_finite(node: Node, problem: FiniteProblem, progress: Callable[[int, int], None] | None = None) -> arb:
    """Check the proof of a finite claim: a finite node, or a theorem about all rows at once."""
    if isinstance(node, Finite):
        return finite(problem, progress)
    if isinstance(node, Theorem):
        return axiom(node.id, "sequences").check(node, problem)
    raise Refused("a claim about a finite set of rows cannot be proved by a rule for boxes")


def finite(problem: FiniteProblem, progress: Callable[[int, int], None] | None = None) -> arb:
    """Rule *finite*: the largest error over all rows; raises `Refused` when a row cannot be enclosed.

    Statement. Let the claim speak of rows (x_1, y_1), ..., (x_N, y_N). If for every row and output the ball of T(x_r) -
    y_r lies in [-bound, bound], then max |T(x_r) - y_r| <= bound.

    Proof. The rows are the whole domain, and the ball contains T(x_r) - y_r for the exact stored weights. QED.

    The rows come from the sealed `target.json`; nothing of what the search computed is read.
    """
    if problem.target.count > MAX_ROWS:
        raise Refused(f"the claim speaks of more than {MAX_ROWS:,} rows, too many to evaluate one by one")
    worst = ZERO
    for number, (inputs, wanted) in enumerate(problem.target.rows, 1):
        for error in problem.errors(inputs, wanted):
            worst = larger(worst, error.abs_upper())
        if progress and number % 100 == 0:
            progress(number, problem.target.count)
    if not worst.is_finite():
        raise Refused("the error at a row could not be enclosed")
    return worst
