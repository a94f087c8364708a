"""A compiled program in the hand: run, refused, saved, loaded, traced, tried on every input."""

from __future__ import annotations

import numpy as np
import pytest

import certiformer
from certiformer import BadInput
from certiformer.compiler.programs.exhaustive import batches, can_be_exhausted, exhaust
from compiler.programs.by_hand import LENGTH, VOCAB, by_hand, first_token


@pytest.fixture(scope="module")
def first():
    return by_hand()


def test_it_runs_as_the_program_does(first):
    program = first_token()
    for xs in ("a", "ba", "cab", "bbca"):
        assert first.run(xs) == program(xs)
    assert first.run([]) == []


def test_unknown_tokens_and_long_inputs_are_one_sentence(first):
    with pytest.raises(BadInput, match=r"^the token 'x' at position 1 is not in the vocabulary$"):
        first.run("ax")
    with pytest.raises(BadInput, match=r"^the input has 5 tokens, and the stated length is 4$"):
        first.run("aaaaa")


def test_saving_is_all_or_nothing_and_loading_gives_the_same(first, tmp_path):
    folder = first.save(tmp_path / "runs" / "first")
    names = {"model.safetensors", "config.json", "program.json", "circuit.json", "certificate.json"}
    assert {path.name for path in folder.iterdir()} == names
    assert [path.name for path in folder.parent.iterdir()] == ["first"]  # no scratch folder stays
    again = certiformer.load(folder)
    assert again.files == first.files and again.certificate == first.certificate and again.run("cb") == ["c", "c"]
    with pytest.raises(BadInput, match="already holds a compiled program"):
        first.save(folder)
    first.save(folder, force=True)
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(BadInput, match="not an earlier compiled program"):
        first.save(folder, force=True)
    assert (folder / "notes.txt").read_text() == "mine"


def test_a_folder_that_lacks_a_file_says_which(first, tmp_path):
    folder = first.save(tmp_path / "first")
    (folder / "circuit.json").unlink()
    with pytest.raises(BadInput, match=r"it has no circuit\.json"):
        certiformer.load(folder)


def test_the_debugger_agrees_where_nothing_is_wrong(first):
    trace = first.subject.trace("bca")
    assert trace.first_wrong is None
    assert [(r.cell.name, r.after) for r in trace.readings][-1] == ("first", (0, "attention"))
    everywhere = first.subject.trace("bca", everywhere=True).only("is first")
    assert [r.after for r in everywhere.readings] == [(0, "embedding"), (0, "attention")]  # cleared after that
    with pytest.raises(BadInput, match="no variable 'nothing'; it has start, tokens, is first, first"):
        first.subject.trace("bca").only("nothing")


def test_the_debugger_names_the_first_wrong_variable_and_its_line():
    dull = by_hand(blocks__0__attention__groups__0__query_bias=np.ones((1, 1)))  # far too little sharpness
    wrong = dull.subject.trace("caa").first_wrong
    assert wrong is not None
    assert (wrong.cell.name, wrong.after, wrong.place) == ("first", (0, "attention"), "mine.py:7")
    assert wrong.values == ("c", "c", "c") and wrong.wrong == (0, 1, 2) and wrong.deviation > 0.5


def test_every_input_is_tried(first):
    assert can_be_exhausted(first.subject)
    seen = []
    found = exhaust(first.subject, lambda done, total: seen.append((done, total)))
    everything = sum(len(VOCAB) ** n for n in range(1, LENGTH + 1))
    assert (found.tried, found.wrong) == (everything, None)
    assert seen[-1] == (everything, everything)


def test_one_wrong_answer_is_found_and_named():
    broken = by_hand(code__table=np.outer([1.0, 0, 0, 2], np.eye(4)[2]))  # the fourth position looks first, too
    found = exhaust(broken.subject)
    assert found.wrong is not None
    xs, position, answer, right = found.wrong
    assert len(xs) == 4 and right == first_token()(xs)[position] != answer


def test_batches_are_all_inputs_once(monkeypatch):
    monkeypatch.setattr("certiformer.compiler.programs.exhaustive.BATCH_NUMBERS", 20)
    rows = [tuple(row) for ids in batches(3, 4) for row in ids.tolist()]
    assert len(rows) == len(set(rows)) == 3 + 9 + 27 + 81


def test_the_bill_names_who_causes_it(first):
    assert first.subject.bill.parameters == first.model.parameter_count()
    assert (
        first.subject.bill.layers,
        first.subject.bill.heads,
        first.subject.bill.units,
        first.subject.bill.width,
    ) == (1, 1, 1, 4)
    assert dict(first.subject.bill.causes)["first"] > 0
    assert "1 layer, width 4, 1 head, 1 hidden unit" in str(first.subject.bill)
