"""The soundness tests can fail: each mutation of `enclose` or `interval` below is caught by an oracle test."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from certiformer.enclose import attention, compose, lists, network, prototype_form, quotient, select, series, taylor
from certiformer.enclose.network import enclose_model
from certiformer.enclose.prototype import as_prototypes
from certiformer.enclose.prototype_form import enclose_prototypes
from certiformer.enclose.target import enclose_target
from certiformer.interval import arithmetic, elementary
from certiformer.model import Transformer
from certiformer.target import parse_formula
from enclose.balls import model_values, program_values
from enclose.forms import assert_enclosed
from enclose.test_network import CASES, sharpened, softmax_pair
from enclose.test_network import boxes as network_boxes
from enclose.test_prototype import prototype_values, random_prototypes, voronoi_model
from enclose.test_target import HALF_PI, boxes, landmarks
from interval.test_arithmetic import test_binary, test_unary
from interval.test_elementary import test_the_range_rule


@pytest.fixture(autouse=True)
def _no_stale_programs():
    """Compiled functions are cached by identity; a mutation must not meet, or leave behind, the other version."""
    jax.clear_caches()
    yield
    jax.clear_caches()


def target_holds(text: str, order: int) -> None:
    program = parse_formula(text)
    dimension = program.inputs
    marks = landmarks(HALF_PI, -HALF_PI)
    assert_enclosed(
        enclose_target(program, order), lambda p: program_values(program, p), *boxes(dimension), extra=marks, points=3
    )


def network_holds(name: str, order: int = 1, factor: float = 1.0) -> None:
    model = sharpened(Transformer.random(CASES[name], seed=3), factor)
    assert_enclosed(enclose_model(model, order), lambda p: model_values(model, p), *network_boxes(2), points=2)


def pair_holds(order: int) -> None:
    """Constant values, so that only the attention weights move the output."""
    model = softmax_pair(1.0, -1.0)
    assert_enclosed(enclose_model(model, order), lambda p: model_values(model, p), [[-1.0], [0.0]], [[0.5], [0.01]])


def prototypes_hold() -> None:
    p = random_prototypes(2, 8, 5.0, seed=1)
    centres, radii = (
        np.random.default_rng(0).normal(size=(5, 2)),
        np.array([[1e-9], [0.01], [0.1], [0.3], [1.0]]) * np.ones(2),
    )
    assert_enclosed(enclose_prototypes(p, 2), lambda x: prototype_values(p, x), centres, radii)


def lists_hold() -> None:
    model = voronoi_model(1, 30, 1800.0)
    p = as_prototypes(model)
    made = lists.prototype_lists(p, np.zeros(1), np.ones(1), (8,), tail=0.3)
    centres, radii = (np.arange(8)[:, None] + 0.5) / 8, np.full((8, 1), 1e-4)
    assert_enclosed(enclose_prototypes(p, 3, made), lambda x: model_values(model, x), centres + 0.06, radii, points=2)


def zero_slack(terms, magnitude):
    return 0.0 * magnitude


def without_remainder(function):
    def mutant(*args, **kwargs):
        out = function(*args, **kwargs)
        return replace(out, rem=0 * out.rem) if isinstance(out, taylor.Form) else (out[0], 0 * out[1])

    return mutant


def wrong_sign_of_cosine(x, terms):
    right = series.sine_series(x, terms, 0)
    odd = (jnp.arange(terms) % 2 == 1).reshape((-1,) + (1,) * x.lo.ndim)
    return taylor.Interval(jnp.where(odd, -right.hi, right.lo), jnp.where(odd, -right.lo, right.hi))


MUTATIONS = {
    "no rounding slack": (taylor, "slack", zero_slack, lambda: target_holds("(x1*x2+x1)*x2-x1", 2)),
    "dropped products not charged": (
        taylor,
        "truncated",
        without_remainder(taylor.truncated),
        lambda: target_holds("x1*x2", 1),
    ),
    "no Taylor remainder": (
        compose,
        "_last_term",
        lambda t, rho, exponent: (jnp.zeros_like(rho), jnp.zeros_like(rho)),
        lambda: target_holds("exp(x1)", 2),
    ),
    "a derivative with the wrong sign": (
        series.SERIES,
        "sin",
        wrong_sign_of_cosine,
        lambda: target_holds("sin(x1)", 2),
    ),
    "stationary points forgotten": (
        elementary,
        "_contains",
        lambda a, period, offset: jnp.zeros(a.lo.shape, bool),
        lambda: target_holds("sin(x1)", 0),
    ),
    "exp not padded": (elementary, "upper", lambda v, factor=0.0: v, lambda: test_the_range_rule("exp")),
    "lower end not padded": (arithmetic, "lower", lambda v, factor=0.0: v, lambda: test_unary("cube")),
    "upper end not padded": (arithmetic, "upper", lambda v, factor=0.0: v, lambda: test_binary("add")),
    "argument's remainder forgotten": (
        compose,
        "_expand_linear",
        without_remainder(compose._expand_linear),
        lambda: target_holds("exp(0.5*min(x1, 0.1)+0.3*x1)", 1),
    ),
    "defect not charged": (
        quotient,
        "full_product",
        lambda space, a, b: 0 * taylor.full_product(space, a, b),
        lambda: target_holds("x1/(3+cos(x1))", 2),
    ),
    "relu without its band": (select, "relu", lambda x: x, lambda: target_holds("abs(x1)", 1)),
    "hull of one branch": (select, "hull", lambda x, y: x, lambda: target_holds("where(x1 < 0.3, x1, x1**2)", 1)),
    "weights' remainder forgotten": (
        attention,
        "elementary",
        without_remainder(compose.elementary),
        lambda: pair_holds(0),
    ),
    "tilt of the wrong sign": (
        attention,
        "_tilt",
        lambda s, allowed: (lambda p, t, sag: (p, -t, sag))(*tilt(s, allowed)),
        lambda: network_holds("softmax"),
    ),
    "matrix products without remainder": (
        network,
        "affine",
        without_remainder(taylor.affine),
        lambda: network_holds("relu"),
    ),
    "scores without remainder": (network, "contract", without_remainder(taylor.contract), lambda: pair_holds(0)),
    "hard attention always decided": (
        attention,
        "_hull",
        lambda values, allowed: taylor.Interval(
            values.lo[:, :1] + jnp.zeros((1, 2, 1)), values.lo[:, :1] + jnp.zeros((1, 2, 1))
        ),
        lambda: network_holds("hard"),
    ),
    "prototype truncation forgotten": (
        prototype_form,
        "_moments",
        lambda *a: (lambda m, rest, heavy: (m, 0 * rest, heavy))(*moments(*a)),
        prototypes_hold,
    ),
    "tail of the lists forgotten": (
        lists,
        "_head_lists",
        lambda *a: replace(head_lists(*a), tail=0 * head_lists(*a).tail),
        lists_hold,
    ),
}
# Imported as checks, not to be collected a second time.
test_binary.__test__ = test_unary.__test__ = test_the_range_rule.__test__ = False
tilt, moments, head_lists = attention._tilt, prototype_form._moments, lists._head_lists


@pytest.mark.parametrize("name", MUTATIONS)
def test_caught(name, monkeypatch):
    where, attribute, mutant, holds = MUTATIONS[name]
    if isinstance(where, dict):
        monkeypatch.setitem(where, attribute, mutant)
    else:
        monkeypatch.setattr(where, attribute, mutant)
    with pytest.raises(AssertionError):
        holds()


@pytest.mark.parametrize(
    "name",
    ["scores without remainder", "tail of the lists forgotten", "prototype truncation forgotten", "exp not padded"],
)
def test_the_same_check_passes_unmutated(name):
    """The control for checks that no other test runs in this form."""
    _, _, _, assert_holds = MUTATIONS[name]
    assert_holds()
