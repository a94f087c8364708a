"""Rule *finite*: the transformer is evaluated in balls at every row of a finite target.

Statement. Let the claim speak of rows (x_1, y_1), ..., (x_N, y_N). If for every row and output the ball of T(x_r) -
y_r lies in [-bound, bound], then max |T(x_r) - y_r| <= bound.

Proof. The rows are the whole domain, and the ball contains T(x_r) - y_r for the exact stored weights. QED.

The rows come from the sealed `target.json`; nothing of what the search computed is read.
"""

from __future__ import annotations

from collections.abc import Callable

from flint import arb

from certiformer.certificate import Finite, Node, Theorem
from certiformer.kernel.axioms import axiom
from certiformer.kernel.balls import ZERO, larger
from certiformer.kernel.points import FiniteProblem
from certiformer.kernel.refusal import Refused

MAX_ROWS = 1_000_000


def prove(node: Node, problem: FiniteProblem, progress: Callable[[int, int], None] | None = None) -> arb:
    """Check the proof of a finite claim: a finite node, or a theorem about all rows at once."""
    if isinstance(node, Finite):
        return check(problem, progress)
    if isinstance(node, Theorem):
        return axiom(node.id, "sequences").check(node, problem)
    raise Refused("a claim about a finite set of rows cannot be proved by a rule for boxes")


def check(problem: FiniteProblem, progress: Callable[[int, int], None] | None = None) -> arb:
    """The largest error over all rows; raises `Refused` when a row cannot be enclosed."""
    if problem.target.count > MAX_ROWS:
        raise Refused(f"the claim speaks of more than {MAX_ROWS:,} rows, too many to evaluate one by one")
    worst = ZERO
    for number, (inputs, outputs) in enumerate(problem.target.rows, 1):
        for error in problem.errors(inputs, outputs):
            worst = larger(worst, error.abs_upper())
        if progress and number % 100 == 0:
            progress(number, problem.target.count)
    if not worst.is_finite():
        raise Refused("the error at a row could not be enclosed")
    return worst
