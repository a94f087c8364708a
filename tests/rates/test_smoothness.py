"""The jobs of the study at tiny sizes, and its sentences on made-up rows."""

import dataclasses
import json

import numpy as np
import pytest

from certiformer.rates.studies import smoothness
from certiformer.rates.studies.smoothness import STUDY, Options

TINY = Options(grid=256, widths=(4,), samples=(256, 512), seeds=1, steps=100)


def ran(name):
    job = next(job for job in STUDY.jobs(TINY) if job.function.endswith(f":{name}"))
    return getattr(smoothness, name)(json.loads(json.dumps(job.config)))


@pytest.fixture(scope="module")
def trained():
    return ran("run")


@pytest.mark.slow
def test_a_job_trains_without_noise_and_on_every_sample_size(trained):
    assert [row["samples"] for row in trained] == [0, 256, 512]
    assert len({tuple(row) for row in trained}) == 1
    assert len({row["mse"] for row in trained}) == 3 and all(row["mse"] > 0 for row in trained)


def test_the_fourier_job_finds_the_exponents_it_was_given():
    rows = ran("analysed")
    assert {(row["target"], row["found"]) for row in rows} == {
        ("sum over axes", "both"),
        ("filled, anisotropic", "anisotropic"),
        ("filled, mixed", "mixed"),
    }
    assert all(np.allclose(row["a"], [1, 2], atol=1e-9, rtol=0) for row in rows)


def test_least_squares_improves_with_samples():
    rows = [row for row in ran("estimated") if row["gamma"] == "mixed"]
    assert [row["samples"] for row in rows] == [256, 512]
    # sigma^2 G / n with the 9 to 49 terms that 256 noisy values pay for, and the waves left out, is far below the variance
    # of the function, 4/3 + 16/15.
    assert max(row["mse"] for row in rows) < 0.5


def made_up(slope, widths=(4, 8, 16), counts=(256, 512, 1024), seeds=(0, 1, 2)):
    rows = [
        {"kind": "trained", "width": w, "parameters": w * w, "samples": n, "seed": s, "diverged": False}
        | {"mse": (float(w) ** -4 if n == 0 else float(n) ** slope * (1 + w)) * (1 + 0.001 * s), "l1": 0.1}
        for w in widths
        for n in (0, *counts)
        for s in seeds
    ]
    for gamma in ("anisotropic", "mixed"):
        rows += [
            {"kind": "least squares", "gamma": gamma, "samples": n, "seed": s, "terms": 9}
            | {"mse": float(n) ** slope * (1 + 0.001 * s), "l1": 0.1}
            for n in counts
            for s in seeds
        ]
    return rows


def sentence(result, start):
    return next(finding for finding in result.findings if finding.startswith(start))


def test_the_summary_compares_slopes_with_the_exponents_of_the_theory():
    options = Options(widths=(4, 8, 16), samples=(256, 512, 1024))
    result = STUDY.summary(made_up(-2 / 3), options)
    json.dumps(dataclasses.asdict(result), allow_nan=False)
    lines = {line.name: line for line in result.series}
    assert abs(lines["trained, against parameters"].theory["anisotropic"] + 4 / 3) < 1e-12
    assert lines["trained, against parameters"].theory["mixed_l1"] == -1
    assert abs(lines["trained, against samples"].theory["anisotropic"] + 4 / 7) < 1e-12
    assert abs(lines["trained, against samples"].slope_mse + 2 / 3) < 1e-6
    assert "mixed predicts -0.667 (in the interval" in sentence(result, "least squares, mixed")
    assert "falls faster, as an upper bound allows" in sentence(result, "least squares, anisotropic")
    slow = STUDY.summary(made_up(-0.1), options)
    assert "falls more slowly" in sentence(slow, "trained, against samples")


def test_the_best_width_stands_for_a_sample_size():
    result = STUDY.summary(made_up(-0.5), Options(widths=(4, 8, 16), samples=(256, 512, 1024)))
    line = next(line for line in result.series if line.name == "trained, against samples")
    assert abs(line.error_mse[0] - 256**-0.5 * 5 * 1.001) < 1e-12  # width 4 is the best, and the mean over seeds


def test_the_summary_copes_with_nothing_with_two_points_and_with_divergence():
    empty = STUDY.summary([], Options())
    assert not empty.series and any("Fourier analysis" in limit for limit in empty.limits)
    rows = made_up(-0.5, counts=(256, 512))
    rows[0] |= {"diverged": True, "mse": None, "l1": None}
    result = STUDY.summary(rows, Options())
    assert "no slope" in sentence(result, "least squares, mixed") and "there are 2" in sentence(
        result, "least squares, mixed"
    )
    assert any("1 of 27 trained models diverged" in limit for limit in result.limits)
    json.dumps(dataclasses.asdict(result), allow_nan=False)
