"""The certificate: a claim, what became of it, and the steps of its proof.

The claim is `|T(x) - f(x)| <= epsilon for every real x in the domain, every output`, where T is the real-number
function of the stored weights (`model.safetensors`, `config.json`) and f and the domain are those of `target.json`.
Numbers are exact decimal or rational text. `sha256` seals the other files and the certificate itself; a seal only shows
that nothing was changed by accident: whether the claim holds is what the checker decides, from the files.

In the folder of a compiled program (`program.json` and `circuit.json` instead of `target.json` and leaves) the claim is
that the decoded output is the program's, for every input and at every position; epsilon is 0 (see the rule *situations*).

What a folder claims is decided by the one file among `SUBJECTS` that its certificate seals, never by what else lies there.

Every field is of one of two sorts. Those of `COMPARED` are part of the claim or of its evidence: `check` derives them again
and refuses a better value than it finds. Those of `RECORDED`, under the one key `recorded` of the file, say how the files
were made: nothing is derived from them, and they are printed as recorded only. A field of neither sort cannot be read.

`run_error`, where it is present, is a second claim: at every point of the box with coordinates of the stored dtype, or at
every sequence over the alphabet, a run in that dtype differs from T by at most this much (see `kernel.rounding`).

A proof is a tree. Every node states `sup over the domain, max over the outputs, of |A - B| <= bound`; at the root A is the
transformer T and B the target f.

| rule       | what it needs                                                                    |
|------------|----------------------------------------------------------------------------------|
| `boxes`    | a split tree; A - B enclosed by a Taylor form of `order` on every leaf            |
| `theorem`  | the axiom `id`, with `parameters`; its hypotheses are checked there               |
| `triangle` | an intermediate program P; children bound |A - P| and |P - B|; bounds add         |
| `split`    | A (units, or a head on a grid) and B both split into parts along few directions; a child each; bounds add  |
| `outputs`  | one child for every output; the largest bound counts                              |
| `finite`   | the domain is a list of rows: A is evaluated at every one of them                 |
| `situations` | B is a program; every decoded output of A is its value, with room for all errors |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from importlib import import_module
from typing import Any

from certiformer.errors import BadInput
from certiformer.kernel import Refused
from certiformer.kernel.files import (
    BASIS,
    CERTIFICATE,
    CIRCUIT,
    DESCRIPTIONS,
    LEAVES,
    PROGRAM,
    TARGET,
    canonical,
    digest,
    entries,
    parse_json,
)
from certiformer.kernel.programs import exact

# The theorems that certificates name: axioms, proved on paper, and statements that the rule of situations proves.

_OF = {
    "functions on a box": "korovkin_ridges piecewise_linear ridge_temperatures shifted_grids "
    "squares_rbf temperatures voronoi_first_order voronoi_second_order",
    "sequences": "exact_count exact_induction exact_sort exact_width",
    "machine.json": "chain_of_thought_machine encoder_decoder_machine",
    "automaton.json": "log_depth_automaton",
    "learner.json": "in_context_gradient in_context_relu in_context_ridge in_context_selection",
    "hits.json": "binomial_tail",
}
AXIOMS = {name: subject for subject, names in _OF.items() for name in names.split()}  # each with what it speaks of
# Whose statements the proof of another one uses, too.
USES = {
    "in_context_ridge": ("in_context_gradient",),
    "ridge_temperatures": ("temperatures",),
    "squares_rbf": ("voronoi_second_order",),
}
# No axioms: these modules of `kernel.situations` name a meaning and a plan, and the rule of situations proves the claim.
BY_SITUATIONS = {
    "looped_machine": "machine.json",
    "looped_automaton": "automaton.json",
    "chain_of_thought_automaton": "automaton.json",
    "chain_of_thought_circuit": "gates.json",
}
STATEMENTS = AXIOMS | BY_SITUATIONS


def axiom(name: str, subject: str) -> Any:
    """The module of the theorem `name`, which must speak of `subject`; no other module is ever loaded by name."""
    if STATEMENTS.get(name) != subject:
        raise Refused(f"the certificate rests on {name!r}, which is no axiom about {subject} that this checker knows")
    package = "kernel.situations" if name in BY_SITUATIONS else "axioms"
    return import_module(f"certiformer.{package}.{name}")


@dataclass(frozen=True)
class Boxes:
    """An enclosure on every leaf of the split tree at `leaves.bin[offset : offset + length]`."""

    bound: str
    order: int
    offset: int
    length: int


@dataclass(frozen=True)
class Theorem:
    """A bound that follows from a theorem of the checker, whose hypotheses are re-checked."""

    bound: str
    id: str
    parameters: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Triangle:
    """|A - B| <= |A - P| + |P - B| through the program P (JSON data of a `kernel.programs.Program`)."""

    bound: str
    through: dict[str, Any]
    children: tuple[Node, Node]


@dataclass(frozen=True)
class Outputs:
    """max over the outputs: one child for each of them, in order."""

    bound: str
    children: tuple[Node, ...]


@dataclass(frozen=True)
class Split:
    """|A - B| <= sum of |P_g - B_g| over parts along few directions each, and what P misses of A (`kernel.rules`).

    A part holds its `directions`, integers; its `target`, a program in the numbers directions x; its `units`, each the
    number of a unit of A with its slopes along the directions; and its `slopes` and `constant` of the affine part.
    `linear` is the affine part that A and B share. Numbers are exact decimals.
    """

    bound: str
    linear: list[str]
    parts: list[dict[str, Any]]
    children: tuple[Node, ...]


@dataclass(frozen=True)
class Finite:
    """The transformer evaluated in balls at every row of a finite target."""

    bound: str


@dataclass(frozen=True)
class Situations:
    """A compiled program: errors are carried from sub-layer to sub-layer for all inputs, and decoding removes them."""

    bound: str


Inner = Triangle | Outputs | Split
Node = Boxes | Theorem | Finite | Situations | Inner

_RULES = {
    "boxes": Boxes,
    "theorem": Theorem,
    "finite": Finite,
    "triangle": Triangle,
    "outputs": Outputs,
    "split": Split,
    "situations": Situations,
}
_NAMES = {kind: name for name, kind in _RULES.items()}
_TYPES = {"bound": str, "order": int, "offset": int, "length": int, "id": str, "parameters": dict, "through": dict}
MAX_NESTING = 20


def rule_name(node: Node) -> str:
    """The name of a node's rule, as stored."""
    return _NAMES[type(node)]


