"""Proof trees: how a bound on sup |A - B| over a box is established.

Every node states `sup over the domain, max over the outputs, of |A - B| <= bound`; at the root A is the transformer T
and B the target f. `bound` is exact decimal text, parsed as a rational by whoever reads it.

| rule       | what it needs                                                                    |
|------------|----------------------------------------------------------------------------------|
| `boxes`    | a split tree; A - B enclosed by a Taylor form of `order` on every leaf            |
| `theorem`  | the rule `id` of the checker, with `parameters`; its hypotheses are checked there |
| `triangle` | an intermediate program P; children bound |A - P| and |P - B|; bounds add         |
| `sum`      | heads on a product grid; B splits into terms over disjoint variables; bounds add  |
| `split`    | units and B both split into parts along few directions; a child each; bounds add  |
| `outputs`  | one child for every output; the largest bound counts                              |
| `finite`   | the domain is a list of rows: A is evaluated at every one of them                 |
| `situations` | B is a program; every decoded output of A is its value, with room for all errors |
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from certiformer.errors import BadInput
from certiformer.kernel.axioms import USES


@dataclass(frozen=True)
class Boxes:
    """An enclosure on every leaf of the split tree at `leaves.bin[offset : offset + length]`."""

    bound: str
    order: int
    offset: int
    length: int


@dataclass(frozen=True)
class Theorem:
    """A bound that follows from a theorem of the checker, whose hypotheses are re-checked."""

    bound: str
    id: str
    parameters: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Triangle:
    """|A - B| <= |A - P| + |P - B| through the program P (JSON data of a `kernel.programs.Program`)."""

    bound: str
    through: dict[str, Any]
    children: tuple[Node, Node]


@dataclass(frozen=True)
class Sum:
    """|A - B| <= sum of |A_g - B_g| over groups of variables that do not interact."""

    bound: str
    children: tuple[Node, ...]


@dataclass(frozen=True)
class Outputs:
    """max over the outputs: one child for each of them, in order."""

    bound: str
    children: tuple[Node, ...]


@dataclass(frozen=True)
class Split:
    """|A - B| <= sum of |P_g - B_g| over parts along few directions each, and what P misses of A (`kernel.split`).

    A part holds its `directions`, integers; its `target`, a program in the numbers directions x; its `units`, each the
    number of a unit of A with its slopes along the directions; and its `slopes` and `constant` of the affine part.
    `linear` is the affine part that A and B share. Numbers are exact decimals.
    """

    bound: str
    linear: list[str]
    parts: list[dict[str, Any]]
    children: tuple[Node, ...]


@dataclass(frozen=True)
class Finite:
    """The transformer evaluated in balls at every row of a finite target."""

    bound: str


@dataclass(frozen=True)
class Situations:
    """A compiled program: errors are carried from sub-layer to sub-layer for all inputs, and decoding removes them."""

    bound: str


Inner = Triangle | Sum | Outputs | Split
Node = Boxes | Theorem | Finite | Situations | Inner

_RULES = {
    "boxes": Boxes,
    "theorem": Theorem,
    "finite": Finite,
    "triangle": Triangle,
    "sum": Sum,
    "outputs": Outputs,
    "split": Split,
    "situations": Situations,
}
_NAMES = {kind: name for name, kind in _RULES.items()}
MAX_NESTING = 20


def rule_name(node: Node) -> str:
    """The name of a node's rule, as stored."""
    return _NAMES[type(node)]


def to_json(node: Node) -> dict[str, Any]:
    """A node as plain JSON data.

    >>> to_json(Boxes("0.1", 4, 0, 3))
    {'rule': 'boxes', 'bound': '0.1', 'order': 4, 'offset': 0, 'length': 3}
    """
    data = {"rule": rule_name(node), **vars(node)}
    if isinstance(node, Inner):
        data["children"] = [to_json(child) for child in node.children]
    return data


def from_json(data: Any, depth: int = 0) -> Node:
    """Read a node; unknown rules, missing or unexpected fields are refused."""
    kind = _RULES.get(str(data.get("rule"))) if isinstance(data, dict) else None
    if kind is None or depth > MAX_NESTING:
        raise BadInput(f"the proof tree has a node that is no rule of this format: {str(data)[:80]}")
    fields = {name: value for name, value in data.items() if name != "rule"}
    if set(fields) != set(kind.__dataclass_fields__):
        raise BadInput(f"a {data['rule']} node of the proof tree has the fields {sorted(fields)}")
    if not _well_typed(fields):
        raise BadInput(f"a {data['rule']} node of the proof tree has a field of the wrong type")
    if "children" in fields:
        fields["children"] = tuple(from_json(child, depth + 1) for child in fields["children"])
        if kind is Triangle and len(fields["children"]) != 2:
            raise BadInput("a triangle node of the proof tree needs exactly two children")
    return kind(**fields)


def rules_used(node: Node) -> list[str]:
    """The rules and theorems a proof rests on, in order of first use.

    >>> rules_used(Sum("0.2", (Boxes("0.1", 2, 0, 1), Theorem("0.1", "voronoi_second_order"))))
    ['sum', 'boxes', 'theorem voronoi_second_order']
    >>> rules_used(Theorem("0.1", "in_context_ridge"))
    ['theorem in_context_ridge', 'theorem in_context_gradient']
    """
    names = [rule_name(node)]
    if isinstance(node, Theorem):
        names = [f"theorem {name}" for name in (node.id, *USES.get(node.id, ()))]
    for child in node.children if isinstance(node, Inner) else ():
        names.extend(name for name in rules_used(child) if name not in names)
    return names


_TYPES = {"bound": str, "order": int, "offset": int, "length": int, "id": str, "parameters": dict, "through": dict}


def _well_typed(fields: dict[str, Any]) -> bool:
    return all(type(value) is _TYPES.get(name, list) for name, value in fields.items())
