"""The closed scalar language in which every target is written.

A `Program` is a straight-line list of scalar nodes, each referring to earlier ones by position:

| node                        | meaning                                                              |
|-----------------------------|----------------------------------------------------------------------|
| `("var", i)`                | the real variable x_{i+1}                                            |
| `("const", text)`           | the exact rational `"p/q"` or `"p"`, or one of `"pi"`, `"e"`         |
| `("neg" or unary name, a)`  | `-a`; `sqrt exp log sin cos tan tanh atan erf abs`                   |
| `("add sub mul div min max", a, b)` | arithmetic, minimum, maximum                                 |
| `("pow", a, n)`             | a to the integer n, n >= 0                                           |
| `("where", cmp, a, b, x, y)`| x if a cmp b else y, with cmp `"lt"` or `"le"`                       |

The meaning is a *partial* function of real numbers: literals are exact, `pi` is pi, and a point is *singular* where an
operation has no real value (a division by zero, `log` of a number <= 0, `sqrt` of a negative one, `tan` at a pole).
An operation is singular as soon as one argument is, whatever it would do with it (`a**0`, `0*a`, `a - a`). Only `where`
ignores an argument, the branch that is not taken, and never a side of its comparison.

Every interpreter of the project (float64, intervals, Taylor forms, balls) is an *algebra*: an object with one method
per operation, run by `fold`. An algebra says which of its values stand for "no value" (`undefined`); that such a value
stays one is the work of `fold` alone, so no operation is ever called with it.
Standard library only: the checker reads targets through this module.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

from certiformer.errors import BadInput

UNARY = ("neg", "sqrt", "exp", "log", "sin", "cos", "tan", "tanh", "atan", "erf", "abs")
BINARY = ("add", "sub", "mul", "div", "min", "max")
PARTIAL = ("sqrt", "log", "tan", "div")  # without a value at some arguments; every other operation has one at all
COMPARISONS = ("lt", "le")
NAMED_CONSTANTS = ("pi", "e")

MAX_INPUTS = 256
MAX_NODES = 20_000
MAX_POWER = 1_000
MAX_CONSTANT_BITS = 4_096  # of numerator and denominator each
_MAX_CONSTANT_DIGITS = 1_234  # 2^4096 has 1,234 decimal digits; checked before `int`, whose cost is quadratic
_RATIONAL = re.compile(r"-?(0|[1-9][0-9]*)(/[1-9][0-9]*)?")


class Algebra(Protocol):
    """What an interpreter must provide besides one method for each name in `UNARY` and `BINARY`."""

    def constant(self, text: str) -> Any: ...

    def pow(self, a: Any, n: int) -> Any: ...

    def compare(self, comparison: str, a: Any, b: Any) -> Any:
        """True or False if the comparison is decided, else something that `select` understands."""

    def select(self, condition: Any, x: Any, y: Any) -> Any:
        """What is `x` or `y`, by a condition that is not decided."""

    def undefined(self, value: Any) -> Any:
        """Whether a value stands for "no value, or perhaps none"."""


@dataclass(frozen=True)
class Program:
    """A vector of scalar expressions in `inputs` real variables, stored as a list of nodes."""

    inputs: int
    nodes: tuple[tuple, ...]
    outputs: tuple[int, ...]

    def __post_init__(self) -> None:
        counted = _is_index(self.inputs, MAX_INPUTS + 1) and self.inputs > 0
        if not counted or not self.outputs or len(self.nodes) > MAX_NODES:
            raise BadInput(
                f"a target has 1 to {MAX_INPUTS} inputs, at least one output and at most {MAX_NODES} operations"
            )
        for position, node in enumerate(self.nodes):
            _check_node(node, position, self.inputs)
        if any(not _is_index(o, len(self.nodes)) for o in self.outputs):
            raise BadInput("a target output refers to a node that does not exist")

    def to_json(self) -> dict:
        """The program as plain JSON data; `from_json` is its inverse."""
        return {"inputs": self.inputs, "nodes": [list(n) for n in self.nodes], "outputs": list(self.outputs)}

    @staticmethod
    def from_json(data: Any) -> Program:
        """Read a program, refusing anything outside the closed list of operations."""
        if not isinstance(data, dict) or set(data) != {"inputs", "nodes", "outputs"}:
            raise BadInput("the stored program is not an object with exactly the keys inputs, nodes and outputs")
        nodes, outputs = data["nodes"], data["outputs"]
        if not isinstance(nodes, list) or not isinstance(outputs, list) or not all(isinstance(n, list) for n in nodes):
            raise BadInput("the nodes and outputs of the stored program are not lists")
        return Program(data["inputs"], tuple(tuple(n) for n in nodes), tuple(outputs))

    def select(self, output: int) -> Program:
        """The program of one output alone, with the nodes it does not need removed.

        >>> both = Program(2, (("var", 0), ("var", 1), ("sin", 0)), (2, 1))
        >>> both.select(1)
        Program(inputs=2, nodes=(('var', 1),), outputs=(0,))
        """
        nodes, outputs = extract(self.nodes, [self.outputs[output]])
        return Program(self.inputs, nodes, outputs)


def extract(nodes: Sequence[tuple], outputs: Sequence[int]) -> tuple[tuple[tuple, ...], tuple[int, ...]]:
    """The nodes that `outputs` need, each directly after its arguments, and the new numbers of the outputs.

    Equal expressions thus give equal programs, however they were built.
    """
    place: dict[int, int] = {}
    stack = list(reversed(outputs))
    while stack:
        waiting = [a for a in arguments(nodes[stack[-1]]) if a not in place]
        if waiting:
            stack.extend(reversed(waiting))
        else:
            place.setdefault(stack.pop(), len(place))
    return tuple(_renumber(nodes[old], place) for old in place), tuple(place[o] for o in outputs)


def arguments(node: tuple) -> tuple[int, ...]:
    """The positions of the nodes that `node` reads."""
    if node[0] in ("var", "const"):
        return ()
    if node[0] == "pow":
        return (node[1],)
    return tuple(node[2:]) if node[0] == "where" else tuple(node[1:])


def fold(program: Program, variables: list, algebra: Any) -> list:
    """Run `program` in `algebra`; `variables` holds the algebra's value of each input. Returns one value per output."""
    values: list = []
    for node in program.nodes:
        values.append(variables[node[1]] if node[0] == "var" else apply(algebra, node, values))
    return [values[o] for o in program.outputs]


