"""The study of trainability on rows where it is known who wins."""

from __future__ import annotations

from certiformer.rates.studies.trainability import STUDY, Options, jobs, summary
from rates.size_examples import noisy, row, sentence

OPTIONS = Options(units=(4, 8, 16), heads=(12, 16, 24), seeds=5)
FAMILY = "ridge units"


def made(continued: float = 0.5):
    """Adam reaches 1e-3 at every size; the theorem 1e-1, 1e-3 and 1e-5."""
    rows = []
    for place, (size, built) in enumerate(zip(OPTIONS.units, (1e-1, 1e-3, 1e-5), strict=True)):
        for seed in range(OPTIONS.seeds):
            rows.append(row("sines", "trained", size, seed, noisy(1e-3, seed, place, 0.5), group=FAMILY))
        rows.append(row("sines", "built", size, 0, built, group=FAMILY, bound=10 * built**0.5))
        rows.append(row("sines", "continued", size, 0, continued * built, group=FAMILY))
    return rows


def test_who_wins_where():
    result = summary(made(), OPTIONS)
    text = sentence(result.findings, FAMILY, "on average")
    assert "worse than the theorem at size 16" in text and "better than the theorem at size 4" in text
    assert "not distinguishable from it at size 8" in text
    assert "beats the built weights at size 4, 8;" in sentence(result.findings, FAMILY, "best restart")
    further = sentence(result.findings, FAMILY, "from the built weights")
    assert "0.5 (4), 0.5 (8), 0.5 (16)" in further and "at size 8, 16 these weights are better" in further
    assert [line[1] for line in result.tables[0].rows] == [4, 8, 16]
    best = next(each for each in result.series if "best" in each.name)
    median = next(each for each in result.series if "median" in each.name)
    assert all(b <= m for b, m in zip(best.error_mse, median.error_mse, strict=True))


def test_missing_kinds():
    result = summary([r for r in made() if r["kind"] != "continued"], OPTIONS)
    assert not any("from the built weights" in text for text in result.findings)
    assert any("missing" in text for text in result.limits)
    assert summary([r for r in made() if r["kind"] == "trained"], OPTIONS).tables[0].rows == []
    assert summary([], OPTIONS).findings == []


def test_restarts_are_gentle_only_from_built_weights():
    rates = {job.config["kind"]: job.config["rate"] for job in jobs(OPTIONS)}
    assert rates == {"trained": OPTIONS.rate, "built": OPTIONS.rate, "continued": OPTIONS.continued_rate}
    Options(**STUDY.full)
