"""Built heads against physics, what a softmax cannot do, and the study's summary on made-up rows."""

import dataclasses
import json
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from certiformer.errors import BadInput
from certiformer.model.transformer import Transformer
from certiformer.rates.gravity_measure import built, compared_with_physics
from certiformer.rates.gravity_models import (
    acceleration_by_register,
    centre_model,
    circle_coefficient,
    kappa,
    nearest_model,
    nearest_tokens,
    pull_features,
    pull_model,
    trained_config,
)
from certiformer.rates.point_masses import TASKS, physical_weights, wanted
from certiformer.rates.rank_limits import rank_limited_starts
from certiformer.rates.studies import gravity
from certiformer.rates.studies.gravity import STUDY, Options

POINTS = 6


asked = jax.jit(wanted, static_argnums=0)
weighed = jax.jit(physical_weights, static_argnums=0)


def tokens(task="pull", count=4):
    generator = np.random.default_rng(3)
    marks = (
        np.tile([0.0, 0, 0, 1, 1, 1], (count, 1)) if task == "nearest" else generator.uniform(-1, 1, (count, POINTS))
    )
    return np.concatenate([generator.random((count, POINTS, 2)), marks[..., None]], axis=-1)


def outputs(model, given):
    return model.evaluate(given.reshape(len(given), -1)).reshape(len(given), -1, 2)


def key_size(model):
    return model.config.blocks[0].attention.heads[0].key


@pytest.fixture(scope="module")
def features():
    return pull_features()


def test_log_masses_give_the_exact_centre_of_gravity_with_rank_one():
    masses, places = [1, 2, 3, 5, 7, 11], [[0, 1], [1, 3], [2, 2], [5, 1], [3, 8], [4, 4]]
    given = np.array([[*place, np.log(mass)] for place, mass in zip(places, masses, strict=True)])[None]
    total = sum(masses)
    exact = [float(sum(Fraction(m * p[i]) for m, p in zip(masses, places, strict=True)) / total) for i in (0, 1)]
    model = centre_model(POINTS)
    assert key_size(model) == 1
    # ln and exp of masses below 12, six products, one division: some 20 roundings of numbers below 8.
    assert np.abs(outputs(model, given)[0] - exact).max() < 1e-14
    wrong = dict(model.tensors)
    wrong["blocks.0.attention.groups.0.key"] = wrong["blocks.0.attention.groups.0.key"] * 1.01
    assert np.abs(outputs(Transformer(model.config, wrong), given)[0] - exact).max() > 1e-3


def test_squared_distances_give_the_nearest_point_with_rank_three():
    given = tokens("nearest", 8)
    right = []
    for each in given:
        near = [min(each[3:], key=lambda p, t=t: (p[0] - t[0]) ** 2 + (p[1] - t[1]) ** 2)[:2] for t in each[:3]]
        right.append(near)
    errors = [
        np.abs(outputs(nearest_model(POINTS, beta), nearest_tokens(given))[:, :3] - right).mean()
        for beta in (10.0, 1e5)
    ]
    assert key_size(nearest_model(POINTS, 1.0)) == 3
    assert errors[0] > 1e-2
    # Squared distances of eight draws differ by 1e-3 or more, and exp(-1e5 * 1e-3) is nothing.
    assert errors[1] < 1e-12
    without_squares = nearest_tokens(given)
    without_squares[..., 3] = 0
    assert np.abs(outputs(nearest_model(POINTS, 1e5), without_squares)[:, :3] - right).mean() > 1e-2


def test_the_coupling_of_gravity_has_infinite_rank_on_a_circle():
    angle = 2 * np.pi * np.arange(256) / 256
    circle = 0.5 * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    measured = np.fft.fft(kappa(circle[:1], circle)).real / 256
    # Aliasing adds coefficients of order 200, 1e-33 here; the FFT rounds numbers of order 3 to 1e-15.
    assert np.abs([measured[k] - circle_coefficient(k, 0.5) for k in range(1, 20)]).max() < 1e-14
    assert min(circle_coefficient(k, 0.5) for k in range(1, 60)) > 0


