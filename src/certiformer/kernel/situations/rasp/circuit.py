"""`circuit.json`: what each residual coordinate, head and hidden unit of a compiled transformer computes.

It is ground truth for people and a *witness* for the rule of situations, which believes none of it: every statement is
verified from the weights and from `program.json`. The words:

* A *cell* is a residual coordinate over some span of sub-layers. At every data position it holds `feature(v)`, v the value
  of one node of the program at that position. Features are exact rationals, one for each listed value and one for
  undefined; a node with too many values to list is held as the number itself.
* *Derived nodes* continue the numbering of the program's nodes: selectors, widths and maps that the program does not
  have but the transformer computes. An *identity* says that a node of the program equals a sum of others.
* A head *reads* (the mean of a value over the selected positions, the default where there is none) or measures a
  *width* (1 / (1 + number of selected positions), by counting the beginning-of-sequence token as selected).
* Units form a *table* (one cell from others) or *clear* a cell that is no longer needed.
* *Lemmas* name the facts about several positions that are used, and the nodes that they speak of (`lemmas`).
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from math import gcd
from types import NoneType
from typing import Any

from certiformer.errors import BadInput

FORMAT = "certiformer-circuit-2"
EMBEDDING, ATTENTION, FFN = "embedding", "attention", "ffn"

Rational = int | str  # 3, or "1/3"


@dataclass(frozen=True)
class Cell:
    """A coordinate that holds `feature(value of node)` from the sub-layer `written` on, until `cleared` (or the end).

    `feature`: one rational for each listed value of the node, in its order; None: the value itself, a number.
    `undefined`: the rational held where the node is undefined; None when it never is.
    `at_start`: what the beginning-of-sequence token holds there.
    `or_more`: where the node is undefined, the cell holds `undefined` or any larger number (a mean with undefined parts).
    """

    name: str
    node: int
    coordinate: int
    written: tuple[int, str]
    cleared: tuple[int, str] | None
    feature: tuple[Rational, ...] | None
    undefined: Rational | None
    at_start: Rational
    or_more: bool = False


@dataclass(frozen=True)
class HeadRole:
    """Head `head` of group `group` in block `block`: `kind` is `read` or `width`; cells are numbers in `cells`."""

    block: int
    group: int
    head: int
    kind: str
    selector: int
    node: int  # what it computes: an aggregate for `read`, a width for `width`
    queries: tuple[int, ...]
    keys: tuple[int, ...]
    values: tuple[int, ...]
    writes: tuple[int, ...]


@dataclass(frozen=True)
class UnitRole:
    """Hidden units `first` .. `first + count - 1` of block `block`: `kind` is `table` or `clear`.

    All units of a table see the same linear form of the cells `reads`, and write all of `cells`.
    """

    block: int
    first: int
    count: int
    kind: str
    cells: tuple[int, ...]
    reads: tuple[int, ...]


@dataclass(frozen=True)
class Identity:
    """At every position of every input: node = offset + sum of factor * other node."""

    node: int
    terms: tuple[tuple[Rational, int], ...]
    offset: Rational


@dataclass(frozen=True)
class Output:
    """How the read-out is decoded: `logits` (the largest names the value; undefined comes last) or `number`.

    The read-out sees the feature of the output node as a linear form x of the cells `reads`. Logit a is 2 f x - f^2
    with f the feature of value a: the largest belongs to the nearest feature. `number` is x itself, to be rounded to
    the nearest.
    """

    kind: str
    reads: tuple[int, ...]
    feature: tuple[Rational, ...] | None
    undefined: Rational | None


@dataclass(frozen=True)
class Circuit:
    """Everything `circuit.json` says; `extended` is the text of the program with the derived nodes after its own."""

    extended: str
    causal: bool
    cells: tuple[Cell, ...]
    heads: tuple[HeadRole, ...]
    units: tuple[UnitRole, ...]
    identities: tuple[Identity, ...]
    output: Output
    lemmas: tuple[tuple[str | int, ...], ...] = ()
    lines: dict[str, str] = field(default_factory=dict)  # node number -> where the source says it, for people

    def to_text(self) -> str:
        """The canonical content of the file."""
        data = {"format": FORMAT, **asdict(self)}
        return json.dumps(data, sort_keys=True, indent=None, separators=(",", ":"), ensure_ascii=True) + "\n"

    @staticmethod
    def from_text(text: str | bytes) -> Circuit:
        """Read the file; anything that `to_text` would not write is refused."""
        try:
            content = text.decode("ascii") if isinstance(text, bytes) else text
            data = json.loads(content)
            if type(data) is dict and data.get("format") == "certiformer-circuit-1":
                raise BadInput("the circuit file is of an earlier version; compile the program again")
            circuit = _circuit(data) if _fits(data, _CIRCUIT) else None
        except (ValueError, RecursionError) as problem:  # no ASCII, no JSON, or nested too deeply
            if isinstance(problem, BadInput):
                raise
            circuit = None
        if circuit is None:
            raise BadInput("the circuit file has not the structure of one")
        if circuit.to_text() != content:
            raise BadInput("the circuit file is not in its canonical form")
        return circuit


def rational(number: Rational) -> Fraction:
    """The exact number that a feature, factor or offset stands for.

    >>> rational("1/3"), rational(2)
    (Fraction(1, 3), Fraction(2, 1))
    """
    return Fraction(number)


def as_rational(number: Fraction | int) -> Rational:
    """A number as it is written: an integer, or a text p/q.

    >>> as_rational(Fraction(4, 2)), as_rational(Fraction(1, 3))
    (2, '1/3')
    """
    if type(number) is int:
        return number
    numerator, denominator = number.as_integer_ratio()
    return numerator if denominator == 1 else f"{numerator}/{denominator}"


# --- reading ----------------------------------------------------------------------------------------------------------
#
# A form is a type (exactly this one, so that a truth value is no integer), a tuple of alternatives, a list with the form of
# all its entries, a dict with the forms of all its fields, or a function that says whether the data fit.

LARGEST_BITS = 4_096  # of a numerator or denominator
_FRACTION = re.compile(r"(-?[1-9][0-9]{0,1299})/([1-9][0-9]{0,1299})")


def _fits(data: Any, form: Any) -> bool:
    """Whether data have a form."""
    if isinstance(form, type):
        return type(data) is form
    if isinstance(form, tuple):
        return any(_fits(data, one) for one in form)
    if isinstance(form, list):
        return type(data) is list and all(_fits(entry, form[0]) for entry in data)
    if isinstance(form, dict):
        return type(data) is dict and set(data) == set(form) and all(_fits(data[name], form[name]) for name in form)
    return form(data)


def _natural(data: Any) -> bool:
    return type(data) is int and data >= 0


def _rational(data: Any) -> bool:
    """An integer, or a fraction p/q in lowest terms that is none."""
    parts = [data] if type(data) is int else []
    if type(data) is str and (match := _FRACTION.fullmatch(data)):
        parts = [int(part) for part in match.groups()]
        if parts[1] == 1 or gcd(*parts) != 1:
            return False
    return bool(parts) and all(part.bit_length() <= LARGEST_BITS for part in parts)


def _one_of(*words: str) -> Any:
    return lambda data: type(data) is str and data in words


def _sub_layer(data: Any) -> bool:
    right = type(data) is list and len(data) == 2
    return right and _natural(data[0]) and _one_of(EMBEDDING, ATTENTION, FFN)(data[1])


def _term(data: Any) -> bool:
    return type(data) is list and len(data) == 2 and _rational(data[0]) and _natural(data[1])


def _lemma(data: Any) -> bool:
    return type(data) is list and len(data) > 1 and type(data[0]) is str and all(map(_natural, data[1:]))


_NUMBERS, _FEATURE, _MAYBE = [_natural], ([_rational], NoneType), (_rational, NoneType)
_CELL = {
    "name": str,
    "node": _natural,
    "coordinate": _natural,
    "written": _sub_layer,
    "cleared": (_sub_layer, NoneType),
}
_CELL |= {"feature": _FEATURE, "undefined": _MAYBE, "at_start": _rational, "or_more": bool}
_HEAD = dict.fromkeys(("block", "group", "head", "selector", "node"), _natural) | {"kind": _one_of("read", "width")}
_HEAD |= dict.fromkeys(("queries", "keys", "values", "writes"), _NUMBERS)
_UNITS = {"block": _natural, "first": _natural, "count": _natural, "kind": _one_of("table", "clear")}
_UNITS |= {"cells": _NUMBERS, "reads": _NUMBERS}
_OUTPUT = {"kind": _one_of("logits", "number"), "reads": _NUMBERS, "feature": _FEATURE, "undefined": _MAYBE}
_CIRCUIT = {"format": _one_of(FORMAT), "extended": str, "causal": bool, "output": _OUTPUT, "lemmas": [_lemma]}
_CIRCUIT |= {"cells": [_CELL], "heads": [_HEAD], "units": [_UNITS]}
_CIRCUIT |= {"identities": [{"node": _natural, "terms": [_term], "offset": _rational}]}
_CIRCUIT |= {"lines": lambda data: type(data) is dict and all(type(text) is str for text in data.values())}


def _circuit(data: dict[str, Any]) -> Circuit | None:
    """The circuit of data that fit; None where a cell is named that there is not."""
    kinds = {"cells": Cell, "heads": HeadRole, "units": UnitRole, "identities": Identity}
    fields = {name: tuple(kind(**_frozen(entry)) for entry in data[name]) for name, kind in kinds.items()}
    plain = {name: data[name] for name in ("extended", "causal", "lines")}
    lemmas = tuple(map(tuple, data["lemmas"]))
    circuit = Circuit(**fields, **plain, lemmas=lemmas, output=Output(**_frozen(data["output"])))  # type: ignore[arg-type]
    named = [circuit.output.reads]
    named += [cells for role in circuit.heads for cells in (role.queries, role.keys, role.values, role.writes)]
    named += [cells for role in circuit.units for cells in (role.cells, role.reads)]
    return None if any(number >= len(circuit.cells) for cells in named for number in cells) else circuit


def _frozen(fields: dict[str, Any]) -> dict[str, Any]:
    """The same with tuples instead of lists."""

    def tuples(x: Any) -> Any:
        return tuple(map(tuples, x)) if type(x) is list else x

    return {name: tuples(x) for name, x in fields.items()}
