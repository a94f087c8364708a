"""The study of time: targets, positions, and what its summary may say."""

from __future__ import annotations

import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from certiformer.errors import BadInput
from certiformer.rates.position_models import POSITIONS, position_model, turned
from certiformer.rates.studies.time import PARTS, STUDY, Options, jobs, summary, targets
from rates.size_examples import sentence


def test_targets_have_variance_one_and_are_what_they_are_called():
    x = np.random.default_rng(0).uniform(size=(20_000, 6))
    found = {name: x @ matrix.T for name, matrix in targets(6).items()}
    for values in found.values():
        assert np.mean(np.var(values, axis=0)) == pytest.approx(1, rel=0.03)  # 20,000 samples: 1 % each
    assert np.corrcoef(found["delay by 3"][:, 4], x[:, 1])[0, 1] == pytest.approx(1)
    assert np.corrcoef(found["reversal"][:, 0], x[:, 5])[0, 1] == pytest.approx(1)
    assert np.corrcoef(found["mean so far"][:, 2], x[:, :3].mean(1))[0, 1] == pytest.approx(1)


def test_scores_of_turned_vectors_depend_on_the_distance_alone():
    query, key = np.random.default_rng(0).normal(size=(2, 1, 1, 4))
    rows = [jnp.asarray(np.repeat(vector, 5, axis=1)) for vector in (query, key)]
    scores = np.asarray(jnp.einsum("hik,hjk->hij", *map(turned, rows)))[0]
    for distance in range(-4, 5):
        diagonal = np.diagonal(scores, distance)
        np.testing.assert_allclose(diagonal, diagonal[0], atol=1e-5)  # float32
    assert np.ptp(scores) > 0.1


@pytest.mark.parametrize("kind", POSITIONS)
def test_who_is_told_about_positions(kind):
    apply, start = position_model(kind, length=4, width=4, hidden=4)
    x = jnp.asarray(np.random.default_rng(0).uniform(size=(1, 4, 1)), jnp.float32)
    first, other = (np.asarray(jax.jit(apply)(start(0), each))[0] for each in (x, x[:, ::-1]))
    moved = np.abs(first - other[::-1]).max()
    assert (moved < 1e-5) == (kind == "none")  # without positions only the order of the outputs changes


def made_up(options, better):
    rows = []
    for seed in range(3):
        for name in targets(options.length):
            for kind in POSITIONS:
                mse = (1e-4 if kind == better else 1e-2) * (1 + 0.1 * seed)
                rows.append({"part": "codes", "positions": kind, "what": name, "seed": seed, "mse": mse, "weights": 1})
        for name in ("nothing", *PARTS):
            mse = {"attention": 0.1, "positions": 0.1 + 0.01 * (seed - 1)}.get(name, 0.2 + 0.001 * seed)
            rows.append(
                {"part": "absorbed", "positions": "table", "what": name, "seed": seed, "mse": mse, "weights": 2}
            )
    return [{**row, "diverged": False} for row in rows]


def test_summary_says_what_intervals_support():
    options = Options(seeds=3)
    result = summary(made_up(options, "rotary"), options)
    assert "least error with rotary" in sentence(result.findings, "reversal:")
    assert "all others are worse" in sentence(result.findings, "reversal:")
    absorbed = sentence(result.findings, "Permuted")
    assert "positions alone leave" in absorbed and "not distinguishable" in absorbed
    assert "first feed-forward alone leave 2.01" in absorbed and "attention alone does better" in absorbed
    json.dumps(dataclasses.asdict(result), allow_nan=False)
    few = summary([row for row in made_up(options, "table") if row["seed"] < 2], options)
    assert "nothing is claimed" in few.findings[0] and "models are missing" in few.limits[0]


def test_jobs_at_a_tiny_size():
    options = Options(length=4, width=4, hidden=4, exchanged=1, steps=4, batch=2, seeds=1, rates=(0.01,))
    parts = {(job.config["part"], job.config["positions"]): job for job in jobs(options)}
    assert len(parts) == len(POSITIONS) + 1
    rows = parts["absorbed", "table"].run()
    assert [row["what"] for row in rows] == ["nothing", *PARTS] and all(np.isfinite(row["mse"]) for row in rows)
    size = {row["what"]: row["weights"] for row in rows}
    assert size["positions"] == 16 and size["both of them"] == 16 + size["first feed-forward"] < size["everything"]
    assert len(parts["codes", "rotary"].run()) == len(targets(4))
    with pytest.raises(BadInput, match="even"):
        jobs(Options(width=5))
    Options(**STUDY.full)
