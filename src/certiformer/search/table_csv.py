"""Tables from CSV files: a header, then rows of numbers that mean exactly what is written.

`0.1` is one tenth, `1/3` a third; nothing passes through floating point. Rows are numbered from 1, the header not
counted. Repeated rows are merged when they agree and refused when they do not: no function takes two values at one
point.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

from certiformer.errors import BadInput
from certiformer.kernel.meanings.sequence_maps import Row
from certiformer.target import Table
from certiformer.target.csv_file import read_rows

_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?|[+-]?[0-9]+/[0-9]*[1-9][0-9]*")
_LONGEST = 1_000  # characters of one number


def read_csv(path: str | Path, inputs: Sequence[str], outputs: Sequence[str]) -> tuple[list[Row], int]:
    """The rows (inputs, outputs) of the named columns, and how many repeated rows were merged into earlier ones."""
    names, lines = read_rows(path)
    columns = [_column(name, names, path) for name in (*inputs, *outputs)]
    if not inputs or len(set(columns)) != len(columns):
        raise BadInput(f"--inputs and --outputs name at least one column of {path}, and none of them twice")
    rows: dict[tuple[Fraction, ...], tuple[int, tuple[Fraction, ...]]] = {}
    merged = 0
    for number, line in enumerate(lines, 1):
        values = tuple(_number(line[c], number, names[c], path) for c in columns)
        point, wanted = values[: len(inputs)], values[len(inputs) :]
        first, known = rows.setdefault(point, (number, wanted))
        if known != wanted:
            raise BadInput(f"rows {first} and {number} of {path} have the same inputs but different outputs")
        merged += first != number
    return [(point, wanted) for point, (_, wanted) in rows.items()], merged


def _column(name: str, names: list[str], path: str | Path) -> int:
    if name not in names:
        raise BadInput(f"{path} has no column {name!r}; its columns are {', '.join(names[:20])}")
    return names.index(name)


def _number(text: str, row: int, column: str, path: str | Path) -> Fraction:
    if len(text) > _LONGEST or not _NUMBER.fullmatch(text):
        raise BadInput(f"row {row} of {path} has {text[:40]!r} in column {column!r}, which is not a number")
    return Fraction(text)


def names_of(text: str | Sequence[str] | None) -> list[str]:
    """Column names from `"x1,x2"` or a list.

    >>> names_of("x1, x2"), names_of(["y"]), names_of(None)
    (['x1', 'x2'], ['y'], [])
    """
    if text is None:
        return []
    parts = text.split(",") if isinstance(text, str) else list(text)
    return [part.strip() for part in parts if part.strip()]


def table_from_csv(path: str | Path, inputs: Sequence[str], outputs: Sequence[str]) -> tuple[Table, int]:
    """The table of a CSV file, and how many repeated rows were merged."""
    if not outputs:
        raise BadInput("--outputs names the columns to memorise, for instance --outputs y")
    rows, merged = read_csv(path, inputs, outputs)
    return Table(Path(path).name, "continuous", tuple(rows)), merged
