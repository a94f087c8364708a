"""`audit --out FILE`: the audit as a page, as data or as a card, in the format that the ending names."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from certiformer.cli.terminal import Terminal
from certiformer.disk import put_file, refuse_taken_file
from certiformer.errors import BadInput

if TYPE_CHECKING:
    from certiformer.audit import Audit

FORMATS = {
    ".html": "a page with pictures",
    ".json": "every figure as data",
    ".md": "what the terminal shows, as Markdown",
}
COLOUR = re.compile(r"\033\[[0-9;]*m")


class Card(Terminal):
    """Keeps what would be printed, without colours."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def write(self, stream: TextIO, line: str) -> None:
        self.lines.append(COLOUR.sub("", line))


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
    from certiformer.cli.audit_tables import say_audit

    card = Card()
    say_audit(found, card, met)
    # Indented, so that nothing in the names of tensors is Markdown.
    return "\n".join(["# Audit by certiformer", "", *(f"    {line}".rstrip() for line in card.lines)]) + "\n"


def _folder_of(checkpoint: str) -> str:
    real = os.path.realpath(checkpoint)
    return real if os.path.isdir(real) else os.path.dirname(real)
