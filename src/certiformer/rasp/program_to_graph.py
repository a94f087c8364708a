"""Pass: program -> typed graph. Every expression becomes a node; users' functions become tables over all their arguments.

After this pass no Python of the user is needed any more. Equal expressions share a node.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from certiformer.errors import BadInput
from certiformer.rasp.expression import Encoding, RASPExpr, in_evaluation_order
from certiformer.rasp.graph import Graph, Relation, Table, tabulated
from certiformer.rasp.graph_builder import GraphBuilder, Problem
from certiformer.rasp.operation import Operation
from certiformer.rasp.reasons import reasons_of
from certiformer.rasp.selectors import (
    Aggregate,
    Comparison,
    ConstantSelector,
    Select,
    SelectorAnd,
    SelectorNot,
    SelectorOr,
    SelectorWidth,
)
from certiformer.rasp.sequences import ConstantSOp, Full, IndicesType, LengthType, Map, SequenceMap, SOp, TokensType
from certiformer.rasp.value import Value, is_number
from certiformer.rasp.values import MAX_TABLE, of_function, size_of

KINDS = {
    TokensType: "tokens",
    IndicesType: "indices",
    LengthType: "length",
    SelectorAnd: "and",
    SelectorOr: "or",
    SelectorNot: "not",
    SelectorWidth: "width",
}


def program_to_graph(program: RASPExpr, vocab: Collection[Value], length: int) -> Graph:
    """The typed graph of a program for inputs of 1 to `length` tokens; refuses what `validate` gives a reason against.

    >>> from certiformer.rasp import indices, tokens
    >>> print(program_to_graph((indices + tokens) % 2, vocab={0, 1}, length=3))
       0 indices: {0, 1, 2}
       1 tokens: {0, 1}
       2 map 0 1 Binary(symbol='+'): {0, 1, 2, 3}
       3 map 2 WithConstant(symbol='%', constant=2, constant_first=False): {0, 1}
    output 3
    """
    graph, problems = translate(program, vocab, length)
    reasons = reasons_of(program, graph, problems)
    if reasons:
        more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
        raise BadInput(f"{reasons[0]}{more}")
    return graph


def translate(program: RASPExpr, vocab: Collection[Value], length: int) -> tuple[Graph, list[tuple[RASPExpr, Problem]]]:
    """The graph, and every problem with its expression; what is above a problem is unknown and not blamed again."""
    if not isinstance(program, SOp):
        raise BadInput(
            f"a program is a sequence, not a {type(program).__name__}; aggregate or count what a selector selects"
        )
    builder = GraphBuilder(vocab, length)
    numbers: dict[int, int] = {}
    problems: list[tuple[RASPExpr, Problem]] = []
    for expr in in_evaluation_order(program):
        inputs = tuple(numbers[id(child)] for child in expr.children)
        numbers[id(expr)] = _add(builder, expr, inputs)
        if isinstance(expr, SOp):
            _ask_for_encoding(builder, expr, numbers[id(expr)])
        problems += [(expr, problem) for problem in builder.problems]
        builder.problems.clear()
    return builder.finish(numbers[id(program)]), problems


def _add(builder: GraphBuilder, expr: RASPExpr, inputs: tuple[int, ...]) -> int:
    match expr:
        case Map() | SequenceMap():
            return _add_map(builder, expr, expr.f, inputs)
        case Select():
            return _add_select(builder, expr, inputs)
        case Aggregate():
            return builder.add("aggregate", inputs, constant=expr.default, name=expr.name)
        case Full():
            return builder.add("full", constant=expr.fill, name=expr.name)
        case ConstantSOp() | ConstantSelector():
            kind = "written" if isinstance(expr, ConstantSOp) else "pattern"
            number = builder.add(kind, constant=(expr.check_length, *expr.value), name=expr.name)
            if expr.check_length and builder.length != len(expr.value):
                asked = f"inputs of 1 to {builder.length}"
                problem = f"is written for inputs of length {len(expr.value)}, and {asked} are asked for"
                builder.blame(number, problem, "pass check_length=False, or compute it from indices")
            return number
    kind = KINDS.get(type(expr))
    if kind is None:
        raise BadInput(f"{expr.name} is a {type(expr).__name__}, which is not an expression of the language")
    return builder.add(kind, inputs, name=expr.name)


def _add_map(builder: GraphBuilder, expr: SOp, f: Callable[..., Any], inputs: tuple[int, ...]) -> int:
    sets = [builder.values(i) for i in inputs]
    if isinstance(f, Operation) and (len(inputs) == 1 or inputs[0] != inputs[1] or sets[0].values is None):
        return builder.add("map", inputs, f, name=expr.name)
    function = f
    if (
        len(inputs) == 2 and inputs[0] == inputs[1]
    ):  # the arguments never differ, so half of a square table would be a lie
        inputs, sets = inputs[:1], sets[:1]

        def function(x: Value) -> Any:
            return f(x, x)

    if not _can_tabulate(builder, expr, "map", inputs):
        return builder.add("map", inputs, None, constant=expr.unique_id, name=expr.name)
    results, faults = of_function(function, sets)
    outputs, entries = tabulated(results)
    table = Table(tuple(len(values.values or ()) for values in sets), entries)
    number = builder.add("map", inputs, table, name=expr.name, outputs=outputs)
    if faults:
        more = f" (and on {len(faults) - 1:,} more)" if len(faults) > 1 else ""
        problem, _, instead = str(faults[0]).partition("; ")
        builder.blame(number, f"{problem}{more}", instead or "return a number, a string, a truth value or None")
    return number


def _add_select(builder: GraphBuilder, expr: Select, inputs: tuple[int, ...]) -> int:
    if isinstance(expr.predicate, Comparison):
        return builder.add("select", inputs, expr.predicate, name=expr.name)
    if not _can_tabulate(builder, expr, "predicate", inputs):
        return builder.add("select", inputs, None, constant=expr.unique_id, name=expr.name)
    keys, queries = (builder.values(i) for i in inputs)
    results, faults = of_function(expr.predicate, [keys, queries])
    relation = Relation((len(keys.values or ()), len(queries.values or ())), tuple(bool(x) for x in results))
    number = builder.add("select", inputs, relation, name=expr.name)
    if faults:
        more = f" (and on {len(faults) - 1:,} more pairs)" if len(faults) > 1 else ""
        problem, _, _ = str(faults[0]).partition("; ")
        builder.blame(
            number, f"has a predicate that {problem}{more}", "make the predicate answer for every key and query"
        )
    return number


def _can_tabulate(builder: GraphBuilder, expr: RASPExpr, what: str, inputs: tuple[int, ...]) -> bool:
    """Whether a function can be tried on all its arguments; if not, the reason is collected once, where it starts."""
    sets = [builder.values(i) for i in inputs]
    if not all(values.known for values in sets):
        return False
    number = len(builder.nodes)
    if any(values.values is None for values in sets):
        span = next(values for values in sets if values.values is None)
        builder.blame(
            number,
            f"is a {what} written in Python on the numbers {span}, too many to try one by one",
            "write it with + - * / and comparisons, which need no table, or use a smaller length",
        )
        return False
    if size_of(sets) > MAX_TABLE:
        builder.blame(
            number,
            f"is a {what} written in Python on {size_of(sets):,} combinations of values, and {MAX_TABLE:,} can be tried",
            "write it with operators, map its inputs to fewer values first, or use a smaller length",
        )
        return False
    return True


def _ask_for_encoding(builder: GraphBuilder, expr: SOp, number: int) -> None:
    asked = expr.annotations.get("encoding")
    if asked is None:
        return
    values = builder.values(number)
    builder.add_wish(number, asked == Encoding.NUMERICAL)
    if asked == Encoding.NUMERICAL and values.values is not None and not all(map(is_number, values.values)):
        builder.blame(
            number,
            f"is declared numerical and has the values {values}",
            "use categorical, or map the values to numbers",
        )
    if asked == Encoding.CATEGORICAL and values.values is None and values.known:
        builder.blame(
            number,
            f"is declared categorical and has too many values to list, {values}",
            "use numerical, or a smaller length",
        )
