"""The study of depth: equal parameters, and rows whose factors are known."""

from __future__ import annotations

import pytest

from certiformer.errors import BadInput
from certiformer.rates.size_models import parameter_count
from certiformer.rates.size_rows import config_of, target_of
from certiformer.rates.studies.depth import STUDY, Options, jobs, summary
from rates.size_examples import noisy, row, sentence

OPTIONS = Options(depths=(1, 2, 3), seeds=4)


def made(power: float):
    rows = [
        row("sines", "trained", depth, seed, noisy(1e-3 * depth**power, seed, place))
        for place, depth in enumerate(OPTIONS.depths)
        for seed in range(OPTIONS.seeds)
    ]
    return rows + [row("sines", "built", depth, 0, 1e-5 * depth) for depth in OPTIONS.depths]


def test_parameters_are_equal_within_one_step_of_the_width():
    for target in ("sines", "graph"):
        counts = {}
        for job in jobs(OPTIONS):
            if job.config["target"] == target:
                counts |= {m["x"]: parameter_count(config_of(target_of(job.config), m)) for m in job.config["members"]}
        # Two more hidden units in each of the layers would exceed the budget: 2 x (2 x 8 + 1) a layer, at most 4 layers.
        assert all(0 <= counts[1] - counts[depth] < 2 * 17 * (depth + 1) for depth in OPTIONS.depths)
    with pytest.raises(BadInput, match="too few"):
        jobs(Options(depths=(1, 8), units=4))


@pytest.mark.parametrize(("power", "says"), [(-3, "depth helps"), (3, "depth harms"), (0, "no effect of depth")])
def test_sentences_follow_the_rows(power, says):
    result = summary(made(power), OPTIONS)
    assert says in sentence(result.findings, "sin(x1)", "trained at equal parameters")
    assert "loses with depth" in sentence(result.findings, "sin(x1)", "construction")
    assert any("missing" in text for text in result.limits)


def test_empty_and_full():
    assert jobs(Options())
    assert summary([], OPTIONS).findings == []
    Options(**STUDY.full)
