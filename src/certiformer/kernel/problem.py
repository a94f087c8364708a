"""What a node of a proof tree speaks of: two functions on a box.

Both sides offer the same three things, whatever they are (a network, a sum of prototype heads, a target program):
`outputs`, `forms(box, order)` and `restrict(box)`, which may return a cheaper object that is valid on that box only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from flint import arb

from certiformer.kernel import taylor
from certiformer.kernel.balls import ZERO, BallDomain, Box, larger
from certiformer.kernel.functions import target_forms
from certiformer.kernel.programs import Program
from certiformer.kernel.taylor import Form


class Function(Protocol):
    """A vector function on a box that can be enclosed by Taylor forms."""

    @property
    def outputs(self) -> int: ...

    def forms(self, box: Box, order: int) -> list[Form]: ...

    def restrict(self, box: Box) -> Function: ...


@dataclass(frozen=True)
class ProgramFunction:
    """A target program as a function."""

    program: Program

    @property
    def outputs(self) -> int:
        return len(self.program.outputs)

    def forms(self, box: Box, order: int) -> list[Form]:
        return target_forms(self.program, box, order)

    def restrict(self, box: Box) -> ProgramFunction:
        return self


@dataclass(frozen=True)
class SelectedOutput:
    """One output of a function."""

    function: Function
    output: int

    @property
    def outputs(self) -> int:
        return 1

    def forms(self, box: Box, order: int) -> list[Form]:
        return [self.function.forms(box, order)[self.output]]

    def restrict(self, box: Box) -> SelectedOutput:
        return SelectedOutput(self.function.restrict(box), self.output)


def select(function: Function, output: int) -> Function:
    """One output of a function, as simply as it can be had."""
    if isinstance(function, ProgramFunction):
        return ProgramFunction(function.program.select(output))
    return SelectedOutput(function, output)


@dataclass(frozen=True)
class Problem:
    """The statement `sup over domain, max over outputs, |left - right| <= bound` for a bound still to be proved."""

    left: Function
    right: Function
    domain: BallDomain

    def restrict(self, box: Box) -> Problem:
        return Problem(self.left.restrict(box), self.right.restrict(box), self.domain)


def error_upper(problem: Problem, box: Box, order: int) -> tuple[arb, list[Form], str]:
    """An upper bound of max |left - right| on `box`: the difference is one form before its range is taken.

    Returns the bound, the forms of both sides (for choosing where to bisect) and why a side may be undefined there.
    """
    left, right = problem.left.forms(box, order), problem.right.forms(box, order)
    worst, singular = ZERO, ""
    for a, b in zip(left, right, strict=True):
        difference = taylor.add(a, b, -1)
        worst = larger(worst, taylor.magnitude(difference))
        singular = singular or difference.singular
    return worst, left + right, singular
