"""The bound of |T - f| on a box: above every sample, infinite when nothing is known, small when model and target agree."""

from __future__ import annotations

from fractions import Fraction

import jax
import numpy as np
import pytest

from certiformer.enclose.error import error_bound, prototype_error_bound
from certiformer.enclose.lists import prototype_lists
from certiformer.enclose.prototype import as_prototypes
from certiformer.errors import BadInput
from certiformer.interval import rigorous_jit
from certiformer.model import Config, Input, Readout, Transformer
from certiformer.target import parse_formula
from enclose.balls import ball, box_points, model_values, program_values
from enclose.forms import compiled
from enclose.test_network import CASES
from enclose.test_prototype import voronoi_model


def check_bounds(bound, model, program, centre, radius):
    """Compiled as `verify` does it; no sample may exceed the bound of its box."""
    limits = np.asarray(rigorous_jit(jax.vmap(bound))(centre, radius)[0])
    rng = np.random.default_rng(0)
    for c, r, limit in zip(centre, radius, limits, strict=True):
        for e in box_points(centre.shape[1], rng, 4):
            point = [Fraction(m) + Fraction(s) * t for m, s, t in zip(c, r, e, strict=True)]
            both = zip(model_values(model, point), program_values(program, point), strict=True)
            for t, f in both:
                assert np.isinf(limit) or not abs(t - f) > ball(float(limit)), (
                    f"|T - f| = {abs(t - f)} > {limit} at {point}"
                )
    return limits


def test_a_trained_kind_of_model():
    model, program = Transformer.random(CASES["relu"], seed=1), parse_formula("sin(x1)+x2**2")
    centre = np.random.default_rng(0).normal(size=(6, 2))
    radius = np.array([[1e-12, 1e-9], [1e-4, 1e-3], [0.01, 0.1], [0.3, 0.2], [2.0, 1.0], [300.0, 500.0]])
    limits = check_bounds(error_bound(model, program, 1), model, program, centre, radius)
    assert np.isfinite(limits[:4]).all()


def test_prototypes_with_lists():
    model, program = voronoi_model(2, 6, 72.0), parse_formula("x1*x2")
    prototypes = as_prototypes(model)
    lists = prototype_lists(prototypes, np.zeros(2), np.ones(2), (4, 4), tail=1e-4)
    centre = np.array([[0.125, 0.125], [0.3, 0.4], [0.95, 0.1]])
    radius = np.array([[0.125, 0.125], [0.01, 0.02], [1e-9, 1e-9]])
    limits = check_bounds(prototype_error_bound(lists, program, 3), model, program, centre, radius)
    assert np.isfinite(limits).all()


def test_what_model_and_target_share_cancels():
    """T = f = x1: the bound is rounding, although both vary by 2 on the box."""
    config = Config(Input("continuous", 1, 1), width=1, outputs=1, readout=Readout("token", 0))
    one = np.ones((1, 1))
    model = Transformer(
        config, {"embed.weight": one, "embed.bias": [0.0], "readout.weight": one, "readout.bias": [0.0]}
    )
    bound = compiled(error_bound(model, parse_formula("x1"), 1))
    assert float(bound(np.zeros(1), np.ones(1))[0]) < 1e-13


def test_nothing_known_is_infinite():
    model = Transformer.random(CASES["relu"], seed=1)
    bound = compiled(jax.vmap(error_bound(model, parse_formula("1/x1 + x2"), 1)))
    centre = np.array([[0.0, 0.0], [np.nan, 1.0], [1.0, 1.0]])
    radius = np.array([[0.1, 0.1], [0.1, 0.1], [0.1, np.inf]])
    assert (np.asarray(bound(centre, radius)[0]) == np.inf).all()


def test_the_axis_with_the_larger_contribution_scores_more():
    model = Transformer.random(CASES["no block"], seed=0)
    bound = compiled(error_bound(model, parse_formula("sin(5*x2) + 0*x1", 2), 2))
    _, scores = bound(np.array([0.1, 0.2]), np.array([0.01, 0.1]))
    assert scores[1] > scores[0] >= 0
    assert np.isfinite(np.asarray(bound(np.array([np.nan, 0.2]), np.array([0.1, 0.1]))[1])).all(), (
        "a NaN box can be split"
    )


def test_shapes_must_agree():
    model = Transformer.random(CASES["relu"], seed=1)
    with pytest.raises(BadInput, match="the model maps 2 numbers to 1, the target 3 to 1"):
        error_bound(model, parse_formula("x1+x2+x3"), 1)
