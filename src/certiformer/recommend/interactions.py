"""Tables of interactions: CSV (also compressed) and Parquet, read in batches, so that the rows never lie in memory as text.

Names of users and items become numbers while the file is read. What is kept of a row are two numbers and a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int

from certiformer.errors import BadInput, MissingExtra

KNOWN_NAMES = {
    "user": "user userid customerid visitorid memberid clientid uid sessionid session customer reviewerid",
    "item": "item itemid productid movieid stockcode articleid asin trackid sku product movie iid",
    "time": "time timestamp date datetime invoicedate ts unixtime eventtime createdat ratingtimestamp",
}
SEPARATORS = ",\t;|"
PARQUET = b"PAR1"


@dataclass(frozen=True)
class Interactions:
    """Rows as three arrays; `times` is None where the table has none. `notes` say what was guessed."""

    users: Int[np.ndarray, " rows"]
    items: Int[np.ndarray, " rows"]
    times: Int[np.ndarray, " rows"] | None
    user_names: tuple[str, ...]
    item_names: tuple[str, ...]
    notes: tuple[str, ...]


def read_interactions(
    path: str | Path, user: str | None = None, item: str | None = None, time: str | None = None, missing: str = "refuse"
) -> Interactions:
    """The interactions of a table; columns that are not named are found by their names, and the notes say which they are.

    Times are integers (seconds, as a rule) or ISO texts. A missing value is refused with its row; with
    `missing="drop"` such rows are left out and counted.
    """
    arrow = _arrow()
    source = Path(path)
    if not source.is_file():
        raise BadInput(f"{path} is not a file; a table of interactions is a CSV or Parquet file")
    try:
        columns, batches = _parquet(source) if _is_parquet(source) else _csv(source)
    except arrow.ArrowInvalid as problem:
        raise BadInput(f"{path} cannot be read as a table: {_first_line(problem)}") from None
    chosen, notes = _choose(columns, {"user": user, "item": item, "time": time}, source)
    numbers = {"user": _Numbers(), "item": _Numbers()}
    parts: dict[str, list[np.ndarray]] = {role: [] for role in chosen}
    dropped, first = 0, 1
    try:
        for batch in batches(list(chosen.values())):
            present = _present(batch, chosen, first, missing, source)
            dropped += batch.num_rows - int(present.sum())
            for role, name in chosen.items():
                kept = batch.column(name).filter(arrow.array(present))
                parts[role].append(numbers[role](kept) if role in numbers else _times(kept, first, source))
            first += batch.num_rows
    except arrow.ArrowInvalid as problem:
        raise BadInput(f"{path} cannot be read as a table: {_first_line(problem)}") from None
    joined = {role: np.concatenate(part) if part else np.zeros(0, np.int64) for role, part in parts.items()}
    if not len(joined["user"]):
        raise BadInput(f"{path} has no interactions")
    if dropped:
        notes.append(f"{dropped:,} rows with a missing value were left out")
    if "time" not in joined:
        notes.append("there is no column of times, so the order of the file counts")
    names = {role: tuple(table.names) for role, table in numbers.items()}
    return Interactions(joined["user"], joined["item"], joined.get("time"), names["user"], names["item"], tuple(notes))


class _Numbers:
    """Texts as numbers, in the order in which they are met."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._places: dict[str, int] = {}

    def __call__(self, column: Any) -> np.ndarray:
        coded = column.dictionary_encode()
        places = np.empty(len(coded.dictionary), np.int32)
        for place, name in enumerate(coded.dictionary.to_pylist()):
            text = str(name)
            if text not in self._places:
                self._places[text] = len(self.names)
                self.names.append(text)
            places[place] = self._places[text]
        return places[coded.indices.to_numpy(zero_copy_only=False)]


def _arrow() -> Any:
    try:
        import pyarrow
    except ImportError:
        raise MissingExtra("tables are read by Apache Arrow: pip install 'certiformer[recommend]'") from None
    return pyarrow


def _is_parquet(source: Path) -> bool:
    with open(source, "rb") as file:
        return file.read(4) == PARQUET


