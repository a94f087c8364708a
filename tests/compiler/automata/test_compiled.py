"""Compiled automata against the simulation of their tables: every form, type and length; rows and the whole forward pass."""

from __future__ import annotations

import time

import numpy as np
import pytest

from certiformer import load
from certiformer.compiler.automata import FORMS, word_reader
from certiformer.compiler.automata.compiled import RULES
from certiformer.compiler.automata.forms import log_depth_automaton
from certiformer.compiler.computation import computation_certificate
from certiformer.errors import BadInput
from certiformer.kernel.certificate import Outcome
from certiformer.kernel.computation import check_computation
from certiformer.kernel.meanings.automaton import Automaton
from compiler.automata.random_automata import is_right, random_automaton, random_word, words

SIZES = [(1, 1, 1), (2, 1, 2), (2, 2, 5), (3, 2, 6), (7, 3, 4)]  # states, symbols, length


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
@pytest.mark.parametrize("form", FORMS)
def test_every_short_word_is_read_as_the_table_says(form, dtype):
    for seed, (states, symbols, length) in enumerate(SIZES):
        automaton = random_automaton(seed, states, symbols)
        compiled = word_reader(automaton, length, form, dtype)
        for word in list(words(automaton, length))[:200]:
            result = compiled.run(word)
            assert result.states == automaton.states_of(word)
            assert result.accepted == automaton.accepts(word)
            assert result.state == (automaton.start, *result.states)[-1]


@pytest.mark.parametrize("form", FORMS)
def test_the_whole_forward_pass_gives_the_same(form):
    """In plain NumPy over every row and pass, and through the one transformer, exactly, for words of every length."""
    automaton = random_automaton(5, 4, 2)
    compiled = word_reader(automaton, 9, form)
    for length in range(10):
        word = tuple(random_word(length, automaton, length))
        assert is_right(form, automaton, compiled.config.to_json(), compiled.tensors, word)
    full = compiled.run(word, method="full")  # one length is one compilation
    assert (full.accepted, full.states) == (automaton.accepts(word), automaton.states_of(word))


def test_steps_are_passes_or_tokens():
    automaton = random_automaton(0, 3, 2)
    steps = {form: word_reader(automaton, 100, form).run("ab").steps for form in FORMS}
    assert steps == {"looped": 2, "chain-of-thought": 3, "log-depth": 7}


def test_passes_double_the_reach():
    for length in range(1, 300):
        passes = log_depth_automaton(random_automaton(3, 2, 1), length, "float64")[0].loops
        assert 2**passes >= length and (passes == 1 or 2 ** (passes - 1) < length)


@pytest.mark.parametrize("form", FORMS)
def test_a_folder_is_read_back(form, tmp_path):
    automaton = random_automaton(3, 4, 2)
    compiled = word_reader(automaton, 12, form, "float32")
    artifact = compiled.certified()
    artifact.save(tmp_path / "a")
    certificate = artifact.certificate
    assert certificate.outcome is Outcome.PROVED and certificate.level == 2 and certificate.upper == "0"
    again = load(tmp_path / "a").subject
    assert (again.automaton, again.length, again.form, again.config) == (automaton, 12, form, compiled.config)
    assert all(np.array_equal(again.tensors[name], tensor) for name, tensor in compiled.tensors.items())
    assert check_computation(tmp_path / "a").accepted


def test_another_automaton_beside_the_weights_is_noticed(tmp_path):
    word_reader(random_automaton(3, 4, 2), 12).certified().save(tmp_path / "a")
    (tmp_path / "a" / "automaton.json").write_text(random_automaton(3, 5, 2).to_text())
    with pytest.raises(BadInput, match="is not that of the automaton beside it"):
        load(tmp_path / "a")


def test_words_that_do_not_fit_are_refused():
    compiled = word_reader(random_automaton(1, 3, 2), 4)
    with pytest.raises(BadInput, match="the word has 5 symbols; this transformer reads up to 4"):
        compiled.run("aaaaa")
    with pytest.raises(BadInput, match="symbol 2 of the word is 'z', which is not in the alphabet a, b"):
        compiled.run("az")
    with pytest.raises(BadInput, match="method rows or full, not 'fast'"):
        compiled.run("a", method="fast")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((0,), "words have up to 1 to 20,000 symbols, not 0"),
        ((10**9,), "not 1000000000"),
        ((2.0,), "not 2.0"),
        ((1001,), "the looped form reads words of up to 1,000 symbols, not 1,001"),
        ((5, "fast"), "is one of looped, chain-of-thought, log-depth, not 'fast'"),
        ((5, "looped", "float16"), "is stored in float64, float32, bfloat16, not 'float16'"),
    ],
)
def test_sizes_that_cannot_be_built_are_refused(arguments, problem):
    with pytest.raises(BadInput, match=problem):
        word_reader(random_automaton(1, 2, 2), *arguments)


def test_too_many_states_for_log_depth_are_refused():
    with pytest.raises(BadInput, match="the log-depth form takes up to 40 states, not 41"):
        word_reader(random_automaton(1, 41, 1), 5, "log-depth")


def test_log_depth_has_few_units():
    """About 4 Q^2 hidden units, where gates for all triples of states would be 2 Q^3."""
    compiled = word_reader(random_automaton(1, 20, 2), 1000, "log-depth")
    units = sum(block.ffn.width for block in compiled.config.blocks if block.ffn is not None)
    assert units < 4.1 * 20**2 and compiled.config.loops == 10


def test_a_thousand_symbols():
    """Parity of 1,000 bits in all three forms."""
    table = (("even", "0", "even"), ("even", "1", "odd"), ("odd", "0", "odd"), ("odd", "1", "even"))
    parity = Automaton(("0", "1"), ("even", "odd"), "even", ("odd",), table)
    word = random_word(0, parity, 1000)
    for form in FORMS:
        compiled = word_reader(parity, 1000, form)
        result = compiled.run(word)
        assert result.accepted == (word.count("1") % 2 == 1) and result.states == parity.states_of(word)
        assert computation_certificate(RULES[form], compiled.files()).level == 2


@pytest.mark.slow
def test_fifty_random_automata_at_length_a_thousand():
    """Up to 20 states, all three forms: every state of a random word of 1,000 symbols and of shorter ones, and certificates."""
    spent = dict.fromkeys(FORMS, 0.0)
    for seed in range(50):
        rng = np.random.default_rng(seed)
        automaton = random_automaton(seed, 20 if seed % 5 == 0 else int(rng.integers(2, 21)), int(rng.integers(1, 6)))
        for form in FORMS:
            began = time.monotonic()
            compiled = word_reader(automaton, 1000, form)
            for length in (1000, int(rng.integers(0, 1000)), 0):
                word = random_word(seed, automaton, length)
                result = compiled.run(word)
                assert result.states == automaton.states_of(word) and result.accepted == automaton.accepts(word)
            certificate = computation_certificate(RULES[form], compiled.files())
            assert certificate.outcome is Outcome.PROVED and certificate.level == 2
            spent[form] += time.monotonic() - began
    print({form: round(seconds, 1) for form, seconds in spent.items()})


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_the_transformer_itself_at_length_a_thousand(form):
    """Every row of every pass through the one model, 20 states."""
    automaton = random_automaton(0, 20, 3)
    word = random_word(1, automaton, 1000)
    result = word_reader(automaton, 1000, form).run(word, method="full")
    assert result.states == automaton.states_of(word) and result.accepted == automaton.accepts(word)
