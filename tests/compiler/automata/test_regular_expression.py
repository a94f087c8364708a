"""Regular expressions against Python's own `re`, and what is refused."""

from __future__ import annotations

import re
import sys
from itertools import product

import pytest

from certiformer.compiler.automata import from_expression
from certiformer.errors import BadInput, MissingExtra


@pytest.mark.parametrize(
    ("expression", "states"),
    [
        ("(ab)*", 3), ("(a|b)*abb", 4), ("a{2,3}b?", 6), ("[ab]*c", 3), ("()|a", 3), ("a+b+", 4), ("(a|b)*a(a|b)", 4), ("a", 3),
        ("((a|b)(a|b))*", 2),
    ],
)  # fmt: skip
def test_the_language_is_that_of_the_expression(expression, states):
    automaton = from_expression(expression)
    assert len(automaton.states) == states and automaton.start == "q0" and not automaton.unreachable
    for length in range(6):
        for word in product(automaton.symbols, repeat=length):
            assert automaton.accepts(word) == bool(re.fullmatch(expression, "".join(word))), word


def test_the_alphabet_may_be_larger():
    automaton = from_expression(".*a", ["b", "a", "c"])
    assert automaton.symbols == ("b", "a", "c") and automaton.accepts("cba") and not automaton.accepts("cb")
    assert from_expression("a*", ["a"]).states == ("q0",)
    assert from_expression("a&b", ["a", "b"]).accepting == ()  # intersection: nothing is accepted


@pytest.mark.parametrize(
    ("expression", "alphabet", "problem"),
    [
        ("(ab", None, "'\\(ab' is not a regular expression: "),
        ("*", None, "is not a regular expression"),
        ("a|", None, "is not a regular expression"),
        ("", None, "names no letter; give the alphabet"),
        ("()", None, "names no letter"),
        (".*", None, "speaks of letters that it does not name"),
        ("[^a]", None, "speaks of letters that it does not name"),
        ("ab", [], "the alphabet is empty"),
        ("ab", ["a"], "the expression uses 'b', which is not in the alphabet a"),
        ("ab", ["a", "b", "a"], "lists a letter twice"),
        ("ab", ["a", "bb"], "single characters, not 'bb'"),
        ("a{1,100000}", None, "repeats something more than 1,000 times"),
        ("(a|b)*a(a|b){14}", None, "needs more than 2,000 states"),
    ],
)
def test_mistakes_are_one_sentence(expression, alphabet, problem):
    with pytest.raises(BadInput, match=problem) as caught:
        from_expression(expression, alphabet)
    assert "\n" not in str(caught.value)


def test_without_the_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "automata.fa.dfa", None)
    with pytest.raises(
        MissingExtra, match=r'automata-lib, which is not installed: pip install "certiformer\[automata\]"'
    ):
        from_expression("a")
