"""`--method gather`: affine targets in every layout, from the request to the checker."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from certiformer import search
from certiformer.construct import method
from certiformer.construct.exact_gather import LAYOUTS, plan
from certiformer.construct.method import Shape, Size, Task
from certiformer.kernel import Refused
from certiformer.kernel.certificate import Boxes
from negative.forge import target_of

TINY = Fraction(1, 10**12)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_planned_size_and_bound_are_those_of_the_result(layout):
    target = target_of("[x1 - 2*x3, x2 + pi]", "[-1,1]^4")
    chosen = plan(Task(target, TINY, Shape(2, 2, 1, 2, layout)))
    built = chosen.realise()
    assert chosen.size() == Size.of(built.model) and built.leaves == bytes([255])
    assert built.proof is not None and float(Fraction(built.proof.bound)) == pytest.approx(chosen.bound, rel=1e-6)
    points = np.random.default_rng(0).uniform(-1, 1, (50, 4))
    wanted = np.stack([points[:, 0] - 2 * points[:, 2], points[:, 1] + np.pi], axis=1)
    # A float64 run adds its own few roundings of numbers below 8.
    assert np.abs(built.model.evaluate(points) - wanted).max() < chosen.bound + 1e-14


def test_a_task_without_a_layout():
    assert plan(Task.of(target_of("x1 + x2", "[0,1]^2"), TINY)).size().heads == 2
    assert plan(Task.of(target_of("3*x1", "[0,1]"), TINY)).size().nonzero == 2


@pytest.mark.parametrize("formula", ["x1*x2", "max(x1, x2)", "x1/x2"])
def test_a_target_that_is_not_affine_is_refused(formula):
    with pytest.raises(Refused, match="not affine"):
        plan(Task.of(target_of(formula, "[1,2]^2"), Fraction(1)))


def test_rows_at_every_token_end_with_an_accepted_certificate(monkeypatch):
    monkeypatch.setitem(method.METHODS, "gather", "certiformer.construct.exact_gather")
    run = search.build("[x1_1 - x2_1, x1_1 + 3*x2_1]", on="[0,1]^2", eps="1e-12", method="gather", tokens=2)
    assert (run.outcome.value, run.level) == ("proved", 2)
    assert run.certificate.proof == Boxes(run.certificate.proof.bound, 1, 0, 1)
    assert Fraction(run.certificate.upper) < Fraction(1, 10**15)
