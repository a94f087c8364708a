"""The study of width on rows whose slopes are known."""

from __future__ import annotations

from certiformer.rates.studies.width import STUDY, Options, jobs, summary
from rates.size_examples import noisy, row, sentence

OPTIONS = Options(widths=(4, 8, 16, 32), seeds=4)


def made(trained: float = -2.0, built: float = -4.0, sup: float = 3.0):
    rows = []
    for target in ("sines", "graph"):
        for place, width in enumerate(OPTIONS.widths):
            for seed in range(OPTIONS.seeds):
                rows.append(row(target, "trained", width, seed, noisy(width**trained, seed, place)))
            error = 0.5 * width**built
            rows.append(row(target, "built", width, 0, error, bound=4 * error**0.5, test_sup=sup * error**0.5))
    return rows


def test_slopes_and_sentences():
    result = summary(made(), OPTIONS)
    lines = {each.name: each for each in result.series}
    trained, built = lines["sines, trained, fresh points"], lines["graph, constructed"]
    assert trained.slope_mse is not None and abs(trained.slope_mse + 2) < 0.05  # noise of 5 % over a factor 8 in x
    assert built.slope_mse is not None and abs(built.slope_mse + 4) < 1e-9
    assert set(trained.excluded) == {"barron_mse_upper_bound", "piecewise_linear_mse", "piecewise_linear_l1"}
    assert "piecewise_linear_mse" not in built.excluded and "piecewise_linear_l1" not in built.excluded
    text = sentence(result.findings, "sin(x1)+sin(x2)", "fresh points)")
    assert "slower than the -4 that the width allows, yet faster than Barron's -1" in text
    assert "in agreement with the -4" in sentence(result.findings, "Jiang", "(constructed) the mean")
    # 0.5 x^-4 at 4, ..., 32 units, against 5, ..., 33 pieces: steeper than -4, so the sentence must not agree.
    assert "leaves out -4" in sentence(result.findings, "Jiang", "linear pieces")
    # 0.9 by construction of the rows: 1 / 0.9 in every seed.
    assert "1.11 [1.11, 1.11] over 4 seeds" in sentence(result.findings, "sin(x1)", "fresh points is")
    assert "at no width" in sentence(result.findings, "sin(x1)", "beats")
    assert "8 built models lies below" in sentence(result.findings, "proved bound")
    assert not any("missing" in text for text in result.limits)


def test_other_truths_give_other_sentences():
    result = summary(made(trained=-0.5, built=-5.0), OPTIONS)
    assert "and than Barron's -1" in sentence(result.findings, "sin(x1)", "fresh points)")
    assert "faster than -4" in sentence(result.findings, "sin(x1)", "(constructed) the mean")
    rich = summary(made(trained=-6.0, built=-2.0), OPTIONS)
    assert "m_FF = 4, 8, 16, 32" in sentence(rich.findings, "sin(x1)", "beats")


def test_no_fall_is_claimed_where_the_seeds_disagree():
    rows = [{**r, "test_mse": r["test_mse"] * r["x"] ** (r["seed"] - 1.5)} for r in made(trained=-0.5)]
    found = summary(rows, OPTIONS).findings
    assert "Whether it falls at all these seeds leave open" in sentence(found, "sin(x1)", "fresh points)")
    assert "leave open" not in sentence(summary(made(), OPTIONS).findings, "sin(x1)", "fresh points)")


def test_a_bound_that_is_exceeded_is_reported():
    # Planted: largest errors of 5 roots against bounds of 4.
    result = summary(made(sup=5.0), OPTIONS)
    assert "8 of 8 built models exceed their proved bound" in sentence(result.findings, "proved bound")


def test_missing_and_diverged_models():
    rows = made()
    rows[0]["diverged"] = True
    rows = [r for r in rows if not (r["target"] == "graph" and r["kind"] == "trained")]
    result = summary(rows, OPTIONS)
    assert "16 of 40 models are missing" in result.limits[0] and "1 of 24 models diverged" in result.limits[1]
    assert {each.name for each in result.series if each.name.startswith("graph")} == {"graph, constructed"}
    two = summary([r for r in made() if r["x"] < 10], OPTIONS)
    assert two.series[0].slope_mse is None and "3 points" in two.series[0].note
    assert summary([], OPTIONS).series == []


def test_jobs_cover_every_model_once():
    members = [
        (j.config["kind"], j.config["target"], m["x"], m["seed"]) for j in jobs(OPTIONS) for m in j.config["members"]
    ]
    assert len(members) == len(set(members)) == 40
    assert len({job.id for job in jobs(OPTIONS)}) == len(jobs(OPTIONS))
    Options(**STUDY.full)