def to_json(node: Node) -> dict[str, Any]:
    """A node as plain JSON data.

    >>> to_json(Boxes("0.1", 4, 0, 3))
    {'rule': 'boxes', 'bound': '0.1', 'order': 4, 'offset': 0, 'length': 3}
    """
    data = {"rule": rule_name(node), **vars(node)}
    if isinstance(node, Inner):
        data["children"] = [to_json(child) for child in node.children]
    return data


def from_json(data: Any, depth: int = 0) -> Node:
    """Read a node; unknown rules, missing or unexpected fields are refused."""
    kind = _RULES.get(str(data.get("rule"))) if isinstance(data, dict) else None
    if kind is None or depth > MAX_NESTING:
        raise BadInput(f"the proof tree has a node that is no rule of this format: {str(data)[:80]}")
    rules = {name: _TYPES.get(name, list) for name in kind.__dataclass_fields__}
    fields = entries({k: v for k, v in data.items() if k != "rule"}, rules, f"a {data['rule']} node of the proof tree")
    if "children" in fields:
        fields["children"] = tuple(from_json(child, depth + 1) for child in fields["children"])
        if kind is Triangle and len(fields["children"]) != 2:
            raise BadInput("a triangle node of the proof tree needs exactly two children")
    return kind(**fields)


