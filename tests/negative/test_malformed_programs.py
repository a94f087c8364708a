"""Malformed circuit.json and program.json: each is refused with a sentence or is as true as before, and nothing else happens."""

from __future__ import annotations

import copy
import json
import random
from dataclasses import replace
from functools import partial

import pytest

from certiformer.errors import BadInput
from certiformer.kernel import Refused
from certiformer.kernel.situations.rasp import circuit as circuit_file
from certiformer.rasp.graph_builder import GraphBuilder
from certiformer.rasp.graph_file import graph_from_text, graph_to_text
from certiformer.rasp.operation import BINARY, Affine, WithConstant
from certiformer.rasp.selectors import Comparison
from certiformer.rasp.value import Ratio
from kernel.compiled_programs import Built, built, canonical

NAMES = ("reverse", "sort", "hist", "sum", "parity", "length", "frac_prevs", "dyck1", "majority", "induction")
ODD = (None, True, False, 0, 1, -1, 7, 10**30, -(10**400), 2**64, 1.5, float("nan"), float("inf"), "", "1/3", "1/0")
MORE = ("10/5", "a", "\ud800", "x" * 3000, [], {}, [[[]]], {"a": 1}, [1, "x"])


def places_in(data, path=()):
    """The paths of everything inside JSON data."""
    if path:
        yield path
    entries = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for step, inner in entries:
        yield from places_in(inner, (*path, step))


def inside(data, path):
    for step in path:
        data = data[step]
    return data


def mutated(text: str, rng: random.Random) -> str:
    """Fields replaced by other types, huge and negative numbers, entries that are gone, doubled or copied from elsewhere."""
    data = json.loads(text)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        path = rng.choice(list(places_in(data)))
        holder, step = inside(data, path[:-1]), path[-1]
        old, way = holder[step], rng.randrange(5)
        if way == 0:
            del holder[step]
        elif way == 1 and isinstance(holder, list):
            holder.insert(step, copy.deepcopy(old))
        elif way == 2 and type(old) is int:
            holder[step] = old + rng.choice([-1, 1, 2, -5, 1000, 2**63])
        elif way == 3:
            holder[step] = copy.deepcopy(inside(data, rng.choice(list(places_in(data)))))
        else:
            holder[step] = rng.choice(ODD + MORE)
    return canonical(data)


def ends_well(model: Built) -> bool:
    """Whether a model is accepted; anything but a refusal is an error of the test."""
    try:
        model.prove()
    except (Refused, BadInput) as problem:
        assert str(problem) and "\n" not in str(problem)
        return False
    return True


@pytest.mark.parametrize("name", NAMES)
def test_mutated_files_are_refused_or_still_true(name):
    """The weights and the program are honest, so that a circuit that is accepted explains a true claim."""
    model, rng = built(name, 3, "float64"), random.Random(name)
    refused = 0
    for _ in range(130):
        refused += not ends_well(replace(model, circuit=mutated(model.circuit, rng)))
    for _ in range(70):
        refused += not ends_well(replace(model, program=mutated(model.program, rng)))
        circuit = json.loads(model.circuit)
        circuit["extended"] = mutated(circuit["extended"], rng)
        refused += not ends_well(replace(model, circuit=canonical(circuit)))
    assert refused > 200


def test_deep_nesting_is_refused():
    model, deep = built("reverse", 3, "float64"), "[" * 100_000 + "]" * 100_000
    assert not ends_well(replace(model, circuit=deep)) and not ends_well(replace(model, program=deep))
    circuit = json.loads(model.circuit)
    circuit["extended"] = deep
    assert not ends_well(replace(model, circuit=canonical(circuit)))


def test_a_reader_that_believes_numbers_is_caught(monkeypatch):
    """The negative control: without the types of the fields, some mutant ends in an error that nobody expects."""
    model, rng = built("reverse", 3, "float64"), random.Random(1)
    believed = dict.fromkeys(circuit_file._CELL, lambda data: True)
    monkeypatch.setattr(circuit_file, "_CIRCUIT", circuit_file._CIRCUIT | {"cells": [believed]})
    surprises = 0
    for _ in range(400):
        try:
            ends_well(replace(model, circuit=mutated(model.circuit, rng)))
        except Exception:
            surprises += 1
    assert surprises


CONSTANTS = (0, 1, 2, -3, True, 10**9, 10**40, 2**4000, 0.1, 1e308, 5e-324, Ratio(1, 3), "a", (1, "b"))


def grown(graph, rng: random.Random):
    """A program with a few odd nodes more, well-formed as a file: huge numbers, floats, symbols, lists, means."""
    builder = GraphBuilder.continued(graph)
    for _ in range(rng.randrange(1, 6)):
        selectors = [i for i, node in enumerate(builder.nodes) if node.is_selector]
        one, other = (rng.choice([i for i in range(len(builder.nodes)) if i not in selectors]) for _ in range(2))
        selector = rng.choice(selectors) if selectors else None
        factors = (rng.choice([1, -1, 1000, 10**40, Ratio(1, 3)]), rng.choice([1, 7, 100_000]))
        c, add = rng.choice(CONSTANTS), builder.add
        ways = [
            partial(add, "map", (one,), WithConstant(rng.choice(list(BINARY)), c, rng.random() < 0.5)),
            partial(add, "map", (one, other), Affine(factors, 0)),
            partial(add, rng.choice(["indices", "length"])),
            partial(add, "written", constant=(rng.random() < 0.3, *rng.choices([1, 2, None, "a"], k=rng.randrange(5)))),
            partial(add, "select", (one, other), rng.choice(list(Comparison))),
        ]
        if selector is not None:
            ways += [partial(add, "width", (selector,)), partial(add, "aggregate", (selector, one), constant=c)]
        rng.choice(ways)()
        if builder.problems:
            return graph
    return builder.finish(graph.output)


@pytest.mark.parametrize("name", NAMES)
def test_circuits_with_odd_nodes_are_refused_or_still_true(name):
    model, rng = built(name, 3, "float64"), random.Random(name)
    for _ in range(60):
        data = json.loads(model.circuit)
        graph = grown(graph_from_text(data["extended"]), rng)
        data["extended"] = graph_to_text(graph)
        sequences = [i for i, node in enumerate(graph.nodes) if not node.is_selector]
        for _ in range(rng.randrange(3)):
            cell = rng.choice(data["cells"])
            cell["node"], cell["feature"] = rng.choice(sequences), None
            cell["undefined"] = 0 if graph.nodes[cell["node"]].values.undefined else None
        if rng.random() < 0.3:
            terms = [[rng.choice([1, -1, "1/3"]), rng.choice(sequences)] for _ in range(rng.randrange(3))]
            data["identities"].append({"node": rng.choice(sequences), "offset": 0, "terms": terms})
        ends_well(replace(model, circuit=canonical(data)))
