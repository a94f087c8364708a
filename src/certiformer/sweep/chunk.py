"""The rows of one finished job as the bytes of one Parquet file, and back.

Every number comes back with the bits it had: whole numbers are int64, all others float64 (NaN and infinities too).
The file also carries the function and the configuration of its job, so a chunk explains itself without its ledger.
The same rows give the same bytes, which is what lets two engines be compared by the hashes of their files.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from certiformer.errors import BadInput
from certiformer.sweep.job import Job, Row

LARGEST_WHOLE = 2**53  # every whole number up to here is a float64
_TYPES = {"bool": pa.bool_(), "int": pa.int64(), "float": pa.float64(), "text": pa.string()}
_ABOUT = b"certiformer.job"
_COLUMNS = {*_TYPES.values(), *(pa.list_(kind) for kind in _TYPES.values())}
LARGEST_TABLE = 1 << 32  # bytes of one decoded chunk


def encode(job: Job, rows: Sequence[Row]) -> bytes:
    """The Parquet file of these rows.

    **Raises:** `BadInput` naming the column, for rows that are not names to numbers, texts or flat lists of them.

    >>> job = Job("package.module:name", {})
    >>> decode(encode(job, [{"x": 1, "y": [0.5, float("inf")]}, {"x": 2, "y": []}]))
    [{'x': 1, 'y': [0.5, inf]}, {'x': 2, 'y': []}]
    """
    if not isinstance(rows, (list, tuple)) or not all(isinstance(row, dict) and row for row in rows):
        raise BadInput(f"{job.function} has to give a list of rows, each a dict with at least one name")
    names = list(rows[0]) if rows else []
    for row in rows:
        if set(row) != set(names):
            odd = sorted(map(str, set(row) ^ set(names)))
            raise BadInput(f"the rows of {job.function} have different names: {', '.join(odd)} is not in all of them")
    columns = {str(name): _column(job, str(name), [_plain(row[name]) for row in rows]) for name in names}
    about = json.dumps({"function": job.function, "config": job.config}, sort_keys=True)
    table = pa.table(columns).replace_schema_metadata({_ABOUT: about.encode()})
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue()


def decode(content: bytes) -> list[Row]:
    """The rows of a Parquet file written by `encode`."""
    return decode_table(content).to_pylist()


def decode_table(content: bytes) -> pa.Table:
    """The same as an Arrow table."""
    try:
        # Without the pools of threads that Arrow would start: a process that ends while they start is aborted now and then.
        file = pq.ParquetFile(pa.BufferReader(content), pre_buffer=False)
        groups = range(file.metadata.num_row_groups)
        size = sum(file.metadata.row_group(group).total_byte_size for group in groups)
        if size > LARGEST_TABLE or not {_flat(kind) for kind in file.schema_arrow.types} <= _COLUMNS:
            raise BadInput(
                "a chunk of the store is not one that was written here: it is too large or has other columns"
            )
        return file.read(use_threads=False)
    except (pa.ArrowException, OSError) as error:
        raise BadInput(f"a chunk of the store is not one that was written here: {error}") from None


def _flat(kind: pa.DataType) -> pa.DataType:
    """A list by what it holds; files call its items by other names."""
    return pa.list_(kind.value_type) if isinstance(kind, pa.ListType) else kind


def _plain(value: Any) -> Any:
    """numpy and JAX values as Python ones; float32 becomes float64 exactly."""
    return value.tolist() if hasattr(value, "tolist") else list(value) if isinstance(value, tuple) else value


def _column(job: Job, name: str, values: list[Any]) -> pa.Array:
    where = f"column {name!r} of {job.function}"
    present = [value for value in values if value is not None]
    lists = [value for value in present if isinstance(value, list)]
    if lists and len(lists) < len(present):
        raise BadInput(f"{where} holds lists in some rows and single values in others")
    inside = [_plain(item) for value in lists for item in value] if lists else present
    kind = _TYPES[_kind(where, inside)]
    if lists:
        values = [None if value is None else [_plain(item) for item in value] for value in values]
        kind = pa.list_(kind)
    return pa.array(values, kind)


def _kind(where: str, values: list[Any]) -> str:
    """The one type of these values; without any, it is float64 (a column of empty lists or of nothing)."""
    kinds = {_kind_of(where, value) for value in values} or {"float"}
    if kinds == {"int", "float"}:
        if any(isinstance(value, int) and abs(value) > LARGEST_WHOLE for value in values):
            raise BadInput(f"{where} mixes fractions with whole numbers beyond 2**53, which no float64 holds")
        kinds = {"float"}
    if len(kinds) > 1:
        raise BadInput(f"{where} mixes kinds of values: {', '.join(sorted(kinds))}")
    return kinds.pop()


def _kind_of(where: str, value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise BadInput(f"{where} holds a whole number that does not fit 64 bits")
        return "int"
    if isinstance(value, float):
        return "float"
    if isinstance(value, str):
        return "text"
    raise BadInput(f"{where} holds a {type(value).__name__}; numbers, texts and flat lists of them can be stored")
