"""What the search calls proved, the kernel accepts: a search that is too sure of itself is put right or not believed."""

from __future__ import annotations

import time
from functools import partial

import pytest

import certiformer
from certiformer.kernel import rules
from certiformer.kernel.certificate import Outcome
from certiformer.kernel.check import check_files
from certiformer.kernel.files import read_files
from certiformer.kernel.rules import LEAF, Effort
from certiformer.search import box_evidence, evidence
from certiformer.verify.bounder import CompiledBounder

TARGET, BOX, EPS = "sin(x1)", "[0, 2*pi]", "0.05"
AS_RECORDED = Effort(deepest=0)  # no leaf may be bisected any further


@pytest.fixture(scope="module")
def model():
    return certiformer.build(TARGET, on=BOX, eps=EPS, method="voronoi", level=1).model


@pytest.fixture
def prove(model):
    return partial(certiformer.prove, model, TARGET, on=BOX, rule="boxes", workers=1)


def say(monkeypatch, factor: float) -> None:
    """Let the float64 search find `factor` times its bounds."""
    honest = CompiledBounder.__call__

    def bounds(self, centre, radius):
        found, scores = honest(self, centre, radius)
        return found * factor, scores

    monkeypatch.setattr(CompiledBounder, "__call__", bounds)


def test_the_kernel_bisects_what_the_search_was_too_sure_of(prove, monkeypatch, tmp_path):
    proposed = prove(eps=EPS, level=1).subject.leaves
    say(monkeypatch, 0.4)
    # One half of the error of the transformer is not provable, but less than one half is claimed.
    run = prove(eps=EPS, out=tmp_path / "run")
    assert run.certified and run.upper >= run.lower
    verdict = check_files(read_files(tmp_path / "run"), workers=1, effort=AS_RECORDED)
    assert verdict.accepted and verdict.upper == run.certificate.upper
    assert verdict.covers == {(): run.subject.leaves}
    assert run.subject.leaves.count(LEAF) >= 4 and len(proposed) > 0


def test_the_tree_of_an_overconfident_search_does_not_pass_as_it_is(prove, monkeypatch, tmp_path):
    say(monkeypatch, 0.4)
    prove(eps=EPS, level=1, out=tmp_path / "run")
    verdict = check_files(read_files(tmp_path / "run"), workers=1, effort=AS_RECORDED)
    assert verdict.outcome == "refused" and "could only be bounded" in verdict.reason


@pytest.mark.slow
def test_no_leaf_is_proved_twice(prove, monkeypatch):
    say(monkeypatch, 0.4)
    seen = []
    honest = rules.error_upper

    def recorded(problem, box, order):
        seen.append(tuple(str(end) for axis in range(box.dimension) for end in (box.low(axis), box.high(axis))))
        return honest(problem, box, order)

    monkeypatch.setattr(rules, "error_upper", recorded)
    run = prove(eps=EPS)
    assert run.certified
    assert len(seen) == len(set(seen)) >= run.subject.leaves.count(LEAF)


def test_a_false_claim_of_the_search_stays_undecided(prove, monkeypatch):
    true = prove(eps=EPS, level=1).lower
    say(monkeypatch, 0.0)
    for module in (box_evidence, evidence):
        monkeypatch.setattr(module, "raise_lower", lambda *_: None)  # or the witness would refute it
    run = prove(eps=f"{true * 0.9:.6g}")
    assert run.outcome is Outcome.UNDECIDED and run.level == 0
    assert "the checker refused" in run.certificate.reason


@pytest.mark.slow
def test_search_and_check_share_one_clock(prove, monkeypatch):
    honest, slow = rules.error_upper, 0.5

    def slowly(problem, box, order):
        time.sleep(slow)
        return honest(problem, box, order)

    monkeypatch.setattr(rules, "error_upper", slowly)
    seconds = 40.0  # most of them for compilation
    run = prove(eps=EPS, seconds=seconds, quality=1e-3)
    spent = run.certificate.seconds
    assert run.subject.leaves.count(LEAF) * slow <= seconds
    assert run.certified or "spent" in run.certificate.reason
    # What is over: one leaf, the files, and, before the check, a compilation that no clock interrupts.
    assert spent["check"] <= max(0.0, seconds - spent["lower"] - spent["search"]) + 5