def _parquet(source: Path) -> tuple[list[str], Any]:
    import pyarrow.parquet as pq

    file = pq.ParquetFile(source)
    return file.schema_arrow.names, lambda names: file.iter_batches(batch_size=1 << 18, columns=names)


def _csv(source: Path) -> tuple[list[str], Any]:
    """The names in the header, and the batches of some columns, as texts."""
    import pyarrow as pa
    from pyarrow import csv

    with pa.input_stream(str(source), compression="detect") as stream:
        head = stream.read(1 << 16).split(b"\n")[0].decode("utf-8", errors="replace")
    separator = max(SEPARATORS, key=head.count)
    parse = csv.ParseOptions(delimiter=separator, newlines_in_values=True)
    blocks = csv.ReadOptions(block_size=1 << 23, use_threads=False)

    def batches(names: Sequence[str]) -> Iterator[Any]:
        convert = csv.ConvertOptions(
            include_columns=list(names), column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
        )
        with pa.input_stream(str(source), compression="detect") as stream:
            yield from csv.open_csv(stream, read_options=blocks, parse_options=parse, convert_options=convert)

    with pa.input_stream(str(source), compression="detect") as stream:
        columns = csv.open_csv(stream, read_options=blocks, parse_options=parse).schema.names
    return columns, batches


def _choose(columns: Sequence[str], asked: dict[str, str | None], source: Path) -> tuple[dict[str, str], list[str]]:
    chosen, guessed = {}, []
    plain = {"".join(mark for mark in name.lower() if mark.isalnum()): name for name in reversed(columns)}
    for role, name in asked.items():
        if name is not None and name not in columns:
            raise BadInput(f"{source} has no column {name!r}; it has {', '.join(columns[:12])}")
        if name is None:
            name = next((plain[known] for known in KNOWN_NAMES[role].split() if known in plain), None)
            if name is not None:
                guessed.append(f"{role} is the column {name!r}")
        if name is None and role != "time":
            raise BadInput(f"which column is the {role}? say --{role} NAME; there are {', '.join(columns[:12])}")
        if name is not None:
            chosen[role] = name
    return chosen, [", ".join(guessed)] if guessed else []


def _present(batch: Any, chosen: dict[str, str], first: int, missing: str, source: Path) -> np.ndarray:
    """Which rows have all values; the first that has not is named where that is refused."""
    import pyarrow as pa

    pc: Any = import_module("pyarrow.compute")

    present = np.ones(batch.num_rows, bool)
    for name in chosen.values():
        column = batch.column(name)
        absent = pc.is_null(column).to_numpy(zero_copy_only=False)
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            absent = absent | (pc.fill_null(pc.utf8_trim_whitespace(column), "").to_numpy(zero_copy_only=False) == "")
        if absent.any() and missing == "refuse":
            row = first + int(np.argmax(absent))
            raise BadInput(
                f"{source}: row {row:,} (line {row + 1:,} of a CSV file) has no {name}; add --missing drop to leave such"
                " rows out"
            )
        present &= ~absent
    return present


def _times(column: Any, first: int, source: Path) -> np.ndarray:
    """Times as integers: as they are, or microseconds for ISO texts and timestamps."""
    import pyarrow as pa

    pc: Any = import_module("pyarrow.compute")

    kind = column.type
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        column = column.cast(pa.timestamp("us"), safe=False)
    elif pa.types.is_floating(kind):
        numbers = column.to_numpy(zero_copy_only=False)
        if not (np.isfinite(numbers) & (np.abs(numbers) < 2**53)).all():
            raise BadInput(f"{source}: the times after row {first:,} hold a number that is not finite")
        return np.round(numbers * 1000).astype(np.int64)
    elif not pa.types.is_integer(kind):
        for target in (pa.int64(), pa.timestamp("us"), pa.timestamp("us", "UTC")):
            try:
                column = pc.utf8_trim_whitespace(column).cast(target)
                break
            except pa.ArrowInvalid:
                continue
        else:
            raise BadInput(
                f"{source}: a time after row {first:,} is neither an integer nor an ISO text such as 2026-01-31 12:00:00"
            )
    return column.cast(pa.int64()).to_numpy(zero_copy_only=False)


def _first_line(problem: Exception) -> str:
    return (str(problem).strip().splitlines() or ["it is empty"])[0][:200]
