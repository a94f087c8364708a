"""Proofs part by part: what the search proposes is accepted by the checker, and the parts lose nothing."""

from __future__ import annotations

from fractions import Fraction

import jax.numpy as jnp
import numpy as np
import pytest
from flint import arb

from certiformer.construct.gather_block import gather_transformer
from certiformer.construct.method import Shape
from certiformer.kernel import Refused
from certiformer.kernel.balls import BallDomain, working_precision
from certiformer.kernel.certificate import Boxes, Outputs, Split
from certiformer.kernel.problem import Problem, ProgramFunction
from certiformer.kernel.rules import prove, prove_piece, root
from certiformer.model import Transformer
from certiformer.search import build
from certiformer.search.ridge_proof import RidgeProof
from certiformer.search.unit_proof import UnitProof
from certiformer.target import parse_domain, parse_formula
from certiformer.target.floating import as_jax
from certiformer.verify import Budget
from kernel.networks import network_of

working_precision()
BUDGET = Budget(20_000, 60.0)
TWO_GROUPS = "x1*x2 + sin(x3*x4)"
TWO_OUTPUTS = "[x1*x2, x3 - x4]"


def random_block(outputs: int, activation: str = "gelu") -> Transformer:
    """Units in (x1, x2) and in (x3, x4); the second output, if any, has none."""
    random = np.random.default_rng(5)
    weights = np.zeros((6, 4))
    weights[:3, :2], weights[3:, 2:] = random.normal(size=(3, 2)), random.normal(size=(3, 2))
    outer = np.zeros((6, outputs))
    outer[: 3 if outputs > 1 else 6, 0] = 0.3
    linear = np.zeros((4, outputs))
    linear[2:, outputs - 1] = 1.0, -1.0
    shape = Shape(4, 1, 1, outputs, "sequence")
    zeros = np.zeros(outputs)
    return gather_transformer(
        shape, -np.ones(4), np.ones(4), linear, zeros, weights, random.normal(size=6), outer, activation
    )


def problem_of(model: Transformer, formula: str) -> Problem:
    return Problem(network_of(model), ProgramFunction(parse_formula(formula, 4)), BallDomain(parse_domain("[-1,1]^4")))


def accepted(found: RidgeProof, problem: Problem) -> arb:
    def boxes(node: Boxes, part: Problem, path, limit: arb) -> arb:
        tree = found.leaves[node.offset : node.offset + node.length]
        return prove_piece(part, root(part.domain.dimension), tree, node.order, limit, lambda _: None)

    return prove(found.proof, problem, boxes)


@pytest.mark.parametrize(("formula", "outputs"), [(TWO_GROUPS, 1), (TWO_OUTPUTS, 2)])
@pytest.mark.parametrize("activation", ["gelu", "relu"])
def test_the_tree_is_accepted_and_tight(formula, outputs, activation):
    model = random_block(outputs, activation)
    problem = problem_of(model, formula)
    found = UnitProof(problem, None, 0)
    peak = max(output.peak for output in found.outputs)
    points = np.concatenate([found.points(), np.random.default_rng(1).uniform(-1, 1, (2_000, 4))])
    errors = np.abs(model.evaluate(points) - np.asarray(as_jax(parse_formula(formula, 4))(jnp.asarray(points))))
    # The points of the parts together reach the sum of their peaks: no bound is lost by taking the claim apart.
    assert errors.max() == pytest.approx(peak, rel=1e-3)
    proof = found.prove(1.01 * peak, BUDGET)
    assert errors.max() <= float(accepted(proof, problem)) <= 1.01 * peak
    assert proof.upper <= Fraction(1.01 * peak)
    assert isinstance(proof.proof, Split if outputs == 1 else Outputs)


def test_a_goal_below_the_error_is_refused_at_once():
    found = UnitProof(problem_of(random_block(1), TWO_GROUPS), None, 0)
    with pytest.raises(Refused, match="add up to"):
        found.prove(0.99 * found.outputs[0].peak, BUDGET)
    assert found.boxes == 0


def test_a_spent_budget_is_refused_and_continues_later():
    found = UnitProof(problem_of(random_block(1), TWO_GROUPS), None, 0)
    goal = 1.002 * found.outputs[0].peak
    with pytest.raises(Refused, match="budget"):
        found.prove(goal, Budget(1, 60.0))
    assert float(found.prove(goal, BUDGET).upper) <= goal


def test_only_one_part_in_all_variables_is_one_part():
    assert not UnitProof(problem_of(random_block(1), TWO_GROUPS), None, 0).one_part
    assert not UnitProof(problem_of(random_block(2), TWO_OUTPUTS), None, 0).one_part
    assert UnitProof(problem_of(random_block(1), "x1*x2*x3*x4"), None, 0).one_part
    # Units along variables that the target does not read are charged.
    assert not UnitProof(problem_of(random_block(1), "x1*x2"), None, 0).one_part


@pytest.mark.slow
def test_a_trained_sum_is_proved_tightly_in_its_parts():
    run = build("x1*x2 + x3*x4", on="[0,1]^4", eps=0.2, method="fit", fit_seconds=6, workers=1)
    assert run.certified
    assert run.upper is not None and run.lower is not None
    assert run.upper <= 1.01 * run.lower
    assert run.certificate.proof is not None
    assert isinstance(run.certificate.proof, Split)
    assert len(run.certificate.proof.children) == 2
