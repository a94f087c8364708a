"""What can be proved about a node from its inputs: the small theorems behind "selects at most one position".

Facts of a sequence, for every input: `constant` (the same value at all positions), `injective` (no two positions compare
equal). A value is the same only under its own type: True equals 1 and is another value. What is read is about the same
value, what is selected about ==, so that `injective` is stated for == and `constant` for the same value.
Facts of a selector: `reflexive` (every position selects itself), `single` (no position selects two), `total` (a strict
total order of the positions), `total or equal` (the same with every position added to its own row).

* The rank theorem. If a selector is a strict total order, the widths of its rows are 0, 1, ..., n-1 in some order, so its
  width is injective. Hence sorting by rank selects one position.
* The occurrence theorem. Positions with equal p are numbered by how many earlier ones have the same p, in any total
  order: two of them never share both p and that number. Hence "p equal and number equal" selects at most one position.
  The same holds for positions where p equals a constant c, numbered by how many earlier ones have p = c.

A `Ratio` is compared with a float as floats are, so numbers that mix the two are not ordered and not told apart with
certainty: no fact is drawn from their comparison.

A fact holds or is not known; its absence proves nothing. Facts are built bottom up, so there is no recursion.
"""

from __future__ import annotations

from collections.abc import Sequence

from certiformer.rasp.graph import Node, Relation, Table, ValueSet
from certiformer.rasp.operation import Operation, as_affine
from certiformer.rasp.selectors import Comparison
from certiformer.rasp.value import Ratio, Value, all_exact

STRICT = (Comparison.LT, Comparison.GT)
INCLUSIVE = (Comparison.LEQ, Comparison.GEQ)


def facts_of(nodes: Sequence[Node], node: Node) -> frozenset[str]:
    """Everything known about a node whose inputs are among `nodes`."""
    facts: set[str] = set()
    if node.is_selector:
        if _is_total(nodes, node):
            facts.add("total")
        if _is_total_or_equal(nodes, node):
            facts |= {"total or equal", "reflexive"}
        if _is_reflexive(nodes, node):
            facts.add("reflexive")
        if _is_single(nodes, node):
            facts.add("single")
    else:
        if _is_constant(nodes, node):
            facts.add("constant")
        if _is_injective(nodes, node):
            facts.add("injective")
    return frozenset(facts)


def _defined(nodes: Sequence[Node], number: int) -> bool:
    values = nodes[number].values
    return values is not None and values.known and not values.undefined


def _comparable(nodes: Sequence[Node], *numbers: int) -> bool:
    """Whether equality and order of these values are those of exact numbers: floats do not meet ratios."""
    types: set[type] = set()
    for number in numbers:
        values = nodes[number].values
        if values is None or not values.known:
            return False
        types |= {Ratio} if values.values is None else values.types
    return not {float, Ratio} <= types


# --- sequences --------------------------------------------------------------------------------------------------------


def _is_constant(nodes: Sequence[Node], node: Node) -> bool:
    if node.kind == "map":
        return all("constant" in nodes[i].facts for i in node.inputs)
    if node.kind in ("width", "aggregate"):
        selector = nodes[node.inputs[0]]
        return selector.kind == "select" and "constant" in nodes[selector.inputs[1]].facts
    return node.kind in ("length", "full")


def _is_injective(nodes: Sequence[Node], node: Node) -> bool:
    if node.kind == "indices":
        return True
    if node.kind == "width":
        selector = nodes[node.inputs[0]]
        return bool(selector.facts & {"total", "total or equal"})
    if node.kind != "map" or not all(_defined(nodes, i) for i in node.inputs):
        return False
    if isinstance(node.function, Table):
        return _table_is_injective(nodes, node, node.function)
    inputs = [nodes[i] for i in node.inputs]
    if not all(_numbers_only(x.values) for x in inputs):
        return False
    affine = as_affine(node.function) if isinstance(node.function, Operation) else None
    if affine is None:
        return False
    if len(inputs) == 1:
        return "injective" in inputs[0].facts and affine.factors[0] != 0
    return _one_moves(inputs, affine.factors)


def _one_moves(inputs: list[Node], factors: tuple) -> bool:
    pairs = [(inputs[0], inputs[1], factors[0]), (inputs[1], inputs[0], factors[1])]
    return any("injective" in a.facts and "constant" in b.facts and factor != 0 for a, b, factor in pairs)


