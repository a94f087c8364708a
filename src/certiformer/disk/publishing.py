"""The last step of writing a folder: the new one and the old one change places.

Before it, a journal says which folder is the new one and which names of the old one it replaces. After it, whatever else
lay in the old folder moves into the new one. A kill in between is made good from the journal by whoever comes next:

| a kill leaves | then |
|---|---|
| the old folder in place | the new one is dropped |
| the new folder in place | what is to be kept moves over from the old one |
| neither (where the system cannot exchange two names, or the new one was taken away) | the old folder goes back |

An interruption or an error in between is made good in the same way before anything is removed; when that fails, too, the
workplace stays as it is.

Exchanging two folders in one step, where the system can: at no moment is there none under either name.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import sys
from collections.abc import Collection
from pathlib import Path

from certiformer.disk.places import is_partial

AT_FDCWD, RENAME_EXCHANGE, RENAME_SWAP = -100, 2, 2
UNKNOWN = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP)  # to the system or to this file system


def exchange(first: Path, second: Path) -> bool:
    """Let the two names change places; False, and nothing is done, where the system cannot."""
    sys.audit("certiformer.exchange", str(first), str(second))
    names = os.fsencode(first), os.fsencode(second)
    libc = ctypes.CDLL(None, use_errno=True) if os.name == "posix" else None
    if sys.platform == "linux" and hasattr(libc, "renameat2"):
        failed = libc.renameat2(AT_FDCWD, names[0], AT_FDCWD, names[1], RENAME_EXCHANGE)
    elif sys.platform == "darwin" and hasattr(libc, "renamex_np"):
        failed = libc.renamex_np(*names, RENAME_SWAP)
    else:
        return False
    if failed and (code := ctypes.get_errno()) not in UNKNOWN:
        raise OSError(code, os.strerror(code), str(second))
    return not failed


NEW, OLD, JOURNAL = "new", "old", "journal.json"


def publish(workplace: Path, target: Path, known: Collection[str]) -> None:
    """Put the filled folder `new` of a workplace, whose lock is held, in the place of `target`."""
    new = workplace / NEW
    bring_to_disk(new)
    if not target.exists():
        os.rename(new, target)
    else:
        os.chmod(new, target.stat().st_mode & 0o7777)
        _note(workplace / JOURNAL, {"inode": new.stat().st_ino, "replaced": sorted(known)})
        if not exchange(new, target):
            os.rename(target, workplace / OLD)
            os.rename(new, target)
        settle(workplace, target)
    sync_folder(target.parent)


def settle(workplace: Path, target: Path) -> None:
    """Finish, or take back, the exchange that the journal of a workplace speaks of; its lock is held."""
    journal = _read(workplace / JOURNAL)
    if journal is None:
        return
    inode, replaced = journal
    old = _old_folder(workplace, inode)
    if old is not None and not target.exists():
        os.rename(old, target)
    elif old is not None and target.stat().st_ino == inode:
        for path in list(old.iterdir()):
            if path.name not in replaced and not is_partial(path.name) and not os.path.lexists(target / path.name):
                os.rename(path, target / path.name)
    (workplace / JOURNAL).unlink()


def _old_folder(workplace: Path, new_inode: int) -> Path | None:
    """The folder that was moved aside, or None while it is still in its place."""
    for path in (workplace / OLD, workplace / NEW):
        if path.is_dir() and not path.is_symlink() and path.stat().st_ino != new_inode:
            return path
    return None


def bring_to_disk(folder: Path) -> None:
    """Wait until the files of a folder, and their names, are on the disk."""
    for path in folder.iterdir():
        handle = os.open(path, os.O_RDWR)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    sync_folder(folder)


def sync_folder(folder: Path) -> None:
    """Bring names to the disk, where folders can be opened (not on Windows)."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _note(path: Path, journal: dict[str, object]) -> None:
    with open(path, "w", encoding="utf-8") as file:
        json.dump(journal, file)
        file.flush()
        os.fsync(file.fileno())
    sync_folder(path.parent)


def _read(path: Path) -> tuple[int, set[str]] | None:
    """The inode of the new folder, and the names it replaces.

    None for a journal that is missing or cut off: then nothing has changed places yet.
    """
    try:
        found = json.loads(path.read_bytes())
        return int(found["inode"]), set(found["replaced"])
    except (OSError, ValueError, TypeError, KeyError):
        return None
