"""What the nodes of a graph use its tensors for: the matrix or the bias of a module, the gain of a norm, a table.

An exporter from torch names a node after the module it computes: `/encoder/layer.0/attention/self/query/MatMul`, or a
list of scopes beside the node. A module that is called again gets `_1`, `_2`, ... behind its name. A tensor goes into a
node directly or through Identity, Cast and Transpose; equal tensors are stored once, with an Identity for each further
name. Nothing is concluded from a node that says less."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from certiformer.audit.files.onnx_nodes import GraphFiles, Node

# Longer names are of no module; scopes repeat the path at each of its steps.
LONGEST_NAME, LONGEST_SCOPES = 512, 1 << 14
MOST_STEPS = 16  # nodes between a tensor and the node that uses it
PATH = re.compile(r"\w+(\.\w+)*", re.ASCII)
SCOPE = re.compile(r"'([^']*)'")
PASSING = ("Identity", "Cast", "Transpose")
NORMS = ("LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization")
CONVOLUTIONS = ("Conv", "ConvTranspose")


class Use(NamedTuple):
    """One node that uses a tensor as a part of its module; `turned` where a matrix is then stored as (in, out)."""

    module: str
    part: str  # "weight" | "bias"
    kind: str  # "product" | "table" | "other"
    turned: bool
    body: int
    scoped: bool  # the exporter wrote the modules down beside the node
    output: str


@dataclass
class Uses:
    """By tensor: its uses (None for one that says nothing about a module) and the (operation, place) of each node. By
    tensor that only an Identity names: the stored one. By output of a product: the vectors that are added to it."""

    uses: dict[str, list[Use | None]] = field(default_factory=dict)
    places: dict[str, set[tuple[str, int]]] = field(default_factory=dict)
    same: dict[str, str] = field(default_factory=dict)
    added: dict[str, set[str]] = field(default_factory=dict)

    def of(self, name: str) -> list[Use | None]:
        return self.uses.get(name, [])


def module_of(node: Node) -> str | None:
    """The dotted path of the module that a node belongs to.

    >>> module_of(Node("MatMul", "/encoder/layer.0/attention/self/query/MatMul", (), ()))
    'encoder.layer.0.attention.self.query'
    """
    if node.scopes:
        scopes = SCOPE.findall(node.scopes) if len(node.scopes) <= LONGEST_SCOPES else []
        path = scopes[-2] if len(scopes) > 1 else ""
    else:
        *steps, last = node.name.split("/") if len(node.name) <= LONGEST_NAME else ("",)
        named = steps and not steps[0] and re.fullmatch(re.escape(node.op) + r"(_\d+)?", last)
        path = ".".join(steps[1:]) if named else ""
    return path if len(path) <= LONGEST_NAME and PATH.fullmatch(path) else None


def uses_of(files: GraphFiles) -> Uses:
    """What every tensor of the graph is used for."""
    found = Uses()
    makers: dict[str, Node | None] = {}
    for node in files.nodes:
        for value in node.outputs if node.op != "Constant" else ():
            # A value that two nodes make, or a node and the file, could be either.
            makers[value] = None if value in makers or value in files.infos else node
    for value, node in makers.items():
        if node is not None and node.op == "Identity" and "." in value and PATH.fullmatch(value):
            stored = _stored(value, files, makers, {})
            if stored is not None and not stored[1] and len(value) <= LONGEST_NAME:
                found.same[value] = stored[0]
    for node in files.nodes:
        if node.op not in PASSING:
            reached = [_stored(value, files, makers, found.same) for value in node.inputs]
            for place, tensor in enumerate(reached):
                if tensor is not None:
                    use = None if node.looped else _use(node, place, reached, files, found.same, makers)
                    found.uses.setdefault(tensor[0], []).append(use)
                    found.places.setdefault(tensor[0], set()).add((node.op, place))
                    if use is not None and node.op == "Add":
                        found.added.setdefault(node.inputs[1 - place], set()).add(tensor[0])
    return found


def _stored(
    value: str, files: GraphFiles, makers: dict[str, Node | None], same: dict[str, str]
) -> tuple[str, bool] | None:
    """The tensor that a value is, and whether it is turned over on the way; None for a value that is computed."""
    turned = False
    for _ in range(MOST_STEPS):
        if value in same:
            return value, turned
        if value not in makers:
            return (value, turned) if value in files.infos else None
        node = makers[value]
        if node is None or node.op not in PASSING or not node.inputs:
            return None
        if node.op == "Transpose":
            if node.told.get("perm", (1, 0)) != (1, 0):
                return None
            turned = not turned
        value = node.inputs[0]
    return None


def _use(
    node: Node,
    place: int,
    reached: list[tuple[str, bool] | None],
    files: GraphFiles,
    same: dict[str, str],
    makers: dict[str, Node | None],
) -> Use | None:
    """What a node uses the tensor at one of its places for."""
    module, here = module_of(node), reached[place]
    if module is None or here is None or not node.outputs:
        return None
    name, turned = here
    axes = len(files.infos[same.get(name, name)].shape)

    def use(part: str, kind: str = "other", turned: bool = False) -> Use:
        return Use(module, part, kind, turned, node.body, bool(node.scopes), node.outputs[0])

    if node.op in ("MatMul", "Gemm") and reached[0] is None:
        told = node.told
        if node.op == "Gemm" and (told.get("transA", 0), told.get("alpha", 1), told.get("beta", 1)) != (0, 1, 1):
            return None
        if place == 1 and axes == 2:
            return use("weight", "product", turned=turned == bool(told.get("transB", 0)))
        if place == 2 and axes == 1:
            return use("bias", "product")
    elif node.op in ("Add", "Mul") and axes == 1 and len(reached) == 2 and reached[1 - place] is None:
        if node.op == "Mul":
            return use("weight")
        before = makers.get(node.inputs[1 - place])
        if before is not None and before.op in ("MatMul", "Mul") and module_of(before) == module:
            return use("bias", "product" if before.op == "MatMul" else "other")
    elif node.op == "Gather" and place == 0 and axes == 2 and not turned and node.told.get("axis", 0) == 0:
        return use("weight", "table")
    elif node.op in (*NORMS, *CONVOLUTIONS) and place in (1, 2) and not turned:
        return use("weight" if place == 1 else "bias")
    return None
