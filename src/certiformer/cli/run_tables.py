"""The tables that `certiformer run` prints: tokens and answers, attention, and the trace."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from certiformer.compiler.programs.trace import Trace

LABEL = 11


def table_lines(tokens: Sequence[str], outputs: Sequence[str]) -> Iterator[str]:
    """Tokens above answers, in as many rows as the terminal needs.

    >>> print("\\n".join(table_lines(["a", "b"], ["b", "None"])))
    position   0  1
    in         a  b
    out        b  None
    """
    room = max(shutil.get_terminal_size((100, 24)).columns, 40) - LABEL
    start = 0
    while start < len(tokens):
        widths: list[int] = []
        for place in range(start, len(tokens)):
            width = max(len(tokens[place]), len(outputs[place]), len(str(place)))
            if widths and sum(widths) + 2 * len(widths) + width > room:
                break
            widths.append(width)
        part = range(start, start + len(widths))
        for label, texts in (("position", list(map(str, range(len(tokens))))), ("in", tokens), ("out", outputs)):
            cells = "  ".join(texts[place].ljust(width) for place, width in zip(part, widths, strict=True))
            yield f"{label:<{LABEL}}{cells}".rstrip()
        start += len(widths)


def pattern_lines(tokens: Sequence[str], weights: Sequence[Sequence[float]]) -> Iterator[str]:
    """The attention of one head: a row for each token that looks, a column for each that is looked at.

    >>> print("\\n".join(pattern_lines(["a", "b"], [[0.0, 0.0, 1.0], [0.5, 0.5, 0.0]])))
                start  a    b
    0 a         .      .    1
    1 b         0.50   0.50 .
    """
    names = ["start", *tokens]
    widths = [max(4, len(name)) for name in names]
    rows = [f"{place} {token}" for place, token in enumerate(tokens)]
    label = max(LABEL, *(len(row) + 2 for row in rows))
    widths[0] += 1
    yield (" " * (label + 1) + " ".join(n.ljust(w) for n, w in zip(names, widths, strict=True))).rstrip()
    for row, line in zip(rows, weights, strict=True):
        cells = " ".join(_weight(x).ljust(w) for x, w in zip(line, widths, strict=True))
        yield f"{row:<{label}} {cells}".rstrip()


def trace_lines(trace: Trace) -> Iterator[str]:
    """A line for each variable and sub-layer: where it is, what it holds, what the program says."""
    from certiformer.compiler.programs.circuit_data import spell, sublayer_name

    rows = [("after", "variable", "at", "holds", "the program says", "")]
    for reading in trace.readings:
        held = " ".join(f"{x:.4g}" for x in reading.held)
        values = " ".join(map(spell, reading.values))
        mark = f"differs at {', '.join(map(str, reading.wrong))}" if reading.wrong else ""
        rows.append(
            (sublayer_name(*reading.after), reading.cell.name, str(reading.cell.coordinate), held, values, mark)
        )
    widths = [max(len(row[column]) for row in rows) for column in range(6)]
    for row in rows:
        yield "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()


def _weight(weight: float) -> str:
    """Two digits; a dot for nothing."""
    return "." if weight == 0 else "1" if weight == 1 else f"{weight:.2f}"
