"""Every input, one by one: the transformer in its stored dtype on this machine, against the program.

This is a run, not a proof: it says what happened here, with this version of JAX on this processor, nothing about others. It
runs what the rule *situations* reasons about; both read the program by `rasp`, so a mistake there may be made by both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from certiformer.compiler.programs.batch_meaning import BatchMeaning
from certiformer.compiler.programs.decode import Decoder
from certiformer.compiler.programs.program import TokenProgram
from certiformer.rasp.inputs import count_inputs
from certiformer.rasp.value import Value, answer

MOST = 2_000_000  # inputs that are tried one by one
LONGEST = 32  # tokens: every length is compiled by itself, which takes about a second
BATCH_NUMBERS = 2**21  # entries of the largest array of a batch: inputs x positions x positions

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Exhausted:
    """How many inputs were tried, and the first that was answered wrongly: (input, position, answer, right answer)."""

    tried: int
    wrong: tuple[list[Value], int, Value, Value] | None


def can_be_exhausted(compiled: TokenProgram) -> bool:
    """Whether there are few enough inputs to try them all."""
    return compiled.length <= LONGEST and count_inputs(compiled.vocab, compiled.length) < MOST


def exhaust(compiled: TokenProgram, progress: Progress | None = None) -> Exhausted:
    """Run the transformer on every input of 1 to `length` tokens; stops at the first wrong answer."""
    total, tried = count_inputs(compiled.vocab, compiled.length), 0
    meaning, decoder = BatchMeaning(compiled.graph), Decoder(compiled.graph, compiled.circuit)
    for ids in batches(len(compiled.vocab), compiled.length):
        outputs = compiled.model.evaluate(ids, dtype=compiled.dtype).reshape(ids.size, -1)
        numbers = meaning.run(ids).reshape(-1)
        wrong = _first_wrong(decoder, outputs, numbers, meaning)
        if wrong is not None:
            entry, answer = wrong
            row, position = divmod(entry, ids.shape[1])
            xs = [compiled.vocab[i] for i in ids[row]]
            return Exhausted(tried + row + 1, (xs, position, answer, meaning.values[numbers[entry]]))
        tried += len(ids)
        if progress is not None:
            progress(tried, total)
    return Exhausted(tried, None)


def _first_wrong(
    decoder: Decoder, outputs: np.ndarray, numbers: np.ndarray, meaning: BatchMeaning
) -> tuple[int, Value] | None:
    """The first entry whose decoded value is not the program's, and what was decoded."""
    if decoder.listed is None:
        for entry, (value, number) in enumerate(zip(decoder.decode(outputs), numbers.tolist(), strict=True)):
            if answer(value) != answer(meaning.values[number]):
                return entry, value
        return None
    places: dict[tuple, int] = {}  # a float and the same fraction are one answer, and the first stands for both
    same = np.array([places.setdefault(answer(v), place) for place, v in enumerate(decoder.listed)] + [-2, -1])
    right = np.array([places.get(answer(v), -2) for v in meaning.values])
    found = decoder.places(outputs)
    wrong = np.flatnonzero(same[found] != same[right[numbers]])
    if not len(wrong):
        return None
    entry = int(wrong[0])
    return entry, decoder.listed[found[entry]] if found[entry] >= 0 else float("nan")


def batches(letters: int, length: int) -> Iterator[Int[np.ndarray, "inputs positions"]]:
    """All sequences of 1 to `length` ids in parts that fit into memory, shortest first."""
    for n in range(1, length + 1):
        count, size = letters**n, max(1, BATCH_NUMBERS // n**2)
        powers = letters ** np.arange(n - 1, -1, -1, dtype=np.int64)
        for start in range(0, count, size):
            which = np.arange(start, min(start + size, count), dtype=np.int64)
            yield which[:, None] // powers % letters
