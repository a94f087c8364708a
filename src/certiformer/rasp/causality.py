"""Whether a program looks to the right, what exactly it sees there, and whether a causal program can give its answers.

A causal model computes position i from tokens 0, ..., i. Cutting a selector that looks further silently changes the
program, so a program that does is refused, with one of two endings. If two inputs agree up to i and the program answers
differently at i, no causal program whatever has its answers. If none such is found and the cut program answers alike, the
cut (`masked`) is the rewriting to use.
"""

from __future__ import annotations

from collections.abc import Sequence

from certiformer.errors import BadInput
from certiformer.rasp.expression import RASPExpr, annotate, in_evaluation_order
from certiformer.rasp.inputs import first_inputs
from certiformer.rasp.interpreter import Interpreter
from certiformer.rasp.meaning import spell
from certiformer.rasp.selectors import (
    Aggregate,
    Comparison,
    ConstantSelector,
    Select,
    Selector,
    SelectorAnd,
    SelectorOr,
    SelectorWidth,
)
from certiformer.rasp.sequences import LengthType, TokensType, indices
from certiformer.rasp.value import Value, identity

MAX_TRIED = 1_000
CUT = "& Select(indices, indices, Comparison.LEQ)"

Problem = tuple[RASPExpr, str, str]  # expression, problem, what to write instead


def causal_problems(program: RASPExpr, vocab: Sequence[Value], length: int, broken: bool) -> list[Problem]:
    """Every expression that needs later tokens; `broken` programs are not run to find examples."""
    order = in_evaluation_order(program)
    safe = _never_look_right(order, vocab, length)
    used = [expr.children[0] for expr in order if isinstance(expr, (Aggregate, SelectorWidth))]
    guilty: list[RASPExpr] = [s for s in dict.fromkeys(used) if not safe[id(s)]]
    guilty += [expr for expr in order if isinstance(expr, LengthType)]
    if not guilty:
        return []
    instead = f"add {CUT}, which changes what it selects" if broken else _advice(program, vocab, length)
    return [(expr, _what_it_sees(expr, vocab, length, broken), instead) for expr in guilty]


def _never_look_right(order: Sequence[RASPExpr], vocab: Sequence[Value], length: int) -> dict[int, bool]:
    """For every selector whether it provably selects no position to the right, on any input."""
    by_position: dict[int, bool] = {}  # depends on the positions alone
    safe: dict[int, bool] = {}
    for expr in order:
        reads_input = isinstance(expr, (TokensType, LengthType, Aggregate, SelectorWidth))
        by_position[id(expr)] = not reads_input and all(by_position[id(child)] for child in expr.children)
        if isinstance(expr, Selector):
            safe[id(expr)] = _is_safe(expr, safe, by_position[id(expr)], vocab, length)
    return safe


def _is_safe(expr: Selector, safe: dict[int, bool], positional: bool, vocab: Sequence[Value], length: int) -> bool:
    match expr:
        case SelectorAnd():
            return any(safe[id(child)] for child in expr.children)
        case SelectorOr():
            return all(safe[id(child)] for child in expr.children)
        case ConstantSelector():
            return not any(chosen for query, row in enumerate(expr.value) for chosen in row[query + 1 :])
        case Select():
            if expr.predicate is Comparison.FALSE:
                return True
            if expr.keys is indices and expr.queries is indices and isinstance(expr.predicate, Comparison):
                return expr.predicate in (Comparison.LT, Comparison.LEQ, Comparison.EQ)
    if not positional:
        return False
    try:
        pattern = Interpreter(expr).run([vocab[0]] * length)  # the same for every input of this length
    except BadInput:
        return False
    return not any(chosen for query, row in enumerate(pattern) for chosen in row[query + 1 :])


def _what_it_sees(expr: RASPExpr, vocab: Sequence[Value], length: int, broken: bool) -> str:
    if isinstance(expr, LengthType):
        return "is known only after the last token"
    interpreter = Interpreter(expr)
    for xs in [] if broken else first_inputs(vocab, length, MAX_TRIED)[0]:
        for query, row in enumerate(interpreter.run(xs)):
            for key in range(query + 1, len(row)):
                if row[key]:
                    return f"looks right: on the input {spell(xs)} position {query} selects position {key}"
    return "may look right, which was not excluded"


def _advice(program: RASPExpr, vocab: Sequence[Value], length: int) -> str:
    """What can be done: nothing keeps the answers, or the cut does."""
    inputs, all_of_them = first_inputs(vocab, length, MAX_TRIED)
    whole, cut = Interpreter(program), Interpreter(program, causal=True)
    answers: dict[tuple, tuple[Value, tuple[Value, ...]]] = {}
    changes: tuple[Value, ...] | None = None
    for xs in inputs:
        result = whole.run(xs)
        if changes is None and not _agree(cut, xs, result):
            changes = xs
        for position, value in enumerate(result):
            prefix = tuple(identity(x) for x in xs[: position + 1])
            other, before = answers.setdefault(prefix, (value, xs))
            if identity(other) != identity(value):
                return (
                    f"no causal program has these answers: position {position} must be {spell([other])} on"
                    f" {spell(before)} and {spell([value])} on {spell(xs)}; {CUT} gives the answer of the part read so far"
                )
    tried = "all inputs" if all_of_them else f"the {len(inputs):,} shortest inputs"
    if changes is None:
        return f"rewrite it with {CUT}, as causality.masked does, which keeps the answers (on {tried})"
    why = f"the answers use no later tokens (on {tried}), but {CUT} changes them on {spell(changes)}"
    return f"another program is needed: {why}"


def _agree(cut: Interpreter, xs: tuple[Value, ...], result: list[Value]) -> bool:
    try:
        return [identity(x) for x in cut.run(xs)] == [identity(x) for x in result]
    except BadInput:
        return False


def masked(program: RASPExpr) -> RASPExpr:
    """The program with every selector cut to positions that are not to the right; `length` is left as it is.

    >>> from certiformer.rasp import Aggregate, Select, tokens
    >>> everyone = Select(tokens, tokens, Comparison.TRUE)
    >>> masked(SelectorWidth(everyone))("abc")
    [1, 2, 3]
    """
    before = Select(indices, indices, Comparison.LEQ)
    new: dict[int, RASPExpr] = {}
    for expr in in_evaluation_order(program):
        children = [new[id(child)] for child in expr.children]
        if isinstance(expr, (Aggregate, SelectorWidth)):
            children[0] = SelectorAnd(children[0], before)  # type: ignore[arg-type]
        new[id(expr)] = expr if not children else _with_children(expr, children)
    return new[id(program)]


def _with_children(expr: RASPExpr, children: list[RASPExpr]) -> RASPExpr:
    changed = annotate(expr)
    for name, child in zip(expr.fields, children, strict=True):
        object.__setattr__(changed, name, child)  # the copy is ours until it is returned
    return changed