def rules_used(node: Node) -> list[str]:
    """The rules and theorems a proof rests on, in order of first use.

    >>> rules_used(Outputs("0.2", (Boxes("0.1", 2, 0, 1), Theorem("0.1", "voronoi_second_order"))))
    ['outputs', 'boxes', 'theorem voronoi_second_order']
    >>> rules_used(Theorem("0.1", "in_context_ridge"))
    ['theorem in_context_ridge', 'theorem in_context_gradient']
    """
    names = [rule_name(node)]
    if isinstance(node, Theorem):
        names = [f"theorem {name}" for name in (node.id, *USES.get(node.id, ()))]
    for child in node.children if isinstance(node, Inner) else ():
        names.extend(name for name in rules_used(child) if name not in names)
    return names


FORMAT, EARLIER = "certiformer-certificate-2", "certiformer-certificate-1"
SUBJECTS = (TARGET, PROGRAM, *DESCRIPTIONS)  # each says what a transformer does, in a kind of claim of its own
MEANINGFUL = (*SUBJECTS, LEAVES, CIRCUIT, BASIS)  # files whose presence some reader takes for a part of a claim
COMPARED = ("epsilon", "outcome", "seals", "upper", "lower", "witness", "proof", "run_error")
RECORDED = ("level", "method", "reason", "apriori", "assumptions", "versions", "seconds")
MAX_TEXT, MAX_TEXTS = 20_000, 1_000  # characters of one text, texts of one field
LARGEST = 10**300  # of a stated number, so that it can be drawn and printed


class Outcome(Enum):
    """What is known about a claim sup |T - f| <= epsilon."""

    PROVED = "proved"
    REFUTED = "refuted"
    UNDECIDED = "undecided"
    INVALID = "invalid"

    def exit_code(self, level: int) -> int:
        """0 only for a proof that level 2 accepted; 1 refuted; 2 invalid; 3 undecided or level 1 only."""
        if self is Outcome.PROVED:
            return 0 if level == 2 else 3
        return {Outcome.REFUTED: 1, Outcome.INVALID: 2, Outcome.UNDECIDED: 3}[self]


@dataclass(frozen=True)
class Witness:
    """A point of the domain, given by exact rationals, at which `output` has error at least `error`."""

    point: tuple[str, ...]
    output: int
    error: str

    def to_json(self) -> dict[str, Any]:
        return {"point": list(self.point), "output": self.output, "error": self.error}

    @staticmethod
    def from_json(data: Any) -> Witness:
        rules = {"point": _list_of(_is_number), "output": int, "error": _is_number}
        entries(data, rules, "the certificate's witness")
        return Witness(tuple(data["point"]), data["output"], data["error"])


