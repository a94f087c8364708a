"""The parts of `fit`: one step of training, starts that fail, what a unit is worth, how errors are shared out."""

from __future__ import annotations

import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from certiformer.search.fit.architecture import Units, evaluate, evaluate_with_slopes, pack, present, unpack
from certiformer.search.fit.assemble import cheapest
from certiformer.search.fit.components import components
from certiformer.search.fit.samples import Sample
from certiformer.search.fit.shrink import _random_starts, _without_one
from certiformer.search.fit.train import descend, largest_errors
from certiformer.search.fit.trainer import Trainer, Trial
from certiformer.target import Target, parse_domain, parse_formula


def wave(u):
    return np.sin(np.pi * u[:, 0])


def trainer(goal=1e-2):
    return Trainer(Sample.of(wave, 1, 0), 1, "gelu", goal, 0, time.monotonic() + 60)


def random_units(count, inputs, seed=0, steepness=1.0):
    g = np.random.default_rng(seed)
    weights, bias, outer = (
        steepness * g.standard_normal((count, inputs)),
        g.standard_normal(count),
        g.standard_normal(count),
    )
    return Units(weights, bias, outer, g.standard_normal(inputs), 0.5)


@pytest.mark.parametrize("activation", ["gelu", "relu"])
def test_slopes_are_the_derivatives(activation):
    vector = jnp.asarray(pack(random_units(3, 2), 8))
    points = jnp.asarray(np.random.default_rng(1).uniform(-1, 1, (5, 2)))
    values, jacobian = evaluate_with_slopes(activation, vector, points)
    assert np.allclose(values, evaluate(activation, vector, points), rtol=1e-12, atol=0)
    automatic = jax.jit(jax.jacfwd(evaluate, argnums=1), static_argnums=0)(activation, vector, points)
    # Both are sums of a few terms of size 1; they are only ordered differently.
    assert np.allclose(jacobian, automatic, rtol=0, atol=1e-13)


def test_packing_loses_nothing():
    units = random_units(3, 2)
    again = unpack(pack(units, 8), 2, 3)
    assert all(
        np.array_equal(getattr(units, n), getattr(again, n)) for n in ("weights", "bias", "coefficients", "linear")
    )
    assert present(2, 3, 8).sum() == 3 * 4 + 3


def test_large_powers_lower_the_largest_error_and_fixed_parameters_stay():
    sample = Sample.of(wave, 1, 0)
    vectors = jnp.asarray(np.stack([pack(s, 8) for s in _random_starts(trainer(), np.random.default_rng(0), 2)]))
    free = np.tile(present(1, 2, 8), (len(vectors), 1))
    free[:, 0] = 0.0
    points = sample.points, sample.values, sample.counted
    square = descend("gelu", vectors, free, *points, 2.0, 200, 0.0, 1e-12)
    uniform = square
    for power in (4.0, 16.0, 64.0):
        uniform = descend("gelu", uniform, free, *points, power, 40, 0.0, 1e-12)
    before, after = (largest_errors("gelu", v, *points[:2]).min() for v in (square, uniform))
    assert after < 0.97 * before
    assert np.array_equal(uniform[:, 0], vectors[:, 0])
    assert not np.array_equal(uniform[:, 1], vectors[:, 1])
    assert not np.any(np.asarray(uniform)[:, 2:8])  # the units that are not there


def test_points_that_do_not_count_do_not_matter():
    sample = Sample.of(wave, 1, 0)
    vectors = jnp.asarray(pack(random_units(2, 1), 8)[None].repeat(12, 0))
    free = np.tile(present(1, 2, 8), (12, 1))
    wrong = np.where(sample.counted, sample.values, 1e6)
    right, other = (
        descend("gelu", vectors, free, sample.points, values, sample.counted, 2.0, 20, 0.0, 1e-12)
        for values in (sample.values, wrong)
    )
    assert np.array_equal(right, other)


def test_starts_that_are_not_numbers_are_dropped():
    t = trainer()
    starts = _random_starts(t, np.random.default_rng(0), 2)
    planted = Units(starts[0].weights * np.nan, *list(vars(starts[0]).values())[1:])
    good = t.train([planted, *starts[1:]])
    assert np.isfinite(good.error) and good.error <= t.goal
    assert np.isfinite(pack(good.network, 8)).all()
    none = trainer().train([planted] * len(starts))
    assert none.error == np.inf


def test_peaks_between_the_points_are_found_and_exchanged():
    sample = Sample.of(lambda u: np.where(np.abs(u[:, 0] - 0.2345) < 1e-3, 1.0, 0.0), 1, 0)
    zero = pack(Units.affine(1), 8)
    error, peaks = sample.worst("gelu", zero)
    assert error == 1.0 and abs(peaks[0, 0] - 0.2345) < 1e-3
    assert sample.values[sample.counted].max() == 0.0  # not a point of training
    sample.exchange(peaks)
    assert sample.values[sample.counted].max() == 1.0


