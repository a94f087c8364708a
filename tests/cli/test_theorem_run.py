"""`theorem ID --run`: the example of a theorem is executed, and what it finds is compared with its page."""

from __future__ import annotations

from dataclasses import replace

import pytest

import certiformer
from certiformer.theorem import all_theorems, find
from certiformer.theorem.experiment import run_experiment


def test_a_theorem_is_run_and_what_is_found_is_printed(cli):
    done = cli("theorem", "hardmax_not_contextual", "--run")
    assert done.code == 0
    assert ">>> twins(5)\n((0, 1, 4, 5, 6), (0, 2, 3, 5, 6))\n>>> indistinguishable(three_heads(4))\nTrue" in done.out
    told = cli("theorem", "hardmax_not_contextual", "--run", "--json").data
    assert told["id"] == "expressivity.hardmax_not_contextual" and told["as_written"] is True
    assert told["steps"][1] == {"asked": "indistinguishable(three_heads(4))", "found": "True", "as_written": True}


def test_another_answer_than_the_page_shows_is_noticed(cli, monkeypatch):
    entry = find("hardmax_not_contextual")
    planted = replace(entry, docstring=entry.docstring.replace(">>> twins(5)", ">>> twins(6)"))
    assert [step.as_written for step in run_experiment(planted)] == [False, True]
    broken = replace(entry, docstring=entry.docstring.replace(">>> twins(5)", ">>> twins(1)"))
    assert run_experiment(broken)[0].answer.startswith("BadInput: hard attention confuses sequences of at least 4")
    monkeypatch.setattr("certiformer.theorem.find", lambda name: planted)
    done = cli("theorem", "hardmax_not_contextual", "--run")
    assert done.code == 1 and "(its page shows something else)" in done.out


def test_what_cannot_be_run_is_one_sentence(cli):
    entry = find("hardmax_not_contextual")
    with pytest.raises(certiformer.BadInput, match="has no experiment"):
        run_experiment(replace(entry, docstring=entry.docstring.replace(">>>", "")))
    for arguments in ([], ["hardmax_not_contextual", "--bibtex"]):
        done = cli("theorem", *arguments, "--run")
        assert done.code == 2 and "--run executes the example of one theorem" in done.err


def test_every_theorem_has_an_experiment():
    assert [entry.record.id for entry in all_theorems() if ">>> " not in entry.sections["Example"]] == []
