"""Contexts and queries from CSV files: a header, then rows of numbers, the last column being the answer.

Whatever is wrong with a file is said in one sentence that names the row (`target.csv_file` reads, numbers are read here).
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from jaxtyping import Float

from certiformer.errors import BadInput
from certiformer.target.csv_file import read_rows

Table = tuple[list[str], Float[np.ndarray, "rows columns"]]


def read_context(path: str | Path, features: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """The features and the answers of a context of at most `rows` rows."""
    header, table = _read(path)
    columns = len(header)
    if columns != features + 1:
        wanted = f"{features} feature{'s' if features > 1 else ''} and the answer"
        raise BadInput(f"{path} has {columns} columns, but this learner needs {features + 1}: {wanted}")
    if len(table) > rows:
        raise BadInput(
            f"{path} has {len(table):,} rows, but this learner was compiled for at most {rows:,}; compile with --rows"
            f" {len(table)} or more"
        )
    return table[:, :-1], table[:, -1]


def read_queries(text: str, features: int) -> Float[np.ndarray, "queries features"]:
    """The queries: one as `0.3,1.2`, or a CSV file with a header and one query in each row."""
    if text.endswith(".csv") or Path(text).is_file():
        header, table = _read(text)
        if len(header) != features:
            raise BadInput(f"{text} has {len(header)} columns, but a query of this learner has {features} features")
        return table
    cells = text.split(",")
    if len(cells) != features:
        raise BadInput(
            f"the query has {len(cells)} number{'s' if len(cells) > 1 else ''}, but this learner needs {features}"
        )
    return np.array([[_number(cell, f"number {place} of the query") for place, cell in enumerate(cells, 1)]])


def _read(path: str | Path) -> Table:
    names, rows = read_rows(path)
    if any(_is_number(name) for name in names):
        raise BadInput(f"the first line of {path} holds numbers; it should name the columns, as in x1,x2,y")
    table = [
        [_number(cell, f"row {number} of {path}, column {name!r},") for cell, name in zip(row, names, strict=True)]
        for number, row in enumerate(rows, 1)
    ]
    return names, np.array(table)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _number(cell: str, where: str) -> float:
    text = cell.strip()
    # Python reads 1_000 and the digits of other scripts as numbers; in a table they are mistakes.
    if not _is_number(text) or not text.isascii() or "_" in text:
        raise BadInput(f"{where} is {text[:40]!r}, which is not a number" if text else f"{where} is empty")
    if not math.isfinite(float(text)):
        raise BadInput(f"{where} is {text[:40]}; only finite numbers can be learned from")
    return float(text)
