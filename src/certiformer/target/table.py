"""Finite claims: tables of rows, and maps on all sequences over a finite alphabet, with their files.

A claim about a finite set lists what it speaks of. A `Table` holds N rows of exact numbers: inputs (x1, ..., xD),
tokens one after the other, and the outputs wanted for them. A `SequenceMap` stands for V^n rows. Both are stored as
`target.json`, told apart by `format`; numbers are reduced fractions as text. Reading is strict, as in `target.files`.
Standard library only.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from certiformer.errors import BadInput
from certiformer.kernel.meanings.sequence_maps import MAPS, MAX_NUMBERS, NORM, Row, SequenceMap, map_from_data
from certiformer.kernel.programs import MAX_CONSTANT_BITS
from certiformer.target.description import canonical_text
from certiformer.target.sentence import epsilon_text

TABLE_FORMAT = "certiformer-table-1"
_MAX_TEXT = 2_600  # 4096 bits are 1,234 decimal digits, in numerator and denominator

_RATIONAL = re.compile(r"-?[0-9]+(/[1-9][0-9]*)?")


@dataclass(frozen=True)
class Table:
    """N rows (inputs, outputs) of exact numbers; `kind` is that of the transformer's input, `continuous` or `ids`."""

    source: str
    kind: str
    rows: tuple[Row, ...]

    def __post_init__(self) -> None:
        if self.kind not in ("continuous", "ids") or not self.rows:
            raise BadInput("a table has at least one row, of the kind continuous or ids")
        if not self.inputs or not self.outputs or len(self.rows) * (self.inputs + self.outputs) > MAX_NUMBERS:
            raise BadInput(f"a table has inputs, outputs and at most {MAX_NUMBERS:,} numbers")
        seen: dict[tuple[Fraction, ...], int] = {}
        for number, (inputs, outputs) in enumerate(self.rows, 1):
            if len(inputs) != self.inputs or len(outputs) != self.outputs:
                raise BadInput(f"row {number} of the table has another length than row 1")
            if self.kind == "ids" and any(x.denominator != 1 or x < 0 for x in inputs):
                raise BadInput(f"row {number} of the table holds a token that is not 0, 1, 2, ...")
            if any(
                max(x.numerator.bit_length(), x.denominator.bit_length()) > MAX_CONSTANT_BITS for x in inputs + outputs
            ):
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

    def find(self, point: tuple[Fraction, ...]) -> tuple[Fraction, ...] | None:
        """The outputs wanted at a point, or None when it is not a row."""
        return next((outputs for inputs, outputs in self.rows if inputs == point), None)

    def sentence(self, epsilon: str) -> str:
        """The claim in one sentence."""
        what = "output differs" if self.outputs == 1 else f"{self.outputs} outputs each differ"
        rows = "the one row" if self.count == 1 else f"every one of the {self.count:,} rows"
        most = epsilon_text(epsilon)
        return f"For {rows} of the table, the transformer's {what} from the recorded value by at most {most}."

    def to_text(self) -> str:
        """The canonical content of `target.json`."""
        rows = [[[str(x) for x in part] for part in row] for row in self.rows]
        return canonical_text(
            {"format": TABLE_FORMAT, "source": self.source, "kind": self.kind, "rows": rows, "norm": NORM}
        )


FiniteTarget = Table | SequenceMap


def finite_from_text(text: str | bytes) -> FiniteTarget | None:
    """The finite target of a `target.json`, or None when the file is of another format.

    >>> table = Table("demo", "continuous", (((Fraction(1, 10),), (Fraction(2),)),))
    >>> table.to_text()
    '{"format":"certiformer-table-1","kind":"continuous","norm":"max","rows":[[["1/10"],["2"]]],"source":"demo"}\\n'
    >>> finite_from_text(table.to_text()) == table
    True
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise BadInput("target.json is not valid JSON") from None
    form = data.get("format") if isinstance(data, dict) else None
    if not isinstance(form, str) or (form != TABLE_FORMAT and form not in MAPS):
        return None
    found: FiniteTarget = _table_from_data(data) if form == TABLE_FORMAT else map_from_data(data)
    # Only the canonical bytes: no repeated key, no second spelling of a number.
    if found.to_text().encode() != (text.encode() if isinstance(text, str) else text):
        raise BadInput("target.json is not in its canonical form")
    return found


def _table_from_data(data: dict[str, Any]) -> Table:
    names = {"kind", "rows", "format", "source", "norm"}
    if set(data) != names or data["norm"] != NORM or type(data["source"]) is not str:
        raise BadInput(f"target.json does not have exactly the entries of {TABLE_FORMAT}")
    if type(data["kind"]) is not str or type(data["rows"]) is not list:
        raise BadInput("target.json has a table that is not a list of rows")
    return Table(data["source"], data["kind"], tuple(_row(row) for row in data["rows"]))


def _row(row: Any) -> Row:
    if not (isinstance(row, list) and len(row) == 2 and all(isinstance(part, list) for part in row)):
        raise BadInput("a row of target.json is not a pair of lists")
    return tuple(_number(x) for x in row[0]), tuple(_number(y) for y in row[1])


def _number(text: Any) -> Fraction:
    if type(text) is not str or len(text) > _MAX_TEXT or not _RATIONAL.fullmatch(text):
        raise BadInput(f"{str(text)[:40]!r} in target.json is not the text of an exact number")
    return Fraction(text)
