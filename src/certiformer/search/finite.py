"""`build_table`: from a table of data to a transformer that is proved to memorise it.

CSV or teacher -> exact table -> construction (`construct.memorise`) -> files -> check -> run folder

A CSV file has a header, then rows of numbers that mean exactly what is written. `0.1` is one tenth, `1/3` a third;
nothing passes through floating point. Rows are numbered from 1, the header not counted. Repeated rows are merged when
they agree and refused when they do not: no function takes two values at one point.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
from jaxtyping import ArrayLike, Num

from certiformer.artifact import Artifact
from certiformer.construct.memorise import Memory, Progress, memorise
from certiformer.disk import refuse_own_input
from certiformer.errors import BadInput
from certiformer.kernel.certificate import Finite, Node, Witness
from certiformer.kernel.meanings.sequence_maps import Row
from certiformer.kernel.programs import decimal_text
from certiformer.model import Transformer
from certiformer.model import load as load_model
from certiformer.search.finite_job import EPSILON, FiniteJob
from certiformer.search.request import read_epsilon
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


BITS = 64  # of a stored weight
_SMALLEST = Fraction(1, 10**300)


def build_table(
    data: str | Path | Table,
    *,
    inputs: str | Sequence[str] | None = None,
    outputs: str | Sequence[str] | None = None,
    eps: str | float | Fraction = EPSILON,
    tokens: int = 1,
    out_tokens: int = 1,
    teacher: Transformer | str | Path | None = None,
    out: str | Path | None = None,
    force: bool = False,
    keep: bool = False,
    progress: Progress | None = None,
    seed: int = 0,
) -> Artifact:
    """A transformer proved to be within `eps` of every row of a table.

    Arguments: `data` a CSV file or a `Table`; `inputs`, `outputs` the names of its columns; `tokens` n, as which the
    inputs are read; `out_tokens` 1 (the last token answers) or n (every token answers for its share of the outputs);
    `teacher`, a model (folder) whose outputs at the inputs are memorised instead of columns; `out`, `force`, `keep`,
    `progress` as for `build`.

    >>> rows = tuple(((Fraction(i),), (Fraction(3 * i + 1),)) for i in range(5))
    >>> run = build_table(Table("line", "continuous", rows))
    >>> run.word, run.claim.startswith("For every one of the 5 rows of the table, the transformer's output differs")
    ('certified', True)
    >>> run.notes[0]
    '5 rows, 0 hidden units; plain interpolation needs 3'
    """
    refuse_own_input(out, *(path for path in (data, teacher) if isinstance(path, str | Path)))
    table, remarks = _table(data, names_of(inputs), names_of(outputs), teacher)
    text, epsilon = read_epsilon(eps)
    arranged = {"tokens": tokens, "out_tokens": out_tokens, "seed": seed}
    job = FiniteJob(table, text, epsilon, "memorise", str(arranged), progress)

    def make() -> tuple[Transformer, Node, Witness | None, list[str]]:
        found = memorise(table, epsilon, **arranged, progress=job.progress)
        bound = decimal_text(max(found.error, _SMALLEST), up=True)
        return found.model, Finite(bound), found.witness, [*remarks, *comparison(table, epsilon, found)]

    return job.run(make, out, force, keep)


def table_from_model(model: Transformer | str | Path, inputs: Num[ArrayLike, "rows size"], source: str = "") -> Table:
    """The table of a teacher's float64 outputs at given inputs, as exact numbers: what `build_table` then memorises."""
    network = model if isinstance(model, Transformer) else load_model(model)
    points = np.asarray(inputs)
    values = network.evaluate(points)
    if not np.all(np.isfinite(values)):
        raise BadInput("the teacher's output is not finite at a row of the inputs")
    name = source or "float64 outputs of a teacher transformer"
    rows: dict[tuple[Fraction, ...], tuple[Fraction, ...]] = {}
    for point, value in zip(points.tolist(), values.tolist(), strict=True):
        rows.setdefault(tuple(map(Fraction, point)), tuple(map(Fraction, value)))
    return Table(name, network.config.input.kind, tuple(rows.items()))


def _table(
    data: str | Path | Table, inputs: list[str], outputs: list[str], teacher: Transformer | str | Path | None
) -> tuple[Table, list[str]]:
    """The exact table and remarks on how it was read."""
    if isinstance(data, Table):
        if inputs or outputs or teacher is not None:
            raise BadInput("a Table is complete: inputs, outputs and teacher are for CSV files")
        return data, []
    if not inputs:
        raise BadInput("--inputs names the columns that the transformer reads, for instance --inputs x1,x2")
    if teacher is None:
        table, merged = table_from_csv(data, inputs, outputs)
    else:
        if outputs:
            raise BadInput("--outputs and --teacher exclude each other: the teacher says what the outputs are")
        rows, merged = read_csv(data, inputs, [])
        name = teacher if isinstance(teacher, str | Path) else "a transformer"
        points = np.array([[_nearest(x) for x in point] for point, _ in rows])
        table = table_from_model(teacher, points, f"{Path(data).name}, outputs of {name} in float64")
    return table, [f"{merged:,} repeated rows were merged"] if merged else []


def _nearest(value: Fraction) -> float | int:
    """A number the teacher can read: token ids stay whole."""
    return int(value) if value.denominator == 1 and abs(value) < 2**53 else float(value)


def comparison(table: Table, epsilon: Fraction, found: Memory) -> list[str]:
    """How far the transformer is from memorising with fewer weights, in words.

    The counting bound: outputs on a grid of spacing above 2 eps over the table's range can only be told apart by
    different weights, so *some* table of this shape needs rows x outputs x log2(range / 2 eps) bits. It says nothing
    about this table.
    """
    values = [y for _, row in table.rows for y in row]
    levels = max(1, math.ceil((max(values) - min(values)) / (2 * epsilon)))
    bits = table.count * table.outputs * math.log2(levels)
    units = f"{table.count:,} rows, {found.units:,} hidden units; plain interpolation needs {found.plain_units:,}"
    if found.fewest_units is not None and found.fewest_units < found.units:
        units += f"; any piecewise linear function of this key needs {found.fewest_units:,} (computed, not proved)"
    counting = f"some table of this shape and range needs {math.ceil(bits / BITS):,} weights of {BITS} bits (counting)"
    deep = (
        "with weights of unlimited length deep networks reach about the square root of the rows"
        " (Kim, Kim and Mozafari 2023; Kajitsuka and Sato 2025)"
    )
    weights = f"{found.model.nonzero_count():,} nonzero weights; {counting}; {deep}"
    return [units, weights]
