"""The folder of a study: `report.html`, figures, tables and `result.json`, from the result as plain data."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from certiformer.errors import MissingExtra
from certiformer.report.rates_data import plain
from certiformer.report.rates_figures import draw_all
from certiformer.report.rates_page import write_rates
from certiformer.report.rates_tables import to_latex, to_markdown

RESULT, REPORT = "result.json", "report.html"
TABLES = ("tables.md", "tables.tex")


def write_study(result: Any, folder: str | Path) -> tuple[list[str], list[str]]:
    """Write everything into a folder; returns the names of the files, and sentences about what could not be written.

    `result` is a `Result`, or the same as a dictionary. Figures of an earlier run that are not drawn again go away.
    """
    data, place = plain(result), Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    texts = {
        RESULT: json.dumps(data, indent=1, allow_nan=False) + "\n",
        TABLES[0]: to_markdown(data),
        TABLES[1]: to_latex(data),
        REPORT: write_rates(data),
    }
    for name, text in texts.items():
        _put(place / name, text.encode("utf-8"))
    notes = []
    try:
        figures = draw_all(data, place)
    except MissingExtra as missing:
        figures, notes = [], [str(missing)]
    for old in place.glob("figure-*"):
        if old.suffix in (".svg", ".pdf") and old.name not in figures:
            old.unlink()
    return [*texts, *figures], notes


def _put(path: Path, content: bytes) -> None:
    """Whole or not at all: a reader never sees half a file."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        scratch.write_bytes(content)
        os.replace(scratch, path)
    finally:
        scratch.unlink(missing_ok=True)
