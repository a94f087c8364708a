"""From a program back to text: what a certificate is about, in the grammar that `parse_formula` reads.

Shared expressions are written out again at each use. Where the parser would not read that (it is too long or nested too
deeply), the text names them instead: lines `let t1 = ...`, then `in ...`.
Standard library only.
"""

from __future__ import annotations

from collections import Counter

from certiformer.errors import BadInput
from certiformer.kernel.programs import ATOM, Program, arguments, expression, node_text
from certiformer.target.parse import parse_formula
from certiformer.target.tokens import MAX_TEXT

_LONG = 120  # a node with a text longer than this is worth a name, even if it is used once


def formula(program: Program) -> list[str]:
    """The text of every output.

    >>> formula(parse_formula("[x1*(x2+0.10)**2, -x1/(2-3*x2), max(x1,0,x2)]"))
    ['x1*(x2 + 0.1)**2', '-x1/(2 - 3*x2)', 'max(max(x1, 0), x2)']
    """
    texts = []
    for output in range(len(program.outputs)):
        single = program.select(output)
        text = expression(single, MAX_TEXT)
        texts.append(text if text is not None and _is_read(text, program.inputs) else _with_names(single))
    return texts


def _is_read(text: str, inputs: int) -> bool:
    try:
        parse_formula(text, inputs)
    except BadInput:
        return False
    return True


def _with_names(program: Program) -> str:
    """The text of the only output, with a `let` line for what is long or used more than once."""
    uses = Counter(a for node in program.nodes for a in arguments(node))
    written: list[tuple[str, int]] = []
    lines: list[str] = []
    for position, node in enumerate(program.nodes):
        text = node_text(node, [written[a] for a in arguments(node)])
        shared = uses[position] > 1 and node[0] not in ("var", "const")
        if position != program.outputs[0] and (shared or len(text[0]) > _LONG):
            lines.append(f"let t{len(lines) + 1} = {text[0]}")
            text = (f"t{len(lines)}", ATOM)
        written.append(text)
    return "\n".join([*lines, f"in {written[program.outputs[0]][0]}"])
