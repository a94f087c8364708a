"""Regular expressions against Python's own `re`, and what is refused."""

from __future__ import annotations

import random
import re
import sys
from itertools import product

import pytest

from certiformer.compiler.automata import from_expression
from certiformer.compiler.automata.regular_expression import written_out
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
        ("((a{1000}){1000}){1000}", None, "written out, the expression may need 4,0.* states; at most 20,000 are made"),
        ("((((a{999}){999}){999}){999}){999}", None, "a trillion or more states"),
        ("a{500}^b{500}", None, "may need 4,0.* states"),
        ("(a?){1000}", None, "reach each other in more than 1,000,000 ways"),
        ("a" * 2001, None, "has 2,001 characters; at most 2,000 are read"),
    ],
)
def test_mistakes_are_one_sentence(expression, alphabet, problem):
    with pytest.raises(BadInput, match=problem) as caught:
        from_expression(expression, alphabet)
    assert "\n" not in str(caught.value)


def random_expression(rng: random.Random, depth: int) -> str:
    if depth == 0:
        return rng.choice(["a", "b", "[ab]", "()"])
    inner, other = random_expression(rng, depth - 1), random_expression(rng, rng.randrange(depth))
    forms = [f"({inner}|{other})", f"({inner}&{other})", f"({inner}^{other})", f"{inner}{other}", f"({inner})*"]
    return rng.choice(
        [*forms, f"({inner})?", f"({inner})+", f"({inner}){{2,3}}", f"({inner}){{3}}", f"({inner}){{2,}}"]
    )


def states_beyond(estimate) -> list[str]:
    """The expressions for which the library makes more states than were foreseen."""
    nfa, rng = pytest.importorskip("automata.fa.nfa").NFA, random.Random(0)
    expressions = [random_expression(rng, rng.randrange(1, 6)) for _ in range(400)]
    small = [expression for expression in expressions if written_out(expression) <= 20_000]
    assert len(small) > 300
    return [e for e in small if len(nfa.from_regex(e).states) > estimate(e)]


def test_no_expression_grows_beyond_what_was_counted_before():
    assert states_beyond(written_out) == []


def test_a_count_that_forgets_repetitions_is_caught():
    assert states_beyond(lambda expression: written_out(re.sub(r"\{[\d,]*\}", "", expression)))


def test_without_the_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "automata.fa.dfa", None)
    with pytest.raises(
        MissingExtra, match=r'automata-lib, which is not installed: pip install "certiformer\[automata\]"'
    ):
        from_expression("a")


# --- random expressions against Python's own engine -----------------------------------------------------------------------

WORDS = ["".join(word) for n in range(6) for word in product("ab", repeat=n)]
REPEATS = ("*", "+", "?", "{2}", "{0,2}", "{1,}", "{,2}", "{1,3}", "{0}", "{0,0}", "{,0}", "{00}")


def expression_of_a_and_b(rng: random.Random, depth: int) -> str:
    kind = rng.random()
    if depth == 0 or kind < 0.2:
        return rng.choice(["a", "b", "[ab]", "(a|b)"])
    inner = expression_of_a_and_b(rng, depth - 1)
    if kind < 0.6:
        return f"({inner}{rng.choice(['', '|'])}{expression_of_a_and_b(rng, depth - 1)})"
    return f"({inner}){rng.choice(REPEATS)}"


def languages_that_differ(seed: int) -> tuple[int, int]:
    """How many random expressions are read, and how many of these accept other words than Python's `re`."""
    rng, read, wrong = random.Random(seed), 0, 0
    for _ in range(300):
        expression = expression_of_a_and_b(rng, 3)
        try:
            automaton = from_expression(expression, ("a", "b"))
        except BadInput as problem:
            assert "at most 0 times" in str(problem)
            continue
        read += 1
        wrong += any(automaton.accepts(word) != bool(re.fullmatch(expression, word)) for word in WORDS)
    return read, wrong


def test_random_expressions_mean_what_they_mean_in_python():
    read, wrong = languages_that_differ(0)
    assert read > 150 and wrong == 0


def test_the_library_alone_would_be_caught(monkeypatch):
    """The negative control: it takes a{0} for a?."""
    monkeypatch.setattr("certiformer.compiler.automata.regular_expression._repeated_never", lambda expression: None)
    read, wrong = languages_that_differ(0)
    assert read == 300 and wrong
