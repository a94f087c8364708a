"""One file, whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from certiformer.disk.leftovers import remove_leftovers
from certiformer.disk.places import lock, partial_of
from certiformer.disk.publishing import sync_folder
from certiformer.errors import BadInput


def write_atomically(path: Path, data: bytes) -> None:
    """Replace a file that is ours; a kill at any moment leaves the old one, the new one, or none."""
    _write(path, data, force=True)


def put_file(path: Path, data: bytes, force: bool) -> None:
    """Write a file where the user asked for it: an existing one is replaced only with `force`, a link or a folder never."""
    _write(path, data, force)


def refuse_taken_file(path: Path, force: bool) -> None:
    """Refuse a place that a file may not be written to."""
    if not path.parent.is_dir():
        raise BadInput(f"{path}: No such file or directory as {path.parent}")
    if path.is_symlink():
        raise BadInput(f"{path} is a link, and nothing is written through links; choose another name")
    if path.is_dir():
        raise BadInput(f"{path} is a folder; name a file")
    if path.exists() and not path.is_file():
        raise BadInput(f"{path} is not a plain file; choose another name")
    if path.exists() and not force:
        raise BadInput(f"{path} already exists; add --force to replace it or choose another name")


def _write(path: Path, data: bytes, force: bool) -> None:
    refuse_taken_file(path, force)
    remove_leftovers(path.parent)
    partial = partial_of(path)
    handle = lock(partial, wait=True)  # another writer of the same file takes no longer than to write it
    try:
        try:
            refuse_taken_file(path, force)  # once more: nobody else of ours can write it now
            os.ftruncate(handle, 0)
            with open(handle, "wb", closefd=False) as stream:
                stream.write(data)
            os.fsync(handle)
            os.replace(partial, path)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
    finally:
        os.close(handle)
    sync_folder(path.parent)
