"""Causal programs, their transformers, and their answers on many inputs as the texts that an exported tokenizer has."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from certiformer import rasp
from certiformer.compiler.driver import Compiled, compile_program
from certiformer.export import Labels, program_labels, write
from certiformer.model import Transformer

LENGTH = 12


@dataclass(frozen=True)
class Case:
    program: rasp.SOp
    compiled: Compiled
    model: Transformer
    labels: Labels

    def inputs(self) -> list[list]:
        """All inputs of up to 3 tokens, some of 5, and random ones of the full length."""
        vocab, generator = self.compiled.graph.vocab, np.random.default_rng(0)
        short = [list(xs) for n in (1, 2, 3) for xs in itertools.product(vocab, repeat=n)]
        drawn = [[vocab[i] for i in generator.integers(0, len(vocab), n)] for n in [5] * 5 + [LENGTH] * 10]
        return short + drawn

    def ids(self, xs: list) -> list[int]:
        return [self.labels.start, *(self.compiled.graph.vocab.index(x) for x in xs)]

    def answers(self, xs: list) -> list:
        """What the interpreter says: texts, or numbers for an output that is a number."""
        values = rasp.evaluate(self.program, xs)
        if self.labels.kind == "number":
            return [float(value) for value in values]
        return ["<undefined>" if value is None else str(value) for value in values]

    def read(self, logits: np.ndarray) -> list:
        """The same from the logits of an exported model, (tokens, vocabulary), the start token left out."""
        if self.labels.kind == "number":
            return logits[:, self.labels.outputs[0]].tolist()
        return [self.labels.texts[number] for number in logits.argmax(-1)]

    def export(self, kind: str, folder: Path) -> Path:
        write(self.model, kind, folder, {}, force=True, labels=self.labels)
        return folder


def _programs() -> dict[str, tuple[rasp.SOp, tuple]]:
    tokens, indices, same = rasp.tokens, rasp.indices, rasp.Comparison.EQ
    before = rasp.Select(indices, indices, rasp.Comparison.LEQ)
    previous = rasp.Aggregate(rasp.Select(indices, indices - 1, same), tokens)
    letters = ("a", "b", "c")
    return {
        "copy": (tokens, letters),
        "shift": (previous, letters),
        "frac_prevs": (rasp.Aggregate(before, rasp.numerical(tokens == "a")), letters),
        "hist of the prefix": (rasp.SelectorWidth(rasp.Select(tokens, tokens, same) & before), letters),
        "pairs seen": (rasp.SelectorWidth(rasp.Select(previous, tokens, same) & before), letters),
        "parity of the prefix": (rasp.SelectorWidth(rasp.Select(tokens, rasp.Full(1), same) & before) % 2, (0, 1)),
    }


CASES = tuple(_programs())


@cache
def case(name: str, dtype: str = "float32", length: int = LENGTH) -> Case:
    program, vocab = _programs()[name]
    compiled = compile_program(program, vocab, length, causal=True, dtype=dtype)
    model = Transformer(compiled.config, compiled.tensors)
    return Case(program, compiled, model, program_labels(compiled.graph, compiled.circuit))


def same_answers(got: list, wanted: list) -> bool:
    """Texts must be equal; numbers are read back as fractions with denominators up to 12, which are 1/132 apart."""
    if isinstance(wanted[0], float):
        return len(got) == len(wanted) and max(abs(a - b) for a, b in zip(got, wanted, strict=True)) < 1 / 264
    return got == wanted


def tokens_of(folder: Path) -> dict:
    return json.loads((folder / "tokens.json").read_text(encoding="utf-8"))
