"""Is a target defined on its whole domain? A search for a box where it is not.

Used before anything is built, so that `1/x1` on [-1, 1] ends as *invalid* with a sub-box named instead of as a search that
never closes. The search goes depth first into boxes whose enclosure may be undefined; one that is still undefined after
`DEEPEST` bisections of every axis is reported. Finding nothing proves nothing: every leaf of a proof is checked anyway.
"""

from __future__ import annotations

from certiformer.kernel.balls import BallDomain, Box, working_precision
from certiformer.kernel.rules import Cell, halves, root
from certiformer.kernel.taylor import target_forms
from certiformer.target import Domain, Program

DEEPEST = 36
BOXES = 4_000


def find_singularity(program: Program, domain: Domain) -> tuple[Box, str] | None:
    """A tiny box on which `program` may be undefined and the reason, or None.

    >>> from certiformer.target import parse_domain, parse_formula
    >>> box, reason = find_singularity(parse_formula("1/x1"), parse_domain("[-1, 1]"))
    >>> reason
    'division by a number that may be zero'
    >>> find_singularity(parse_formula("sqrt(x1)"), parse_domain("[0, 1]")) is None
    True
    """
    working_precision()
    ends = BallDomain(domain)
    stack: list[Cell] = [root(ends.dimension)]
    for _ in range(BOXES):
        if not stack:
            return None
        cell = stack.pop()
        box = ends.box(cell)
        reasons = [form.singular for form in target_forms(program, box, 1) if form.singular]
        if not reasons:
            continue
        axis = min(range(ends.dimension), key=lambda i: cell[i][0])
        if cell[axis][0] >= DEEPEST:
            return box, reasons[0]
        stack.extend(halves(cell, axis))
    return None
