"""`compile automaton`, and `run`, `check` and `show` on what it wrote."""

from __future__ import annotations

import pytest

PARITY = 'start = "even"\naccept = ["odd"]\ntransitions = [["even", "0", "even"], ["even", "1", "odd"], ["odd", "0", "odd"], ["odd", "1", "even"]]\n'


@pytest.mark.parametrize("form", ["looped", "chain-of-thought", "log-depth"])
def test_from_an_expression_to_answers(cli, form):
    done = cli("compile", "automaton", "(ab)*", "--length", "20", "--form", form, "--json")
    assert done.code == 0 and done.data["outcome"] == "proved" and done.data["level"] == 2
    assert done.data["states"] == 3 and done.data["form"] == form and done.data["directory"] == "runs/ab"
    assert done.data["sentence"].startswith("For every word of 0 to 20 symbols over a, b, ")
    accepted = cli("run", "runs/ab", "a b a b", "--json").data
    assert accepted["accepted"] and accepted["state"] == "q0" and accepted["states"] == ["q1", "q0", "q1", "q0"]
    assert accepted["steps"] == {"looped": 4, "chain-of-thought": 5, "log-depth": 5}[form]
    assert not cli("run", "runs/ab", "aba", "--json").data["accepted"]
    assert cli("run", "runs/ab", "", "--json").data["accepted"]
    assert cli("check", "runs/ab", "--json").data["outcome"] == "proved"


def test_a_file_and_the_words_of_a_reader(cli, tmp_path):
    (tmp_path / "parity.toml").write_text(PARITY)
    done = cli("compile", "automaton", "parity.toml", "--length", "8", "--dtype", "float32")
    assert done.code == 0 and done.out.startswith(
        "certified  For every word of 0 to 8 symbols over 0, 1, 8 passes of the block"
    )
    assert "2 states, width" in done.out and "certiformer run runs/parity '0 1 0 1'" in done.out
    run = cli("run", "runs/parity", "1101")
    assert run.out.splitlines()[2].split() == ["out", "even", "odd", "even", "even", "odd"]
    assert "accepted   in state odd after 4 symbols; 4 passes" in run.out
    assert cli("run", "runs/parity", "11", "--quiet").out == "rejected\n"
    show = cli("show", "runs/parity")
    assert show.code == 0 and "That the table is the language its author wanted." in show.out


def test_notes_do_not_stop(cli, tmp_path):
    (tmp_path / "a.toml").write_text('start = "A"\naccept = ["A"]\ntransitions = [["A", "0", "A"], ["B", "0", "A"]]')
    done = cli("compile", "automaton", "a.toml", "--length", "3")
    assert done.code == 0 and "note: no word leads to the state B" in done.err


def test_what_is_not_proved_says_so(cli, tmp_path):
    """20 states in bfloat16 are too fine for numbers: exit code 3."""
    rows = ", ".join(f'["s{n}", "a", "s{(n + 1) % 20}"]' for n in range(20))
    (tmp_path / "ring.toml").write_text(f'start = "s0"\naccept = ["s0"]\ntransitions = [{rows}]')
    done = cli("compile", "automaton", "ring.toml", "--length", "5", "--form", "log-depth", "--dtype", "bfloat16")
    assert done.code == 3 and done.out.startswith("not proved ")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["(ab)*"], "--length says how many symbols a word may have"),
        (["(ab)*", "--length", "0"], "words have up to 1 to 20,000 symbols, not 0"),
        (["(ab", "--length", "5"], "is not a regular expression"),
        (["none.toml", "--length", "5"], "none.toml cannot be read"),
        (["two.toml", "--length", "5"], "two.toml: an automaton has one start state, not 2 (A, B)"),
        (["ok.toml", "--length", "5", "--alphabet", "0 1"], "--alphabet is for regular expressions"),
        (["(ab)*", "--length", "5", "--alphabet", ""], "the alphabet is empty"),
        (["(ab)*", "--length", "5", "--out", "taken"], "taken is not empty and not an earlier compiled automaton"),
    ],
)
def test_mistakes_are_one_sentence(cli, tmp_path, arguments, problem):
    (tmp_path / "two.toml").write_text('start = ["A", "B"]\naccept = []\ntransitions = []')
    (tmp_path / "ok.toml").write_text(PARITY)
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "letter.txt").write_text("mine")
    done = cli("compile", "automaton", *arguments)
    assert done.code == 2 and problem in done.err and done.err.count("\n") == 1 and not done.out


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["abc"], "symbol 3 of the word is 'c', which is not in the alphabet a, b"),
        (["ababa"], "the word has 5 symbols; this transformer reads up to 4 of them"),
        ([], 'give the word to read, as in "a b a b"; the empty word is ""'),
        (["ab", "--steps", "3"], "--steps is not for a compiled automaton"),
    ],
)
def test_words_that_cannot_be_read(cli, arguments, problem):
    assert cli("compile", "automaton", "(ab)*", "--length", "4", "--out", "a").code == 0
    again = cli("compile", "automaton", "(ab)*", "--length", "4", "--out", "a")
    assert again.code == 2 and "already holds a compiled automaton" in again.err
    done = cli("run", "a", *arguments)
    assert done.code == 2 and problem in done.err and done.err.count("\n") == 1
