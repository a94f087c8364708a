"""The study of composition: equal weights, models that learn, built models, and what the summary may say."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from certiformer.errors import BadInput
from certiformer.rates.composition_tasks import TASKS, task
from certiformer.rates.over_seeds import bootstrap_mean
from certiformer.rates.size_models import parameter_count
from certiformer.rates.studies.composition import STUDY, Options, jobs, summary
from certiformer.rates.token_models import equal_width, token_config, trained_rows
from rates.size_examples import sentence

TINY = Options(
    tasks=("parity",), depths=(1,), letters=4, width=8, rates=(0.01,), seeds=3, steps=20, samples=64, batch=8
)


@pytest.mark.parametrize("name", TASKS)
def test_deeper_models_have_at_most_the_weights_of_one_block(name):
    asked = task(name, 6)
    budget = parameter_count(token_config(asked, width=32))
    for depth in (2, 3, 6):
        width = equal_width(asked, 32, depth, heads=2)
        assert parameter_count(token_config(asked, width=width, depth=depth)) <= budget
        assert parameter_count(token_config(asked, width=width + 2, depth=depth)) > budget
    with pytest.raises(BadInput, match="too few"):
        equal_width(asked, 2, 64, heads=2)


@pytest.mark.slow
def test_parity_of_four_bits_is_learned_and_an_untrained_model_is_not_better_than_guessing():
    asked = task("parity", 4)
    config = token_config(asked, width=16, norm="pre")
    training = {"samples": 256, "batch": 32, "rates": [0.01, 1e-9]}
    (row,) = trained_rows(asked, config, {**training, "steps": 600}, [0])
    assert row["wrong"] == row["seen_wrong"] == 0 and row["rate"] == 0.01 and not row["diverged"]
    (idle,) = trained_rows(asked, config, {**training, "steps": 10, "rates": [1e-9]}, [0])
    assert idle["wrong"] > 0.2


def test_the_jobs_of_a_tiny_study():
    rows = [row for job in jobs(TINY) for row in job.run()]
    assert len(rows) == 1 + 3
    made = rows[0]
    assert (made["kind"], made["certified"], made["wrong"]) == ("built", True, 0.0) and made["depth"] >= 1
    result = summary(rows, TINY)
    text = json.dumps(dataclasses.asdict(result), allow_nan=False)
    assert "certified for all inputs" in text and "missing" not in " ".join(result.limits)
    with pytest.raises(BadInput, match="from 1 on"):
        jobs(Options(depths=(0, 1)))


def made_up(wrong):
    rows = []
    for depth in (1, 2):
        for seed in range(3):
            share = wrong[depth] + 0.002 * seed
            row = {"task": "parity", "kind": "trained", "depth": depth, "seed": seed, "wrong": share}
            rows.append(row | {"weights": 9, "brought": 99, "diverged": False})
    return rows


def test_the_summary_says_what_the_intervals_support():
    options = dataclasses.replace(TINY, depths=(1, 2))
    better = summary(made_up({1: 0.5, 2: 0.0}), options).findings
    assert "below 1 % wrong in every seed with 2 blocks first" in sentence(better, "parity")
    assert "2 blocks beat 1" in sentence(better, "parity")
    worse = sentence(summary(made_up({1: 0.1, 2: 0.5}), options).findings, "parity")
    assert "no depth gets below" in worse and "1 block beats every deeper one" in worse
    assert "no effect" in sentence(summary(made_up({1: 0.5, 2: 0.501}), options).findings, "parity")
    empty = summary([], options)
    assert empty.findings == [] and "models are missing" in empty.limits[0]


def test_a_bootstrap_interval_covers_the_mean():
    generator, hits = np.random.default_rng(0), 0
    for number in range(200):
        low, high = bootstrap_mean(generator.normal(size=8).tolist(), seed=number)[1]
        hits += low <= 0 <= high
    assert 170 <= hits <= 198  # 95 percent of 200, less what percentiles of eight values miss


def test_options():
    assert STUDY.name == "composition" and Options(**STUDY.full).seeds == 20
