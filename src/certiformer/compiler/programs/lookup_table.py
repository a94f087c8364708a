"""A CSV table as a program: an input of k tokens, one for each input column, is answered by the row that it is.

The first line names the columns. Columns whose name begins with `out` are answers, or the last column when none does; the
others are the tokens of the input, in their order. One answer column is given at every position; of several, position i
gives the i-th. An input that is not a row of the table is undefined, and so is a shorter one.

The program reads the tokens by position and follows a trie of the rows: the state after i tokens is the number of a
prefix that occurs, so tables have (prefixes of length i) x (tokens) entries, never (tokens)^k.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from certiformer.errors import BadInput
from certiformer.rasp import Aggregate, Comparison, Full, Map, Select, SequenceMap, SOp, indices, tokens
from certiformer.rasp.value import Value, in_order
from certiformer.target.csv_file import read_rows

MAX_COLUMNS, MAX_ROWS, MAX_DIGITS = 64, 100_000, 300


def read_value(text: str) -> Value:
    """A token as it is written on the command line or in a table: a numeral is an integer, anything else a string.

    >>> read_value("12"), read_value("-3"), read_value("a1"), read_value("0x")
    (12, -3, 'a1', '0x')
    """
    digits = text[1:] if text[:1] == "-" else text
    if not (digits.isascii() and digits.isdigit()):
        return text
    if len(digits) > MAX_DIGITS:
        raise BadInput(f"the number {text[:20]}... has {len(digits):,} digits; at most {MAX_DIGITS} are read")
    return int(text)


def table_program(path: str | Path) -> tuple[SOp, tuple[Value, ...], int]:
    """The program of a CSV file, its vocabulary, and the length of its inputs."""
    inputs, outputs, rows = _read(Path(path))
    states: list[dict[tuple, int]] = [{(): 0}]
    for width in range(1, inputs + 1):
        prefixes = dict.fromkeys(key[:width] for key in rows)
        states.append({prefix: number for number, prefix in enumerate(prefixes)})
    state: SOp = Full(0)
    for place in range(inputs):
        here = Select(indices, Full(place), Comparison.EQ).named(f"column {place + 1}")
        token = Aggregate(here, tokens).named(f"token {place + 1}")
        steps = {(states[place][prefix[:-1]], prefix[-1]): number for prefix, number in states[place + 1].items()}
        if place == 0:
            state = Map(lambda x, steps=steps: steps.get((0, x)), token).named("row after 1")
        else:
            state = SequenceMap(lambda s, x, steps=steps: steps.get((s, x)), state, token).named(
                f"row after {place + 1}"
            )
    answers = {number: rows[key] for key, number in states[inputs].items()}
    vocab = in_order(value for key in rows for value in key)
    if outputs == 1:
        return Map(lambda s: answers[s][0], state).named("answer"), vocab, inputs
    chosen = SequenceMap(lambda s, i: answers[s][i] if i < outputs else None, state, indices)
    return chosen.named("answer"), vocab, inputs


def _read(path: Path) -> tuple[int, int, dict[tuple[Value, ...], tuple[Value, ...]]]:
    """How many input and output columns, and the rows."""
    names, lines = read_rows(path)
    if len(lines) > MAX_ROWS:
        raise BadInput(f"{path} has {len(lines):,} rows, and at most {MAX_ROWS:,} can be compiled")
    answers = [c for c, name in enumerate(names) if name.lower().startswith("out")] or [len(names) - 1]
    asked = [c for c in range(len(names)) if c not in answers]
    if not asked or len(names) > MAX_COLUMNS:
        raise BadInput(f"{path} needs 2 to {MAX_COLUMNS} columns: tokens, then answers, not {', '.join(names[:5])}")
    if 1 < len(answers) > len(asked):
        raise BadInput(f"{path} has {len(answers)} answer columns, more than the {len(asked)} tokens of an input")
    return len(asked), len(answers), _rows(path, lines, asked, answers)


def _rows(
    path: Path, lines: list[list[str]], asked: Sequence[int], answers: Sequence[int]
) -> dict[tuple[Value, ...], tuple[Value, ...]]:
    rows: dict[tuple[Value, ...], tuple[Value, ...]] = {}
    for number, line in enumerate(lines, 1):
        if any(not line[c] for c in asked):
            raise BadInput(f"row {number} of {path} has an empty token")
        key = tuple(read_value(line[c]) for c in asked)
        answer = tuple(read_value(line[c]) if line[c] else None for c in answers)
        if rows.setdefault(key, answer) != answer:
            raise BadInput(f"row {number} of {path} has the same tokens as an earlier row but another answer")
    return rows
