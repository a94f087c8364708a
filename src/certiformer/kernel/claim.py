"""What is claimed, read from the files of a run folder and from nothing else, and said in words.

| format of `target.json` | what the transformer T is compared with | where |
|---|---|---|
| `certiformer-target-2` | a program, in the closed language of `kernel.programs` | on a box |
| `certiformer-teacher-2` | a stored transformer: its configuration and, in base64, its weights | on a box |
| `certiformer-table-1` | the outputs of its rows, exact rationals | at its rows |
| the names of `SEQUENCES` | a map on sequences; the module that says what it means is loaded by name | everywhere |

The ends of a box (`domain`) are rationals as text, or programs without variables as the list of their nodes. The text that
a user wrote (`source`) is for people: nothing here depends on it, and no sentence repeats it. What a sentence says of a
program is made from the program alone.

The seals are compared first: a byte changed by accident is named at once. Seals can be recomputed by anybody;
everything after them is re-derived from the content.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from importlib import import_module
from typing import Any

from certiformer.errors import BadInput
from certiformer.kernel import Refused
from certiformer.kernel.balls import BallDomain, working_precision
from certiformer.kernel.certificate import Certificate, certificate_in
from certiformer.kernel.files import (
    BASIS,
    CIRCUIT,
    CONFIG,
    LEAVES,
    MODEL,
    PROGRAM,
    TARGET,
    digest,
    entries,
    parse_json,
)  # fmt: skip
from certiformer.kernel.layers import as_prototypes
from certiformer.kernel.problem import (
    FiniteProblem,
    Function,
    Network,
    PointNetwork,
    Problem,
    ProgramFunction,
    Row,
    Rows,
)
from certiformer.kernel.programs import (
    MAX_CONSTANT_BITS,
    MAX_INPUTS,
    NAMED_CONSTANTS,
    Program,
    constant_text,
    exact_text,
    expression,
    fits,
    positive,
)  # fmt: skip
from certiformer.kernel.weights import Tensor, read_model

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


def _end_to_json(end: Program) -> str | list:
    name, *rest = end.nodes[-1]
    return rest[0] if name == "const" and rest[0] not in NAMED_CONSTANTS else [list(node) for node in end.nodes]


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
        shown = "the recorded program" if not self.is_short else self._text if one else f"[{self._text}]"
        return f"At every real point {point} of {self.box}, {what} from {shown} by at most {tolerance}."

    @property
    def is_short(self) -> bool:
        """Whether the sentence shows the program itself."""
        return 0 < len(self._text) <= LONGEST_FORMULA

    @cached_property
    def _text(self) -> str:
        """All outputs, or nothing where one of them is too long."""
        texts = [expression(self.program.select(o), LONGEST_FORMULA) for o in range(len(self.program.outputs))]
        return "" if None in texts else ", ".join(filter(None, texts))


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
_KEYS: dict[str, dict[str, Any]] = {
    FUNCTION: {"program": dict, "domain": list},
    TEACHER: {"config": str, "tensors": str, "domain": list},
    TABLE: {"kind": str, "rows": list},
}


def read_target(raw: bytes) -> Meaning:
    """What the bytes of a `target.json` say; every entry is one of its format, of the right type and in range."""
    data = parse_json(raw, TARGET)
    form = data.get("format") if isinstance(data, dict) else None
    if form in SEQUENCES:
        return import_module("certiformer.kernel.meanings.sequence_maps").map_from_data(data)
    if not isinstance(form, str) or form not in _KEYS:
        raise BadInput(f"target.json has no format that is known here: {str(form)[:40]!r}")
    entries(data, {"format": str, "norm": (NORM,), "source": str, **_KEYS[form]}, TARGET)
    if form == TABLE:
        return Table(data["source"], data["kind"], tuple(map(_row, data["rows"])))
    if not 1 <= len(data["domain"]) <= MAX_INPUTS or any(type(p) is not list or len(p) != 2 for p in data["domain"]):
        raise BadInput(f"the box in target.json does not have 1 to {MAX_INPUTS} axes with two ends each")
    box = Ends(tuple((_end(low), _end(high)) for low, high in data["domain"]))
    if form == TEACHER:
        return _teacher(data, box)
    program = Program.from_json(data["program"])
    if program.inputs != len(box.pairs):
        raise BadInput(f"the box has {len(box.pairs)} axes but the target has {program.inputs} variables")
    return FunctionOnBox(program, box)


def _end(value: Any) -> Program:
    nodes = [["const", value]] if isinstance(value, str) else value
    if not isinstance(nodes, list) or not nodes:
        raise BadInput("an end of the box in target.json is neither a rational nor a list of operations")
    end = Program.from_json({"inputs": 1, "nodes": nodes, "outputs": [len(nodes) - 1]})
    if any(node[0] == "var" for node in end.nodes):
        raise BadInput("an end of the box in target.json is not a constant: it reads a variable")
    return end


def _teacher(data: dict[str, Any], box: Ends) -> TeacherOnBox:
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


def _row(row: Any) -> tuple[Row, Row]:
    if not (isinstance(row, list) and len(row) == 2 and all(isinstance(part, list) for part in row)):
        raise BadInput("a row of target.json is not a pair of lists")
    for text in (*row[0], *row[1]):
        if type(text) is not str or len(text) > _LONGEST_NUMBER or not _RATIONAL.fullmatch(text):
            raise BadInput(f"{str(text)[:40]!r} in target.json is not the text of an exact number")
    return tuple(map(Fraction, row[0])), tuple(map(Fraction, row[1]))


SEALED = (MODEL, CONFIG, TARGET, LEAVES)
SEALED_PROGRAM = (MODEL, CONFIG, PROGRAM, CIRCUIT)


@dataclass(frozen=True)
class Claim:
    """The claim of a run folder: certificate, target, epsilon, leaves, and the functions in balls."""

    certificate: Certificate
    target: Meaning
    epsilon: Fraction
    leaves: bytes
    problem: Problem | FiniteProblem

    def sentence(self) -> str:
        """The claim in one plain sentence."""
        return self.target.sentence(exact_text(self.epsilon))


@dataclass(frozen=True)
class ProgramClaim:
    """The claim of a folder with a compiled program: certificate, stored transformer, program and circuit."""

    certificate: Certificate
    config: dict[str, Any]
    tensors: dict[str, Tensor]
    program: bytes
    circuit: bytes


def read_claim(files: Mapping[str, bytes]) -> Claim | ProgramClaim:
    """Read and cross-check the files of a run folder, given by name and content."""
    working_precision()
    certificate = certificate_in(files)
    if certificate.subject not in (TARGET, PROGRAM):
        raise Refused(f"the certificate is about {certificate.subject}, which is no function and no program")
    compiled = certificate.subject == PROGRAM
    sealed = SEALED_PROGRAM if compiled else SEALED
    if compiled and BASIS in certificate.seals:  # for readers of the circuit; no proof uses it
        sealed = (*sealed, BASIS)
    contents = sealed_contents(certificate, files, sealed)
    model = read_model(contents[CONFIG], contents[MODEL])
    if compiled:
        return ProgramClaim(certificate, *model, contents[PROGRAM], contents[CIRCUIT])
    target = read_target(contents[TARGET])
    if isinstance(target, FunctionOnBox | TeacherOnBox):
        problem: Problem | FiniteProblem = _on_box(target, Network(*model))
    else:
        problem = _at_rows(target, PointNetwork(*model))
    return Claim(certificate, target, positive(certificate.epsilon), contents[LEAVES], problem)


def sealed_contents(certificate: Certificate, files: Mapping[str, bytes], names: tuple[str, ...]) -> dict[str, bytes]:
    """What the files hold that the certificate seals, which must be exactly these names."""
    if set(certificate.seals) != set(names):
        raise Refused("the certificate seals files that it should not, or misses one")
    for name in names:
        if name not in files:
            raise Refused(f"{name} does not exist in the folder")
        if certificate.seals[name] != digest(files[name]):
            raise Refused(f"{name} was changed after the certificate was sealed: its hash does not match")
    return {name: files[name] for name in names}


def _on_box(target: FunctionOnBox | TeacherOnBox, network: Network) -> Problem:
    """The target in balls is a program, or a teacher's weights, read like those of the transformer itself."""
    domain = BallDomain(target.box)
    if isinstance(target, FunctionOnBox):
        right: Function = ProgramFunction(target.program)
    else:
        right = Network(*read_model(target.config, target.tensors))
        _require_alike("the teacher", right, "continuous", domain.dimension, target.outputs)
    _require_alike("the transformer", network, "continuous", domain.dimension, right.outputs)
    return Problem(as_prototypes(network) or network, right, domain)


def _at_rows(target: Any, network: PointNetwork) -> FiniteProblem:
    _require_alike("the transformer", network, target.kind, target.inputs, target.outputs)
    return FiniteProblem(network, target)


def _require_alike(who: str, network: Network, kind: str, inputs: int, outputs: int) -> None:
    """Refuse a transformer that does not read and write what the claim is about."""
    reads = network.config["input"]["kind"]
    if reads != kind:
        raise Refused(f"{who} reads {reads} inputs, the target {kind} ones")
    if (network.dimension, network.outputs) != (inputs, outputs):
        has = f"has {network.dimension} inputs and {network.outputs} outputs"
        raise Refused(f"{who} {has}, the target has {inputs} and {outputs}")
