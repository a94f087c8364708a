"""The compiler: from a program to the weights of a transformer that computes it, pass by pass."""

from __future__ import annotations

import gc
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from certiformer.compiler.draft import Draft, Feature
from certiformer.compiler.draft_to_circuit import draft_to_circuit
from certiformer.compiler.draft_to_layers import draft_to_layers
from certiformer.compiler.extended_to_draft import extended_to_draft
from certiformer.compiler.features import entries
from certiformer.compiler.graph_to_extended import graph_to_extended
from certiformer.compiler.layers_to_weights import layers_to_weights
from certiformer.compiler.precision import precision_of
from certiformer.compiler.twins import require_different_codes
from certiformer.errors import BadInput
from certiformer.kernel.situations.rasp.circuit import Circuit
from certiformer.model.config import Config
from certiformer.rasp.graph import Graph
from certiformer.rasp.graph_to_simplified import graph_to_simplified
from certiformer.rasp.program_to_graph import program_to_graph
from certiformer.rasp.sequences import SOp
from certiformer.rasp.validate import validate
from certiformer.rasp.value import Value

MAX_LOGITS = 256  # more values than this are read out as one number
MAX_FEATURE = 1_024  # squares of larger features would need more digits than float32 has


def choose_readout(draft: Draft) -> str:
    """`logits` while the values are few and their codes small integers once centred, else `number`.

    Logit a is 2 f x - f^2 for the feature f of value a, so the largest belongs to the feature nearest to x. Features
    are moved so that zero is in their middle: the squares are what has to be represented.
    """
    feature = draft.output_feature
    if feature.numbers is None or len(feature.numbers) >= MAX_LOGITS:
        return "number"
    held = entries(feature)
    if any(f.denominator != 1 for f in held):
        return "number"
    middle = (int(min(held)) + int(max(held))) // 2
    if max(abs(f - middle) for f in held) > MAX_FEATURE:
        return "number"
    undefined = None if feature.undefined is None else feature.undefined - middle
    draft.output_feature = Feature(tuple(f - middle for f in feature.numbers), undefined)
    draft.output = draft.output.scaled(1, -middle)
    return "logits"


@dataclass(frozen=True)
class Compiled:
    """A transformer, the program it computes, and what its parts are for."""

    config: Config
    tensors: dict[str, np.ndarray]
    graph: Graph
    circuit: Circuit

    @property
    def parameters(self) -> int:
        """How many numbers the tensors hold."""
        return sum(tensor.size for tensor in self.tensors.values())


def compile_program(
    program: SOp, vocab: Collection[Value], length: int, causal: bool = False, dtype: str = "float32"
) -> Compiled:
    """The transformer for a program, for inputs of at most `length` tokens out of `vocab`.

    >>> from certiformer.rasp.library import catalogue
    >>> compiled = compile_program(catalogue()["reverse"].make(), {"a", "b"}, length=50, dtype="float64")
    >>> len(compiled.config.blocks), compiled.config.width, compiled.parameters
    (3, 7, 2737)
    """
    with uncollected():
        graph = program_to_graph(program, vocab, length)
        if causal:
            reasons = validate(program, vocab, length, causal=True)
            if reasons:
                raise BadInput(str(reasons[0]))
        return compile_graph(graph_to_simplified(graph), causal, dtype)


def compile_graph(graph: Graph, causal: bool = False, dtype: str = "float32") -> Compiled:
    """The transformer for a simplified graph."""
    with uncollected():
        extended = graph_to_extended(graph, causal)
        draft = extended_to_draft(extended, precision_of(dtype))
        require_different_codes(graph.nodes[graph.output], draft.output_feature)
        kind = choose_readout(draft)
        placement = draft_to_layers(draft, fixed_rows=len(graph.vocab) + graph.length + 2)
        config, tensors = layers_to_weights(draft, placement, len(graph.vocab), graph.length, dtype, kind)
        return Compiled(config, tensors, graph, draft_to_circuit(extended, draft, placement, kind))


@contextmanager
def uncollected() -> Iterator[None]:
    """No garbage collection meanwhile: the passes build large tuples and lists, and hardly any of it is in cycles.

    The collector would go through all of it, and through everything imported, again and again: a seventh of the time.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
