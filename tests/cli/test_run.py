"""`certiformer run`: tables, attention, the debugger, and inputs that are refused."""

from __future__ import annotations

import numpy as np
import pytest

from compiler.programs.by_hand import by_hand


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    return str(by_hand().save(tmp_path_factory.mktemp("compiled") / "first"))


def test_tokens_in_tokens_out(cli, first):
    done = cli("run", first, "b a c")
    assert done.code == 0
    assert done.out.splitlines() == ["position   0  1  2", "in         b  a  c", "out        b  b  b"]
    assert cli("run", first, "bac", "--quiet").out == "b b b\n"
    data = cli("run", first, "b a", "--json").data
    assert (data["tokens"], data["outputs"]) == (["b", "a"], ["b", "b"])


@pytest.mark.parametrize(
    ("tokens", "sentence"),
    [
        ("a x", "the token 'x' at position 1 is not in the vocabulary"),
        ("a 1", "the token 1 at position 1 is not in the vocabulary"),
        ("a a a a a", "the input has 5 tokens, and the stated length is 4"),
        ("", "the input has no tokens"),
    ],
)
def test_what_is_no_input_is_one_sentence(cli, first, tokens, sentence):
    done = cli("run", first, tokens)
    assert (done.code, done.out) == (2, "")
    assert sentence in done.err and done.err.count("\n") == 1


def test_a_folder_that_is_none_is_refused(cli, tmp_path):
    assert "is not the folder of a finished run" in cli("run", str(tmp_path), "a").err


def test_attention_is_shown_and_sums_to_one(cli, first):
    done = cli("run", first, "b a", "--attention")
    assert "attention 1: first: tokens where indices == " in done.out
    assert [line.split() for line in done.out.splitlines()[-2:]] == [
        ["0", "b", ".", "1", "."],
        ["1", "a", ".", "1", "."],
    ]
    weights = cli("run", first, "b a", "--attention", "--json").data["attention"][0]["weights"]
    assert np.array(weights).sum(axis=1).tolist() == [1.0, 1.0]


def test_a_page_is_written_once(cli, first, tmp_path):
    page = tmp_path / "a.html"
    assert cli("run", first, "b a", "--attention", "--out", str(page)).code == 0
    assert "attention 1: first" in page.read_text()
    done = cli("run", first, "b a", "--out", str(page))
    assert done.code == 2 and "already exists" in done.err
    assert cli("run", first, "b a", "--out", str(page), "--force").code == 0


def test_the_debugger_says_that_all_is_well(cli, first):
    done = cli("run", first, "c a", "--trace")
    assert done.code == 0 and "4 readings agree with the program" in done.out
    done = cli("run", first, "c a", "--variable", "is first")
    assert done.code == 0 and done.out.count("is first") == 2
    assert "no variable 'nothing'" in cli("run", first, "c a", "--variable", "nothing").err


def test_the_debugger_names_the_variable_the_line_and_the_place(cli, tmp_path):
    dull = by_hand(blocks__0__attention__groups__0__query_bias=np.ones((1, 1))).save(tmp_path / "dull")
    done = cli("run", str(dull), "c a a", "--trace")
    assert done.code == 1
    said = " ".join(done.out.split())
    assert "first (source mine.py:7) is the first variable that differs: after attention 1, at position 0" in said
    assert "instead of 2, which stands for c" in said
    wrong = [entry for entry in cli("run", str(dull), "c a a", "--trace", "--json").data["trace"] if entry["wrong"]]
    assert [entry["variable"] for entry in wrong] == ["first"]


def test_show_says_what_is_claimed_and_what_is_not(cli, first):
    done = cli("show", first)
    assert done.code == 0
    said = " ".join(done.out.split())
    assert "For every input of 1 to 4 tokens" in said
    assert "undecided: nobody asked" in said and "longer ones, and tokens outside of the vocabulary" in said
    assert cli("show", first, "--json").data["parameters"] == by_hand().subject.bill.parameters


def test_many_inputs_run_together(cli, first, tmp_path):
    inputs = tmp_path / "inputs.txt"
    inputs.write_text("b a c\nba\n\nc\n")
    done = cli("run", first, "--batch", str(inputs))
    assert (done.code, done.out.splitlines()) == (0, ["b b b", "b b", "", "c"])
    data = cli("run", first, "--batch", str(inputs), "--json").data
    assert data["inputs"][1] == ["b", "a"] and data["outputs"] == [["b", "b", "b"], ["b", "b"], [], ["c"]]
    assert "--batch answers the inputs of a file" in cli("run", first, "a", "--batch", str(inputs)).err
    inputs.write_text("a\na x\n")
    assert "line 2 of " in cli("run", first, "--batch", str(inputs)).err
    assert "No such file" in cli("run", first, "--batch", str(tmp_path / "none")).err
