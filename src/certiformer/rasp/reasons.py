"""Reasons: the problems of a graph as sentences, after trying those that a proof could not exclude.

An example refutes, trying all inputs proves, and what remains open is a reason, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from certiformer.errors import BadInput
from certiformer.rasp.expression import RASPExpr, describe
from certiformer.rasp.graph import Graph
from certiformer.rasp.graph_builder import Problem
from certiformer.rasp.inputs import first_inputs
from certiformer.rasp.interpreter import Interpreter

MAX_TRIED = 2_000  # inputs on which an unproved property is tried


@dataclass(frozen=True)
class Reason:
    """Why a program is refused: the expression by name and place, what is wrong with it, what to write instead."""

    expression: str
    problem: str
    instead: str

    def __str__(self) -> str:
        return f"{self.expression} {self.problem}; instead: {self.instead}"


def reasons_of(program: RASPExpr, graph: Graph, problems: Sequence[tuple[RASPExpr, Problem]]) -> list[Reason]:
    """The problems of a program's graph as reasons, those left out that trying all inputs disproves."""
    reasons = []
    for expr, problem in problems:
        text: str | None = problem.problem
        if problem.unproved:
            text = _tried(expr, graph, problem.problem)
        if text is not None:
            reasons.append(Reason(describe(program, expr), text, problem.instead))
    return list(dict.fromkeys(reasons))


def _tried(expr: RASPExpr, graph: Graph, problem: str) -> str | None:
    """The problem with an example, or as it is, or None when all inputs were tried and none has it."""
    inputs, all_of_them = first_inputs(graph.vocab, graph.length, MAX_TRIED)
    interpreter = Interpreter(expr)
    for xs in inputs:
        try:
            interpreter.run(xs)
        except BadInput as error:
            if " selects both " not in str(error):
                return problem  # something else is wrong, which has its own reason
            said = str(error).partition(";")[0].partition(" selects ")[2]
            return f"selects {said} on the input {', '.join(map(repr, xs))}, and they have no mean"
    return (
        None if all_of_them else f"{problem} (not proved, and no example found on the {len(inputs):,} shortest inputs)"
    )
