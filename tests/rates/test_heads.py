"""The study of heads on rows whose factors are known."""

from __future__ import annotations

import math

import pytest

from certiformer.errors import BadInput
from certiformer.rates.studies.heads import EACH, STUDY, TOTAL, Options, jobs, summary
from rates.size_examples import noisy, row, sentence

OPTIONS = Options(heads=(1, 2, 4), more_heads=(), total=4, seeds=5)


def made():
    rows = []
    for place, heads in enumerate(OPTIONS.heads):
        for seed in range(OPTIONS.seeds):
            own = noisy(1e-3, seed, 0, 1.0)  # a large spread between seeds, which pairing takes out
            rows.append(row("graph", "trained", heads, seed, noisy(own * heads**2, seed, place + 1), group=TOTAL))
            rows.append(row("graph", "trained", heads, seed, noisy(own, seed, place + 5), group=EACH))
        rows.append(row("graph", "built", heads, 0, 1e-4 * heads, group=TOTAL, bound=1.0))
        rows.append(row("graph", "split", heads, 0, 1e-9, group=TOTAL))
        rows.append(row("sines", "built", heads, 0, math.nan if heads == 1 else 0.1, group=EACH))
    return rows


def test_factors_against_one_head():
    result = summary(made(), OPTIONS)
    total = sentence(result.findings, "Jiang", TOTAL, "trained:")
    assert "4 heads 1" in total and total.count("(larger)") == 2  # 4 heads: 16 times up to noise of 5 %
    each = sentence(result.findings, "Jiang", EACH, "trained:")
    assert each.count("(not distinguishable)") == 2
    assert result.findings and "0 of 5 trained are better" in sentence(result.findings, TOTAL, "split among heads")
    built = sentence(result.findings, "Jiang", TOTAL, "constructed")
    assert "1 heads 0.0001" in built and "4 heads 0.0004" in built
    assert any("nothing to offer with 1 heads" in text for text in result.limits)
    assert any("models are missing" in text for text in result.limits)


def test_two_seeds_support_nothing():
    result = summary([r for r in made() if r["seed"] < 2], OPTIONS)
    assert "larger" not in sentence(result.findings, "Jiang", TOTAL, "trained:")


def test_options():
    with pytest.raises(BadInput, match="divided"):
        jobs(Options(heads=(1, 3), total=8))
    Options(**STUDY.full)
    keys = [m["heads"] * m["key"] for j in jobs(OPTIONS) for m in j.config["members"] if m["group"] == TOTAL]
    assert set(keys) == {4}
    assert summary([], OPTIONS).findings == []
