"""The text of a program: what a sentence says the claim is about, made from the program and from nothing else.

Shared expressions are written out at each use, with as few parentheses as the order of the operations allows.
"""

from __future__ import annotations

from fractions import Fraction

from certiformer.kernel.numbers import exact_text, short_text
from certiformer.kernel.programs import NAMED_CONSTANTS, Program, arguments

# How tightly the outermost operation of a text binds; an operand that binds less needs parentheses.
SUM, PRODUCT, SIGN, POWER, ATOM = range(5)

INFIX = {"add": (" + ", SUM), "sub": (" - ", SUM), "mul": ("*", PRODUCT), "div": ("/", PRODUCT)}
COMPARISON = {"lt": "<", "le": "<="}


def expression(program: Program, longest: int) -> str | None:
    """The text of the only output, or None if it or one of its parts has more than `longest` characters.

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
        return f"where({a} {COMPARISON[node[1]]} {b}, {x}, {y})", ATOM
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
    value = Fraction(text)
    shown = short_text(value) or text
    if value < 0:
        return shown, SIGN if "/" not in shown else PRODUCT
    return shown, PRODUCT if "/" in shown else ATOM
