"""Exact numbers and the closed scalar language in which targets are written: what they mean, and how sentences show them.

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

A sentence shows a number as `exact_text`, `rounded_text` or `range_text` and in no other way: exact where that is short,
else rounded in a stated direction, never to nearest. Standard library only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
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
            counts = f"1 to {MAX_INPUTS} inputs, at least one output and at most {MAX_NODES} operations"
            raise BadInput(f"a target has {counts}")
        for position, node in enumerate(self.nodes):
            if not _is_node(node, position, self.inputs):
                what = f"operation {position} of the target"
                raise BadInput(f"{what} is not in the closed list of operations: {repr(node)[:80]}")
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
    number: dict[int, int] = {}
    stack = list(reversed(outputs))
    while stack:
        waiting = [a for a in arguments(nodes[stack[-1]]) if a not in number]
        if waiting:
            stack.extend(reversed(waiting))
        else:
            number.setdefault(stack.pop(), len(number))
    kept = []
    for old in number:
        first, last = _argument_slots(nodes[old])
        kept.append((*nodes[old][:first], *(number[a] for a in nodes[old][first:last]), *nodes[old][last:]))
    return tuple(kept), tuple(number[o] for o in outputs)


def arguments(node: tuple) -> tuple[int, ...]:
    """The positions of the nodes that `node` reads."""
    first, last = _argument_slots(node)
    return tuple(node[first:last])


def _argument_slots(node: tuple) -> tuple[int, int]:
    """Where in a node its arguments stand."""
    return {"var": (1, 1), "const": (1, 1), "pow": (1, 2), "where": (2, 6)}.get(node[0], (1, len(node)))


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


def _is_node(node: tuple, position: int, inputs: int) -> bool:
    """Whether a node is in the table of the module docstring."""
    name, *rest = node or ("",)
    if name == "var":
        return len(rest) == 1 and _is_index(rest[0], inputs)
    if name == "const":
        return len(rest) == 1 and isinstance(rest[0], str) and (rest[0] in NAMED_CONSTANTS or _is_rational(rest[0]))
    if name == "pow":
        return len(rest) == 2 and _is_index(rest[0], position) and _is_index(rest[1], MAX_POWER + 1)
    if name == "where":
        return len(rest) == 5 and rest[0] in COMPARISONS and all(_is_index(a, position) for a in rest[1:])
    if name in UNARY or name in BINARY:
        return len(rest) == (1 if name in UNARY else 2) and all(_is_index(a, position) for a in rest)
    return False


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


def rational(text: str) -> Fraction:
    """The exact value of a rational constant's text, e.g. `"1/10"`."""
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise BadInput(f"{text!r} is not an exact rational constant") from None


# The text of a program. How tightly its outermost operation binds; an operand that binds less needs parentheses.
SUM, PRODUCT, SIGN, POWER, ATOM = range(5)
SIGNS = {"lt": "<", "le": "<="}
INFIX = {"add": (" + ", SUM), "sub": (" - ", SUM), "mul": ("*", PRODUCT), "div": ("/", PRODUCT)}


def expression(program: Program, longest: int) -> str | None:
    """The text of the only output, or None if it or one of its parts has more than `longest` characters.

    Shared expressions are written out at each use, with few parentheses.

    >>> expression(Program(1, (("var", 0), ("const", "1/10"), ("add", 0, 1), ("pow", 2, 2)), (3,)), 400)
    '(x1 + 0.1)**2'
    """
    written: list[tuple[str, int] | None] = []
    for node in program.nodes:
        operands = [written[a] for a in arguments(node)]
        text = None if None in operands else node_text(node, [o for o in operands if o is not None])
        written.append(text if text is not None and len(text[0]) <= longest else None)
    result = written[program.outputs[0]]
    return None if result is None else result[0]


def constant_text(program: Program, longest: int) -> str:
    """The number that a program without variables stands for, exactly: a decimal, a fraction, or an expression."""
    name, *rest = program.nodes[program.outputs[0]]
    if name == "const" and rest[0] not in NAMED_CONSTANTS:
        return exact_text(Fraction(rest[0]))
    return expression(program, longest) or "a recorded constant"


def node_text(node: tuple, operands: list[tuple[str, int]]) -> tuple[str, int]:
    """The text of one node and how tightly it binds, given those of its operands."""
    name = node[0]
    if name == "var":
        return f"x{node[1] + 1}", ATOM
    if name == "const":
        return _constant(node[1])
    if name == "neg":
        return "-" + _bound(operands[0], POWER), SIGN
    if name == "pow":
        return f"{_bound(operands[0], ATOM)}**{node[2]}", POWER
    if name == "where":
        a, b, x, y = (text for text, _ in operands)
        return f"where({a} {SIGNS[node[1]]} {b}, {x}, {y})", ATOM
    if name in INFIX:
        sign, level = INFIX[name]
        # The left operand may bind equally (a - b - c is (a - b) - c), the right one must bind tighter. A leading minus
        # may stand first (-x1*x2 is (-x1)*x2, the same number), never after an operator.
        right = _bound(operands[1], POWER if operands[1][1] == SIGN else level + 1)
        return _bound(operands[0], level) + sign + right, level
    return f"{name}({', '.join(text for text, _ in operands)})", ATOM


