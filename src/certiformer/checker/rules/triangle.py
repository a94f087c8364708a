"""Rule *triangle*: through an intermediate function that the certificate carries.

Statement. If sup |A - P| <= u and sup |P - B| <= v on the domain for some program P, then sup |A - B| <= u + v.

Proof. The triangle inequality at every point and for every output. P is any program of the target language; it is read
from the certificate and needs no relation to A or B beyond the two bounds. QED.
"""

from __future__ import annotations

from certiformer.certificate import Triangle
from certiformer.checker.ridge_program import as_ridges
from certiformer.errors import BadInput
from certiformer.kernel.problem import Problem
from certiformer.kernel.refusal import Refused
from certiformer.target import Program


def children(node: Triangle, problem: Problem) -> list[Problem]:
    """The two problems A - P and P - B."""
    try:
        program = Program.from_json(node.through)
    except BadInput as error:
        raise Refused(str(error)) from None
    if program.inputs != problem.domain.dimension or len(program.outputs) != problem.left.outputs:
        raise Refused("the intermediate program does not have the inputs and outputs of the claim")
    middle = as_ridges(program)
    return [Problem(problem.left, middle, problem.domain), Problem(middle, problem.right, problem.domain)]
