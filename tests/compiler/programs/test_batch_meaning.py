"""Many inputs at once mean what each means by itself."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from certiformer.compiler.programs.batch_meaning import BatchMeaning
from certiformer.rasp.graph_run import run_graph
from certiformer.rasp.graph_to_simplified import graph_to_simplified
from certiformer.rasp.library import catalogue
from certiformer.rasp.program_to_graph import program_to_graph
from certiformer.rasp.value import identity

LENGTH = 5


@pytest.mark.parametrize("name", sorted(catalogue()))
def test_every_library_program_agrees_with_the_scalar_rules(name):
    entry = catalogue()[name]
    graph = graph_to_simplified(program_to_graph(entry.make(), entry.vocab[:7], LENGTH))
    batch = BatchMeaning(graph)
    for n in range(1, LENGTH + 1):
        everything = list(itertools.product(range(len(graph.vocab)), repeat=n))
        ids = np.array(random.Random(n).sample(everything, min(len(everything), 40)))
        numbers = batch.run(ids)
        for row, answer in zip(ids.tolist(), numbers.tolist(), strict=True):
            expected = run_graph(graph, [graph.vocab[i] for i in row])
            found = [batch.values[number] for number in answer]
            assert list(map(identity, found)) == list(map(identity, expected))


def test_values_of_different_types_are_not_confused():
    from certiformer.rasp import Aggregate, Comparison, Map, Select, indices, tokens

    mixed = Map(lambda x: True if x == 0 else 1 if x == 1 else "one", tokens)
    graph = program_to_graph(Aggregate(Select(indices, indices, Comparison.EQ), mixed), {0, 1, 2}, 3)
    batch = BatchMeaning(graph)
    answer = batch.run(np.array([[0, 1, 2]]))[0]
    assert [identity(batch.values[i]) for i in answer] == [identity(True), identity(1), identity("one")]
