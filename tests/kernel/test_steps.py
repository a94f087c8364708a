"""Proof trees: round trips, and everything that is not one refused."""

from __future__ import annotations

import copy
import json

import pytest

from certiformer.errors import BadInput
from certiformer.kernel.certificate import (
    MAX_NESTING,
    Boxes,
    Outputs,
    Theorem,
    Triangle,
    from_json,
    rules_used,
    to_json,
)
from certiformer.kernel.files import canonical

BOXES = Boxes("0.1", 4, 0, 3)
THEOREM = Theorem("1/3", "voronoi_second_order", {"cells": [3, 4], "margin": 3, "sharpness": "1"})
PROGRAM = {"inputs": 1, "nodes": [["var", 0]], "outputs": [0]}
TREE = Outputs("0.5", (Triangle("0.2", PROGRAM, (BOXES, THEOREM)), BOXES, Outputs("0.1", (THEOREM,))))


def test_a_tree_survives_the_file():
    stored = json.loads(canonical(to_json(TREE)))
    assert from_json(stored) == TREE
    assert to_json(from_json(stored)) == stored


def test_the_rules_used_are_listed_once():
    assert rules_used(TREE) == ["outputs", "triangle", "boxes", "axiom voronoi_second_order"]


def every_node(data):
    yield data
    for child in data.get("children", ()):
        yield from every_node(child)


def mutations():
    """Every single structural damage of the stored tree: a field removed, added, renamed, or of another type."""
    base = to_json(TREE)
    count = len(list(every_node(base)))
    for place in range(count):
        for field in sorted(list(every_node(base))[place]):
            others = [None, True, 1.5, [], {}, "boxes"]
            for kind in ("remove", "rename", *others):
                changed = copy.deepcopy(base)
                node = list(every_node(changed))[place]
                value = node.pop(field)
                if kind == "rename":
                    node[field + "s"] = value
                elif kind != "remove":
                    if type(kind) is type(value):
                        continue
                    node[field] = kind
                yield f"{place} {field} {kind}", changed
        changed = copy.deepcopy(base)
        list(every_node(changed))[place]["note"] = "harmless?"
        yield f"{place} unknown field", changed


MUTATIONS = dict(mutations())


def test_there_are_many_mutations():
    assert len(MUTATIONS) > 150


@pytest.mark.parametrize("data", MUTATIONS.values(), ids=MUTATIONS)
def test_damaged_nodes_are_refused(data):
    with pytest.raises(BadInput, match="proof tree"):
        from_json(data)


@pytest.mark.parametrize("rule", ["rows", "margins", "Boxes", "", None, 3, ["boxes"]])
def test_unknown_rules_are_refused(rule):
    with pytest.raises(BadInput, match="no rule of this format"):
        from_json({**to_json(BOXES), "rule": rule})


@pytest.mark.parametrize("data", [None, 3, "boxes", [], [to_json(BOXES)], {}])
def test_what_is_no_object_is_refused(data):
    with pytest.raises(BadInput, match="no rule of this format"):
        from_json(data)


@pytest.mark.parametrize("children", [[], [BOXES], [BOXES] * 3])
def test_a_triangle_has_exactly_two_sides(children):
    data = {**to_json(Triangle("0.2", PROGRAM, (BOXES, BOXES))), "children": [to_json(child) for child in children]}
    with pytest.raises(BadInput, match="exactly two children"):
        from_json(data)


def test_nesting_is_limited():
    data = to_json(BOXES)
    for _ in range(MAX_NESTING):
        data = {"rule": "outputs", "bound": "1", "children": [data]}
    assert from_json(data)
    with pytest.raises(BadInput, match="no rule of this format"):
        from_json({"rule": "outputs", "bound": "1", "children": [data]})
