"""The reference meaning of a program: a value at every position, computed exactly, without recursion.

Everything else (graphs, compiled models, exports) is compared with this. The rules are on the page `rasp` of the
documentation; the two that need care, functions and aggregates, are in `meaning`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from certiformer.errors import BadInput
from certiformer.rasp.expression import RASPExpr, describe, in_evaluation_order
from certiformer.rasp.meaning import Fault, aggregate, apply, holds
from certiformer.rasp.operation import BINARY, Operation
from certiformer.rasp.selectors import (
    Aggregate,
    Comparison,
    ConstantSelector,
    Select,
    Selector,
    SelectorAnd,
    SelectorNot,
    SelectorOr,
    SelectorWidth,
)
from certiformer.rasp.sequences import ConstantSOp, Full, IndicesType, LengthType, Map, SequenceMap, TokensType
from certiformer.rasp.value import Value, canonical, identity, plain

Pattern = list[list[bool]]  # row = query, column = key


class Interpreter:
    """A program ready to be run on many inputs; what a user's function answered is remembered between them."""

    def __init__(self, program: RASPExpr, causal: bool = False) -> None:
        """With `causal`, every selector is cut to positions that are not to the right."""
        if not isinstance(program, RASPExpr):
            raise BadInput(f"a program is an expression, not a {type(program).__name__}")
        self.program = program
        self._order = in_evaluation_order(program)
        self._causal = causal
        self._remembered: dict[int, dict[Any, Value]] = {}

    def run(self, xs: Sequence[Value]) -> list[Any]:
        """The exact value of the program at every position; for a selector, a row of truth values for every query."""
        return self.run_all(xs)[id(self.program)]

    def run_all(self, xs: Sequence[Value]) -> dict[int, list[Any]]:
        """The value of every expression, by its `id`."""
        inputs = read_tokens(xs)
        results: dict[int, list[Any]] = {}
        for expr in self._order:
            try:
                result = self._step(expr, [results[id(child)] for child in expr.children], inputs)
            except Fault as fault:
                raise BadInput(f"{describe(self.program, expr)} {fault}") from None
            if self._causal and isinstance(expr, Selector):
                result = [
                    [chosen and key <= query for key, chosen in enumerate(row)] for query, row in enumerate(result)
                ]
            results[id(expr)] = result
        return results

    def _step(self, expr: RASPExpr, below: list[list[Any]], xs: list[Value]) -> list[Any]:
        n = len(xs)
        match expr:
            case TokensType():
                return xs
            case IndicesType():
                return list(range(n))
            case LengthType():
                return [n] * n
            case Full():
                return [expr.fill] * n
            case ConstantSOp():
                check_written_length(expr, n)
                return [expr.value[i] if i < len(expr.value) else None for i in range(n)]
            case Map() | SequenceMap():
                return [self._apply(expr, expr.f, arguments) for arguments in zip(*below, strict=True)]
            case Select():
                return self._select(expr, *below)
            case ConstantSelector():
                check_written_length(expr, n)
                size = len(expr.value)
                return [[max(q, k) < size and expr.value[q][k] for k in range(n)] for q in range(n)]
            case SelectorAnd():
                return _combine(below, lambda a, b: a and b)
            case SelectorOr():
                return _combine(below, lambda a, b: a or b)
            case SelectorNot():
                return [[not chosen for chosen in row] for row in below[0]]
            case SelectorWidth():
                return [sum(row) for row in below[0]]
            case Aggregate():
                pattern, values = below
                chosen = ([v for v, here in zip(values, row, strict=True) if here] for row in pattern)
                return [aggregate(selected, expr.default) for selected in chosen]
        raise BadInput(f"{describe(self.program, expr)} is not an expression that the interpreter knows")

    def _select(self, expr: Select, keys: list[Value], queries: list[Value]) -> Pattern:
        if expr.predicate is Comparison.TRUE:
            defined = [key is not None for key in keys]
            return [[d and query is not None for d in defined] for query in queries]
        if isinstance(expr.predicate, Comparison) and expr.predicate.value in BINARY:
            compare = BINARY[expr.predicate.value]
            try:  # the same without the care that users' functions need
                return [[k is not None and q is not None and compare(k, q) for k in keys] for q in queries]
            except TypeError:
                pass  # below, with a message that names the pair
        return [[self._selected(expr, key, query) for key in keys] for query in queries]

    def _selected(self, expr: Select, key: Value, query: Value) -> bool:
        return key is not None and query is not None and bool(self._apply(expr, expr.predicate, (key, query)))

    def _apply(self, expr: RASPExpr, f: Callable[..., Any], arguments: Sequence[Value]) -> Value:
        if isinstance(f, Operation):
            return apply(f, arguments)
        memory = self._remembered.setdefault(id(expr), {})
        key = tuple(identity(x) for x in arguments)
        if key not in memory:
            if len(memory) > 100_000:
                memory.clear()  # the memory saves time; it must not cost a program its space
            memory[key] = holds(f, *arguments) if isinstance(expr, Select) else apply(f, arguments)
        return memory[key]


def _combine(patterns: list[Pattern], rule: Callable[[bool, bool], bool]) -> Pattern:
    first, second = patterns
    return [[rule(a, b) for a, b in zip(*rows, strict=True)] for rows in zip(first, second, strict=True)]


def check_written_length(expr: ConstantSOp | ConstantSelector, n: int) -> None:
    """Refuse an input of another length than the written one, where the expression asks for that."""
    if expr.check_length and len(expr.value) != n:
        raise Fault(f"is written for inputs of length {len(expr.value)}, not {n}; check_length=False allows others")


def read_tokens(xs: Sequence[Value], vocab: Collection[Value] | None = None, length: int | None = None) -> list[Value]:
    """The tokens of an input, refused when one is no value, not in the vocabulary, or when there are too many.

    >>> read_tokens("aba", vocab={"a", "b"}, length=4)
    ['a', 'b', 'a']
    """
    try:
        inputs = [canonical(x) for x in xs]
    except TypeError:
        raise BadInput(f"an input is a sequence of tokens, not a {type(xs).__name__}") from None
    if length is not None and len(inputs) > length:
        raise BadInput(f"the input has {len(inputs):,} tokens, and the stated length is {length:,}")
    known = None if vocab is None else {identity(canonical(token)) for token in vocab}
    for position, token in enumerate(inputs):
        if token is None:
            raise BadInput(f"the token at position {position} is None, which is no token")
        if known is not None and identity(token) not in known:
            raise BadInput(f"the token {token!r} at position {position} is not in the vocabulary")
    return inputs


def evaluate(
    expr: RASPExpr,
    xs: Sequence[Value],
    *,
    vocab: Collection[Value] | None = None,
    length: int | None = None,
    causal: bool = False,
) -> list[Any]:
    """The exact meaning of an expression on one input; fractions are `Ratio`, undefined is None.

    >>> from certiformer.rasp import Aggregate, Comparison, Select, indices, tokens
    >>> so_far = Select(indices, indices, Comparison.LEQ)
    >>> evaluate(Aggregate(so_far, tokens == "l"), "hello")
    [False, False, Ratio(1, 3), Ratio(1, 2), Ratio(2, 5)]
    """
    return Interpreter(expr, causal).run(read_tokens(xs, vocab, length))


def evaluate_plain(expr: RASPExpr, xs: Sequence[Value]) -> list[Any]:
    """`evaluate` with fractions as the nearest floats; what `expr(xs)` returns."""
    result = evaluate(expr, xs)
    return result if isinstance(expr, Selector) else [plain(value) for value in result]
