"""Transformers that are built and proved for the targets of composition: RASP programs, compiled, and an automaton."""

from __future__ import annotations

from functools import reduce
from operator import add

import numpy as np

from certiformer.artifact import Artifact
from certiformer.compiler.automata import Automaton, word_reader
from certiformer.compiler.programs.make import Request, compile_request
from certiformer.errors import BadInput
from certiformer.rasp import Aggregate, Comparison, Full, Map, Select, SelectorWidth, SequenceMap, SOp, indices, tokens
from certiformer.rasp.library import catalogue
from certiformer.rasp.library.patterns import at_position
from certiformer.rasp.library.retrieval import newest_follower
from certiformer.rates.composition_tasks import GROUP, HOPS, TIMES, Task


def built(asked: Task) -> Artifact:
    """The transformer of a task, certified for all its inputs.

    >>> from certiformer.rates.composition_tasks import task
    >>> made = built(task("pointers", 4))
    >>> made.certified, made.run([1, 2, 3, 0, 2])[-1]
    (True, 2)
    """
    if asked.name == "chain":
        return word_reader(_group(), asked.n, form="log-depth").certified()
    request = Request(program(asked), tuple(range(asked.symbols)), asked.length, name=asked.name)
    return compile_request(request)


def program(asked: Task) -> SOp:
    """The RASP program of a task; its answer stands at the last position."""
    if asked.name == "composition":
        return _read(_read(Map(lambda x: x + asked.n, tokens)))
    if asked.name == "pointers":
        place: SOp = tokens
        for _ in range(HOPS):
            place = _read(place)
        return place
    if asked.name == "induction":
        return _two_hops()
    if asked.name == "parity":
        return catalogue()["parity"].make()
    if asked.name == "depth":
        return _greatest_depth(asked.n)
    raise BadInput(f"the task {asked.name} is an automaton, not a program")


def _read(place: SOp) -> SOp:
    """The token at a place."""
    return at_position(place, tokens)


def _two_hops() -> SOp:
    """What followed the last earlier occurrence, asked again where that stands."""
    newest = newest_follower()
    return at_position(Aggregate(newest, indices), Aggregate(newest, tokens))


def _greatest_depth(n: int) -> SOp:
    so_far = Select(indices, indices, Comparison.LEQ)
    opened = SelectorWidth(Select(tokens, Full(0), Comparison.EQ) & so_far)
    heights = SequenceMap(lambda a, i: 2 * a - i - 1, opened, indices).named("height")
    # Heights change by one and begin at zero, so that every height up to the greatest is reached.
    reached = [SelectorWidth(Select(heights, Full(height), Comparison.EQ)) > 0 for height in range(1, n + 1)]
    return reduce(add, (Map(int, one) for one in reached))


def _group() -> Automaton:
    """States and symbols are the elements; a symbol multiplies the state from the right."""
    names = tuple(f"p{k}" for k in range(len(GROUP)))
    rows = [(a, b, names[TIMES[i, j]]) for i, a in enumerate(names) for j, b in enumerate(names)]
    return Automaton(names, names, names[0], (), tuple(rows))


def answers(made: Artifact, asked: Task, inputs: np.ndarray) -> list[int]:
    """The classes that the built transformer gives; a program that leaves its answer undefined gives the last class."""
    if asked.name == "chain":
        states = [made.subject.answers([f"p{k}" for k in row])[-1] for row in inputs.tolist()]
        return [int(state[1:]) for state in states]
    given = [made.run(row)[-1] for row in inputs.tolist()]
    return [asked.classes - 1 if value is None else int(value) for value in given]
