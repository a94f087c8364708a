"""Random programs of every construct, on all short inputs."""

from __future__ import annotations

import pytest

from certiformer.api.compiling import compile as certified
from certiformer.compiler.driver import compile_program
from certiformer.compiler.programs.decode import Decoder
from certiformer.errors import BadInput
from certiformer.rasp import evaluate
from certiformer.rasp.random_program import random_valid_program
from certiformer.rasp.value import answer
from compiler.numpy_run import all_ids, run

VOCAB = ("a", "b", "c")


def differs(seed: int, length: int, limit: int) -> list[list[str]]:
    """The inputs on which the decoded outputs are not the program's values, exactly."""
    program = random_valid_program(seed, VOCAB, length)
    compiled = compile_program(program, VOCAB, length, dtype="float64")
    decoder = Decoder(compiled.graph, compiled.circuit)
    found = []
    for n in range(1, length + 1):
        ids = all_ids(3, n, limit)
        for row, outputs in zip(ids.tolist(), run(compiled, ids), strict=True):
            tokens = [VOCAB[i] for i in row]
            got, wanted = decoder.decode(outputs), evaluate(program, tokens)
            if list(map(answer, got)) != list(map(answer, wanted)):
                found.append(tokens)
    return found


@pytest.mark.parametrize("block", range(8))
def test_random_programs_agree_with_the_interpreter(block: int) -> None:
    for seed in range(5 * block, 5 * block + 5):
        assert differs(seed, 3, 27) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200))
def test_random_programs_agree_up_to_length_6(seed: int) -> None:
    assert differs(seed, 6, 729) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200))
def test_certificates_of_random_programs_check_at_length_6(seed: int) -> None:
    made = certified(random_valid_program(seed, VOCAB, 6), VOCAB, 6)
    assert made.certified, made.certificate.reason


# Undefined values near a knot, a sum nobody asks for, cells that rounding leaves below zero, and numbers too many to list
# of which only the definedness is read.
@pytest.mark.parametrize("seed", [94, 182, 110, 45])
def test_certificates_that_were_hard_to_get(seed: int) -> None:
    made = certified(random_valid_program(seed, VOCAB, 6), VOCAB, 6)
    assert made.certified, made.certificate.reason


def test_an_output_that_may_be_true_or_the_mean_1_is_refused_and_says_what_to_write() -> None:
    with pytest.raises(BadInput, match="may be True or the mean 1 of others; use numbers of one kind; adding 0"):
        certified(random_valid_program(105, VOCAB, 6), VOCAB, 6)
