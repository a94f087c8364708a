"""Transformers without blocks, made by hand, for compiled programs: embedding, codes and read-out, and cells that explain them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product

import numpy as np

from certiformer.compiler.draft_to_circuit import lemmas_of
from certiformer.kernel.meanings.rasp import read_program
from certiformer.kernel.situations.rasp.circuit import Cell, Circuit, Output
from certiformer.rasp.graph_builder import GraphBuilder
from certiformer.rasp.graph_file import graph_from_text, graph_to_text
from certiformer.rasp.graph_run import GraphRunner
from certiformer.rasp.value import identity
from kernel.compiled_programs import Built

Adds = Callable[[GraphBuilder], int]  # adds nodes and returns the number of the last one


def flat(
    vocab: Sequence,
    length: int,
    program: Adds,
    derived: Adds | None,
    cells: dict[int, tuple],
    readout: np.ndarray,
    bias,
) -> Built:
    """`cells`: for every node the numbers that a token and a position add to its coordinate."""
    builder = GraphBuilder(vocab, length)
    output = program(builder)
    text = graph_to_text(builder.finish(output))
    if derived is not None:
        derived(builder)
    extended = graph_to_text(builder.finish(output))
    graph = graph_from_text(extended)
    made = []
    for c, node in enumerate(cells):
        undefined = 0 if graph.nodes[node].values.undefined else None
        made.append(Cell(f"cell {c}", node, c, (0, "embedding"), None, None, undefined, 0))
    reads = tuple(c for c in range(len(cells)) if np.any(readout[c]))
    circuit = Circuit(
        extended, False, tuple(made), (), (), (), Output("logits", reads, None, None), lemmas_of(read_program(extended))
    )
    config = {
        "format": "certiformer-model-1",
        "dtype": "float64",
        "input": {"kind": "ids", "tokens": length, "vocabulary": len(vocab)},
        "width": len(cells),
        "registers": 1,
        "code": {"kind": "table"},
        "blocks": [],
        "loops": 1,
        "readout": {"kind": "all"},
        "outputs": readout.shape[1],
    }
    arrays = {
        "embed.weight": np.array([[tokens[k] for tokens, _ in cells.values()] for k in range(len(vocab))], float),
        "registers": np.zeros((1, len(cells))),
        "code.table": np.array([[codes[i] for _, codes in cells.values()] for i in range(length)], float),
        "readout.weight": np.asarray(readout, float),
        "readout.bias": np.asarray(bias, float),
    }
    return Built(config, arrays, text, circuit.to_text())


def wrong_answers(model: Built, longest: int) -> int:
    """On how many inputs of at most `longest` tokens a transformer without blocks differs from its program, exactly."""
    graph = graph_from_text(model.program)
    runner = GraphRunner(graph)
    values = graph.nodes[graph.output].values
    domain = [*values.values, *([None] if values.undefined else [])]
    tensors = {k: [[Fraction(x) for x in row] for row in np.atleast_2d(a).tolist()] for k, a in model.arrays.items()}
    wrong = 0
    for n in range(1, longest + 1):
        for ids in product(range(len(graph.vocab)), repeat=n):
            right = runner.run([graph.vocab[k] for k in ids])
            wrong += any(identity(_decoded(tensors, k, i, domain)) != identity(right[i]) for i, k in enumerate(ids))
    return wrong


def _decoded(tensors: dict, token: int, position: int, domain: list):
    state = [a + b for a, b in zip(tensors["embed.weight"][token], tensors["code.table"][position], strict=True)]
    columns = zip(*tensors["readout.weight"], strict=True)
    logits = [
        sum(x * w for x, w in zip(state, column, strict=True)) + b
        for column, b in zip(columns, tensors["readout.bias"][0], strict=True)
    ]
    return domain[max(range(len(domain)), key=logits.__getitem__)]