def apply(algebra: Any, node: tuple, values: Any) -> Any:
    """The value of a node that is no variable, from the `values` of the nodes before it."""
    name, *rest = node
    if name == "const":
        return algebra.constant(rest[0])
    if name == "pow":
        return _lifted(algebra, lambda a: algebra.pow(a, rest[1]), values[rest[0]])
    if name == "where":
        return _where(algebra, rest[0], *(values[a] for a in rest[1:]))
    return _lifted(algebra, getattr(algebra, name), *(values[a] for a in rest))


def _lifted(algebra: Any, operation: Callable[..., Any], *arguments: Any) -> Any:
    """The result of an operation on arguments that have a value; else the first that has none, which says why."""
    for argument in arguments:
        if algebra.undefined(argument):
            return argument
    return operation(*arguments)


def _where(algebra: Any, comparison: str, a: Any, b: Any, x: Any, y: Any) -> Any:
    def chosen(a: Any, b: Any) -> Any:
        condition = algebra.compare(comparison, a, b)
        if condition is True or condition is False:
            return x if condition else y
        return _lifted(algebra, lambda x, y: algebra.select(condition, x, y), x, y)

    return _lifted(algebra, chosen, a, b)


def rational(text: str) -> Fraction:
    """The exact value of a rational constant's text, e.g. `"1/10"`."""
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise BadInput(f"{text!r} is not an exact rational constant") from None


def _check_node(node: tuple, position: int, inputs: int) -> None:
    """Refuse a node that is not in the table of the module docstring."""
    name, *args = node or ("",)
    ok = False
    if name == "var":
        ok = len(args) == 1 and _is_index(args[0], inputs)
    elif name == "const":
        ok = len(args) == 1 and isinstance(args[0], str) and (args[0] in NAMED_CONSTANTS or _is_rational(args[0]))
    elif name == "pow":
        ok = len(args) == 2 and _is_index(args[0], position) and _is_index(args[1], MAX_POWER + 1)
    elif name == "where":
        ok = len(args) == 5 and args[0] in COMPARISONS and all(_is_index(a, position) for a in args[1:])
    elif name in UNARY or name in BINARY:
        ok = len(args) == (1 if name in UNARY else 2) and all(_is_index(a, position) for a in args)
    if not ok:
        raise BadInput(f"operation {position} of the target is not in the closed list of operations: {repr(node)[:80]}")


def _is_index(value: Any, bound: int) -> bool:
    return type(value) is int and 0 <= value < bound


def _is_rational(text: str) -> bool:
    """Whether `text` is `p` or `p/q` in lowest terms within the size limit, so that one number has one text."""
    if len(text) > 2 * _MAX_CONSTANT_DIGITS + 2 or not _RATIONAL.fullmatch(text):
        return False
    top, _, bottom = text.partition("/")
    if max(len(top.removeprefix("-")), len(bottom)) > _MAX_CONSTANT_DIGITS or bottom in ("0", "1"):
        return False
    value = Fraction(text)
    return str(value) == text and fits(value)


def fits(value: Fraction) -> bool:
    """Whether a rational is within the size limit of constants."""
    return max(value.numerator.bit_length(), value.denominator.bit_length()) <= MAX_CONSTANT_BITS


def _renumber(node: tuple, place: dict[int, int]) -> tuple:
    if node[0] in ("var", "const"):
        return node
    if node[0] == "pow":
        return ("pow", place[node[1]], node[2])
    head = node[:2] if node[0] == "where" else node[:1]
    return head + tuple(place[a] for a in node[len(head) :])
