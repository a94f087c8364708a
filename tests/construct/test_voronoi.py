"""Voronoi constructions: the grid that is planned is good enough, no larger than needed, and its proof is accepted."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from certiformer.axioms import voronoi_first_order as first_order
from certiformer.axioms import voronoi_second_order as second_order
from certiformer.axioms.grid import Grid
from certiformer.axioms.jets import DerivativeBounds
from certiformer.construct.method import Size, Task
from certiformer.construct.voronoi import plan, plan_by_theorem
from certiformer.errors import BadInput
from certiformer.kernel import Refused
from certiformer.kernel.balls import BallDomain, working_precision
from certiformer.target.floating import as_jax
from negative.forge import Run, judged, target_of

working_precision()

CASES = [
    ("sin(x1)", "[0,2*pi]", "0.01", "second"),
    ("abs(x1 - 0.3)", "[0,1]", "0.05", "first"),
    ("x1*x2", "[0,1]^2", "0.05", "second"),
    ("[x1*x2, x1 - x2]", "[-1,1]^2", "0.3", "second"),
    ("max(x1, x2)", "[0,1]^2", "0.25", "first"),
    ("1e6 + 1/3", "[0,1]", "0.1", None),  # the bound of the theorem is zero, that of rounding is not
    ("0*x1", "[0,1]", "1e-9", None),
    ("sin(x1)", "[0,1]", "1e-6", "second"),  # the rounding of the weights is no longer small against epsilon
    ("abs(x1 - 0.3)", "[0,1]", "1e-4", "first"),
    ("exp(-50*x1**2)", "[-1,1]", "0.05", "second"),
    ("x1", "[0,1e-9]", "1e-11", None),
    ("sin(x1/1e6)", "[-3e6,3e6]", "0.05", "second"),
    ("x1 + 100*x2", "[0,1]^2", "2", None),
]


@pytest.mark.parametrize(("formula", "on", "epsilon", "theorem"), CASES)
def test_what_is_built_is_proved_and_true(formula, on, epsilon, theorem, tmp_path):
    target = target_of(formula, on)
    built = plan(Task.of(target, Fraction(epsilon))).realise()
    assert built.proof is not None
    assert theorem is None or built.proof.id == f"voronoi_{theorem}_order"
    assert Fraction(built.proof.bound) <= Fraction(epsilon)
    verdict = judged(Run(built.model, target, epsilon, built.proof).write(tmp_path / "run"))
    assert verdict.outcome == "proved"
    assert Fraction(verdict.upper) <= Fraction(epsilon)
    ends = [(float(low.upper()), float(high.lower())) for low, high in verdict.claim.problem.domain.ends]
    unit = np.random.default_rng(0).random((500, len(ends)))
    points = np.array([low for low, _ in ends]) + unit * np.array([high - low for low, high in ends])
    wanted = np.asarray(as_jax(target.program)(points))
    error = np.abs(built.model.evaluate(points) - wanted).max()
    # Float64 rounding of the two evaluations: of the scores, up to 1e6 nats times 1e-16, and of the values.
    assert error <= float(verdict.upper) * (1 + 1e-9) + 1e-9 * np.abs(wanted).max()


@pytest.mark.parametrize(("formula", "on", "epsilon", "theorem"), [c for c in CASES if c[3] and float(c[2]) > 1e-3])
def test_no_axis_can_spare_a_cell(formula, on, epsilon, theorem):
    target = target_of(formula, on)
    chosen = plan_by_theorem(target, Fraction(epsilon))
    domain = BallDomain(target.domain)
    rule = second_order if theorem == "second" else first_order
    derivatives = DerivativeBounds(target.program, domain, chosen.partition, order=2)
    assert chosen.bound <= float(Fraction(epsilon))
    for axis, cells in enumerate(chosen.grid.cells):
        fewer = list(chosen.grid.cells)
        fewer[axis] = cells - 1
        if cells > 1:
            smaller = Grid(tuple(fewer), chosen.grid.margin, chosen.grid.sharpness)
            assert max(float(b) for b in rule.apriori(smaller, domain, derivatives)) > 0.999 * float(Fraction(epsilon))


def test_halving_epsilon_costs_the_square_root_at_second_order():
    sizes = [plan_by_theorem(target_of("sin(x1)", "[0,2*pi]"), Fraction(1, n)).grid.size for n in (100, 400, 1600)]
    # Half the spacing for a quarter of the error: cells double, up to the margin cells and another choice of sharpness.
    assert 1.7 < sizes[1] / sizes[0] < 2.2
    assert 1.7 < sizes[2] / sizes[1] < 2.2


def test_an_axis_with_more_variation_gets_more_cells():
    cells = plan_by_theorem(target_of("sin(10*x1) + sin(x2)", "[0,1]^2"), Fraction(1, 10)).grid.cells
    assert cells[0] > 3 * cells[1]


@pytest.mark.parametrize("formula", ["where(x1 < 0.5, 0, 1)", "1/x1", "log(x1)", "sqrt(x1)", "tan(2*x1)"])
def test_no_theorem_is_planned_for_targets_that_are_not_lipschitz(formula):
    with pytest.raises(Refused, match="not known to be Lipschitz"):
        plan_by_theorem(target_of(formula, "[0,1]"), Fraction(1, 10))


def test_without_a_theorem_there_is_no_theorem_node():
    built = plan(Task.of(target_of("sqrt(x1)", "[0,1]"), Fraction(1, 10))).realise()
    assert built.proof is None
    assert abs(built.model.evaluate([[0.25]])[0, 0] - 0.5) < 0.1


def test_a_grid_that_is_too_large_is_one_sentence():
    with pytest.raises(BadInput, match="prototypes at that epsilon"):
        plan(Task.of(target_of("sin(9*x1)*sin(9*x2)*sin(9*x3)*sin(9*x4)", "[0,1]^4"), Fraction(1, 10**6))).realise()


@pytest.mark.parametrize("formula", ["sin(x1 + 0.3)", "[exp(x1), x1**2 + 2]"])
def test_the_size_is_known_before_the_weights(formula):
    planned = plan(Task.of(target_of(formula, "[0.1,1.2]"), Fraction(1, 50)))
    size = Size.of(planned.realise().model)
    assert size.dense == planned.size().dense
    assert planned.size().registers == size.registers
    # Nothing that the plan counts is missing but the centre that may lie exactly in the middle of the box.
    assert planned.size().nonzero - 2 <= size.nonzero <= planned.size().nonzero
