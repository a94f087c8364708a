"""Selection by class and by importance: targets against plain Python, the built head, jobs, and made-up rows."""

import dataclasses
import json
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from certiformer.errors import BadInput
from certiformer.model.transformer import Transformer
from certiformer.rates.over_seeds import errors_by_seed, mean_interval
from certiformer.rates.selection_tasks import average_model, ranked_config, sample, wanted
from certiformer.rates.studies import selection
from certiformer.rates.studies.selection import STUDY, Options

TOKENS = 5


asked = jax.jit(wanted, static_argnums=0)


def drawn(task, count=8):
    if task == "average":
        generator = np.random.default_rng(1)
        return np.stack([generator.random((count, TOKENS)), generator.integers(0, 3, (count, TOKENS))], axis=-1)
    return np.asarray(sample(task, TOKENS, 3, jax.random.key(1), count)[0], np.float64)


def test_the_average_is_that_of_the_own_class():
    for given in drawn("average"):
        right = [np.mean([v for v, c in given if c == own]) for _, own in given]
        assert np.abs(np.asarray(asked("average", jnp.asarray(given))) - right).max() < 1e-14


def test_importance_decides_which_value_is_which():
    for given in drawn("ranked"):
        first, second, third = (value for value, _ in sorted(given.tolist(), key=lambda token: -token[1])[:3])
        waves = [math.sin(2 * math.pi * value / 2**j) for j, value in enumerate((first, second, third))]
        right = waves[0] + waves[1] / 2 + waves[2] / 4
        assert abs(float(asked("ranked", jnp.asarray(given))[0]) - right) < 1e-14
        assert abs(float(asked("ranked", jnp.asarray(given[::-1]))[0]) - right) < 1e-14
        gaps = np.diff(np.sort(given[:, 1]))
        assert gaps.min() > 1 / (2 * TOKENS) - 1e-6  # drawn in float32


def test_an_unknown_task_is_refused():
    with pytest.raises(BadInput, match="there is no task 'median'"):
        drawn("median")


def test_one_head_of_key_size_two_selects_classes_as_beta_grows():
    given = drawn("average")
    right = np.array([asked("average", jnp.asarray(each)) for each in given])
    lifted = np.concatenate([given, given[..., 1:] ** 2], axis=-1).reshape(8, -1)
    for beta in (8.0, 16.0):
        model = average_model(TOKENS, beta)
        assert model.config.blocks[0].attention.heads[0].key == 2
        # Values are in [0, 1], and a token of another class has the share exp(-beta) or less.
        assert np.abs(model.evaluate(lifted) - right).max() < TOKENS * math.exp(-beta)
    lifted = lifted.reshape(8, TOKENS, 3)
    lifted[..., 2] = 0  # without the squares the largest class wins every row
    assert np.abs(model.evaluate(lifted.reshape(8, -1)) - right).max() > 0.01


def test_rank_one_never_puts_three_classes_first_and_rank_two_does():
    generator = np.random.default_rng(0)
    for _ in range(2000):
        scores = np.outer(generator.standard_normal(3), generator.standard_normal(3))
        assert (scores.argmax(axis=1) != np.arange(3)).any()
    classes = np.arange(3.0)
    scores = 2 * np.outer(classes, classes) - classes**2
    assert (scores.argmax(axis=1) == np.arange(3)).all()


@pytest.mark.parametrize("width", [8, 16, 32])
def test_one_and_two_layers_have_the_same_size(width):
    one, two = (Transformer.random(ranked_config(8, layers, width, 8), 0).parameter_count() for layers in (1, 2))
    assert abs(one / two - 1) < 0.02


@pytest.fixture(scope="module")
def rows():
    options = Options(tokens=TOKENS, ranks=(1, 2), widths=(4,), seeds=2, steps=100, batch=2)
    job = next(job for job in STUDY.jobs(options) if job.config.get("layers") == 2)
    return selection.run(json.loads(json.dumps(job.config)))


@pytest.mark.slow
def test_a_job_trains_every_seed(rows):
    assert [row["seed"] for row in rows] == [0, 1000]
    assert len({tuple(row) for row in rows}) == 1
    assert rows[0]["mse"] != rows[1]["mse"] and all(row["mse"] > 0 for row in rows)
    assert rows[0]["parameters"] == Transformer.random(ranked_config(TOKENS, 2, 4, 8), 0).parameter_count()


def made_up(one=0.1, two=0.01, seeds=(0, 1, 2)):
    plan = [("average", 1, 16, rank, 100 * rank, 1.0 / rank**3) for rank in (1, 2, 3)]
    plan += [("ranked", layers, w, 8, w * w, (one, two)[layers - 1] / w) for layers in (1, 2) for w in (8, 16, 32)]
    names = ("task", "layers", "width", "rank", "parameters", "mse")
    return [
        dict(zip(names, entry, strict=True))
        | {"kind": "trained", "seed": seed, "diverged": False, "l1": 0.1}
        | {"mse": entry[-1] * (1 + 0.01 * seed)}
        for entry in plan
        for seed in seeds
    ]


def test_the_summary_reports_the_drop_and_who_wins():
    options = Options(ranks=(1, 2, 3))
    result = STUDY.summary(made_up(), options)
    json.dumps(dataclasses.asdict(result), allow_nan=False)
    slopes = {line.name: line.slope_mse for line in result.series}
    assert abs(slopes["average, trained"] + 3) < 1e-6
    assert abs(slopes["importance, two attention layers"] + 0.5) < 1e-6
    assert any("drops by 8 times" in finding and "(proved)" in finding for finding in result.findings)
    assert sum("two layers win, 10 times" in finding for finding in result.findings) == 3
    assert "one layer has 10 times the error" in result.findings[-1] and "better in 9 of them" in result.findings[-1]
    opposite = STUDY.summary(made_up(one=0.01, two=0.1), options)
    assert sum("ONE layer wins" in finding for finding in opposite.findings) == 4
    same = STUDY.summary(made_up(one=0.1, two=0.1), options)
    assert sum("not conclusive" in finding for finding in same.findings) == 4
    alone = STUDY.summary(made_up(seeds=(0,)), options)
    assert sum("no interval" in finding for finding in alone.findings) == 3


def test_the_summary_copes_with_nothing_and_with_divergence():
    empty = STUDY.summary([], Options())
    assert not empty.series and any("Only 0 of 30" in limit for limit in empty.limits)
    some = made_up()[:2]
    some[0] |= {"diverged": True, "mse": None, "l1": None}
    result = STUDY.summary(some, Options())
    assert any("1 of 2 trained models diverged" in limit for limit in result.limits)
    json.dumps(dataclasses.asdict(result), allow_nan=False)


def test_only_complete_seeds_make_a_line():
    some = [{"seed": s, "rank": m, "mse": 1.0, "l1": 1.0} for s, m in [(0, 1), (1, 2)]]
    assert errors_by_seed(some, "rank") == ([1.0], [[1.0]], [[1.0]])
    assert mean_interval([3.0]) == (3.0, None)
