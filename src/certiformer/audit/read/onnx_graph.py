"""ONNX graphs: read as the family that the names of their modules give, or else tensor by tensor.

Without a family every tensor is a matrix, a kernel or a vector of its own, the way round it is stored, and no head is
known: all tensors are counted and can be measured, and what needs heads or layers does not apply. Constants of such a
graph that are no whole numbers (an epsilon) cannot be told from parameters that are single numbers, and count."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import chain

from certiformer.audit.files import TensorFiles
from certiformer.audit.form import Checkpoint, Coverage
from certiformer.audit.read.names import Names, names_of
from certiformer.audit.read.onnx_names import Named, named
from certiformer.audit.read.origin import Origin, after
from certiformer.audit.read.settings import Settings
from certiformer.errors import BadInput

NOTE = "a graph says neither heads nor layers: its matrices are measured one by one, the way round they are stored"
GIVEN = "{} tensors are called after the modules that use them; the provenance has their names in the graph"


def read(
    files: TensorFiles,
    origins: dict[str, Origin],
    settings: Settings,
    of_family: Callable[[Names], Checkpoint | None],
) -> tuple[Checkpoint, Coverage] | None:
    """The graph as a family reads it, or tensor by tensor; None where it holds no weights."""
    graph = named(files)
    names = names_of(graph.files, origins=after(origins, graph.origins))
    for copy in graph.copies:
        names.ledger.copy(copy)
    problem = graph.unclear
    if not problem:
        try:
            checkpoint = of_family(names)
        except BadInput as error:
            # Without a nameless matrix it is the config, or what the user says, that does not fit.
            if not graph.nameless:
                raise
            checkpoint, problem = None, str(error)
        if checkpoint is not None:
            problem = _other_repeats(checkpoint, graph)
            if not problem:
                notes = (GIVEN.format(len(graph.origins)),) if graph.origins else ()
                return replace(checkpoint, notes=(*checkpoint.notes, *notes)), names.coverage()
    names = names_of(files, origins=origins)
    if not names.ledger.left():
        return None
    notes = (NOTE, f"its names were not used: {problem}") if problem else (NOTE,)
    checkpoint = Checkpoint("onnx", (), 0, others=names.rest(""), config=settings.config, notes=notes)
    return checkpoint, names.coverage()


def _other_repeats(checkpoint: Checkpoint, graph: Named) -> str:
    """A sentence where the graph applies a matrix more or less often than the family does."""
    for layer in checkpoint.layers:
        attention = [(each.query, each.key, each.value, each.output) for each in layer.attention]
        for weight in chain(*attention, *((each.up, each.down, each.gate) for each in layer.ffn)):
            tensor = "" if weight is None else weight.source.tensor
            calls = graph.calls.get(tensor, layer.repeats)
            if calls != layer.repeats:
                return f"the graph applies {tensor!r} {calls} times, and the model that it looks like {layer.repeats}"
    return ""