def test_eigenfunctions_approach_the_pull_and_their_kernel(features):
    given = tokens()
    right = [np.asarray(asked("pull", jnp.asarray(each))) for each in given]
    errors = [np.mean((outputs(pull_model(POINTS, features, m), features.lift(given)) - right) ** 2) for m in (2, 16)]
    assert errors[0] > 16 * errors[1]
    lifted = features.lift(given)[0]
    kernel = kappa(given[0][:, None, :2], given[0][None, :, :2])
    low = (lifted[:, 4:] * features.values) @ lifted[:, 4:].T + lifted[:, 3]
    difference = kernel - low
    difference -= difference.mean(axis=1, keepdims=True)  # a softmax does not see a function of t
    assert np.abs(difference).max() < 0.2 * np.abs(kernel - kernel.mean(axis=1, keepdims=True)).max()


def test_doubling_every_point_keeps_a_softmax_model_and_doubles_accelerations(features):
    given = tokens("acceleration")
    doubled = np.concatenate([given, given], axis=1)
    once = outputs(pull_model(POINTS, features, 2), features.lift(given))
    twice = outputs(pull_model(2 * POINTS, features, 2), features.lift(doubled))
    assert np.abs(twice[:, :POINTS] - once).max() < 1e-12
    for each, pair in zip(given, doubled, strict=True):
        one, two = (np.asarray(asked("acceleration", jnp.asarray(x))) for x in (each, pair))
        assert np.abs(two[:POINTS] - 2 * one).max() < 1e-12 * np.abs(one).max()
        assert np.abs(acceleration_by_register(each, c=3.0) - one).max() < 1e-12 * np.abs(one).max()


@pytest.mark.parametrize("task", TASKS)
def test_physical_weights_sum_to_one_and_belong_to_what_is_asked(task):
    given = jnp.asarray(tokens(task, 1)[0])
    weights = np.asarray(weighed(task, given))
    assert np.abs(weights.sum(axis=1) - 1).max() < 1e-14
    if task == "acceleration":
        force = np.zeros((POINTS, 2))
        for t in range(POINTS):
            for s in range(POINTS):
                away = np.asarray(given[s, :2] - given[t, :2])
                force[t] += np.exp(float(given[s, 2])) * away / (away @ away + 0.04) ** 1.5
        assert np.abs(np.asarray(asked(task, given)) - force).max() < 1e-12


def test_an_unknown_task_is_refused():
    with pytest.raises(BadInput, match="there is no task 'moon'"):
        physical_weights("moon", jnp.asarray(tokens()[0]))


def test_surplus_ranks_start_at_zero_and_may_not_move():
    config = trained_config(POINTS, 3, 4, 4, positions=False)
    start, free = rank_limited_starts(config, [1, 3], [0, 1])
    name = "blocks.1.attention.groups.0.key"
    assert not start[name][0, ..., 1:].any() and not free[name][0, ..., 1:].any()
    assert start[name][1].all() and free[name][1].all()
    assert free["embed.weight"].all()
    with pytest.raises(BadInput, match="below the largest rank"):
        rank_limited_starts(config, [4], [0])
    scaled = dataclasses.replace(config.blocks[1].attention, scale="inverse-sqrt")
    blocks = (config.blocks[0], dataclasses.replace(config.blocks[1], attention=scaled))
    with pytest.raises(BadInput, match="unit"):
        rank_limited_starts(dataclasses.replace(config, blocks=blocks), [1], [0])


@pytest.fixture(scope="module")
def rows():
    options = Options(points=POINTS, ranks=(1, 2), seeds=1, steps=100, batch=2, width=4, hidden=4)
    job = next(job for job in STUDY.jobs(options) if job.config.get("task") == "centre")
    return gravity.run(json.loads(json.dumps(job.config)))


@pytest.mark.slow
def test_a_job_measures_every_rank_and_permutations_change_nothing_without_positions(rows):
    assert [row["rank"] for row in rows] == [1, 2]
    assert len({tuple(row) for row in rows}) == 1
    # float64 outputs of order 1.
    assert max(row["permuted_largest"] for row in rows) < 1e-12
    assert all(0 <= row["distance"] <= 1 for row in rows)
    assert len(rows[0]["weights"]) == POINTS**2


