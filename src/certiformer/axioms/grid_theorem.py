"""How a theorem about grid prototypes becomes a proved bound: the part that all of them share.

A theorem gives an a-priori bound for the *ideal* head on a grid, from bounds of the target's derivatives. The stored head
is compared with the ideal one and its distance is charged (`axioms.perturbation`); the sum is the bound.
"""

from __future__ import annotations

from collections.abc import Callable

from flint import arb

from certiformer.axioms.grid import Grid, partition
from certiformer.axioms.jets import DerivativeBounds
from certiformer.axioms.perturbation import charge, registers_only
from certiformer.kernel import Refused
from certiformer.kernel.balls import BallDomain, largest
from certiformer.kernel.certificate import Theorem as TheoremNode
from certiformer.kernel.problem import Problem, ProgramFunction
from certiformer.kernel.programs import Program

Apriori = Callable[[Grid, BallDomain, DerivativeBounds], list[arb]]
IdealValues = Callable[[Program, Grid, BallDomain], list[list[arb]]]


def prove_on_grid(node: TheoremNode, problem: Problem, order: int, apriori: Apriori, ideal_values: IdealValues) -> arb:
    """The proved bound of a theorem node; derivatives up to `order` are enclosed and handed to `apriori`."""
    if not isinstance(problem.right, ProgramFunction):
        raise Refused("the theorem needs a target program on its right-hand side")
    program, domain = problem.right.program, problem.domain
    grid = Grid.from_parameters(node.parameters, domain.dimension)
    derivatives = DerivativeBounds(program, domain, partition(node.parameters, domain.dimension), order)
    bounds = apriori(grid, domain, derivatives)
    left = registers_only(problem.left, domain)
    charges = charge(left, grid.ideal_head(domain, ideal_values(program, grid, domain)), domain)
    return largest([(b + c).upper() for b, c in zip(bounds, charges, strict=True)])
