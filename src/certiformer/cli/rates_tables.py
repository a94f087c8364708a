"""What the studies print: findings, slopes with their verdicts, tables that fit the terminal."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from certiformer.cli.terminal import WIDTHS, Terminal

LISTED = 6  # jobs, or reasons, that are named
NARROWEST = 12  # columns of a clipped cell
SHORTEST = 24  # columns that a text keeps when others need room


def say_result(data: Mapping[str, Any], out: Path, seconds: float, terminal: Terminal) -> None:
    """A study for people."""
    terminal.fact("asked", data["question"])
    _sentences("found", data.get("findings") or (), terminal, "good")
    if data.get("series"):
        terminal.say()
        say_slopes(data["series"], terminal)
        terminal.say()
    _sentences("not said", data.get("limits") or (), terminal)
    jobs = data["jobs"]
    whole = jobs["done"] == jobs["total"]
    terminal.fact("jobs", f"{jobs['done']:,} of {jobs['total']:,} done; {seconds:.1f} s", "label" if whole else "weak")
    say_faults(jobs, terminal)
    terminal.fact("wrote", f"{out}: report.html, figures, tables.md, tables.tex, result.json")
    terminal.facts("next", [f"certiformer rates show {shlex.quote(str(out))}"])


def say_faults(jobs: Mapping[str, Any], terminal: Terminal) -> None:
    """The jobs without a result, those that failed alike together."""
    reasons: dict[str, list[str]] = {}
    for each in jobs["failed"]:
        reasons.setdefault(each["reason"], []).append(each["id"])
    for reason, names in list(reasons.items())[:LISTED]:
        terminal.fact("failed", f"{_named(names)}: {reason}", "bad")
    if len(reasons) > LISTED:
        terminal.fact("", f"and {len(reasons) - LISTED} more reasons; --json has them all")
    if jobs["missing"]:
        terminal.fact("missing", _named(jobs["missing"]))


def _named(names: Sequence[str]) -> str:
    """Jobs by the beginning of their ids.

    >>> _named(["0123456789"]), _named(["0123456789", "9876543210"])
    ('job 01234567', '2 jobs (01234567, 98765432)')
    """
    short = ", ".join(name[:8] for name in names[:LISTED])
    return f"job {short}" if len(names) == 1 else f"{len(names)} jobs ({short}{', ...' if len(names) > LISTED else ''})"


def say_slopes(series: Sequence[Mapping[str, Any]], terminal: Terminal) -> None:
    """One line for each series, and what its interval excludes under it."""
    from certiformer.report.rates_data import exclusions, slope_text

    headings = ["series", "points", "slope of MSE", "slope of L1"]
    rows = [[each["name"], len(each["x"]), slope_text(each, "mse"), slope_text(each, "l1")] for each in series]
    say_table(headings, rows, terminal)
    verdicts = {each["name"]: exclusions(each) for each in series}
    for sentence in dict.fromkeys(filter(None, verdicts.values())):
        names = [name for name, mine in verdicts.items() if mine == sentence]
        terminal.fact("", f"{'; '.join(names)}: {sentence}")


def _sentences(label: str, sentences: Sequence[str], terminal: Terminal, tone: str = "label") -> None:
    for sentence in sentences:
        terminal.fact(label, sentence, tone)
        label = ""


def say_table(headings: Sequence[str], rows: Sequence[Sequence[Any]], terminal: Terminal) -> None:
    """A table as wide as the terminal: long texts are clipped, columns that do not fit are left out and counted."""
    width = min(max(shutil.get_terminal_size((100, 24)).columns, WIDTHS[0]), WIDTHS[1])
    for line in table_lines(headings, rows, width):
        terminal.say(line)


def table_lines(headings: Sequence[str], rows: Sequence[Sequence[Any]], width: int) -> list[str]:
    """The lines of a table.

    >>> table_lines(["name", "error"], [["a", 0.5], ["bcd", 12]], 40)
    ['name  error', '───────────', 'a       0.5', 'bcd      12']
    >>> table_lines(["a", "b"], [["x" * 30, "y" * 30]], 24)
    ['a', '────────────', 'xxxxxxxxxxx…', '(1 column is left out: b)']
    """
    from certiformer.report.rates_data import cell_text

    texts = [[cell_text(cell) for cell in row] for row in rows]
    right = [
        bool(rows) and all(isinstance(row[place], int | float) or row[place] is None for row in rows)
        for place in range(len(headings))
    ]
    sizes = [max(len(name), *(len(row[place]) for row in texts), 0) for place, name in enumerate(headings)]
    largest = max(NARROWEST, width // 2)
    sizes = [min(size, largest) for size in sizes]
    words = [place for place, to_right in enumerate(right) if not to_right]
    while words and sum(sizes) + 2 * (len(sizes) - 1) > width:  # the longest texts give way first
        widest = max(words, key=lambda place: sizes[place])
        if sizes[widest] <= SHORTEST:
            break
        sizes[widest] -= 1
    shown = 0
    while shown < len(sizes) and sum(sizes[: shown + 1]) + 2 * shown <= width:
        shown += 1
    shown = max(shown, 1)

    def joined(cells: Sequence[str]) -> str:
        parts = [
            _clip(cell, size).rjust(size) if to_right else _clip(cell, size).ljust(size)
            for cell, size, to_right in zip(cells[:shown], sizes, right, strict=False)
        ]
        return "  ".join(parts).rstrip()

    lines = [joined(headings), "─" * (sum(sizes[:shown]) + 2 * (shown - 1)), *map(joined, texts)]
    left = list(headings[shown:])
    if left:
        count = "1 column is" if len(left) == 1 else f"{len(left)} columns are"
        lines.append(f"({count} left out: {_clip(', '.join(left), max(width - 30, 1))})")
    return lines


def _clip(text: str, length: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= length else f"{text[: max(length - 1, 0)]}…"
