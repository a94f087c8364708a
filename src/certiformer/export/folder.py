"""Putting an export in its place: complete or not at all, and never over something that is not an export."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from certiformer.certificate import put_folder, write_atomically
from certiformer.errors import BadInput

README_FILE = "README.md"


def put_file(path: Path, data: bytes, force: bool) -> None:
    """Write one file; an existing one is replaced only with `force`."""
    if path.is_dir():
        raise BadInput(f"{path} is a folder; name a file")
    if path.exists() and not force:
        raise BadInput(f"{path} already exists; add --force to replace it or choose another --out")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, data)


def put_export(folder: Path, files: Mapping[str, bytes], force: bool) -> None:
    """Write a folder of files whole or not at all; an earlier export goes only with `force`."""
    check_export_place(folder, files, force)
    put_folder(folder, files)


def check_export_place(folder: Path, names: Mapping[str, object], force: bool) -> None:
    """Refuse a place that is taken by something else than an earlier export of the same kind."""
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"{folder} is a file; this export is a folder")
    present = {path.name for path in folder.iterdir()} if folder.exists() else set()
    # Every export has a README; the folder of a model, which must never be lost here, has the other names only.
    foreign = present - set(names) - {"__pycache__"} or (present and README_FILE not in present)
    if foreign:
        raise BadInput(f"{folder} is not empty and not an earlier export of this kind; choose another --out")
    if present and not force:
        raise BadInput(f"{folder} already exists; add --force to replace it or choose another --out")