@dataclass(frozen=True)
class Certificate:
    """Everything `certificate.json` says; `upper` and `lower` bracket sup |T - f| as far as it is known."""

    epsilon: str
    outcome: Outcome
    level: int
    seals: dict[str, str]
    method: str = "given"
    upper: str | None = None
    lower: str | None = None
    witness: Witness | None = None
    proof: Node | None = None
    reason: str = ""
    apriori: str | None = None
    run_error: str | None = None
    assumptions: tuple[str, ...] = ()
    versions: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def subject(self) -> str:
        """The one sealed file that says what the transformer does: it decides which kind of claim this is."""
        named = [name for name in SUBJECTS if name in self.seals]
        if len(named) != 1:
            raise BadInput("the certificate does not seal exactly one file that says what is claimed")
        return named[0]

    def to_bytes(self) -> bytes:
        """The canonical file, sealed by its own hash."""
        data = {name: getattr(self, name) for name in COMPARED}
        data["format"] = FORMAT
        data["outcome"] = self.outcome.value
        data["recorded"] = {name: getattr(self, name) for name in RECORDED} | {"assumptions": list(self.assumptions)}
        data["witness"] = None if self.witness is None else self.witness.to_json()
        data["proof"] = None if self.proof is None else to_json(self.proof)
        if self.run_error is None:
            del data["run_error"]  # absent, not null: a claim has one file
        data["sha256"] = digest(canonical(data))
        return canonical(data)

    @staticmethod
    def from_bytes(raw: bytes) -> Certificate:
        """Read `certificate.json`. Only the canonical bytes are accepted, so that no byte can change unnoticed."""
        data = parse_json(raw, CERTIFICATE)
        try:
            same = canonical(data) == raw
        except (ValueError, RecursionError):
            same = False
        if not same:
            raise BadInput("certificate.json is not in its canonical form: it was changed after it was sealed")
        return Certificate.from_json(data)

    @staticmethod
    def from_json(data: Any) -> Certificate:
        """Read a certificate, refusing a broken seal, unknown fields and wrong types."""
        if isinstance(data, dict) and data.get("format") == EARLIER:
            raise BadInput(
                "this folder was made by an earlier version of certiformer; run the command that made it again"
            )
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise BadInput(f"certificate.json is not a certificate of the format {FORMAT}")
        recorded = data.get("recorded")
        if set(data) | {"run_error"} != set(_FIELDS) or not isinstance(recorded, dict):
            raise BadInput("certificate.json lacks a field or has an unknown one")
        if set(recorded) != set(RECORDED):
            raise BadInput("certificate.json lacks a recorded field or has an unknown one")
        if data["sha256"] != digest(canonical({k: v for k, v in data.items() if k != "sha256"})):
            raise BadInput("certificate.json was changed after it was sealed: its hash does not match")
        entries(data, {name: _FIELDS[name] for name in data}, "certificate.json")
        values = {name: data[name] for name in COMPARED if name in data} | entries(
            recorded, _RECORDED_FIELDS, "recorded"
        )
        values["outcome"] = Outcome(data["outcome"])
        values["witness"] = None if data["witness"] is None else Witness.from_json(data["witness"])
        values["proof"] = None if data["proof"] is None else from_json(data["proof"])
        values["assumptions"] = tuple(recorded["assumptions"])
        return Certificate(**values)


def certificate_in(files: Mapping[str, bytes]) -> Certificate:
    """The certificate among the files of a folder, given by name and content.

    Refused is a folder with a file that the certificate does not seal although some reader would take it for a part of
    the claim: whoever looks at the files and whoever looks at the certificate must see the same claim.
    """
    if CERTIFICATE not in files:
        raise BadInput(f"this is not the folder of a finished run: it has no {CERTIFICATE}")
    certificate = Certificate.from_bytes(files[CERTIFICATE])
    for name in MEANINGFUL:
        if name not in certificate.seals and name in files:
            what = f"which the certificate, about {certificate.subject}, does not seal"
            raise BadInput(f"the folder holds {name}, {what}")
    return certificate


def _is_text(value: Any) -> bool:
    return type(value) is str and len(value) <= MAX_TEXT


def _is_number(text: Any) -> bool:
    """Whether a text is an exact number of moderate size; what is no number at all is told with its text."""
    return _is_text(text) and abs(exact(text)) <= LARGEST


def _list_of(right: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: type(value) is list and len(value) <= MAX_TEXTS and all(map(right, value))


def _table_of(right: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: (
        type(value) is dict
        and len(value) <= MAX_TEXTS
        and all(map(_is_text, value))
        and all(map(right, value.values()))
    )


_NONE = type(None)
_FIELDS: dict[str, Any] = {  # the rules of `files.entries`; witness and proof have readers of their own
    "format": (FORMAT,), "sha256": str, "epsilon": _is_text, "outcome": tuple(outcome.value for outcome in Outcome),
    "seals": _table_of(_is_text), "upper": (_NONE, _is_number), "lower": (_NONE, _is_number), "witness": (_NONE, dict),
    "proof": (_NONE, dict), "run_error": _is_number, "recorded": dict,
}  # fmt: skip
_RECORDED_FIELDS: dict[str, Any] = {
    "level": (lambda level: type(level) is int and 0 <= level <= 2,), "method": _is_text, "reason": _is_text,
    "apriori": (_NONE, _is_number), "assumptions": _list_of(_is_text), "versions": _table_of(_is_text),
    "seconds": _table_of(lambda number: type(number) in (int, float) and 0 <= number <= LARGEST),
}  # fmt: skip
