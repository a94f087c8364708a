"""A transformer that was compiled by hand: every position answers the first token. Nothing of the compiler is used."""

from __future__ import annotations

import numpy as np

from certiformer.artifact import Artifact
from certiformer.compiler.draft_to_circuit import lemmas_of
from certiformer.compiler.programs.program import TokenProgram
from certiformer.kernel.certificate import Certificate, Outcome
from certiformer.kernel.files import CIRCUIT, CONFIG, MODEL, PROGRAM, digest
from certiformer.kernel.meanings.rasp import read_program
from certiformer.kernel.situations.rasp.circuit import Cell, Circuit, HeadRole, Output, UnitRole
from certiformer.model import Attention, Block, Code, Config, FeedForward, Heads, Input, Readout
from certiformer.model.tensor_file import arrays_to_bytes
from certiformer.rasp import Aggregate, Comparison, Full, Select, indices, tokens
from certiformer.rasp.graph_file import graph_to_text
from certiformer.rasp.program_to_graph import program_to_graph

VOCAB, LENGTH, SHARP = ("a", "b", "c"), 4, 2048.0
START, TOKEN, IS_FIRST, ANSWER = range(4)  # coordinates


def first_token():
    return Aggregate(Select(indices, Full(0), Comparison.EQ), tokens).named("first")


def by_hand(**changes: np.ndarray) -> Artifact:
    """The compiled program; `changes` replace tensors (dots in their names written as two underscores)."""
    graph = program_to_graph(first_token(), VOCAB, LENGTH)
    number = {node.kind: place for place, node in enumerate(graph.nodes)}
    config = Config(
        Input("ids", tokens=LENGTH, vocabulary=3),
        width=4,
        outputs=3 + graph.nodes[graph.output].values.undefined,
        readout=Readout("all"),
        blocks=(Block(Attention((Heads(1, 1, 1),), bias=True, scale="unit"), FeedForward(1)),),
        registers=1,
        code=Code("table"),
    )
    one = np.eye(4)
    group = "blocks.0.attention.groups.0"
    places = np.arange(config.outputs)
    tensors = {
        "embed.weight": np.outer([0.0, 1, 2], one[TOKEN]),
        "registers": one[[START]],
        "code.table": np.outer([1.0, 0, 0, 0], one[IS_FIRST]),
        f"{group}.query": np.zeros((1, 4, 1)),
        f"{group}.query_bias": np.full((1, 1), SHARP),
        f"{group}.key": one[IS_FIRST].reshape(1, 4, 1),
        f"{group}.key_bias": np.zeros((1, 1)),
        f"{group}.value": one[TOKEN].reshape(1, 4, 1),
        f"{group}.value_bias": np.zeros((1, 1)),
        f"{group}.output": one[ANSWER].reshape(1, 1, 4),
        "blocks.0.attention.output_bias": np.zeros(4),
        # One unit clears the coordinate that nobody reads any more.
        "blocks.0.ffn.up": one[:, [IS_FIRST]],
        "blocks.0.ffn.up_bias": np.zeros(1),
        "blocks.0.ffn.down": -one[[IS_FIRST]],
        "blocks.0.ffn.down_bias": np.zeros(4),
        "readout.weight": np.outer(one[ANSWER], 2.0 * places),
        "readout.bias": -(places**2.0),
    }
    tensors |= {name.replace("__", "."): change for name, change in changes.items()}
    cells = (
        Cell("start", number["full"], START, (0, "embedding"), None, (0,), None, 1),
        Cell("tokens", number["tokens"], TOKEN, (0, "embedding"), None, (0, 1, 2), None, 0),
        Cell("is first", number["indices"], IS_FIRST, (0, "embedding"), (0, "ffn"), (1, 0, 0, 0), None, 0),
        Cell("first", number["aggregate"], ANSWER, (0, "attention"), None, (0, 1, 2), 3, 0),
    )
    circuit = Circuit(
        extended=graph_to_text(graph),
        causal=False,
        cells=cells,
        heads=(HeadRole(0, 0, 0, "read", number["select"], number["aggregate"], (), (2,), (1,), (3,)),),
        units=(UnitRole(0, 0, 1, "clear", (2,), (2,)),),
        identities=(),
        output=Output("logits", (3,), (0, 1, 2), 3),
        lemmas=lemmas_of(read_program(graph_to_text(graph))),
        lines={str(number["aggregate"]): "mine.py:7"},
    )
    files = {
        MODEL: arrays_to_bytes({name: np.asarray(t, np.float64) for name, t in tensors.items()}),
        CONFIG: config.to_bytes(),
        PROGRAM: graph_to_text(graph).encode(),
        CIRCUIT: circuit.to_text().encode(),
    }
    seals = {name: digest(data) for name, data in files.items()}
    certificate = Certificate("0", Outcome.UNDECIDED, 0, seals, method="by hand", reason="nobody asked")
    return Artifact(TokenProgram(files), certificate, files, "first")
