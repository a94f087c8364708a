"""Automata as targets: what is refused, and the file that only has one form."""

from __future__ import annotations

import pytest

from certiformer.errors import BadInput
from certiformer.kernel.meanings.automaton import Automaton

ROWS = (("A", "0", "A"), ("A", "1", "B"), ("B", "0", "B"), ("B", "1", "A"))


def make(symbols=("0", "1"), states=("A", "B"), start="A", accepting=("A",), rows=ROWS) -> Automaton:
    return Automaton(symbols, states, start, accepting, rows)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"symbols": ()}, "an automaton has at least one symbol"),
        ({"states": ()}, "an automaton has at least one state"),
        ({"symbols": ("0", "1", "0")}, "the symbol '0' is listed twice"),
        ({"symbols": ("0", "a b")}, "a symbol is a text without blanks, not 'a b'"),
        ({"start": "C"}, "the start state 'C' is not a state"),
        ({"accepting": ("C",)}, "the accepting state 'C' is not a state"),
        ({"accepting": ("A", "A")}, "an accepting state is listed twice"),
        ({"rows": ROWS[1:]}, "there is no transition for state A reading 0"),
        ({"rows": (*ROWS, ("A", "0", "B"))}, "transitions 1 and 5 both say where A goes on reading 0"),
        ({"rows": (*ROWS, ("A", "2", "B"))}, "transition 5 reads '2', which is not in the alphabet 0, 1"),
        ({"rows": (*ROWS, ("C", "1", "B"))}, "transition 5 names 'C', which is not a state"),
        ({"rows": (*ROWS, ("A", "1"))}, "transition 5 is not three texts"),
        ({"symbols": tuple(map(str, range(20_001)))}, "at most 20,000 pairs of a state and a symbol, not 40,002"),
    ],
)
def test_mistakes_are_one_sentence(changes, problem):
    with pytest.raises(BadInput, match=problem):
        make(**changes)


def test_states_that_accept_are_numbered_last():
    automaton = make()
    assert automaton.numbered == ("B", "A") and automaton.rejecting == 1 and automaton.first == 1
    assert automaton.following == ((0, 1), (1, 0))
    assert automaton.accepts("11") and not automaton.accepts("1") and automaton.accepts("")


def test_unreachable_states_are_known():
    assert make(rows=(("A", "0", "A"), ("A", "1", "A"), ("B", "0", "B"), ("B", "1", "A"))).unreachable == ("B",)


def test_the_file_has_one_form():
    automaton = make()
    text = automaton.to_text()
    assert Automaton.from_text(text) == Automaton.from_text(text.encode()) == automaton
    for bad in (
        text.replace(",", ", ", 1), text + " ", "{", "[]", text.replace('"A"', "1", 1), text.replace("automaton-1", "automaton-2"),
        text.replace('"start":"A"', '"start":["A"]'), text.replace('"states":["A","B"]', '"states":"AB"'),
        text.replace('["A","0","A"]', '"A0A"'), text.replace('"accepting":["A"]', '"accepting":[["A"]]'),
    ):  # fmt: skip
        assert bad != text
        with pytest.raises(BadInput):
            Automaton.from_text(bad)
