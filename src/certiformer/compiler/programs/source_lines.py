"""Which line of the source made which node of a graph.

Passes share, fuse and simplify nodes, so they do not carry lines along. Instead a node is recognised by what it computes:
on a few inputs it takes the same values as an expression of the program. One of the same name is preferred; a node that
computes what no expression does has no line. Only people read the answer.
"""

from __future__ import annotations

import random
from typing import Any

from certiformer.errors import BadInput
from certiformer.rasp.expression import in_evaluation_order
from certiformer.rasp.graph import Graph
from certiformer.rasp.graph_run import GraphRunner
from certiformer.rasp.interpreter import Interpreter
from certiformer.rasp.sequences import SOp
from certiformer.rasp.value import Value, identity

INPUTS, LONGEST = 4, 6
MAX_NODES = 2_000  # a larger program was generated, not written


def source_lines(program: SOp, graph: Graph) -> dict[str, str]:
    """The places of the nodes, by their numbers as text (what `circuit.json` holds)."""
    expressions = in_evaluation_order(program)
    if max(len(expressions), len(graph.nodes)) > MAX_NODES:
        return {}
    runner, interpreter = GraphRunner(graph), Interpreter(program)
    behaviours: list[list[Any]] = [[] for _ in graph.nodes]
    wanted: dict[int, list[Any]] = {id(expr): [] for expr in expressions}
    try:
        for xs in _inputs(graph):
            for behaviour, result in zip(behaviours, runner.run_all(xs), strict=True):
                behaviour.append(_key(result))
            for name, result in interpreter.run_all(xs).items():
                wanted[name].append(_key(result))
    except BadInput:  # a list written for one length refuses the others
        return {}
    by_name: dict[Any, str] = {}
    by_behaviour: dict[Any, str] = {}
    for expr in expressions:
        if expr.place:
            behaviour = tuple(wanted[id(expr)])
            by_name.setdefault((expr.name, behaviour), expr.place)
            by_behaviour.setdefault(behaviour, expr.place)
    lines = {}
    for number, (node, found) in enumerate(zip(graph.nodes, behaviours, strict=True)):
        place = by_name.get((node.name, tuple(found))) or by_behaviour.get(tuple(found))
        if place and node.kind not in ("tokens", "indices", "length", "full"):
            lines[str(number)] = place
    return lines


def _inputs(graph: Graph) -> list[list[Value]]:
    """Several lengths, the longest first: short inputs make different expressions look alike."""
    draw = random.Random(0)
    lengths = [max(1, min(graph.length, LONGEST) - skip) for skip in range(INPUTS)]
    return [[draw.choice(graph.vocab) for _ in range(n)] for n in lengths]


def _key(result: list[Any]) -> tuple:
    return tuple(tuple(row) if isinstance(row, list) else identity(row) for row in result)
