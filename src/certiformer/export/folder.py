"""Putting an export in its place: complete or not at all, and never over something that is not an export."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from certiformer.disk import Workplace, names_in, put_folder
from certiformer.errors import BadInput

README_FILE = "README.md"
CACHES = ("__pycache__",)  # of who has imported the module of an export


def put_export(folder: Path, files: Mapping[str, bytes], force: bool) -> None:
    """Write a folder of files whole or not at all; an earlier export goes only with `force`."""
    with Workplace(folder):
        check_export_place(folder, files, force)
        put_folder(folder, files, CACHES)


def check_export_place(folder: Path, names: Mapping[str, object], force: bool) -> None:
    """Refuse a place that is taken by something else than an earlier export of the same kind."""
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"{folder} is a file; this export is a folder")
    present = names_in(folder)
    # Every export has a README; the folder of a model, which must never be lost here, has the other names only.
    foreign = present - {*names, *CACHES} or (present and README_FILE not in present)
    if foreign:
        raise BadInput(f"{folder} is not empty and not an earlier export of this kind; choose another --out")
    if present and not force:
        raise BadInput(f"{folder} already exists; add --force to replace it or choose another --out")
