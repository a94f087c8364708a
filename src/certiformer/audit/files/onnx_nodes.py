"""The nodes of an ONNX graph: what uses a stored tensor, and how, without the numbers.

Names of weights are often lost in an export, but not those of the nodes that use them; `read.onnx_names` puts the two
together. A file can claim any graph, so nothing here trusts one: nodes are only listed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from certiformer.audit.files.tensors import TensorFiles
from certiformer.errors import BadInput

DEEPEST = 8  # graphs inside graphs
LOOPS = ("Loop", "Scan")  # their bodies run as often as the data say
SCOPES = "pkg.torch.onnx.name_scopes"  # where the exporter of torch.export writes the modules around a node
# Attributes that say which way round a matrix is used, and whether it is used as it is.
TOLD = ("transA", "transB", "alpha", "beta", "perm", "axis")


@dataclass(frozen=True)
class Node:
    """One node. `body` is the number of the graph it stands in (a branch is a graph of its own), `looped` whether that
    runs in a loop, `scopes` the modules around it where the exporter writes them down."""

    op: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    scopes: str = ""
    told: dict[str, Any] = field(default_factory=dict)
    body: int = 0
    looped: bool = False


@dataclass(frozen=True)
class GraphFiles(TensorFiles):
    """The tensors of a graph, and its nodes."""

    nodes: tuple[Node, ...] = ()


def bodies(graph: Any) -> Iterator[tuple[Any, int, bool]]:
    """The graph and the graphs inside its loops and branches, each with its number and whether it runs in a loop."""
    numbers = count()

    def inside(graph: Any, depth: int, looped: bool) -> Iterator[tuple[Any, int, bool]]:
        if depth > DEEPEST:
            raise BadInput("the graphs of this ONNX file are nested too deeply")
        yield graph, next(numbers), looped
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    yield from inside(attribute.g, depth + 1, looped or node.op_type in LOOPS)

    return inside(graph, 0, False)


def nodes_of(graph: Any) -> Iterator[Node]:
    """Every node, also those inside loops and branches."""
    for body, number, looped in bodies(graph):
        for node in body.node:
            scopes = next((entry.value for entry in node.metadata_props if entry.key == SCOPES), "")
            yield Node(
                text(node.op_type),
                text(node.name),
                tuple(map(text, node.input)),
                tuple(map(text, node.output)),
                text(scopes),
                {attribute.name: _told(attribute) for attribute in node.attribute if attribute.name in TOLD},
                number,
                looped,
            )


def text(value: Any) -> str:
    """A name of the file, which comes as bytes where it is no text."""
    if not isinstance(value, str):
        raise BadInput("the ONNX file has a name that is no text")
    return value


def _told(attribute: Any) -> Any:
    """The value of a number or of a list of whole numbers; None for anything else."""
    kinds = {attribute.FLOAT: "f", attribute.INT: "i", attribute.INTS: "ints"}
    value = getattr(attribute, kinds[attribute.type], None) if attribute.type in kinds else None
    return tuple(value) if attribute.type == attribute.INTS and value is not None else value
