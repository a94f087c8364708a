"""Everything that stands between a program and a compiled model, at once: the expression, the problem, what to write.

An empty list means that the program has a typed graph for this vocabulary and length, and with `causal` that no position
looks to its right.
"""

from __future__ import annotations

from collections.abc import Collection

from certiformer.rasp.causality import causal_problems
from certiformer.rasp.expression import RASPExpr, describe
from certiformer.rasp.program_to_graph import translate
from certiformer.rasp.reasons import Reason, reasons_of
from certiformer.rasp.value import Value


def validate(program: RASPExpr, vocab: Collection[Value], length: int, causal: bool = False) -> list[Reason]:
    """Every reason against compiling `program` for inputs of 1 to `length` tokens out of `vocab`.

    >>> from certiformer.rasp import Aggregate, Comparison, Select, indices, tokens
    >>> everything = Select(indices, indices, Comparison.TRUE).named("everything")
    >>> for reason in validate(Aggregate(everything, tokens).named("mix"), {"a", "b"}, 5):
    ...     print(reason.expression, reason.problem)
    mix selects both 'a' and 'b' on the input 'a', 'b', and they have no mean
    """
    graph, problems = translate(program, vocab, length)
    reasons = reasons_of(program, graph, problems)
    values = graph.nodes[graph.output].values
    if not reasons and values is not None and values.span is not None and values.span.largest_denominator is None:
        problem = "has too many values to list, and no bound of their denominators, so they cannot be told apart"
        reasons.append(Reason(describe(program, program), problem, "use a smaller length, or compare or round it"))
    if causal:
        found = causal_problems(program, graph.vocab, graph.length, bool(reasons))
        reasons += [Reason(describe(program, expr), problem, instead) for expr, problem, instead in found]
    return reasons