def test_what_a_unit_is_worth_is_what_its_removal_costs():
    t, network = trainer(), random_units(4, 1, steepness=6.0)
    points, values = t.counted_points()

    def best_square(units):
        features = np.concatenate([units.hidden(points, "gelu"), points, np.ones((len(points), 1))], axis=1)
        return np.square(features @ np.linalg.lstsq(features, values, rcond=None)[0] - values).mean()

    costs = [best_square(u) for u in _without_one(t, network)]
    assert costs == sorted(costs) and costs[0] < costs[-1]
    for units in _without_one(t, network):
        own = np.square(units.values(points, "gelu") - values).mean()
        # The Gram matrix is regularised by 1e-12 and has a condition number of about 1e5.
        assert own == pytest.approx(best_square(units), rel=1e-4)


def test_errors_are_shared_out_to_the_cheapest_widths():
    target = Target("", parse_formula("sin(x1) + 3*sin(5*x2)"), parse_domain("[0,3]^2"))
    parts = sorted(components(target).components, key=lambda c: c.scale)
    assert [c.inputs for c in parts] == [1, 1]
    wide, narrow = (Trial(n, e, random_units(n, 1)) for n, e in ((4, 0.001), (2, 0.01)))
    scales = [c.scale for c in parts]
    loose = sum(scales) * 0.01
    assert cheapest(parts, [[wide, narrow]] * 2, 1.01 * loose) == [narrow, narrow]
    # A little less: the first component, with the smaller scale, does not give enough, so the second is widened.
    assert cheapest(parts, [[wide, narrow]] * 2, 0.5 * loose) == [narrow, wide]
    assert cheapest(parts, [[wide, narrow]] * 2, 0.05 * loose) is None


def test_a_component_has_only_the_variables_it_reads():
    target = Target("", parse_formula("[x1*x3, x2]"), parse_domain("[0,1]x[0,2]x[0,3]"))
    parts = components(target)
    (part,) = parts.components
    assert part.directions.tolist() == [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    u = np.array([[-1.0, 1.0], [1.0, 1.0], [0.5, 0.0]])
    assert part.shift + part.scale * part.values_of()(u) == pytest.approx([0.0, 3.0, 0.75 * 1.5])
    assert parts.linear[:, 1].tolist() == [0.0, 1.0, 0.0]


def test_components_follow_ridges_and_go_back_to_the_inputs():
    target = Target("", parse_formula("sin(x1 - 2*x2) + 4*x1 + 7"), parse_domain("[0,3]x[1,2]"))
    parts = components(target)
    (part,) = parts.components
    assert part.directions.tolist() == [[1.0, -2.0]]
    assert parts.linear.tolist() == [[4.0], [0.0]]
    network = random_units(3, 1)
    x = np.random.default_rng(0).uniform([0, 1], [3, 2], (50, 2))
    u = (x @ part.directions.T - part.middle) / part.half
    assert np.abs(u).max() <= 1
    expected = part.shift + part.scale * network.values(u, "gelu")
    # Inner weights are rounded to 40 bits: 1e-12 of numbers of size 10.
    assert np.allclose(part.in_inputs(network).values(x, "gelu"), expected, atol=1e-10)
    again = part.in_inputs(network).weights
    assert np.array_equal(again[:, 1], -2 * again[:, 0])


def sharpened_from(units, goal):
    """A trained network of that width, before and after sharpening."""
    own = trainer(goal)
    found = own.train(_random_starts(own, np.random.default_rng(0), units))
    return own, found, own.sharpened(found)


def test_sharpening_goes_on_where_training_stopped():
    # Three units reach less than a hundredth; a goal of a twentieth stops training far above.
    own, found, sharp = sharpened_from(3, 0.05)
    assert found.error <= own.goal
    assert sharp.error < 0.5 * found.error
    assert sharp.error == pytest.approx(own.sample.worst("gelu", pack(sharp.network, 8))[0], rel=1e-12)


def test_sharpening_keeps_zeros_and_never_loses(monkeypatch):
    own = trainer(0.2)
    network = random_units(3, 1)
    weights, linear = network.weights.copy(), np.zeros(1)
    weights[1] = 0.0
    network = Units(weights, network.bias, network.coefficients, linear, network.constant)
    error, _ = own.sample.worst("gelu", pack(network, 8))
    found = Trial(3, error, network)
    sharp = own.sharpened(found)
    assert sharp.error < found.error
    assert sharp.network.weights[1, 0] == 0.0
    assert sharp.network.linear[0] == 0.0
    assert np.count_nonzero(sharp.network.weights) == 2
    # Steps that only make it worse leave the network as it was.
    monkeypatch.setattr(Trainer, "_descend", lambda self, vectors, *_, **__: 3.0 * vectors)
    assert own.sharpened(sharp) is sharp


def test_sharpening_leaves_exact_networks_and_late_trainers_alone():
    own, found, _ = sharpened_from(3, 0.05)
    exact = Trial(found.units, 1e-9 * own.goal, found.network)
    assert own.sharpened(exact) is exact
    own.deadline = 0.0
    assert own.sharpened(found) is found
