"""Random programs of every construct, on all short inputs."""

from __future__ import annotations

from fractions import Fraction

import pytest

from certiformer.compiler.driver import compile_program
from certiformer.rasp import evaluate
from certiformer.rasp.random_program import random_valid_program
from compiler.numpy_run import all_ids, decoded, run

VOCAB = ("a", "b", "c")


def agrees(got: object, wanted: object, twins: bool) -> bool:
    if isinstance(got, float) and isinstance(wanted, (int, Fraction)):  # too many values to list: the number itself
        return abs(got - float(wanted)) < 1e-3 * max(1.0, abs(float(wanted)))
    return got == wanted and (twins or type(got) is type(wanted))


def differs(seed: int, length: int, limit: int) -> list[list[str]]:
    program = random_valid_program(seed, VOCAB, length)
    compiled = compile_program(program, VOCAB, length, dtype="float64")
    values = compiled.graph.nodes[compiled.graph.output].values.values
    unlisted = values is None
    twins = not unlisted and len(set(values)) < len(values)  # a mean of 1 beside True: the same number
    found = []
    for n in range(1, length + 1):
        ids = all_ids(3, n, limit)
        for row, got in zip(ids.tolist(), decoded(compiled, run(compiled, ids)), strict=True):
            tokens = [VOCAB[i] for i in row]
            wanted = evaluate(program, tokens)
            pairs = [(g, w) for g, w in zip(got, wanted, strict=True) if not (unlisted and w is None)]
            if not all(agrees(g, w, twins) for g, w in pairs):
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
