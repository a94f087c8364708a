"""What a claim about a function, a transformer or a list is about: `target.json`, read from its bytes, and said in words.

| format | what the transformer T is compared with | where |
|---|---|---|
| `certiformer-target-2` | a program, in the closed language of `kernel.programs` | on a box |
| `certiformer-teacher-2` | a stored transformer: its configuration and, in base64, its weights | on a box |
| `certiformer-table-1` | the outputs of its rows, exact rationals | at its rows |
| the names of `SEQUENCES` | a map on sequences; the module that says what it means is loaded by name | everywhere |

The ends of a box (`domain`) are rationals as text, or programs without variables as the list of their nodes. The text that
a user wrote (`source`) is for people: nothing here depends on it, and no sentence repeats it. What a sentence says of a
program is made from the program alone: shared expressions are written out at each use, with few parentheses.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from typing import Any, Protocol

from certiformer.errors import BadInput
from certiformer.kernel.files import TARGET, parse_json
from certiformer.kernel.numbers import exact_text, short_text
from certiformer.kernel.programs import MAX_CONSTANT_BITS, MAX_INPUTS, NAMED_CONSTANTS, Program, arguments, fits

FUNCTION, TEACHER, TABLE = "certiformer-target-2", "certiformer-teacher-2", "certiformer-table-1"
SEQUENCES = ("certiformer-count-1", "certiformer-histogram-1", "certiformer-induction-1", "certiformer-sort-1")
NORM = "max"  # the largest absolute error over all outputs and all points
MAX_NUMBERS = 20_000_000  # of a table
LONGEST_FORMULA = 400  # characters that still read as part of a sentence
_LONGEST_NUMBER = 2_600  # 4096 bits are 1,234 decimal digits, in numerator and denominator
_RATIONAL = re.compile(r"-?[0-9]+(/[1-9][0-9]*)?")


@dataclass(frozen=True)
class Ends:
    """A box, as the closed programs of the ends of its axes."""

    pairs: tuple[tuple[Program, Program], ...]

    def ends(self) -> list[tuple[Program, Program]]:
        return list(self.pairs)

    def __str__(self) -> str:
        return " x ".join(f"[{', '.join(constant_text(end, LONGEST_FORMULA) for end in pair)}]" for pair in self.pairs)

    def to_json(self) -> list[list[str | list]]:
        """Each end as the text of a rational, or as a list of nodes, the last of which is its value."""
        return [[_end_to_json(end) for end in pair] for pair in self.pairs]


@dataclass(frozen=True)
class FunctionOnBox:
    """A program on a box."""

    program: Program
    box: Ends

    def sentence(self, tolerance: str) -> str:
        """The claim in one plain sentence, with the tolerance as sentences write it."""
        variables, outputs = len(self.box.pairs), len(self.program.outputs)
        point = "x1" if variables == 1 else "(x1, x2)" if variables == 2 else f"(x1, ..., x{variables})"
        one = outputs == 1
        what = "the transformer's output differs" if one else f"each of the transformer's {outputs} outputs differs"
        texts = [expression(self.program.select(o), LONGEST_FORMULA) for o in range(outputs)]
        text = "" if None in texts else ", ".join(filter(None, texts))
        long = not text or len(text) > LONGEST_FORMULA
        shown = "the recorded program" if long else text if one else f"[{text}]"
        return f"At every real point {point} of {self.box}, {what} from {shown} by at most {tolerance}."


@dataclass(frozen=True)
class TeacherOnBox:
    """A stored transformer, to be read like the one that is compared with it, on a box."""

    config: bytes
    tensors: bytes
    box: Ends
    outputs: int

    def sentence(self, tolerance: str) -> str:
        """The claim in one plain sentence."""
        what = "output differs" if self.outputs == 1 else f"{self.outputs} outputs each differ"
        return f"At every point of {self.box}, the transformer's {what} from the teacher's by at most {tolerance}."


Row = tuple[Fraction, ...]


class Rows(Protocol):
    """A finite list of inputs, each with the outputs that are wanted for it."""

    @property
    def inputs(self) -> int: ...

    @property
    def outputs(self) -> int: ...

    @property
    def count(self) -> int: ...

    @property
    def rows(self) -> Iterable[tuple[Row, Row]]: ...

    def find(self, point: Row) -> Row | None: ...

    def sentence(self, tolerance: str, /) -> str: ...


@dataclass(frozen=True)
class Table:
    """N rows (inputs, outputs) of exact numbers; `kind` is that of the transformer's input, `continuous` or `ids`."""

    source: str
    kind: str
    rows: tuple[tuple[Row, Row], ...]

    def __post_init__(self) -> None:
        if self.kind not in ("continuous", "ids") or not self.rows:
            raise BadInput("a table has at least one row, of the kind continuous or ids")
        if not self.inputs or not self.outputs or len(self.rows) * (self.inputs + self.outputs) > MAX_NUMBERS:
            raise BadInput(f"a table has inputs, outputs and at most {MAX_NUMBERS:,} numbers")
        seen: dict[Row, int] = {}
        for number, (inputs, outputs) in enumerate(self.rows, 1):
            if len(inputs) != self.inputs or len(outputs) != self.outputs:
                raise BadInput(f"row {number} of the table has another length than row 1")
            if self.kind == "ids" and any(x.denominator != 1 or x < 0 for x in inputs):
                raise BadInput(f"row {number} of the table holds a token that is not 0, 1, 2, ...")
            if not all(map(fits, inputs + outputs)):
                raise BadInput(f"row {number} of the table has a number of more than {MAX_CONSTANT_BITS} binary digits")
            if seen.setdefault(inputs, number) != number:
                raise BadInput(f"rows {seen[inputs]} and {number} of the table have the same inputs")

    @property
    def inputs(self) -> int:
        return len(self.rows[0][0])

    @property
    def outputs(self) -> int:
        return len(self.rows[0][1])

    @property
    def count(self) -> int:
        return len(self.rows)

    def find(self, point: Row) -> Row | None:
        """The outputs wanted at a point, or None when it is not a row."""
        return next((outputs for inputs, outputs in self.rows if inputs == point), None)

    def sentence(self, tolerance: str) -> str:
        """The claim in one sentence."""
        what = "output differs" if self.outputs == 1 else f"{self.outputs} outputs each differ"
        rows = "the one row" if self.count == 1 else f"every one of the {self.count:,} rows"
        return f"For {rows} of the table, the transformer's {what} from the recorded value by at most {tolerance}."


