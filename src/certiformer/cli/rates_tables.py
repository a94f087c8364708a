"""What the studies print: findings, slopes with their verdicts, tables that fit the terminal."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from certiformer.cli.terminal import Terminal

LISTED = 6  # jobs, or reasons, that are named
LONG = 32  # columns from which on a cell is a text that may be broken between words


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
    """A table of any cells; a column with long texts may be broken between words."""
    from certiformer.report.rates_data import cell_text

    cells = [[cell_text(cell) for cell in row] for row in rows]
    long = [place for place in range(len(headings)) if any(len(row[place]) > LONG for row in cells)]
    terminal.rows(headings, cells, long)