@pytest.mark.parametrize("positions", [False, True])
def test_outputs_follow_points_that_change_places_exactly_when_there_are_no_positions(positions):
    config = trained_config(POINTS, 2, 4, 4, positions)
    model, given = Transformer.random(config, 0), tokens()
    order = np.array([1, 0, 2, 4, 5, 3])
    moved = np.abs(outputs(model, given[:, order]) - outputs(model, given)[:, order]).max()
    # float64 outputs of order 1, sums in another order.
    assert moved > 1e-3 if positions else moved < 1e-13


def test_a_diverged_model_is_not_measured():
    config = trained_config(POINTS, 2, 4, 4, positions=True)
    assert compared_with_physics(config, {}, "centre", 1.0, True)["mse"] is None


def made_up(permuted=1e-15, distance=0.1, ranks=(1, 2, 3)):
    return [
        {"kind": "trained", "task": task, "positions": positions, "rank": rank, "seed": seed, "diverged": False}
        | {"mse": 1.0 / rank**2 * (1 + 0.01 * seed), "l1": 1.0 / rank, "distance": distance + 0.01 * seed}
        | {"distance_of_uniform": 0.5, "correlation": 0.9, "permuted_rms": permuted, "permuted_largest": permuted}
        | {"points": [0.0, 0.0, 1.0, 1.0], "weights": [0.5] * 4, "wanted": [0.0, 1.0, 1.0, 0.0]}
        for task in TASKS
        for positions in (False, True)
        for rank in (ranks[-1:] if positions else ranks)
        for seed in range(3)
    ]


def test_the_summary_fits_slopes_and_shows_attention_beside_the_physical_weights():
    options = Options(ranks=(1, 2, 3), seeds=3)
    result = STUDY.summary(made_up(), options)
    json.dumps(dataclasses.asdict(result), allow_nan=False)
    assert [line.name for line in result.series] == [f"{task}, trained" for task in TASKS]
    assert all(abs(line.slope_mse + 2) < 1e-6 for line in result.series)
    graph = next(picture for picture in result.pictures if picture.kind == "graph")
    assert graph.data["points"] == [[0.0, 0.0], [1.0, 1.0]] and graph.data["wanted"] == [[0.0, 1.0], [1.0, 0.0]]
    assert any("only rounding" in finding for finding in result.findings)
    # Errors like 1 / rank^2 step most from 1 to 2, which is not where the nearest point becomes exact.
    steps = [finding for finding in result.findings if "largest step" in finding]
    assert all("from m_h = 1 to 2, 4 times" in step for step in steps) and len(steps) == len(TASKS)
    assert "no step was expected" in steps[0] and "NOT at 3" in steps[1] and "no finite rank is exact" in steps[2]
    assert all("NOT closer" not in finding for finding in result.findings)
    assert result.limits[-1] == "The built heads are not finished."


def test_the_summary_says_the_opposite_of_opposite_rows():
    result = STUDY.summary(made_up(permuted=0.1, distance=0.6), Options(ranks=(1, 2, 3), seeds=3))
    assert any("MORE than rounding" in finding for finding in result.findings)
    assert sum("NOT closer" in finding for finding in result.findings) == len(TASKS)


def test_the_summary_copes_with_nothing_with_holes_and_with_divergence():
    empty = STUDY.summary([], Options())
    assert not empty.series and any("Only 0 of 72" in limit for limit in empty.limits)
    some = made_up()[:4]
    some[0] |= {"diverged": True, "mse": None, "l1": None}
    result = STUDY.summary(some, Options())
    assert any("1 of 4 trained models diverged" in limit for limit in result.limits)
    json.dumps(dataclasses.asdict(result), allow_nan=False)


@pytest.mark.slow
def test_the_built_heads_of_the_study_reach_their_slopes():
    result = STUDY.summary(built({"points": 12, "seed": 0}), Options())
    nearest, pull = result.series
    assert abs(nearest.slope_mse + 1) < 0.1
    assert pull.slope_mse < -2
    assert not any("NOT" in finding for finding in result.findings)
