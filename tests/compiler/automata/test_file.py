"""Automaton files: every mistake is one sentence, and gaps are completed only when that is asked for."""

from __future__ import annotations

import pytest

from certiformer.compiler.automata import notes, parse_automaton, read_automaton, split_word
from certiformer.errors import BadInput

PARITY = """
alphabet = ["0", "1"]
states = ["even", "odd"]
start = "even"
accept = ["odd"]
transitions = [["even", "0", "even"], ["even", "1", "odd"], ["odd", "0", "odd"], ["odd", "1", "even"]]
"""


def test_a_file_becomes_an_automaton(tmp_path):
    (tmp_path / "parity.toml").write_text(PARITY)
    automaton = read_automaton(tmp_path / "parity.toml")
    assert automaton.symbols == ("0", "1") and automaton.states == ("even", "odd") and automaton.accepts("111")
    assert parse_automaton("\n".join(PARITY.splitlines()[3:])) == automaton  # alphabet and states follow from the rest


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('start = "even"', 'start = ["even", "odd"]', r"an automaton has one start state, not 2 \(even, odd\)"),
        ('start = "even"', "", "the automaton file has no entry 'start'"),
        ('start = "even"', 'start = "even"\nfinal = []', "the automaton file has an entry 'final'; known are"),
        ('start = "even"', "start = 1", "start holds 1, which is not a text"),
        ('start = "even"', 'start = "up"', "the start state 'up' is not a state"),
        ('["odd"]\n', '"odd"\n', "accept must be a list, not 'odd'"),
        (
            '["even", "1", "odd"]',
            '["even", "2", "odd"]',
            "transition 2 reads '2', which is not in the alphabet 0, 1|no transition",
        ),
        ('["even", "1", "odd"], ', "", "there is no transition for state even reading 1; add it, or write missing"),
        ('["even", "1", "odd"]', '["even", "0", "odd"]', "there is no transition for state even reading 1"),
        (
            '["even", "1", "odd"]',
            '["even", "1", "odd"], ["even", "1", "even"]',
            "transitions 2 and 3 both say .* must be deterministic",
        ),
        ('["even", "1", "odd"]', '["even", "1"]', "transition 2 is not a list of three"),
        ('alphabet = ["0", "1"]', "alphabet = []", "the alphabet is empty"),
        ('alphabet = ["0", "1"]', 'alphabet = ["0", "1", "0"]', "the symbol '0' is listed twice"),
        ("states = ", "missing = 'accept'\nstates = ", "missing is one of refuse, reject, not 'accept'"),
        ("start", "start start", "this is not TOML"),
    ],
)
def test_mistakes_are_one_sentence(old, new, problem, tmp_path):
    text = PARITY.replace(old, new, 1)
    assert text != PARITY
    with pytest.raises(BadInput, match=problem) as caught:
        parse_automaton(text)
    assert "\n" not in str(caught.value)
    (tmp_path / "a.toml").write_text(text)
    with pytest.raises(BadInput, match=r"a\.toml: "):
        read_automaton(tmp_path / "a.toml")


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(BadInput, match="cannot be read"):
        read_automaton(tmp_path / "none.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadInput, match="is not a text file"):
        read_automaton(tmp_path / "binary.toml")


def test_gaps_reject_when_asked():
    text = (
        'missing = "reject"\nstart = "dead"\naccept = ["dead"]\ntransitions = [["dead", "a", "b"], ["b", "b", "dead"]]'
    )
    automaton = parse_automaton(text)
    assert automaton.states == ("dead", "b", "dead'") and len(automaton.rows) == 6
    assert [automaton.accepts(word) for word in ("", "ab", "abab", "b", "abb", "aba")] == [
        True,
        True,
        True,
        False,
        False,
        False,
    ]


def test_an_automaton_without_gaps_gets_no_state():
    assert parse_automaton('missing = "reject"\n' + PARITY).states == ("even", "odd")


def test_notes():
    assert notes(parse_automaton(PARITY)) == []
    lonely = PARITY.replace('["odd"]\n', '["even", "odd"]\n').replace('["even", "1", "odd"]', '["even", "1", "even"]')
    assert notes(parse_automaton(lonely)) == [
        "no word leads to the state odd",
        "every state that a word leads to accepts, so every word is accepted",
    ]


def test_words():
    automaton = parse_automaton(PARITY)
    assert (
        split_word("0 1", automaton) == split_word("01", automaton) == ("0", "1") and split_word(" ", automaton) == ()
    )
    with pytest.raises(BadInput, match="symbol 2 of the word is '2'"):
        split_word("02", automaton)