def _numbers_only(values: ValueSet | None) -> bool:
    if values is None or not values.known:
        return False
    return values.values is None or all_exact(values.values)


def _table_is_injective(nodes: Sequence[Node], node: Node, table: Table) -> bool:
    """Different values of an injective input must never meet: their sets of results are disjoint."""
    if node.values is None or node.values.values is None or -1 in table.entries:
        return False
    if not _comparable([node], 0):
        return False
    outputs = node.values.values
    for axis, number in enumerate(node.inputs):
        if "injective" not in nodes[number].facts:
            continue
        if len(table.shape) == 1:
            groups = [[entry] for entry in table.entries]
        else:
            rows, columns = table.shape
            whole = [table.entries[r * columns : (r + 1) * columns] for r in range(rows)]
            groups = whole if axis == 0 else [list(column) for column in zip(*whole, strict=True)]
        sets = [{outputs[entry] for entry in group} for group in groups]  # by Python's ==, as selectors compare
        if sum(map(len, sets)) == len(set().union(*sets)):
            return True
    return False


# --- selectors --------------------------------------------------------------------------------------------------------


def _self_select(nodes: Sequence[Node], node: Node, predicates: tuple[Comparison, ...]) -> int | None:
    """The sequence whose values a select compares among themselves, all of them defined."""
    key = node.inputs[0] if node.kind == "select" else -1
    same = key >= 0 and key == node.inputs[1] and node.function in predicates
    return key if same and _defined(nodes, key) and _comparable(nodes, key) else None


def _is_total(nodes: Sequence[Node], node: Node) -> bool:
    key = _self_select(nodes, node, STRICT)
    if key is not None:
        return "injective" in nodes[key].facts
    return node.kind == "or" and _is_lexicographic(nodes, node, "total")


def _is_total_or_equal(nodes: Sequence[Node], node: Node) -> bool:
    key = _self_select(nodes, node, INCLUSIVE)
    if key is not None:
        return "injective" in nodes[key].facts
    return node.kind == "or" and _is_lexicographic(nodes, node, "total or equal")


def _is_lexicographic(nodes: Sequence[Node], node: Node, ties: str) -> bool:
    """key < key, or key == key and a total order among the ties."""
    for first, second in (node.inputs, node.inputs[::-1]):
        key = _self_select(nodes, nodes[first], STRICT)
        tie = nodes[second]
        if key is None or tie.kind != "and":
            continue
        for equal, order in (tie.inputs, tie.inputs[::-1]):
            if _self_select(nodes, nodes[equal], (Comparison.EQ,)) == key and ties in nodes[order].facts:
                return True
    return False


def _is_reflexive(nodes: Sequence[Node], node: Node) -> bool:
    inner = [nodes[i] for i in node.inputs]
    if node.kind == "and":
        return all("reflexive" in x.facts for x in inner)
    if node.kind == "or":
        return any("reflexive" in x.facts for x in inner)
    if node.kind != "select":
        return False
    if node.function is Comparison.TRUE:
        return all(_defined(nodes, i) for i in node.inputs)
    if isinstance(node.function, Relation) and node.inputs[0] == node.inputs[1] and _defined(nodes, node.inputs[0]):
        size = node.function.shape[0]
        return all(node.function.entries[i * size + i] for i in range(size))
    return _self_select(nodes, node, (Comparison.EQ, *INCLUSIVE)) is not None or _reaches_back(nodes, node)


def _reaches_back(nodes: Sequence[Node], node: Node) -> bool:
    """x compared with x + c, for exact numbers: at one position that is 0 compared with c."""
    (key, low), (query, high) = (_shifted(nodes, i) for i in node.inputs)
    if key != query or not isinstance(node.function, Comparison):
        return False
    known = _defined(nodes, key) and _numbers_only(nodes[key].values)
    return known and bool(node.function(low, high))


def _shifted(nodes: Sequence[Node], number: int) -> tuple[int, Value]:
    """(x, c) for a node that is x + c, (the node, 0) for others."""
    node = nodes[number]
    affine = as_affine(node.function) if node.kind == "map" and isinstance(node.function, Operation) else None
    shift = affine is not None and affine.factors == (1,)
    return (node.inputs[0], affine.offset) if affine is not None and shift else (number, 0)


