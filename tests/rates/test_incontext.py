"""Learning in a context: constructed weights against the algorithms, closed forms against samples, what the summary says."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from certiformer.compiler.incontext import Request, context_learner, describe
from certiformer.compiler.incontext.gradient import explicit
from certiformer.rates.incontext_models import (
    alignment,
    constructed,
    constructed_next,
    next_token_config,
    predictions,
    random_start,
    regression_config,
    sensitivities,
)
from certiformer.rates.incontext_tasks import (
    Dynamics,
    Regression,
    least_squares_predictions,
    next_predictions,
    ridge_predictions,
)
from certiformer.rates.studies import incontext
from certiformer.rates.studies.incontext import FULL, Options, jobs, run, sample, summary

ROWS, D = 6, 2
TASK = Regression(ROWS, (1.0, 0.25), 0.5)
SHALLOW, DEEP = regression_config(D, ROWS, 1, False), regression_config(D, ROWS, 2, False)


@pytest.fixture(scope="module")
def contexts():
    return tuple(np.asarray(part) for part in sample(TASK, 1, 20_000))


def settings(steps, whiten=None, precondition=(1.0, 1.0)):
    whiten = np.zeros(len(steps)) if whiten is None else np.array(whiten)
    return {"steps": np.array(steps), "whiten": whiten, "precondition": np.array(precondition)}


def test_constructed_weights_are_the_algorithm_and_the_compiled_learner(contexts):
    x = contexts[0][:40]
    steps, whiten = (0.7, 0.4), (0.3, 0.0)
    found = np.asarray(predictions(DEEP, constructed(DEEP, ROWS, settings(steps, whiten)), x))[:, 0]
    learner: Any = SimpleNamespace(features=D, strength=0.0, steps=steps, whiten=whiten)
    wanted = [explicit(learner, c[:-1, :D], c[:-1, D], c[-1:, :D])[0] for c in x.astype(float)]
    assert found == pytest.approx(np.array(wanted), abs=2e-6)  # float32, numbers up to about 5
    # The compiler has other tokens and weights, but computes the same function.
    request = Request(learner="gd", features=D, rows=ROWS, layers=2, step=0.7, bound=8.0, label_bound=64.0, looped=True)
    compiled = context_learner(describe(request))
    built = constructed(DEEP, ROWS, settings((0.7, 0.7)))
    some = x[:3].astype(float)
    wanted = [compiled.predict(c[:-1, :D], c[:-1, D], c[-1:, :D])[0] for c in some]
    assert np.asarray(predictions(DEEP, built, x[:3]))[:, 0] == pytest.approx(np.array(wanted), abs=1e-5)
    # A wrong sign of the whitening is not the algorithm.
    wrong = np.asarray(predictions(DEEP, constructed(DEEP, ROWS, settings(steps, (-0.3, 0.0))), x))[:, 0]
    assert np.abs(wrong - found).max() > 0.1


def test_errors_in_closed_form(contexts):
    x, y = contexts
    cases = {TASK.least_error(): TASK.steps(), TASK.plain_error(): np.full(D, TASK.plain_step())}
    for error, p in cases.items():
        squares = (np.asarray(predictions(SHALLOW, constructed(SHALLOW, ROWS, settings((1.0,), None, p)), x)) - y) ** 2
        assert squares.mean() == pytest.approx(
            error, abs=float(4 * squares.std() / len(squares) ** 0.5)
        )  # four deviations
    assert TASK.least_error() < TASK.plain_error()
    # Equal eigenvalues: d (d + 1 + v) / (n + d + 1 + v).
    equal = Regression(20, (1.0,) * 4, 0.5)
    assert equal.least_error() == pytest.approx(4 * 5.25 / 25.25) == equal.plain_error()
    # Any other preconditioner is worse, in the formula's own terms.
    away = replace(TASK, noise=2.0)
    assert not np.allclose(away.steps(), TASK.steps())


def test_oracles(contexts):
    x, y = contexts[0].astype(float), contexts[1]
    ridge, squares = ridge_predictions(x, 0.5), least_squares_predictions(x)
    assert ((ridge - y) ** 2).mean() < ((squares - y) ** 2).mean() < ((0 * y - y) ** 2).mean() * 2
    assert ((ridge - y) ** 2).mean() < (
        (ridge_predictions(x, 0.8) - y) ** 2
    ).mean()  # the right strength is the best one
    features = x[:50, :, :D]
    clean = np.concatenate([features, features @ [[2.0], [-1.0]]], axis=-1)
    assert ridge_predictions(clean, 0.0) == pytest.approx(clean[:, -1, D:], abs=1e-9)  # float64, condition below 1e4


def test_next_token_construction_and_oracle():
    task = Dynamics(6, D)
    x, y = (np.asarray(part, float) for part in sample(task, 3, 30))
    config = next_token_config(D, 6, 1)
    found = np.asarray(predictions(config, constructed_next(config, 0.25), jnp.asarray(x, jnp.float32))).reshape(
        30, 6, D
    )
    before, now = x[..., :D], x[..., D : 2 * D]
    scores = np.tril(np.einsum("btd,bsd->bts", now, before))
    assert found == pytest.approx(
        0.25 * np.einsum("bts,bsd->btd", scores, now), abs=1e-4
    )  # float32, sums up to about 100
    later = y.reshape(30, 6, D)
    assert np.linalg.norm(later, axis=-1) == pytest.approx(
        np.linalg.norm(now[:, :1], axis=-1) * np.ones((1, 6)), rel=1e-5
    )
    oracle = next_predictions(x)
    error = ((oracle - later) ** 2).mean((0, 2))
    assert error[0] > 0.1 and error[1] > 1e-3  # fewer pairs than features: the rest is unknown
    assert error[3:].max() < 1e-3  # as many pairs as features, states in float32


def test_alignment_ignores_gauges_and_nothing_else():
    found = constructed(SHALLOW, ROWS, settings((0.7,)))
    used = slice(0, D), slice(D, D + 1)
    name = "blocks.0.attention.groups.0"
    gauge = np.array([[2.0, 1.0, 0.0], [0.0, -1.0, 0.5], [0.0, 0.0, 3.0]])
    other = {k: np.asarray(v, float) for k, v in found.items()}
    other[f"{name}.query"] = -3 * other[f"{name}.query"] @ gauge
    other[f"{name}.key"] = other[f"{name}.key"] @ np.linalg.inv(gauge).T
    other[f"{name}.output"] = -0.1 * other[f"{name}.output"]
    assert alignment(other, found, 1, used) == pytest.approx([1.0])
    ignored = {k: np.array(v) for k, v in other.items()}
    ignored[f"{name}.query"][0, D] += 5.0  # the query has no label to look with
    assert alignment(ignored, found, 1, used) == pytest.approx([1.0])
    other[f"{name}.output"] = -other[f"{name}.output"]  # the step goes uphill
    assert alignment(other, found, 1, used) == pytest.approx([-1.0])
    skew = constructed(SHALLOW, ROWS, settings((1.0,), None, (1.0, 3.0)))
    assert alignment(skew, found, 1, used) == pytest.approx([4 / 20**0.5])
    assert abs(alignment(random_start(SHALLOW, 0), found, 1, used)[0]) < 0.9


def test_sensitivity_of_one_layer_is_the_learned_weight(contexts):
    x = contexts[0][:5]
    found = np.asarray(sensitivities(SHALLOW, constructed(SHALLOW, ROWS, settings((0.7,))), x))
    wanted = 0.7 * np.einsum("bnd,bn->bd", x[:, :-1, :D], x[:, :-1, D]) / ROWS
    assert found == pytest.approx(wanted, abs=1e-5)


SMALL = Options(features=D, contexts=(ROWS,), rows=ROWS, layers=(1,), steps=400, restarts=1, test=2000, rate=0.02)


def test_a_job_measures_what_was_trained(monkeypatch):
    # In place of training: the best layer itself, the same with another gauge, and one that goes uphill.
    task = Regression(ROWS, (1.0, 1.0), 0.5)
    best = constructed(SHALLOW, ROWS, settings((1.0,), None, task.steps()))
    name = "blocks.0.attention.groups.0"
    gauge = {**best, f"{name}.query": -2 * best[f"{name}.query"], f"{name}.output": best[f"{name}.output"] / -2}
    uphill = {**best, f"{name}.output": -best[f"{name}.output"]}
    given = [(seed, params, 0.0, 0) for seed, params in enumerate((best, gauge, uphill))]
    monkeypatch.setattr(incontext, "_trained", lambda model, draw, config: given)
    rows = run(json.loads(json.dumps(jobs(SMALL)[0].config)))
    assert json.loads(json.dumps(rows)) == rows
    for row in rows[:2]:
        assert row["distance_best"] < 1e-10 and row["sensitivity"] == pytest.approx(1) == row["alignment"][0]
        # Squares of 2000 contexts have a spread of about 2, so the mean is known to 5 percent; three times that.
        assert (
            row["error_mse"] == pytest.approx(row["theory_layer"], rel=0.15) and row["error_ridge"] < row["error_mse"]
        )
    wrong = rows[2]
    assert wrong["distance_best"] == pytest.approx(4) and wrong["sensitivity"] == pytest.approx(-1)
    assert wrong["alignment"] == pytest.approx([-1]) and wrong["error_mse"] > 2 * wrong["theory_layer"]


@pytest.mark.slow
def test_training_finds_the_constructed_step():
    rows = run(jobs(SMALL)[0].config)
    assert len(rows) == SMALL.seeds and len({row["error_mse"] for row in rows}) == 3  # seeds differ
    for row in rows:
        # Test error of 2000 contexts: 10 percent cover its spread and that of 400 steps; the formula is the least possible.
        assert 0.9 < row["error_mse"] / row["theory_layer"] < 1.1
        assert row["distance_best"] < 0.02 and row["alignment"][0] > 0.97 and row["sensitivity"] > 0.97
    again = run(jobs(SMALL)[0].config)
    assert again == rows


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["stacked", "looped", "next-token"])
def test_every_kind_of_job_runs(kind):
    options = replace(SMALL, layers=(2,), steps=100, test=200, batch=16, seeds=1, length=6)
    job = next(job for job in jobs(options) if job.config["kind"] == kind)
    rows = run(job.config)
    assert json.loads(json.dumps(rows)) == rows and np.isfinite(rows[0]["error_mse"])
    summary(rows, options)


def made_up(options, better=True):
    """Rows of all jobs in which one layer is exactly the formula, and deeper ones are better than GD++ or worse."""
    rows = []
    for job in jobs(options):
        c = job.config
        single = c["layers"] == 1
        theory = Regression(c["rows"], (1.0,) * 4, 0.5).least_error() if single else 0.0
        for seed in range(c["seeds"]):
            error = (theory or (0.05 if better else 0.4)) * (1 + 0.02 * np.sin(7 * seed + c["rows"]))
            row = {"kind": c["kind"], "rows": c["rows"], "layers": c["layers"], "spread": c["spread"], "seed": seed}
            row |= {"error_mse": error, "error_l1": error**0.5, "loss": error, "diverged": 0, "error_gd": 0.3}
            row |= {"error_gd++": 0.0 if single else 0.1, "error_preconditioned": theory}
            row |= {
                "error_ridge": 0.5 / c["rows"],
                "error_least_squares": 0.06,
                "theory_gd": theory,
                "theory_layer": theory,
            }
            row |= {"distance_gd": 0.04, "distance_best": 0.01, "sensitivity": 0.9, "alignment": [0.95] * c["layers"]}
            row["distance_ridge"] = 0.0225 if seed else 0.0025  # 0.15 and 0.05 after the root
            places = [1.0, 0.5, 0.1] if c["kind"] == "next-token" else []
            row |= {"by_place": places, "by_place_constructed": places, "by_place_oracle": places}
            rows.append(row)
    return rows


def test_summary_of_made_up_rows():
    options = Options()
    result = summary(made_up(options), options)
    trained = next(s for s in result.series if s.name == "one layer, trained")
    assert trained.slope_mse == pytest.approx(trained.theory["constructed"], abs=0.02)  # two percent at five lengths
    # d (d + 1 + v)/(n + d + 1 + v) falls like n^-0.77 at these lengths, like 1/n only later.
    assert "constructed" not in trained.excluded and "asymptotic" in trained.excluded
    ridge = next(s for s in result.series if s.name.startswith("ridge"))
    assert ridge.slope_mse == pytest.approx(-1.0) and "asymptotic" not in ridge.excluded
    text = " ".join(result.findings)
    assert (
        "below GD++ at 0.1" in text
        and "times the error of the best single layer" in text
        and "nearer to the preconditioned step" in text
    )
    assert "2 stacked: GD++ in 2 and ridge regression in 1 of 3 seeds (0.2, 0.1," in text
    assert not any("missing" in limit for limit in result.limits)
    json.dumps([vars(s) for s in result.series] + [vars(p) for p in result.pictures], allow_nan=False)


def test_summary_says_the_contrary_of_contrary_rows():
    options = Options()
    rows = made_up(options, better=False)
    for row in rows:
        row |= {"alignment": [0.2] * len(row["alignment"]), "distance_gd": 0.01, "distance_best": 0.04, "diverged": 1}
    result = summary(rows, options)
    text = " ".join(result.findings)
    assert "above GD++ at 0.1" in text and "below GD++" not in text and "nearer to the plain step" in text
    assert "3 looped: gradient descent in 2 and ridge regression in 1 of 3 seeds" in text
    assert "0 of 15 trained layers are the constructed one" in text
    assert any("restarts diverged" in limit for limit in result.limits)


def test_summary_of_few_rows():
    options = Options()
    rows = [row for row in made_up(options) if row["kind"] == "context" and row["rows"] < 20]
    result = summary(rows, options)
    assert next(s for s in result.series if s.name == "one layer, trained").slope_mse is None
    assert any("are missing" in limit for limit in result.limits)
    assert summary([], options).series == []


def test_jobs_are_different_and_plain():
    for options in (Options(), replace(Options(), **FULL), Options(rows=7)):
        found = jobs(options)
        assert len({job.id for job in found}) == len(found)
        assert {job.config["kind"] for job in found} == {"context", "stacked", "looped", "skewed", "next-token"}
    assert any(job.config["kind"] == "stacked" and job.config["layers"] == 1 for job in jobs(Options(rows=7)))
