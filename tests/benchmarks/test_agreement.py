"""`benchmarks/agreement.py`: what it draws, what it counts, and that it counts a refusal."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from certiformer.kernel import check as checks

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def agreement():
    specification = importlib.util.spec_from_file_location("agreement", ROOT / "benchmarks" / "agreement.py")
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_every_kind_of_network_is_drawn(agreement):
    drawn = [agreement.network(number)[0] for number in range(96)]
    assert {facts["blocks"] for facts in drawn} == {1, 2, 3, 4}
    assert {(facts["units"], facts["norm"]) for facts in drawn} == {
        (units, norm) for units in ("relu", "gelu") for norm in ("none", "pre", "post")
    }
    assert {facts["inputs"] for facts in drawn} == {1, 2, 3} and {facts["heads"] for facts in drawn} == {0, 1, 2}


def test_the_same_number_is_the_same_claim(agreement):
    (_, model, request), (_, again, repeated) = agreement.claim(5), agreement.claim(5)
    point = np.zeros((1, model.config.tokens))
    assert (model.evaluate(point) == again.evaluate(point)).all() and request["eps"] == repeated["eps"]


def test_a_refusal_is_counted_and_ends_with_one(agreement, monkeypatch, capsys):
    def proved(model, target, out, seconds, **request):
        certificate = SimpleNamespace(seconds={"lower": 1.0, "search": 1.0, "check": 0.1}, reason="")
        subject = SimpleNamespace(leaves=b"\xff")
        return SimpleNamespace(certificate=certificate, outcome=SimpleNamespace(value="proved"), subject=subject)

    monkeypatch.setattr("certiformer.search.prove", proved)
    monkeypatch.setattr(agreement, "measured", lambda numbers, workers, seconds: map(agreement.trial, numbers))
    verdicts = iter(["proved", "refused", "proved"])
    monkeypatch.setattr(
        checks, "check", lambda folder, workers: SimpleNamespace(outcome=next(verdicts), reason="too wide")
    )
    assert agreement.main(["--trials", "1"]) == 0
    assert agreement.main(["--trials", "2"]) == 1
    assert "1 disagreements" in capsys.readouterr().out


def test_a_kernel_that_is_late_is_counted(agreement, monkeypatch):
    row = {"units": "relu", "norm": "none", "blocks": 1, "word": "time", "late": 5.0}
    assert agreement.table([row, {**row, "late": 0.5}])[-1] == "0 disagreements; the kernel was late in 1 of 2 trials"
    assert agreement.word("proved", "refused", "") == "disagree"
    assert agreement.word("undecided", None, "the checker refused: too wide") == "disagree"
    assert agreement.word("undecided", None, "the checker refused: the time was spent before ...") == "time"
    assert agreement.word("undecided", None, "the budget of 3 seconds is spent") == "open"
