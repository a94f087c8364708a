"""What killed processes left: hidden files and folders of ours that nobody holds any more."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from pathlib import Path

from certiformer.disk.places import Locked, is_partial, is_workplace, lock, target_of
from certiformer.disk.publishing import settle

LOCK = "lock"
REQUEST = "request"
KEPT = "kept"  # what an interrupted run left for the next one with the same request; nobody else removes it


def remove_leftovers(parent: Path) -> None:
    """Remove what dead writers left in `parent`: only under our names, only ours, and never a search to be resumed."""
    with contextlib.suppress(OSError):
        for path in list(parent.iterdir()):
            if is_partial(path.name):
                _remove_partial(path)
            elif is_workplace(path.name):
                _remove_workplace(path)


def belongs_to_us(path: Path, kind: int) -> bool:
    """Whether a name leads, not through a link, to a file or folder of this user."""
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return False
    mine = not hasattr(os, "geteuid") or status.st_uid == os.geteuid()
    return mine and stat.S_IFMT(status.st_mode) == kind


def is_resumable(workplace: Path) -> bool:
    """Whether an interrupted run left something that the same request can use; one without a request can never be asked
    for again."""
    kept = workplace / KEPT
    if not request_of(workplace) or not kept.is_dir():
        return False
    return not all(is_partial(path.name) for path in kept.iterdir())


def request_of(workplace: Path) -> str | None:
    """What the last run in a workplace was asked for."""
    try:
        return (workplace / REQUEST).read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None


def clear_workplace(path: Path) -> None:
    """Remove a workplace whose lock is held: the lock last, so that what a kill leaves is still known as ours."""
    for entry in list(path.iterdir()):
        if entry.name != LOCK:
            remove(entry)
    (path / LOCK).unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # another process has taken it over just now
        path.rmdir()


def remove(path: Path) -> None:
    """Remove a file, a link or a folder with all that is in it."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _remove_partial(path: Path) -> None:
    if not belongs_to_us(path, stat.S_IFREG):
        return
    with contextlib.suppress(Locked, OSError):
        handle = lock(path, wait=False, create=False)
        try:
            path.unlink()
        finally:
            os.close(handle)


def _remove_workplace(path: Path) -> None:
    if not belongs_to_us(path, stat.S_IFDIR):
        return
    with contextlib.suppress(OSError):
        path.rmdir()  # a process that was killed before it could lock
        return
    if is_resumable(path):
        return
    with contextlib.suppress(Locked, OSError):
        handle = lock(path / LOCK, wait=False, create=False)
        try:
            settle(path, target_of(path))
            clear_workplace(path)
        finally:
            os.close(handle)
