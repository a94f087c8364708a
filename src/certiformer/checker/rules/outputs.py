"""Rule *outputs*: every output by itself.

Statement. If |A_o - B_o| <= u_o on the domain for every output o, then max_o sup |A_o - B_o| <= max_o u_o. (By definition.)
"""

from __future__ import annotations

from certiformer.kernel.problem import Problem, select


def split(problem: Problem) -> list[Problem]:
    """One problem for each output."""
    return [
        Problem(select(problem.left, o), select(problem.right, o), problem.domain) for o in range(problem.left.outputs)
    ]