Meaning = FunctionOnBox | TeacherOnBox | Rows


def read_target(raw: bytes) -> Meaning:
    """What the bytes of a `target.json` say; every entry is one of its format, of the right type and in range."""
    data = parse_json(raw, TARGET)
    form = data.get("format") if isinstance(data, dict) else None
    if form in SEQUENCES:
        return import_module("certiformer.kernel.meanings.sequence_maps").map_from_data(data)
    names = {
        FUNCTION: {"program", "domain"},
        TEACHER: {"config", "tensors", "domain"},
        TABLE: {"kind", "rows"},
    }.get(form if isinstance(form, str) else "")
    if names is None:
        raise BadInput(f"target.json has no format that is known here: {str(form)[:40]!r}")
    if set(data) != names | {"format", "norm", "source"} or data["norm"] != NORM or type(data["source"]) is not str:
        raise BadInput(f"target.json does not have exactly the keys of {form}: {', '.join(sorted(names))}")
    if form == TABLE:
        return _table(data)
    box = _box(data["domain"])
    if form == FUNCTION:
        program = Program.from_json(data["program"])
        if program.inputs != len(box.pairs):
            raise BadInput(f"the box has {len(box.pairs)} axes but the target has {program.inputs} variables")
        return FunctionOnBox(program, box)
    return _teacher(data, box)


def _box(data: Any) -> Ends:
    if not isinstance(data, list) or not 1 <= len(data) <= MAX_INPUTS:
        raise BadInput(f"the box in target.json does not have 1 to {MAX_INPUTS} axes")
    if any(not isinstance(pair, list) or len(pair) != 2 for pair in data):
        raise BadInput("an axis of the box in target.json does not have two ends")
    return Ends(tuple((_end(low), _end(high)) for low, high in data))


def _end_to_json(end: Program) -> str | list:
    name, *rest = end.nodes[-1]
    return rest[0] if name == "const" and rest[0] not in NAMED_CONSTANTS else [list(node) for node in end.nodes]


def _end(value: Any) -> Program:
    nodes = [["const", value]] if isinstance(value, str) else value
    if not isinstance(nodes, list) or not nodes:
        raise BadInput("an end of the box in target.json is neither a rational nor a list of operations")
    end = Program.from_json({"inputs": 1, "nodes": nodes, "outputs": [len(nodes) - 1]})
    if any(node[0] == "var" for node in end.nodes):
        raise BadInput("an end of the box in target.json is not a constant: it reads a variable")
    return end


def _teacher(data: dict[str, Any], box: Ends) -> TeacherOnBox:
    if type(data["config"]) is not str or type(data["tensors"]) is not str:
        raise BadInput("the teacher in target.json has an entry of the wrong type")
    try:
        tensors = base64.b64decode(data["tensors"], validate=True)
    except (binascii.Error, ValueError):
        raise BadInput("the teacher's weights in target.json are not valid base64") from None
    config = parse_json(data["config"].encode(), "the teacher's configuration")
    try:
        outputs = config["outputs"] * (config["input"]["tokens"] if config["readout"]["kind"] == "all" else 1)
        if type(outputs) is not int:
            raise TypeError
    except (KeyError, TypeError):
        raise BadInput("the teacher's configuration is not that of a transformer") from None
    return TeacherOnBox(data["config"].encode(), tensors, box, outputs)


def _table(data: dict[str, Any]) -> Table:
    rows = data["rows"]
    if type(data["kind"]) is not str or type(rows) is not list:
        raise BadInput("target.json has a table that is not a list of rows")
    for row in rows:
        if not (isinstance(row, list) and len(row) == 2 and all(isinstance(part, list) for part in row)):
            raise BadInput("a row of target.json is not a pair of lists")
    return Table(data["source"], data["kind"], tuple((_numbers(row[0]), _numbers(row[1])) for row in rows))


def _numbers(texts: list[Any]) -> Row:
    for text in texts:
        if type(text) is not str or len(text) > _LONGEST_NUMBER or not _RATIONAL.fullmatch(text):
            raise BadInput(f"{str(text)[:40]!r} in target.json is not the text of an exact number")
    return tuple(map(Fraction, texts))


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
