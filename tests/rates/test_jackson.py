"""The study of m_h: its jobs, what training keeps, and findings that follow from rows alone."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import jax
import numpy as np
import pytest

from certiformer.errors import BadInput
from certiformer.model import tensor_specs
from certiformer.rates import sine_training
from certiformer.rates.sine_model import INTERVALS, sine_config
from certiformer.rates.sine_training import Plan, _stages, paper_config, train_ranks
from certiformer.rates.studies.jackson import STUDY, Options, jobs, run, summary
from certiformer.rates.targets import SineTarget

TINY = Options(
    mh=(1, 2, 3, 4),
    alpha=(1.0,),
    target_rank=("2", "inf"),
    diagonal="masked",
    trained_mh=(1, 2, 3),
    trained_alpha=(1.0,),
    restarts=2,
    steps=20,
    samples=16,
)


@pytest.fixture(scope="module")
def trained_rows():
    """One job: three ranks and two restarts in one call."""
    (job,) = [job for job in jobs(TINY) if job.function.endswith(":run") and job.config["rank"] == "inf"]
    with pytest.MonkeyPatch.context() as small:
        small.setattr(sine_training, "POOL", 256)
        small.setattr(sine_training, "HELD_OUT", 64)
        yield job, job.run()


@pytest.fixture
def whole_data(monkeypatch):
    """The sizes of the study, which the small job above has changed for this module."""
    monkeypatch.setattr(sine_training, "POOL", 32_768)
    monkeypatch.setattr(sine_training, "HELD_OUT", 8_192)


def made_rows(kind: str, errors: dict[int, list[float]], rank: str = "inf", alpha: float = 1.5) -> list[dict]:
    place = {"kind": kind, "alpha": alpha, "rank": rank, "diagonal": "masked"}
    more = {"diverged": False, "singular_values": [1.0, 0.5]} if kind == "trained" else {}
    return [
        {**place, "mh": mh, "replicate": i, "mse": mse, "l1": mse**0.5, **more}
        for mh, mses in errors.items()
        for i, mse in enumerate(mses)
    ]


def test_every_series_is_covered_and_jobs_stay_small():
    options = Options()
    built = [job.config for job in jobs(options) if job.function.endswith(":construct")]
    trained = [job.config for job in jobs(options) if job.function.endswith(":run")]
    assert {(c["alpha"], c["rank"], c["diagonal"]) for c in built} == {
        (a, r, d) for a in (0.55, 1.0, 1.5, 2.0) for r in ("2", "6", "inf") for d in ("masked", "kept")
    }
    assert all(len(c["mh"]) * c["restarts"] <= 12 for c in trained)
    places = [(c["alpha"], c["rank"], mh) for c in trained for mh in c["mh"]]
    assert len(set(places)) == len(places)
    assert {mh for a, r, mh in places if (a, r) == (1.5, "inf")} == set(range(1, 9))
    assert {mh for a, r, mh in places if (a, r) == (1.0, "6")} == {5, 6, 7}
    assert {c["cut"] for c in built if c["alpha"] <= 1} == {128} and {c["cut"] for c in built if c["alpha"] > 1} == {64}
    assert json.dumps([job.config for job in jobs(replace(options, **STUDY.full))], allow_nan=False)
    assert not [job for job in jobs(replace(options, trained=False)) if job.function.endswith(":run")]


@pytest.mark.parametrize(
    "bad",
    [
        {"mh": (0,)},
        {"trained_mh": (-1,)},
        {"target_rank": ("0",)},
        {"target_rank": ("x",)},
        {"restarts": 0},
        {"steps": 1},
    ],
)
def test_options_that_mean_nothing_are_refused(bad):
    with pytest.raises(BadInput):
        jobs(replace(Options(), **bad))


@pytest.mark.slow
def test_rows_of_a_job_are_complete_and_their_ranks_padded(trained_rows):
    job, rows = trained_rows
    assert [(row["mh"], row["replicate"]) for row in rows] == [(m, r) for m in (1, 2, 3) for r in (0, 1)]
    for row in rows:
        values = np.array(row["singular_values"])
        assert (values[row["mh"] :] < 1e-6 * values[0]).all()  # float32 weights: padded keys are exactly zero
        assert values[row["mh"] - 1] > 1e-6 * values[0]
        assert 0 < row["mse"] < 1 and row["l1"] > 0
    assert len({row["mse"] for row in rows}) == 6  # restarts differ


@pytest.mark.slow
def test_a_member_does_not_depend_on_who_is_trained_beside_it(trained_rows):
    job, rows = trained_rows
    alone = run({**job.config, "mh": [2], "restarts": 1})
    assert alone[0]["mse"] == rows[2]["mse"]


@pytest.mark.slow
def test_results_are_the_same_with_and_without_double_precision(trained_rows):
    job, rows = trained_rows
    with jax.enable_x64(not jax.config.jax_enable_x64):
        assert [row["mse"] for row in job.run()] == [row["mse"] for row in rows]


def test_the_paper_size_has_its_layers():
    config = paper_config(SineTarget(1.0), 16)
    assert (config.width, len(config.blocks)) == (32, 7)
    assert [block.ffn.width for block in config.blocks if block.ffn] == [128] * 6
    assert len(paper_config(SineTarget(1.0), 16, layers=2).blocks) == 8


def test_summaries_are_json_with_all_some_and_no_rows():
    rows = made_rows("trained", {mh: [mh**-1.0, 2.0] for mh in (1, 2, 3)}, alpha=1.0)
    built = [row for job in jobs(TINY) if job.function.endswith(":construct") for row in job.run()]
    for some in (built + rows, built[:3], []):
        result = summary(some, TINY)
        assert json.dumps(asdict(result), allow_nan=False)
    assert any("rows are missing" in limit for limit in summary([], TINY).limits)
    whole = summary(built + rows, TINY)
    names = {series.name for series in whole.series}
    assert "constructed, alpha 1, rank inf, diagonal masked" in names
    assert set(whole.series[-1].theory) == {"founding_note", "paper", "corrected_mse", "corrected_l1"}
    assert whole.pictures[0].kind == "spectrum"


def test_findings_follow_the_rows_and_so_do_their_negations():
    power = {mh: [mh**-2.0 * (1 + 0.01 * i) for i in range(3)] for mh in range(1, 9)}
    found = summary(made_rows("trained", power), Options())
    series = found.series[0]
    assert series.slope_mse == pytest.approx(-2, abs=1e-9) and series.excluded == ["founding_note"]
    assert "nearest is the -(2a-1) of the paper (-2)" in found.findings[0]
    assert "outside the interval: the -(2a+1)" in found.findings[0]
    steep = {mh: [mh**-4.0] * 3 for mh in range(1, 9)}
    found = summary(made_rows("trained", steep), Options())
    assert "nearest is the -(2a+1)" in found.findings[0] and "founding_note" not in found.series[0].excluded


@pytest.mark.parametrize(
    ("after", "words"), [(1e-5, "1e+03 times; at least 100"), (5e-3, "2 times; less than the 100")]
)
def test_drops_are_judged_by_their_figures(after, words):
    rows = made_rows("trained", {1: [1e-2, 2e-2], 2: [after, 1.0], 3: [after, 1.0]}, rank="2")
    found = summary(rows, Options())
    (sentence,) = found.findings
    assert words in sentence
    assert found.series[0].slope_mse is None and "no slope" in found.series[0].note


def test_diverged_and_missing_restarts_are_never_the_best():
    rows = made_rows("trained", {mh: [mh**-2.0, 1e-9] for mh in range(1, 9)})
    for row in rows:
        row["diverged"] = row["replicate"] == 1
    assert summary(rows, Options()).series[0].slope_mse == pytest.approx(-2, abs=1e-9)


def test_training_is_compared_with_truncation():
    power = {mh: [mh**-2.0] * 8 for mh in range(1, 9)}
    better = {mh: [0.5 * mh**-2.0] * 3 for mh in range(1, 9)}
    found = summary(made_rows("constructed", power) + made_rows("trained", better), Options())
    assert "0.50 to 0.50 times that of POD truncation, below it at 8 of 8 ranks" in found.findings[-1]
    worse = {mh: [2 * mh**-2.0] * 3 for mh in range(1, 9)}
    found = summary(made_rows("constructed", power) + made_rows("trained", worse), Options())
    assert "below it at 0 of 8 ranks." in found.findings[-1]


@pytest.mark.slow
@pytest.mark.usefixtures("whole_data")
def test_trained_slopes_and_drops_reach_the_theory():
    """What the default study reaches, on fewer ranks: alpha = 1 on m_h = 2, 4, 8, and the drop at rank 2."""
    members = train_ranks(SineTarget(1.0), (2, 4, 8), 2, Plan(), 8, 0)
    best = [min(member.mse for member in members if member.mh == mh) for mh in (2, 4, 8)]
    assert abs(np.polyfit(np.log([2, 4, 8]), np.log(best), 1)[0] + 1) < 0.3
    members = train_ranks(SineTarget(1.0, 2), (1, 2), 2, Plan(), 2, 0)
    one, two = (min(member.mse for member in members if member.mh == mh) for mh in (1, 2))
    assert one > 100 * two


def test_of_two_layers_both_are_trained():
    """A first layer that starts idle stays idle unless it learns together with the last one."""
    config = sine_config(SineTarget(1.0), 2, INTERVALS, 2, "float32")
    free = {name: np.ones(spec.shape) for name, spec in tensor_specs(config).items()}
    masks = [{name for name, mask in trained.items() if mask.any()} for _, _, trained in _stages(Plan(layers=2), free)]
    first, last, ffn = "blocks.1.attention.groups.0.output", "blocks.2.attention.groups.0.output", "blocks.0.ffn.up"
    assert [first in names for names in masks] == [False, True, True]
    assert [last in names for names in masks] == [True, True, True]
    assert [ffn in names for names in masks] == [False, False, True]
    assert len(_stages(Plan(layers=1), free)) == 2


@pytest.mark.slow
def test_the_first_of_two_layers_ends_in_use():
    target = SineTarget(1.5, None, True, 16, 64)
    (two,) = train_ranks(target, [2], 1, Plan(steps=1000, layers=2), 2, 0)
    (one,) = train_ranks(target, [2], 1, Plan(steps=1000), 2, 0)
    # 0.002 is what an idle layer had; 0.36 and more those that learn.
    assert np.abs(two.model.tensors["blocks.1.attention.groups.0.output"]).max() > 0.05
    assert two.mse < 0.8 * one.mse