def _bound(operand: tuple[str, int], level: int) -> str:
    text, own = operand
    return text if own >= level else f"({text})"


def _constant(text: str) -> tuple[str, int]:
    if text in NAMED_CONSTANTS:
        return text, ATOM
    shown = short_text(Fraction(text)) or text
    return shown, PRODUCT if "/" in shown else SIGN if text.startswith("-") else ATOM


# Numbers as text.

DIGITS = 9  # of a number that is rounded
LONGEST = 20  # digits of an exact decimal that a sentence still shows
_PLAIN = range(-4, 16)  # powers of ten of the first digit that are written without an exponent
DECIMAL = re.compile(r"-?[0-9]+(/[1-9][0-9]*|(\.[0-9]+)?([eE][+-]?[0-9]{1,4})?)", re.ASCII)


def exact(text: str) -> Fraction:
    """An exact number of a certificate: `p`, `p/q` or a decimal, short enough to compute with.

    >>> exact("1e-3"), exact("2/3")
    (Fraction(1, 1000), Fraction(2, 3))
    """
    if len(text) > 4_000 or not DECIMAL.fullmatch(text):
        raise BadInput(f"{text[:40]!r} is not an exact number of a certificate")
    return Fraction(text)


def positive(text: str) -> Fraction:
    """An exact number of a certificate that is more than zero."""
    if not DECIMAL.fullmatch(text[:4_001]) or exact(text) <= 0:
        raise BadInput(f"epsilon or a bound must be a positive rational number such as 0.1 or 1/100, not {text[:40]!r}")
    return exact(text)


def decimal_text(value: Fraction | float, *, up: bool, digits: int = DIGITS) -> str:
    """`value` with `digits` significant digits, rounded up or down, never to nearest.

    >>> decimal_text(Fraction(1, 3), up=True), decimal_text(Fraction(1, 3), up=False, digits=3)
    ('0.333333334', '0.333')
    """
    return format(_rounded(Fraction(value), up, digits), "f")


def exact_text(value: Fraction | float) -> str:
    """`value` itself: a short decimal, else a multiple of a power of two with a remark on its size, else a fraction.

    >>> exact_text(0.125), exact_text(Fraction("1e-12")), exact_text(Fraction(1, 3))
    ('0.125', '1e-12', '1/3')
    >>> exact_text(0.1)
    '3602879701896397/2^55 (about 0.1)'
    """
    exact = Fraction(value)
    short = short_text(exact)
    if short is not None:
        return short
    top, bottom = exact.numerator, exact.denominator
    about = f" (about {_pointed(_rounded(exact, up=False, digits=6))})"
    if bottom == 1 << (bottom.bit_length() - 1) and bottom > 1:
        return f"{top}/2^{bottom.bit_length() - 1}{about}"
    power = (top & -top).bit_length() - 1
    return f"{top >> power}*2^{power}{about}" if bottom == 1 and power else str(exact)


def rounded_text(value: Fraction | float, *, up: bool) -> str:
    """`value` with nine digits at most, rounded up or down; the sentence around it says `at most` or `at least`.

    >>> rounded_text(Fraction(1, 8), up=True), rounded_text(Fraction(2, 3) / 10**7, up=True)
    ('0.125', '6.66666667e-8')
    """
    return _pointed(_rounded(Fraction(value), up, DIGITS))


def range_text(values: list[Fraction]) -> str:
    """The values as one range: a short decimal if there is one alone, else `between` two decimals around all of them.

    >>> range_text([Fraction(1, 8)]), range_text([Fraction(1, 3)])
    ('0.125', 'between 0.333333333 and 0.333333334')
    """
    least, most = min(values), max(values)
    short = short_text(least) if least == most else None
    return short or f"between {rounded_text(least, up=False)} and {rounded_text(most, up=True)}"


def short_text(exact: Fraction) -> str | None:
    """The exact decimal of a number, if it has at most `LONGEST` digits."""
    context = Context(prec=LONGEST)
    quotient = context.divide(Decimal(exact.numerator), Decimal(exact.denominator)).normalize(context)
    return _pointed(quotient) if Fraction(quotient) == exact else None


def _rounded(exact: Fraction, up: bool, digits: int) -> Decimal:
    """One correctly rounded division in the wanted direction."""
    context = Context(prec=digits, rounding=ROUND_CEILING if up else ROUND_FLOOR)
    return context.divide(Decimal(exact.numerator), Decimal(exact.denominator)).normalize(context)


def _pointed(number: Decimal) -> str:
    """A number without zeros at its end in plain digits, or with a power of ten instead of many zeros: 0.001, 1.5e-7."""
    if not number or number.adjusted() in _PLAIN:
        return format(number, "f")
    sign, digits, _ = number.as_tuple()
    first, rest = str(digits[0]), "".join(map(str, digits[1:]))
    return f"{'-' * sign}{first}{'.' * bool(rest)}{rest}e{number.adjusted()}"
