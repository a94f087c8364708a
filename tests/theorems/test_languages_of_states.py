"""Languages of k states: all of them counted at small sizes, the looped block compiled, weights counted."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from certiformer.compiler.automata import parse_automaton
from certiformer.compiler.automata.compiled import word_reader
from certiformer.errors import BadInput
from certiformer.expressivity.languages_of_states import described_bits, needed_bits, weights, width


def languages(states: int, symbols: int, length: int) -> set[tuple[bool, ...]]:
    """Which words are accepted, for every automaton."""
    words = [word for size in range(length + 1) for word in product(range(symbols), repeat=size)]
    known = set()
    for table in product(range(states), repeat=states * symbols):
        ends = []
        for word in words:
            at = 0
            for symbol in word:
                at = table[at * symbols + symbol]
            ends.append(at)
        for accepting in product((False, True), repeat=states):
            known.add(tuple(accepting[end] for end in ends))
    return known


@pytest.mark.parametrize(
    ("states", "symbols", "length"),
    [(1, 1, 2), (1, 2, 2), (2, 1, 3), (2, 2, 3), (2, 2, 1), (2, 2, 2), (3, 1, 5), (3, 2, 5)],
)
def test_there_are_as_many_languages_as_stated(states, symbols, length):
    count = len(languages(states, symbols, length))
    assert 2 ** needed_bits(states, symbols, length) <= count <= 2 ** described_bits(states, symbols)


def test_short_words_do_not_tell_all_automata_apart():
    """Negative control of the length in (c): with k^k for words that are too short, the lower bound would be false."""
    assert len(languages(2, 1, 0)) < 2**2 and needed_bits(2, 1, 0) == 1
    assert needed_bits(8, 2, 15) == 24 > needed_bits(8, 2, 14)


@pytest.mark.parametrize("symbols", [2, 3])
def test_the_counts_have_the_same_leading_term(symbols):
    ratios = [described_bits(k, symbols) / needed_bits(k, symbols, 1_000) for k in (10, 40, 200, 500)]
    assert ratios == sorted(ratios, reverse=True) and ratios[-1] < 1.4
    for k in (10, 40, 200, 500):
        assert described_bits(k, symbols) - needed_bits(k, symbols, 1_000) <= 4 * k


@pytest.mark.parametrize(("states", "symbols", "length", "accepting"), [(1, 1, 1, 1), (3, 2, 9, 3), (5, 3, 20, 2)])
def test_the_block_is_proved_and_not_larger(states, symbols, length, accepting):
    generator = np.random.default_rng(states)
    rows = [[f"q{i}", f"s{a}", f"q{generator.integers(states)}"] for i in range(states) for a in range(symbols)]
    text = (
        f"states = {[f'q{i}' for i in range(states)]}\nstart = 'q0'\naccept = {[f'q{i}' for i in range(accepting)]}\n"
    )
    compiled = word_reader(parse_automaton(f"{text}transitions = {rows}"), length)
    count = sum(int(np.count_nonzero(tensor)) for tensor in compiled.tensors.values())
    assert count <= weights(states, symbols, length) and compiled.config.width == width(states, symbols, length)
    assert compiled.certified().certified
    if accepting == states:  # the bound is attained where all states accept
        assert count == weights(states, symbols, length)


def test_an_empty_automaton_is_refused():
    with pytest.raises(BadInput, match="at least one state"):
        described_bits(0, 2)
