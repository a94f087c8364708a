"""Programs as text: the expressions of the language, read by a grammar of their own and never run as Python.

A line gives a name to an expression; the last line is the program.

    everyone = Select(tokens, tokens, TRUE)
    mirror = Select(indices, SelectorWidth(everyone) - indices - 1, EQ)
    Aggregate(mirror, tokens)

Known are `tokens`, `indices`, `length`; `Select`, `Aggregate`, `SelectorWidth`, `Full`; the comparisons `EQ NEQ LT LEQ GT
GEQ TRUE FALSE`; `+ - * / // %` and `== != < <= > >=` of sequences; `& | ~` of selectors and of truth values. Python's own
parser makes the syntax tree, of which only these parts are understood; there are no functions, attributes or loops.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from certiformer.errors import BadInput
from certiformer.rasp.selectors import Aggregate, Comparison, Select, Selector, SelectorWidth
from certiformer.rasp.sequences import Full, SOp, indices, length, tokens

LONGEST, MOST_LINES, LARGEST = 4_000, 100, 1_000_000
_OPERATIONS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_KNOWN: dict[str, Any] = {"tokens": tokens, "indices": indices, "length": length}
_KNOWN |= {comparison.name: comparison for comparison in Comparison}
_CALLS = {"Select": (3, 3), "Aggregate": (2, 3), "SelectorWidth": (1, 1), "Full": (1, 1)}


def parse_program(text: str) -> SOp:
    """The program that a text describes.

    >>> parse_program("mirror = Select(indices, length - indices - 1, EQ)\\nAggregate(mirror, tokens)")("abc")
    ['c', 'b', 'a']
    >>> parse_program("().__class__")
    Traceback (most recent call last):
    certiformer.errors.BadInput: line 1: this is no part of the language of programs
    """
    if len(text) > LONGEST:
        raise BadInput(f"a program is a text of at most {LONGEST:,} characters")
    try:
        lines = ast.parse(text).body
    except SyntaxError as error:
        raise BadInput(f"line {error.lineno or 1}: this is not an expression of the language") from None
    except (RecursionError, MemoryError, ValueError):
        raise BadInput("the program is nested too deeply, or holds a character that no program has") from None
    if not 1 <= len(lines) <= MOST_LINES:
        raise BadInput(f"a program has 1 to {MOST_LINES} lines")
    names = dict(_KNOWN)
    value: Any = None
    for line in lines:
        try:
            value = _line(line, names)
        except RecursionError:
            raise BadInput(f"line {line.lineno}: this is nested too deeply") from None
        except BadInput as problem:
            raise BadInput(f"line {line.lineno}: {problem}") from None
    if not isinstance(value, SOp):
        raise BadInput("the last line is the program: a sequence of values, such as Aggregate(...)")
    return value


def _line(line: ast.stmt, names: dict[str, Any]) -> Any:
    if isinstance(line, ast.Expr):
        return _value(line.value, names)
    if isinstance(line, ast.Assign) and len(line.targets) == 1 and isinstance(line.targets[0], ast.Name):
        name = line.targets[0].id
        if name in _KNOWN or name in _CALLS:
            raise BadInput(f"{name} means something already; choose another name")
        value = _value(line.value, names)
        names[name] = value.named(name) if isinstance(value, SOp | Selector) else value
        return names[name]
    raise BadInput("this is no part of the language of programs")


def _value(node: ast.expr, names: dict[str, Any]) -> Any:
    if isinstance(node, ast.Constant):
        return _constant(node.value)
    if isinstance(node, ast.Name):
        if node.id not in names:
            raise BadInput(f"there is no {node.id!r} here; known are {', '.join(names)}")
        return names[node.id]
    if isinstance(node, ast.UnaryOp):
        inner = _value(node.operand, names)
        if isinstance(node.op, ast.USub) and isinstance(inner, SOp | int | float):
            return -inner
        if isinstance(node.op, ast.Invert) and isinstance(inner, SOp | Selector):
            return ~inner
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        return _combined(_OPERATIONS[type(node.op)], _value(node.left, names), _value(node.right, names))
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _OPERATIONS:
        return _combined(_OPERATIONS[type(node.ops[0])], _value(node.left, names), _value(node.comparators[0], names))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        return _call(node.func.id, [_value(part, names) for part in node.args])
    raise BadInput("this is no part of the language of programs")


def _constant(value: Any) -> Any:
    if value is None or isinstance(value, bool) or (isinstance(value, str) and len(value) <= 40):
        return value
    if isinstance(value, int | float) and abs(value) <= LARGEST:
        return value
    raise BadInput(f"a constant is a short text, a truth value or a number up to {LARGEST:,}")


def _combined(operation: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    if not any(isinstance(side, SOp | Selector) for side in (left, right)):
        raise BadInput("one side of an operation is a sequence or a selector")
    if isinstance(left, str) and operation is operator.mod:  # Python would format, as wide as one asks for
        raise BadInput("a text has no remainder")
    try:
        return operation(left, right)
    except (TypeError, ValueError) as problem:
        raise BadInput(str(problem)) from None


def _call(name: str, parts: list[Any]) -> Any:
    if name not in _CALLS:
        raise BadInput(f"there is no {name!r} to call; known are {', '.join(_CALLS)}")
    least, most = _CALLS[name]
    if not least <= len(parts) <= most:
        raise BadInput(f"{name} takes {least if least == most else f'{least} or {most}'} arguments")
    if name == "Full":
        return Full(parts[0])
    if name == "Select":
        keys, queries = (part if isinstance(part, SOp) else Full(part) for part in parts[:2])
        if not isinstance(parts[2], Comparison):
            raise BadInput("the third argument of Select is a comparison such as EQ")
        return Select(keys, queries, parts[2])
    if not isinstance(parts[0], Selector):
        raise BadInput(f"the first argument of {name} is a selector")
    if name == "SelectorWidth":
        return SelectorWidth(parts[0])
    if not isinstance(parts[1], SOp):
        raise BadInput("the second argument of Aggregate is a sequence")
    return Aggregate(parts[0], parts[1], *parts[2:])
