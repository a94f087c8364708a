"""Weights that are exact at every length, and the summary of the study `length`."""

import dataclasses
import json

import numpy as np
import pytest

from certiformer.errors import BadInput
from certiformer.model import Transformer
from certiformer.rates.length_construction import exponential_memory, graph_model
from certiformer.rates.sequence_batches import SHARPNESS
from certiformer.rates.sequence_targets import causal_matrix
from certiformer.rates.studies import length

# Weights that sum to 1 and values below 1.6 in float64: a few roundings.
ROUNDING = 1e-13


@pytest.mark.parametrize(("tokens", "ratio"), [(4, np.exp(-1)), (9, np.exp(-1)), (9, 0.9)])
def test_exponential_memory_is_exact(tokens, ratio):
    x = np.random.default_rng(0).uniform(size=(256, tokens))
    wanted = x @ causal_matrix(ratio ** np.arange(tokens)).T
    np.testing.assert_allclose(exponential_memory(tokens, ratio).evaluate(x), wanted, rtol=0, atol=ROUNDING)


def test_without_the_weight_of_the_register_it_is_not():
    """Planted: the register's score without its constant."""
    model = exponential_memory(4)
    x = np.random.default_rng(0).uniform(size=(256, 4))
    wrong = Transformer(model.config, {**model.tensors, "registers": np.zeros((1, 2))})
    assert np.abs(wrong.evaluate(x) - model.evaluate(x)).max() > 0.01


def test_longer_models_agree_with_shorter_ones_on_the_first_steps():
    x = np.random.default_rng(1).uniform(size=(256, 9))
    long, short = exponential_memory(9).evaluate(x), exponential_memory(4).evaluate(x[:, :4])
    np.testing.assert_allclose(long[:, :4], short, rtol=0, atol=ROUNDING)


def test_graph_model_is_attention_over_the_past():
    x = np.random.default_rng(2).uniform(size=(256, 9))
    wanted = np.zeros_like(x)
    for b, t in np.ndindex(x.shape):
        weights = np.exp(SHARPNESS * (2 * x[b, t] - 1) * (2 * x[b, : t + 1] - 1))
        wanted[b, t] = weights @ x[b, : t + 1] / weights.sum()
    np.testing.assert_allclose(graph_model(9).evaluate(x), wanted, rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("ratio", [0.0, 1.0, -0.5, float("nan")])
def test_a_memory_that_does_not_fade_is_refused(ratio):
    with pytest.raises(BadInput, match="between 0 and 1"):
        exponential_memory(4, ratio)


def made_up(options, growth, seeds=3):
    return [
        {"kind": kind, "task": task, "length": tokens, "seed": seed, "l1": 0.1,
         "mse": 1e-4 * (1 + 0.01 * seed) * (tokens / options.length) ** growth[kind]}
        for seed in range(seeds)
        for kind in length.KINDS
        for task in length.TASKS
        for tokens in options.lengths
        if kind != "table" or tokens <= options.length
    ]  # fmt: skip


def test_summary_says_what_grows_and_what_carries_over():
    options = length.Options()
    growth = dict.fromkeys(length.KINDS, 0.0) | {"sines and cosines": 3.0}
    result = length.STUDY.summary(made_up(options, growth), options)
    found = " ".join(result.findings)
    assert "memory, sines and cosines: the error grows" in found and "graph, gated RNN: the error carries over" in found
    assert "table" not in found and any("no rows beyond length 16" in limit for limit in result.limits)
    assert not any("missing" in limit for limit in result.limits)
    series = {each.name: each for each in result.series}
    assert series["memory, sines and cosines"].slope_mse == pytest.approx(3, abs=1e-9)
    assert series["memory, table"].slope_mse is None and "3 points" in series["memory, table"].note
    cells = next(row for row in result.tables[0].rows if row[0] == "table")
    assert cells[2:] == ["no rows beyond"] * 3
    json.dumps(dataclasses.asdict(result), allow_nan=False)


def test_summary_claims_nothing_from_two_seeds_or_none():
    options = length.Options()
    two = length.STUDY.summary(made_up(options, dict.fromkeys(length.KINDS, 0.0), seeds=2), options)
    assert all("nothing is claimed" in sentence for sentence in two.findings)
    empty = length.STUDY.summary([], options)
    assert "rows are missing" in empty.limits[0]
    json.dumps(dataclasses.asdict(empty), allow_nan=False)


def test_built_rows_are_exact_beyond_the_trained_length():
    config = {**dataclasses.asdict(length.Options(length=4, lengths=(9,))), "kind": "built"}
    rows = length.run(config)
    assert [(row["task"], row["length"]) for row in rows] == [(task, 9) for task in length.TASKS]
    assert all(row["l1"] < ROUNDING for row in rows)


@pytest.mark.slow
def test_every_kind_runs_and_the_table_stops_at_its_length():
    options = length.Options(length=5, lengths=(5, 8), width=8, hidden=8, units=6, gated_units=4, steps=20,
                             recurrent_steps=20, batch=4, seeds=1)  # fmt: skip
    rows = [row for job in length.STUDY.jobs(options) for row in job.run()]
    assert {row["length"] for row in rows if row["kind"] == "table"} == {5}
    assert not any("missing" in limit for limit in length.STUDY.summary(rows, options).limits)
