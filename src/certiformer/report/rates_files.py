"""The folder of a study: `report.html`, figures, tables and `result.json`, from the result as plain data."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from certiformer.disk import Workplace, names_in
from certiformer.errors import MissingExtra
from certiformer.report.rates_data import plain
from certiformer.report.rates_figures import draw_all
from certiformer.report.rates_page import write_rates
from certiformer.report.rates_tables import to_latex, to_markdown

RESULT, REPORT = "result.json", "report.html"
TABLES = ("tables.md", "tables.tex")


def write_study(
    result: Any, folder: str | Path, more: Mapping[str, bytes] | None = None
) -> tuple[list[str], list[str]]:
    """Write everything into a folder; returns the names of the files, and sentences about what could not be written.

    `result` is a `Result`, or the same as a dictionary; `more` are files to put beside. All files of an earlier run are
    replaced in one step, figures that are not drawn again go away, and whatever else is in the folder stays.
    """
    data = plain(result)
    texts = {
        RESULT: json.dumps(data, indent=1, allow_nan=False) + "\n",
        TABLES[0]: to_markdown(data),
        TABLES[1]: to_latex(data),
        REPORT: write_rates(data),
    }
    files = {name: text.encode("utf-8") for name, text in texts.items()}
    with Workplace(folder) as place:
        new = place.fresh()
        for name, content in {**files, **(more or {})}.items():
            (new / name).write_bytes(content)
        notes = []
        try:
            figures = draw_all(data, new)
        except MissingExtra as missing:
            figures, notes = [], [str(missing)]
        earlier = {name for name in names_in(place.folder) if re.fullmatch(r"figure-.*\.(svg|pdf)", name)}
        place.publish({*files, *(more or {}), *figures, *earlier})
    return [*texts, *figures], notes
