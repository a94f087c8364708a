"""A CSV file as names and rows of text; what the text means is for the reader of the rows."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from certiformer.errors import BadInput
from certiformer.reading import read_text


def read_rows(path: str | Path) -> tuple[list[str], list[list[str]]]:
    """The header and the rows, all of its width; at least one row. Blank lines are skipped, a byte order mark too.

    Rows are numbered from 1 in every sentence, the header not counted.
    """
    path = Path(path)
    try:
        lines = [line for line in csv.reader(io.StringIO(read_text(path, "utf-8-sig"), newline="")) if line]
    except OSError as problem:
        raise BadInput(f"{path} cannot be read: {problem.strerror}") from None
    except (csv.Error, UnicodeDecodeError) as problem:
        raise BadInput(f"{path} is not a CSV file: {problem}") from None
    if len(lines) < 2:
        raise BadInput(f"{path} has no rows: a table needs a header line and at least one row")
    names = [name.strip() for name in lines[0]]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise BadInput(f"{path} has two columns called {repeated!r}")
    for number, line in enumerate(lines[1:], 1):
        if len(line) != len(names):
            raise BadInput(f"row {number} of {path} has {len(line)} fields, the header has {len(names)}")
    return names, [[field.strip() for field in line] for line in lines[1:]]
