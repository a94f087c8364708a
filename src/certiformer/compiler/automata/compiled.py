"""`WordReader`: a finite automaton in the weights of a transformer, and how it reads words.

Compiling and running need NumPy alone; JAX is imported for runs through the one `Transformer` (`method="full"`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from certiformer.compiler.automata.evaluate import (
    Evaluation,
    log_depth_outputs,
    looped_outputs,
    unit_vectors,
    written_tokens,
)
from certiformer.compiler.automata.file import split_word
from certiformer.compiler.automata.forms import chain_of_thought_automaton, log_depth_automaton, looped_automaton
from certiformer.compiler.automata.parts import Tensors
from certiformer.compiler.computation import Computation, arrays_of
from certiformer.compiler.tensors import stored
from certiformer.errors import BadInput
from certiformer.kernel.files import AUTOMATON
from certiformer.kernel.meanings.automaton import Automaton
from certiformer.model.config import Config
from certiformer.model.schema import DTYPES

if TYPE_CHECKING:
    from certiformer.model.transformer import Transformer

MAX_LENGTH = 20_000
METHODS = ("rows", "full")
FORMS: dict[str, Callable[[Automaton, int, str], tuple[Config, Tensors]]] = {
    "looped": looped_automaton,
    "chain-of-thought": chain_of_thought_automaton,
    "log-depth": log_depth_automaton,
}
RULES = {
    "looped": "looped_automaton",
    "chain-of-thought": "chain_of_thought_automaton",
    "log-depth": "log_depth_automaton",
}


@dataclass(frozen=True)
class Result:
    """What the transformer says of a word: the answer, the state after every symbol, and how many passes of its blocks
    (or, for a chain of thought, tokens) that took."""

    accepted: bool
    state: str
    states: tuple[str, ...]
    steps: int


@dataclass(frozen=True)
class WordReader(Computation):
    """An automaton and the transformer that reads words of up to `length` symbols; `tensors` are NumPy arrays."""

    automaton: Automaton
    length: int
    form: str
    config: Config
    tensors: dict[str, np.ndarray]

    @property
    def rule(self) -> str:
        return RULES[self.form]

    @property
    def description(self) -> str:
        return self.automaton.to_text()

    @staticmethod
    def from_files(files: Mapping[str, bytes], model: Transformer) -> WordReader:
        """What a run folder holds; its form shows in the sizes of its transformer."""
        automaton, config = Automaton.from_text(files[AUTOMATON]), model.config
        states, symbols = len(automaton.states), len(automaton.symbols)
        forms = {
            (1, symbols + 1, states + 1): ("looped", config.tokens - 1),
            (1, symbols + 1 + states, states + 2): ("chain-of-thought", config.tokens // 2 - 1),
            (2, symbols + 1, 2): ("log-depth", config.tokens - 1),
        }
        sizes = (len(config.blocks), config.input.vocabulary or 0, config.outputs)
        if sizes not in forms:
            raise BadInput("the transformer in this folder is not that of the automaton beside it")
        form, length = forms[sizes]
        return WordReader(automaton, length, form, config, arrays_of(model))

    def answers(self, sequence: Iterable[str]) -> list[str]:
        """The state after every symbol of the word; `run` also says whether it is accepted."""
        word = split_word(sequence, self.automaton) if isinstance(sequence, str) else sequence
        return list(self.run(word).states)

    def sizes(self) -> dict[str, Any]:
        states, symbols = len(self.automaton.states), len(self.automaton.symbols)
        return {
            "form": self.form,
            "length": self.length,
            "states": states,
            "symbols": symbols,
            "passes": self.config.loops,
        }

    def run(self, word: Iterable[str] = (), method: str = "rows") -> Result:
        """Read a word, in the stored type: row by row in NumPy (`rows`; `evaluate` says why this is the same), or
        through the forward pass of the one transformer (`full`)."""
        symbols = self.automaton.check_word(word)
        if len(symbols) > self.length:
            raise BadInput(
                f"the word has {len(symbols):,} symbols; this transformer reads up to {self.length:,} of them"
            )
        if method not in METHODS:
            raise BadInput(f"an automaton runs by the method {' or '.join(METHODS)}, not {method!r}")
        numbers = [self.automaton.symbols.index(symbol) for symbol in symbols]
        if self.form == "chain-of-thought":
            return self._written(numbers, method)
        tokens = np.array([len(self.automaton.symbols), *numbers], np.int64)
        outputs = self._outputs(tokens, method)
        passed, accepted = (_marked if self.form == "looped" else _counted)(outputs, len(self.automaton.states))
        names = [self.automaton.numbered[number] for number in passed]
        return Result(accepted, names[-1], tuple(names[1:]), self._passes(len(symbols), method))

    @cached_property
    def _evaluation(self) -> Evaluation:
        return Evaluation(self.config, self.tensors)

    def _passes(self, symbols: int, method: str) -> int:
        return symbols if self.form == "looped" and method == "rows" else self.config.loops

    def _outputs(self, tokens: Int[np.ndarray, " rows"], method: str) -> Float[np.ndarray, "rows outputs"]:
        if method == "full":
            flat = self.model.evaluate(tokens[None], self.config.dtype)[0]
            return np.asarray(flat, np.float64).reshape(len(tokens), self.config.outputs)
        return (looped_outputs if self.form == "looped" else log_depth_outputs)(self._evaluation, tokens)

    def _written(self, numbers: list[int], method: str) -> Result:
        end, states = len(self.automaton.symbols), len(self.automaton.states)
        prompt = np.full(self.length + 2, end, np.int64)
        prompt[: len(numbers)] = numbers
        prompt[-1] = end + 1 + self.automaton.first
        if method == "full":
            from certiformer.compiler.decode import greedy

            writes = np.array([*range(end + 1, end + 1 + states), -1, -1])
            chosen = greedy(self.config, self.tensors, prompt[None], writes, len(numbers) + 1)[0].tolist()
        else:
            chosen = written_tokens(self._evaluation, prompt, end + 1)
        *passed, answer = chosen
        if len(passed) != len(numbers) or answer < states or any(not 0 <= number < states for number in passed):
            raise ValueError("the chain of thought does not have one state for every symbol and then the answer")
        names = [self.automaton.numbered[number] for number in passed]
        return Result(answer == states + 1, (self.automaton.start, *names)[-1], tuple(names), len(chosen))


def _marked(outputs: Float[np.ndarray, "rows outputs"], states: int) -> tuple[list[int], bool]:
    """States as unit vectors, then a bit for the answer."""
    if outputs[-1, states] not in (0.0, 1.0):
        raise ValueError("the answer of the automaton is not exactly 0 or 1")
    return unit_vectors(outputs[:, :states]), bool(outputs[-1, states])


def _counted(outputs: Float[np.ndarray, "rows outputs"], states: int) -> tuple[list[int], bool]:
    """States by number, then the same counted from between those that reject and those that accept."""
    numbers = outputs[:, 0]
    if not (np.isin(numbers, np.arange(states)).all() and abs(outputs[-1, 1]) >= 0.5):
        raise ValueError("an output of the automaton is not exactly the number of a state")
    return numbers.astype(int).tolist(), bool(outputs[-1, 1] > 0)


def word_reader(automaton: Automaton, length: int, form: str = "looped", dtype: str = "float64") -> WordReader:
    """The transformer of `automaton` for all words of 0 to `length` symbols.

    >>> from certiformer.compiler.automata import parse_automaton
    >>> parity = parse_automaton('''start = "even"
    ... accept = ["odd"]
    ... transitions = [["even", "0", "even"], ["even", "1", "odd"], ["odd", "0", "odd"], ["odd", "1", "even"]]''')
    >>> for form in ("looped", "chain-of-thought", "log-depth"):
    ...     word_reader(parity, 8, form).run("1101")
    Result(accepted=True, state='odd', states=('odd', 'even', 'even', 'odd'), steps=4)
    Result(accepted=True, state='odd', states=('odd', 'even', 'even', 'odd'), steps=5)
    Result(accepted=True, state='odd', states=('odd', 'even', 'even', 'odd'), steps=3)
    """
    if type(length) is not int or not 1 <= length <= MAX_LENGTH:
        raise BadInput(f"words have up to 1 to {MAX_LENGTH:,} symbols, not {length!r}")
    if form not in FORMS:
        raise BadInput(f"the form of an automaton is one of {', '.join(FORMS)}, not {form!r}")
    if dtype not in DTYPES:
        raise BadInput(f"an automaton is stored in {', '.join(DTYPES)}, not {dtype!r}")
    config, tensors = FORMS[form](automaton, length, dtype)
    return WordReader(automaton, length, form, config, {n: stored(t, dtype) for n, t in tensors.items()})
