"""Programs as JAX functions, against balls."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from certiformer.target import parse_formula
from certiformer.target.floating import as_jax
from target.oracle import balls

FORMULAS = [
    "sin(x1)*cos(x2) - tan(x1/4) + exp(-x2) + log(3 + x1) + sqrt(2 + x2)",
    "tanh(x1) + atan(x2) + erf(x1*x2) - abs(x1 - x2)",
    "min(x1, x2, 0.3)*max(x1, -x2) + x1**7/(3 + x2**2) - -x1",
    "where(x1 < x2, pi*x1, where(x1*x2 <= 0.1, e, 1/3))",
    "sinh(x1) + cosh(x2) + sigmoid(x1) + relu(x2) + sign(x1) + 1e-3",
]


@pytest.mark.parametrize("text", FORMULAS)
def test_values_agree_with_balls(text):
    program = parse_formula(text, 2)
    points = np.random.default_rng(1).uniform(-1.5, 1.5, (20, 2))
    found = np.asarray(as_jax(program)(points))
    assert found.shape == (20, 1) and found.dtype == np.float64
    for point, (value,) in zip(points, found, strict=True):
        wanted = balls(program, point.tolist())[0]
        # a few dozen operations of one or two ulps each on values below 10
        assert abs(wanted - float(value)) < 1e-13


def test_shapes_constants_and_derivatives():
    function = as_jax(parse_formula("[x1*x2, 5, x2]"))
    assert function(jnp.array([2.0, 3.0])).tolist() == [6.0, 5.0, 3.0]
    assert function(jnp.ones((4, 3, 2))).shape == (4, 3, 3)
    assert jax.jit(jax.jacobian(function))(jnp.array([2.0, 3.0])).tolist() == [[3.0, 2.0], [0.0, 0.0], [0.0, 1.0]]


def test_constants_beyond_float64_do_not_raise():
    assert np.isneginf(as_jax(parse_formula("-(10**400)"))(jnp.array([0.0]))[0])
