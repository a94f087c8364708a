"""What is known of a model with realistic weights: the answers on all inputs, or on a sample of them.

The transformer runs in its stored dtype on this machine. When every input was tried and answered rightly it is
*exact* in that sense: for this engine and dtype. A sample shows nothing about the other inputs, and is not called
exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from certiformer.compiler.programs.batch_meaning import BatchMeaning
from certiformer.compiler.programs.decode import Decoder
from certiformer.compiler.programs.exhaustive import BATCH_NUMBERS, MOST, batches
from certiformer.kernel.situations.rasp.circuit import Circuit
from certiformer.model.config import Config
from certiformer.rasp.graph import Graph
from certiformer.rasp.inputs import count_inputs
from certiformer.rasp.value import identity

SAMPLED = 20_000  # inputs that are drawn when there are too many to try them all

Ids = Int[np.ndarray, "inputs positions"]
Progress = Callable[[str, float, float | None, str], None]


@dataclass(frozen=True)
class Evidence:
    """How many inputs there are, were tried, and were answered wrongly at some position; and what was proved besides."""

    inputs: int
    tried: int
    wrong: int
    answers: int  # positions of all inputs that were tried
    wrong_answers: int
    dtype: str
    proof: str = ""

    @property
    def exact(self) -> bool:
        """Whether every input was tried and answered rightly."""
        return self.wrong == 0 and self.tried == self.inputs

    @property
    def outcome(self) -> str:
        """`exact`, `sampled` (right as far as was tried), or `wrong`."""
        return "wrong" if self.wrong else ("exact" if self.exact else "sampled")

    @property
    def accuracy(self) -> float:
        """The share of the answers that are right."""
        return 1.0 - self.wrong_answers / max(1, self.answers)

    @property
    def sentence(self) -> str:
        """What may be said."""
        where = f"run in {self.dtype} on this machine"
        if self.wrong:
            share = f"{self.accuracy:.2%} of the answers are right"
            said = (
                f"{self.wrong:,} of the {self.tried:,} inputs that were tried are answered wrongly ({share}), {where}"
            )
        elif self.exact:
            every = f"all {self.inputs:,} inputs were" if self.inputs > 1 else "the only input was"
            said = f"{every} tried and answered rightly, {where}"
        else:
            said = (
                f"{self.tried:,} random inputs out of {self.inputs:,} were answered rightly, {where};"
                " nothing is known of the others"
            )
        return f"{said}; {self.proof}" if self.proof else said


def measure(
    config: Config,
    tensors: Mapping[str, np.ndarray],
    graph: Graph,
    circuit: Circuit,
    *,
    seed: int = 0,
    most: int = MOST,
    progress: Progress | None = None,
) -> Evidence:
    """Run the model on every input when there are fewer than `most`, otherwise on a sample."""
    from certiformer.model.transformer import Transformer

    model, meaning, decoder = Transformer(config, tensors), BatchMeaning(graph), Decoder(graph, circuit)
    total = count_inputs(graph.vocab, graph.length)
    few = total < most
    parts = batches(len(graph.vocab), graph.length) if few else sample_batches(graph, SAMPLED, seed)
    tried = wrong = answers = wrong_answers = 0
    for ids in parts:
        outputs = model.evaluate(ids, dtype=config.dtype).reshape(ids.size, -1)
        right = _right(decoder, outputs, meaning.run(ids).reshape(-1), meaning).reshape(ids.shape)
        tried, answers = tried + len(ids), answers + ids.size
        wrong += int((~right).any(axis=1).sum())
        wrong_answers += int((~right).sum())
        if progress is not None:
            progress("check", tried, total if few else SAMPLED, "trying inputs")
    return Evidence(total, tried, wrong, answers, wrong_answers, config.dtype)


def _right(decoder: Decoder, outputs: np.ndarray, numbers: np.ndarray, meaning: BatchMeaning) -> np.ndarray:
    """Whether each answer is that of the program; what is not a number is wrong."""
    if decoder.listed is not None:
        places = {identity(value): place for place, value in enumerate(decoder.listed)}
        wanted = np.array([places.get(identity(value), -2) for value in meaning.values])
        return decoder.places(outputs) == wanted[numbers]
    finite = np.isfinite(outputs)
    found = decoder.decode(np.where(finite, outputs, 0.0))
    same = [identity(x) == identity(meaning.values[n]) for x, n in zip(found, numbers.tolist(), strict=True)]
    return np.all(finite, axis=1) & np.array(same)


def sample_batches(graph: Graph, count: int, seed: int) -> Iterator[Ids]:
    """`count` random sequences: half of them of full length, the others of a few lengths (each is a compilation)."""
    generator, letters = np.random.default_rng(seed), len(graph.vocab)
    lengths = sorted({1, 2, *generator.integers(1, graph.length + 1, 3).tolist()} - {graph.length})
    lengths = [n for n in lengths if n < graph.length]
    for n in [*lengths, graph.length]:
        rows = count // 2 // max(1, len(lengths)) if n < graph.length else count - count // 2
        size = max(1, BATCH_NUMBERS // n**2)
        for start in range(0, rows, size):
            yield generator.integers(0, letters, (min(size, rows - start), n))
