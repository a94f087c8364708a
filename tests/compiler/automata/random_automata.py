"""Random automata, all short words, and a plain forward pass in NumPy that leaves nothing out."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from certiformer.kernel.meanings.automaton import Automaton


def random_automaton(seed: int, states: int, symbols: int) -> Automaton:
    """Any next states and any accepting states, the empty set and all of them too; the start state is anywhere."""
    rng = np.random.default_rng(seed)
    names, letters = tuple(f"s{number}" for number in range(states)), tuple("abcdefgh"[:symbols])
    rows = tuple((name, letter, names[rng.integers(states)]) for name in names for letter in letters)
    accepting = tuple(name for name in names if rng.random() < 0.5)
    return Automaton(letters, names, names[rng.integers(states)], accepting, rows)


def words(automaton: Automaton, longest: int):
    for length in range(longest + 1):
        yield from product(automaton.symbols, repeat=length)


def random_word(seed: int, automaton: Automaton, length: int) -> list[str]:
    return [automaton.symbols[n] for n in np.random.default_rng(seed).integers(len(automaton.symbols), size=length)]


def outputs(config: dict[str, Any], tensors: dict[str, np.ndarray], tokens: list[int]) -> np.ndarray:
    """The forward pass over every row, by the definition."""
    x = tensors["embed.weight"][tokens] + tensors["code.table"][: len(tokens)]
    head, seen = "blocks.0.attention.groups.0", np.tri(len(tokens), dtype=bool)
    for _ in range(config["loops"]):
        for block in range(len(config["blocks"])):
            if config["blocks"][block]["attention"] is not None:
                query, key, value = (x @ tensors[f"{head}.{role}"][0] for role in ("query", "key", "value"))
                scores = np.where(seen, query @ key.T, -np.inf)
                shares = np.exp(scores - scores.max(axis=1, keepdims=True))
                x = x + shares / shares.sum(axis=1, keepdims=True) @ value @ tensors[f"{head}.output"][0]
            ffn = f"blocks.{block}.ffn"
            hidden = np.maximum(x @ tensors[f"{ffn}.up"] + tensors[f"{ffn}.up_bias"], 0)
            x = x + hidden @ tensors[f"{ffn}.down"] + tensors[f"{ffn}.down_bias"]
    return x @ tensors["readout.weight"] + tensors["readout.bias"]


def is_right(
    form: str, automaton: Automaton, config: dict[str, Any], tensors: dict[str, np.ndarray], word: tuple
) -> bool:
    """Whether the plain forward pass gives exactly the outputs that the theorem of the form promises for one word."""
    number = {state: place for place, state in enumerate(automaton.numbered)}
    passed = [number[state] for state in (automaton.start, *automaton.states_of(word))]
    letters, states, symbols = [automaton.symbols.index(a) for a in word], len(number), len(automaton.symbols)
    if form == "chain-of-thought":
        length = config["input"]["tokens"] // 2 - 1
        prompt = letters + [symbols] * (length + 1 - len(word))
        wanted = np.eye(states + 2)[[*passed[1:], states + (passed[-1] >= automaton.rejecting)]]
        tokens = prompt + [symbols + 1 + state for state in passed]
        return np.array_equal(outputs(config, tensors, tokens)[length + 1 :], wanted)
    found = outputs(config, tensors, [symbols, *letters])
    if form == "looped":
        answers = [float(state >= automaton.rejecting) for state in passed]
        return np.array_equal(found, np.column_stack([np.eye(states)[passed], answers]))
    counted = np.array(passed, float)
    return np.array_equal(found, np.column_stack([counted, counted - automaton.rejecting + 0.5]))