def _is_single(nodes: Sequence[Node], node: Node) -> bool:
    if node.function is Comparison.FALSE:
        return True
    if node.kind == "or":
        return False
    parts = conjuncts(nodes, node)
    if len(parts) > 1 and any("single" in part.facts for part in parts):
        return True
    keys = _compared_keys(nodes, parts)
    if any("injective" in nodes[key].facts for key in keys):
        return True
    equal = {p.inputs for p in parts if p.kind == "select" and p.function is Comparison.EQ and p.inputs[0] in keys}
    if any(_numbers_occurrences(nodes, key, equal) for key in keys):
        return True
    return any(_relation_is_single(nodes, part) for part in parts)


def _compared_keys(nodes: Sequence[Node], parts: Sequence[Node]) -> set[int]:
    """The keys that must equal something for a position to be selected."""
    equal = [part for part in parts if part.kind == "select" and part.function is Comparison.EQ]
    return {part.inputs[0] for part in equal if _comparable(nodes, *part.inputs)}


def conjuncts(nodes: Sequence[Node], node: Node) -> list[Node]:
    """The selectors that are joined by `and`; at most a few levels, which is what people write."""
    parts = [node]
    for _ in range(8):
        parts = [x for part in parts for x in ([nodes[i] for i in part.inputs] if part.kind == "and" else [part])]
    return parts


def _numbers_occurrences(nodes: Sequence[Node], number: int, equal: set[tuple[int, ...]]) -> bool:
    """Whether this key counts, in a total order, the positions with the same p, or with p = c, as compared in `equal`."""
    width = nodes[number]
    if width.kind != "width":
        return False
    parts = conjuncts(nodes, nodes[width.inputs[0]])
    if len(parts) != 2 or not any(part.facts & {"total", "total or equal"} for part in parts):
        return False
    for part in parts:
        if part.kind == "select" and part.function is Comparison.EQ and _comparable(nodes, *part.inputs):
            p, query = part.inputs
            if p == query and any(pair[0] == p for pair in equal):
                return True
            if "constant" in nodes[query].facts and (p, query) in equal:
                return True
    return False


def _relation_is_single(nodes: Sequence[Node], part: Node) -> bool:
    """Every query value accepts at most one key value, and the keys are injective."""
    if (
        part.kind != "select"
        or not isinstance(part.function, Relation)
        or "injective" not in nodes[part.inputs[0]].facts
    ):
        return False
    keys, queries = part.function.shape
    entries = part.function.entries
    return all(sum(entries[k * queries + q] for k in range(keys)) <= 1 for q in range(queries))


def most_selected(nodes: Sequence[Node], selector: Node, length: int) -> int:
    """How many positions one position selects at most: a relation of keys that differ at every position bounds it."""
    bounds = [length]
    for part in conjuncts(nodes, selector):
        if isinstance(part.function, Relation) and "injective" in nodes[part.inputs[0]].facts:
            queries = part.function.shape[1]
            bounds.append(max(max(sum(part.function.entries[q::queries]) for q in range(queries)), 1))
    return min(bounds)


def selects_one_value(nodes: Sequence[Node], selector: Node, value: int) -> bool:
    """Whether all positions that a position selects have the same value there (not only equal ones), if any is selected."""
    if "single" in selector.facts or "constant" in nodes[value].facts:
        return True
    return any(_determines(nodes, key, value) for key in _compared_keys(nodes, conjuncts(nodes, selector)))


def _determines(nodes: Sequence[Node], key: int, value: int) -> bool:
    """Whether positions with equal keys have the same value, because the value is a function of the key.

    A function of the same key, and the key itself: of equal keys that are not the same (True and 1) nothing follows.
    """
    for _ in range(8):
        if _is_map_of(nodes, value, key) and _no_twins(nodes, key):
            return True
        node = nodes[key]
        if node.kind != "width":
            return False
        inner = _self_select(nodes, nodes[node.inputs[0]], STRICT + INCLUSIVE)
        if inner is None:
            return False
        key = inner  # equal numbers of smaller keys: equal keys
    return False


def _no_twins(nodes: Sequence[Node], number: int) -> bool:
    """Whether equal values are the same value: True and 1 are equal, and an aggregate or a map tells them apart."""
    values = nodes[number].values
    if values is None or values.values is None:
        return values is not None and values.span is not None and not values.span.ambiguous
    return len(set(values.values)) == len(values.values)


def _is_map_of(nodes: Sequence[Node], value: int, key: int) -> bool:
    for _ in range(8):
        if value == key:
            return True
        node = nodes[value]
        if node.kind != "map" or len(set(node.inputs)) != 1:
            return False
        value = node.inputs[0]
    return False
