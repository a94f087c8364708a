"""Compiled library programs against the interpreter, on all short inputs and on long random and special ones."""

from __future__ import annotations

import numpy as np
import pytest

from certiformer.compiler.driver import Compiled, compile_program
from certiformer.model import Transformer
from certiformer.rasp import evaluate
from certiformer.rasp.library import catalogue
from compiler.numpy_run import all_ids, decoded, run

CATALOGUE = catalogue()
NAMES = list(CATALOGUE)


def wrong(compiled: Compiled, program, fits, ids: np.ndarray) -> list[list]:
    """The inputs on which some position differs from the interpreter, in value or in type."""
    outputs = decoded(compiled, run(compiled, ids))
    found = []
    for row, got in zip(ids.tolist(), outputs, strict=True):
        tokens = [compiled.graph.vocab[i] for i in row]
        if fits(tokens) and [(type(x), x) for x in got] != [(type(x), x) for x in evaluate(program, tokens)]:
            found.append(tokens)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_agrees_with_the_interpreter_on_all_short_inputs(name: str) -> None:
    entry = CATALOGUE[name]
    program = entry.make()
    compiled = compile_program(program, entry.vocab, 5)
    for length in range(1, 6):
        ids = all_ids(len(entry.vocab), length, limit=120)
        assert wrong(compiled, program, entry.fits, ids) == []


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_agrees_at_length_20_on_random_and_on_constant_inputs(name: str, dtype: str) -> None:
    entry = CATALOGUE[name]
    program = entry.make()
    compiled = compile_program(program, entry.vocab, 20, dtype=dtype)
    for length in (11, 19, 20):
        ids = np.concatenate([all_ids(len(entry.vocab), length, limit=6), np.zeros((1, length), int)])
        assert wrong(compiled, program, entry.fits, ids) == []


BALANCED = ["()", "()()", "(())", "([])", "[](){}", "{([])}()", "([)]", "(()", "())", "x(x)x", "{[x]}"]


@pytest.mark.parametrize("name", ["dyck1", "dyck2", "dyck3", "shuffle_dyck1", "shuffle_dyck2", "shuffle_dyck3"])
def test_bracket_programs_accept_and_reject(name: str) -> None:
    entry = CATALOGUE[name]
    program = entry.make()
    compiled = compile_program(program, entry.vocab, 12)
    texts = [text for text in BALANCED if set(text) <= set(entry.vocab)]
    assert {True, False} <= {evaluate(program, list(text))[0] for text in texts}
    for text in texts:
        ids = np.array([[compiled.graph.vocab.index(x) for x in text]])
        assert wrong(compiled, program, entry.fits, ids) == []


def test_addition_carries() -> None:
    program = CATALOGUE["addition"].make()
    compiled = compile_program(program, CATALOGUE["addition"].vocab, 9)
    for text in ("9995+0007"[:9], "999+001", "500+500", "123+456", "0+0", "9+9"):
        tokens = [x if x == "+" else int(x) for x in text]
        ids = np.array([[compiled.graph.vocab.index(x) for x in tokens]])
        assert wrong(compiled, program, lambda _: True, ids) == []


def test_a_changed_weight_is_seen() -> None:
    """Negative control: without the guard that keeps the start of the sequence to itself, or with one knot moved."""
    entry = CATALOGUE["hist"]
    program = entry.make()
    for name in ("blocks.0.ffn.down", "blocks.0.attention.groups.0.key", "embed.weight"):
        compiled = compile_program(program, entry.vocab, 5)
        tensor = compiled.tensors[name]
        tensor[np.unravel_index(np.abs(tensor).argmax(), tensor.shape)] *= -1
        assert wrong(compiled, program, entry.fits, all_ids(3, 5)) != []


@pytest.mark.parametrize("name", ["reverse", "sort", "induction", "frac_prevs", "count_after_delimiter"])
def test_the_one_model_computes_the_same(name: str) -> None:
    entry = CATALOGUE[name]
    compiled = compile_program(entry.make(), entry.vocab, 6)
    ids = all_ids(len(entry.vocab), 6, limit=50)
    outputs = Transformer(compiled.config, compiled.tensors).evaluate(ids, dtype="float32")
    assert decoded(compiled, outputs.reshape(len(ids), 6, -1)) == decoded(compiled, run(compiled, ids))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("length", [50, 100])
def test_agrees_at_long_lengths(name: str, length: int) -> None:
    entry = CATALOGUE[name]
    program = entry.make()
    compiled = compile_program(program, entry.vocab, length, dtype="float64")
    ids = np.concatenate([all_ids(len(entry.vocab), length, limit=3), np.zeros((1, length), int)])
    assert wrong(compiled, program, entry.fits, ids) == []
