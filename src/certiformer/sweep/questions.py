"""Reading a store: one table of all rows, SQL over it, and CSV."""

from __future__ import annotations

import csv
import importlib.util
import io
import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa

from certiformer.disk import put_file
from certiformer.errors import BadInput, MissingExtra
from certiformer.sweep.job import Row
from certiformer.sweep.store import Store

# No files, no network, no spilling to the disk, no variables of this program; and none of that can be set back.
_CLOSED = (
    "temp_directory = ''",
    "python_enable_replacements = false",
    "enable_external_access = false",
    "lock_configuration = true",
)


def read_table(store: Store, function: str | None = None) -> pa.Table:
    """The rows of all finished jobs (of one function), with the id of the job and its function in front.

    Columns that a function does not give are null in its rows. Damaged files are named and left out."""
    parts = []
    for job, table in store.tables(function):
        front = {"job": pa.array([job.id] * len(table)), "function": pa.array([job.function] * len(table))}
        columns = {name: table.column(name) for name in table.column_names}
        taken = sorted(set(front) & set(columns))
        if taken:
            raise BadInput(f"{job.function} has a column {taken[0]!r}, which is the name of a column of every table")
        if columns:  # a job without rows
            parts.append(pa.table(front | columns))
    if not parts:
        return pa.table({"job": pa.array([], pa.string()), "function": pa.array([], pa.string())})
    try:
        return pa.concat_tables(parts, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise BadInput(
            f"the functions of {store.path} give columns of one name in two types; name one: {error}"
        ) from error


def query(store: Store, sql: str, function: str | None = None) -> list[Row]:
    """The answer of DuckDB to an SQL question about two tables: `rows` (see `read_table`), and `jobs` with the columns
    `job`, `function`, `config` (JSON), `state`, `tries` and `reason`.

    The question sees these tables only: no files, no network, and nothing it does changes the store."""
    if importlib.util.find_spec("duckdb") is None:
        raise MissingExtra("SQL over results needs DuckDB, which is not installed: pip install 'certiformer[sql]'")
    import duckdb

    with duckdb.connect(":memory:") as connection:
        connection.register("rows", read_table(store, function))
        connection.register("jobs", jobs_table(store))
        for setting in _CLOSED:
            connection.execute(f"SET {setting}")
        try:
            answer = connection.execute(sql)
            names = [column[0] for column in answer.description or []]
            return [dict(zip(names, values, strict=True)) for values in answer.fetchall()]
        except duckdb.Error as error:
            raise BadInput(f"DuckDB does not take this question: {str(error).splitlines()[0]}") from error


def jobs_table(store: Store) -> pa.Table:
    """The ledger as a table."""
    names = ["job", "function", "config", "state", "tries", "reason"]
    found = store.ledger.ask("SELECT id, function, config, state, tries, reason FROM jobs ORDER BY position")
    types = [pa.string()] * 4 + [pa.int64(), pa.string()]
    arrays = [pa.array([row[i] for row in found], kind) for i, kind in enumerate(types)]
    return pa.Table.from_arrays(arrays, names=names)


def to_csv(store: Store, path: str | os.PathLike[str], function: str | None = None, force: bool = False) -> int:
    """Write all rows as CSV; how many. Numbers are written so that reading them gives the same bits, lists as JSON.

    The file appears whole or not at all; an existing one is replaced only with `force`."""
    table = read_table(store, function)
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(table.column_names)
    for row in table.to_pylist():
        writer.writerow([_cell(value) for value in row.values()])
    try:
        put_file(Path(path), text.getvalue().encode("utf-8"), force)
    except OSError as error:
        raise BadInput(f"{path} cannot be written: {error.strerror}") from error
    return len(table)


def _cell(value: Any) -> str:
    """`repr` of a float is the shortest text that reads back as the same float; NaN and infinities are nan, inf."""
    if isinstance(value, list):
        return json.dumps(value)
    return "" if value is None else repr(value) if isinstance(value, float) else str(value)
