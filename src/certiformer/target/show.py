"""From a program back to text: what a certificate is about, in the grammar that `parse_formula` reads.

Shared expressions are written out again at each use. Where the parser would not read that (it is too long or nested too
deeply), the text names them instead: lines `let t1 = ...`, then `in ...`.
Standard library only.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

from certiformer.errors import BadInput
from certiformer.kernel.programs import NAMED_CONSTANTS, Program, arguments, rational
from certiformer.target.parse import parse_formula
from certiformer.target.tokens import MAX_TEXT

# How tightly the outermost operation of a text binds; an operand that binds less needs parentheses.
_SUM, _PRODUCT, _SIGN, _POWER, _ATOM = range(5)

_INFIX = {"add": (" + ", _SUM), "sub": (" - ", _SUM), "mul": ("*", _PRODUCT), "div": ("/", _PRODUCT)}
_COMPARISON = {"lt": "<", "le": "<="}
_LONG = 120  # a node with a text longer than this is worth a name, even if it is used once
_DECIMAL_LENGTH = 16  # rationals with a longer decimal expansion are shown as p/q


def formula(program: Program) -> list[str]:
    """The text of every output.

    >>> formula(parse_formula("[x1*(x2+0.10)**2, -x1/(2-3*x2), max(x1,0,x2)]"))
    ['x1*(x2 + 0.1)**2', '-x1/(2 - 3*x2)', 'max(max(x1, 0), x2)']
    """
    texts = []
    for output in range(len(program.outputs)):
        single = program.select(output)
        text = _expanded(single)
        texts.append(text if text is not None and _is_read(text, program.inputs) else _with_names(single))
    return texts


def _is_read(text: str, inputs: int) -> bool:
    try:
        parse_formula(text, inputs)
    except BadInput:
        return False
    return True


def _expanded(program: Program) -> str | None:
    """The text of the only output without names, or None if it is too long."""
    written: list[tuple[str, int] | None] = []
    for node in program.nodes:
        operands = [written[a] for a in arguments(node)]
        text = None if None in operands else _text(node, [o for o in operands if o is not None])
        written.append(text if text is not None and len(text[0]) <= MAX_TEXT else None)
    result = written[program.outputs[0]]
    return result[0] if result else None


def _with_names(program: Program) -> str:
    """The text of the only output, with a `let` line for what is long or used more than once."""
    uses = Counter(a for node in program.nodes for a in arguments(node))
    written: list[tuple[str, int]] = []
    lines: list[str] = []
    for position, node in enumerate(program.nodes):
        text = _text(node, [written[a] for a in arguments(node)])
        shared = uses[position] > 1 and node[0] not in ("var", "const")
        if position != program.outputs[0] and (shared or len(text[0]) > _LONG):
            lines.append(f"let t{len(lines) + 1} = {text[0]}")
            text = (f"t{len(lines)}", _ATOM)
        written.append(text)
    return "\n".join([*lines, f"in {written[program.outputs[0]][0]}"])


def _text(node: tuple, operands: list[tuple[str, int]]) -> tuple[str, int]:
    """The text of one node and how tightly it binds, given those of its operands."""
    name = node[0]
    if name == "var":
        return f"x{node[1] + 1}", _ATOM
    if name == "const":
        return _constant(node[1])
    if name == "neg":
        return "-" + _bound(operands[0], _POWER), _SIGN
    if name == "pow":
        return f"{_bound(operands[0], _ATOM)}**{node[2]}", _POWER
    if name == "where":
        a, b, x, y = (text for text, _ in operands)
        return f"where({a} {_COMPARISON[node[1]]} {b}, {x}, {y})", _ATOM
    if name in _INFIX:
        sign, level = _INFIX[name]
        # The left operand may bind equally (a - b - c is (a - b) - c), the right one must bind tighter. A leading minus
        # may stand first (-x1*x2 is (-x1)*x2, the same number), never after an operator.
        right = _bound(operands[1], _POWER if operands[1][1] == _SIGN else level + 1)
        return _bound(operands[0], level) + sign + right, level
    return f"{name}({', '.join(text for text, _ in operands)})", _ATOM


def _bound(operand: tuple[str, int], level: int) -> str:
    text, own = operand
    return text if own >= level else f"({text})"


def _constant(text: str) -> tuple[str, int]:
    if text in NAMED_CONSTANTS:
        return text, _ATOM
    value = rational(text)
    shown = _decimal(value) or text
    if value < 0:
        return shown, _SIGN if "/" not in shown else _PRODUCT
    return shown, _PRODUCT if "/" in shown else _ATOM


def _decimal(value: Fraction) -> str | None:
    """The finite decimal expansion of a rational, if it has a short one: 1/8 is 0.125."""
    for places in range(_DECIMAL_LENGTH):
        scaled = abs(value) * 10**places
        if scaled.denominator == 1:
            digits = str(scaled.numerator).rjust(places + 1, "0")
            whole, fraction = digits[: len(digits) - places], digits[len(digits) - places :]
            return ("-" if value < 0 else "") + (f"{whole}.{fraction}" if fraction else whole)
    return None
