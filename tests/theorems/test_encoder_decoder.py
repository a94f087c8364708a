"""Hard attention over the whole history, in exact rationals and in float64, against the plain simulator."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from certiformer.compiler.machines import simulate
from certiformer.compiler.machines.encoder_decoder import HORIZON, EncoderDecoder, Memory
from certiformer.compiler.machines.examples import busy_beaver, increment, palindrome
from certiformer.errors import BadInput
from compiler.machines.random_machines import random_machine


@pytest.mark.parametrize("exact", [True, False])
def test_machines_are_simulated(exact):
    beaver = EncoderDecoder(busy_beaver(3), exact)
    assert beaver.run(steps=40) == simulate(busy_beaver(3))
    counter, mirror = EncoderDecoder(increment(), exact), EncoderDecoder(palindrome(), exact)
    for word in ("", "1", "1011", "111"):
        assert counter.run(word, 40) == simulate(increment(), word)
    for word in ("abba", "abab", "a"):
        assert mirror.run(word, 60) == simulate(palindrome(), word)


def test_the_four_state_beaver_halts_in_rationals():
    assert EncoderDecoder(busy_beaver(4), exact=True).run(steps=200) == simulate(busy_beaver(4))


def test_float64_follows_the_five_state_beaver():
    assert EncoderDecoder(busy_beaver(5)).run(steps=600) == simulate(busy_beaver(5), steps=600)


@pytest.mark.parametrize("seed", range(12))
def test_random_machines_with_moves_that_stay(seed):
    machine = random_machine(seed)
    decoder = EncoderDecoder(machine)
    for word in ((), ("a", "_", "a")):
        assert decoder.run(word, 60) == simulate(machine, word, 60)


def test_rationals_stay_rationals():
    decoder, memory = EncoderDecoder(palindrome(), exact=True), Memory()
    token, encoder = decoder._first(("a", "b")), decoder._encode(("a", "b"))
    for step in range(4):
        stream = decoder._decode(token, step, memory, encoder)
        assert all(isinstance(x, (Fraction, int)) for x in stream)
        token = np.concatenate([stream[decoder._at[part]] for part in ("next", "read", "goes_left", "goes_right")])
    assert stream[decoder._at["square"]] == Fraction(1, 16)


def test_the_gaps_of_the_proof():
    """In rationals: the latest write wins by the stated amount, and a fresh cell by its own."""
    for i in (1, 2, 3, 10, 40):
        for k in range(1, i + 1):
            fresh = Fraction(1, (i + 1) * k) * (1 - Fraction(1, 3 * (i + 1) * k))
            newest = Fraction(1, (i + 1) ** 2) * (1 + Fraction(1, 3 * (i + 1) ** 2))
            assert fresh - newest > Fraction(1, 2 * k * (i + 1) ** 2)
            for later in range(k + 1, i + 2):
                lead = Fraction(1, 3 * (i + 1) ** 2) * (Fraction(1, k * k) - Fraction(1, later * later))
                assert lead >= Fraction(1, 3 * (i + 1) ** 2 * k * k * (k + 1))
            other = Fraction(2, 3) / ((i + 1) * k)
            assert other - Fraction(1, 3 * (i + 1) ** 2) >= Fraction(1, 3 * (i + 1) ** 2)
    assert 72 * Fraction(1, 2**53) * HORIZON**2 * (HORIZON - 1) * HORIZON < Fraction(66, 100)


def test_without_the_tie_breaker_two_writes_tie():
    """The negative control: equal scores are noticed, not averaged."""
    decoder = EncoderDecoder(busy_beaver(4), exact=True)
    decoder._weights["query"][2] = Fraction(0)
    with pytest.raises(ValueError, match="two keys have the same score"):
        decoder.run(steps=60)


def test_a_wrong_table_is_noticed():
    decoder = EncoderDecoder(busy_beaver(4))
    decoder._weights["recall"][decoder._at["winner"]] = 0
    with pytest.raises(ValueError, match="not written there|unit vector"):
        decoder.run(steps=107)


def test_the_horizon_of_float64_is_kept():
    with pytest.raises(BadInput, match="float64 is proved for at most 3,000 steps and symbols, not 3,001"):
        EncoderDecoder(busy_beaver(5)).run(steps=HORIZON + 1)
