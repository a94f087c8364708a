"""The study of normalisation on rows in which every effect is planted."""

from __future__ import annotations

import math

from certiformer.rates.studies.layernorm import NORMS, STUDY, Options, effect, jobs, summary
from rates.size_examples import noisy, row, sentence

OPTIONS = Options(seeds=4)
EFFECTS = {"none": 1.0, "pre": 0.25, "post": 1.0}


def made():
    rows = []
    for n, norm in enumerate(NORMS):
        for heads in OPTIONS.heads:
            for depth in OPTIONS.depths:
                for seed in range(OPTIONS.seeds):
                    error = noisy(1e-3, seed, 0, 1.0) * EFFECTS[norm] * (3.0 if depth == 2 else 1.0)
                    error = noisy(error, seed, 1 + n + 7 * heads + 3 * depth)
                    more = {"norm": norm, "heads": heads, "depth": depth, "group": f"{norm} {depth}"}
                    rows.append(row("sines", "trained", heads, seed, error, **more))
    return rows


def test_planted_effects_are_found_and_no_others():
    findings = summary(made(), OPTIONS).findings
    assert "makes the error smaller" in sentence(findings, "before every sub-layer instead of none")
    assert "neither a gain nor a loss" in sentence(findings, "after every sub-layer instead of none")
    assert "makes the error larger" in sentence(findings, "after instead of before")
    assert "neither a gain nor a loss" in sentence(findings, "question 1", "4 heads instead of 1")
    assert "makes the error larger" in sentence(findings, "question 4", "2 attention layers instead of 1")


def test_effect_averages_over_the_other_choices():
    found = effect(made(), "norm", "pre", "none", ("heads", "depth"))
    # Four combinations with 5 % of noise each, in both numbers of the ratio.
    assert found is not None and found.seeds == 4 and abs(math.log(found.value / 0.25)) < 0.05


def test_a_seed_without_all_combinations_does_not_count():
    rows = [r for r in made() if not (r["seed"] == 3 and r["norm"] == "pre" and r["depth"] == 2)]
    found = effect(rows, "norm", "pre", "none", ("heads", "depth"))
    assert found is not None and found.seeds == 3
    assert "over 3 seeds" in sentence(summary(rows, OPTIONS).findings, "before every sub-layer instead of none")
    assert effect([r for r in rows if r["norm"] == "pre"], "norm", "pre", "none", ("heads", "depth")) is None


def test_jobs():
    members = [
        (j.config["target"], m["norm"], m["heads"], m["depth"], m["seed"])
        for j in jobs(OPTIONS)
        for m in j.config["members"]
    ]
    assert len(members) == len(set(members)) == 2 * 3 * 2 * 2 * 4
    assert summary([], OPTIONS).findings == []
    Options(**STUDY.full)
