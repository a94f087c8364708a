"""`audit --out FILE`: the audit as a page, as data or as a card, in the format that the ending names."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from certiformer.cli.terminal import visible
from certiformer.disk import put_file, refuse_taken_file
from certiformer.errors import BadInput

if TYPE_CHECKING:
    from rich.table import Table

    from certiformer.audit import Audit

FORMATS = {
    ".html": "a page with pictures",
    ".json": "every figure as data",
    ".md": "a card in Markdown",
}
# What Markdown or HTML would read as more than text; names of tensors come from files of anybody.
MARKS = re.compile(r"[\\`*_\[\]<>|&~$]")


def require_file(place: str, force: bool, *checkpoints: str | None) -> None:
    """Refuse a file that cannot be written, or whose format nobody knows, before hours are spent on the audit.

    In the folder of a checkpoint JSON is read and README.md is its card: there, no `--force` replaces either.
    """
    path = Path(place)
    if path.suffix not in FORMATS:
        endings = ", ".join(f"{ending} ({what})" for ending, what in FORMATS.items())
        raise BadInput(f"--out {place}: the ending says what is written, and must be one of {endings}")
    refuse_taken_file(path, force)
    folders = {_folder_of(name) for name in checkpoints if name is not None}
    if os.path.realpath(path.parent) in folders and (
        path.suffix == ".json" or (path.suffix == ".md" and path.exists())
    ):
        raise BadInput(
            f"--out {place} lies among the files of the checkpoint; choose another folder, or a page (.html)"
        )


def write_file(place: str, force: bool, data: dict[str, Any], found: Audit, met: list[str]) -> None:
    """Write the audit, whole or not at all."""
    ending = Path(place).suffix
    if ending == ".html":
        from certiformer.report.audit_page import write_audit

        text = write_audit(found.to_json())
    elif ending == ".json":
        text = json.dumps(data, indent=1, allow_nan=False) + "\n"
    else:
        text = _card(found, met)
    put_file(Path(place), text.encode("utf-8"), force)


def _card(found: Audit, met: list[str]) -> str:
    """Three sentences, the conditions that are met, and the tables, as Markdown."""
    from certiformer.audit.figures import summary
    from certiformer.cli.audit_tables import SAYING, TONES, layer_table, theorem_table

    name = os.path.basename(os.path.realpath(found.path))
    silent = theorem_table(found, [verdict for verdict in TONES if verdict not in SAYING])
    parts = [
        f"# Audit of {_text(name)}",
        *map(_text, summary(found)),
        *(
            f"Not accounted for: {_text(name)} of shape {_text(str(tuple(shape)))}."
            for name, shape in found.coverage.missing
        ),
        *(f"Not finite: {_text(name)}." for name in found.measurements.not_finite),
        *(f"**Fails:** {_text(sentence)}." for sentence in met),
        "## What theorems say",
        _markdown(theorem_table(found, SAYING)),
        f"<details><summary>{silent.row_count} theorems do not apply</summary>\n\n{_markdown(silent)}\n\n</details>",
        "## Layers",
        _markdown(layer_table(found)),
        "## Often mistaken",
        "\n".join(f"- **{each.id}** {_text(each.name)}: {_text(each.sentence)}" for each in found.diagnostics),
        "Norms are those of the stored weights. They prove nothing about behaviour beyond the theorems above.",
    ]
    return "\n\n".join(parts) + "\n"


def _markdown(table: Table) -> str:
    """A table of rich as a table of Markdown."""
    rows = zip(*(column._cells for column in table.columns), strict=True)
    lines = [[str(column.header) for column in table.columns], ["---"] * len(table.columns)]
    lines += [[_text(str(cell)) for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _text(text: str) -> str:
    """One line of text in which nothing is Markdown; it never begins a line."""
    return MARKS.sub(lambda mark: f"\\{mark[0]}", visible(text))


def _folder_of(checkpoint: str) -> str:
    real = os.path.realpath(checkpoint)
    return real if os.path.isdir(real) else os.path.dirname(real)
