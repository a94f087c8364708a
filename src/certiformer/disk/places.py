"""Whose a place on the disk is: what may be written over, the hidden names used while writing, and locks.

Everything that has no such name belongs to somebody else. Locks end with their process: `flock` on a file that its
holder removes in the end. Who waits for such a file may get the lock of one that is no longer under its name; so a
lock counts only while the name still leads to the locked file. Where there is no `flock` (Windows, some network file
systems), nothing is locked.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from certiformer.errors import BadInput

try:
    import fcntl
except ImportError:
    fcntl = None  # Windows

PLAIN = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0)


class Locked(Exception):
    """Another process, or another part of this one, holds the lock."""


def lock(path: Path, *, wait: bool, create: bool = True) -> int:
    """The descriptor of `path`, locked and made if it is missing; never through a link. Closing it ends the lock."""
    while True:
        handle = os.open(path, PLAIN | (os.O_CREAT if create else 0), 0o666)
        try:
            _flock(handle, wait)
            if _is_under_its_name(handle, path):
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def _flock(handle: int, wait: bool) -> None:
    if fcntl is None:
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        raise Locked from None
    except OSError:
        return  # a file system without locks


def _is_under_its_name(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.lstat(path))
    except FileNotFoundError:
        return False


WORKPLACE, PARTIAL = ".certiformer", ".certiformer-partial"


def workplace_of(folder: Path) -> Path:
    """Where a folder is made before it is moved into place.

    >>> workplace_of(Path("runs/sine")).as_posix()
    'runs/.sine.certiformer'
    """
    return folder.with_name(f".{folder.name}{WORKPLACE}")


def target_of(workplace: Path) -> Path:
    """The folder that a workplace is for.

    >>> target_of(Path("runs/.sine.certiformer")).as_posix()
    'runs/sine'
    """
    return workplace.with_name(workplace.name[1 : -len(WORKPLACE)])


def partial_of(path: Path) -> Path:
    """Where a file is written before it is moved into place."""
    return path.with_name(f".{path.name}{PARTIAL}")


def is_workplace(name: str) -> bool:
    return name.startswith(".") and name.endswith(WORKPLACE) and len(name) > len(WORKPLACE) + 1


def is_partial(name: str) -> bool:
    return name.startswith(".") and name.endswith(PARTIAL) and len(name) > len(PARTIAL) + 1


def names_in(folder: Path) -> set[str]:
    """What a folder holds, without what a killed process of ours left in it; empty where there is none."""
    if not folder.is_dir():
        return set()
    return {path.name for path in folder.iterdir() if not is_partial(path.name)}


def check_place(folder: Path, mark: str, known: Collection[str], what: str, force: bool) -> None:
    """Refuse a place that is taken by something else than an earlier folder of the same kind.

    Such a folder has the file `mark` and no other names than `known`; `what` it is goes into the sentence.
    """
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"{folder} is a file; a {what} is a folder")
    refuse_unmovable(folder)
    present = names_in(folder)
    foreign = sorted(present - {mark, *known})
    if present and (mark not in present or foreign):
        held = f" (it holds {foreign[0]})" if foreign else ""
        raise BadInput(f"{folder} is not empty and not an earlier {what}{held}; choose another --out")
    if present and not force:
        raise BadInput(f"{folder} already holds a {what}; add --force to replace it or choose another --out")


def refuse_unmovable(folder: Path) -> None:
    """Refuse a folder that cannot be replaced as a whole."""
    if folder.is_symlink():
        raise BadInput(f"{folder} is a link; choose another --out, for instance what it leads to")
    if not folder.is_dir():
        return
    real, here = os.path.realpath(folder), os.path.realpath(os.curdir)
    if here == real or here.startswith(os.path.join(real, "")) or os.path.ismount(real):
        why = "a place where a disk is mounted" if os.path.ismount(real) else "the folder in which this program runs"
        raise BadInput(f"{folder} is {why}, which cannot be replaced as a whole; choose a folder inside it as --out")


def refuse_own_input(out: str | Path | None, *inputs: str | Path | None) -> None:
    """Refuse to write over, or around, what the command reads."""
    if out is None:
        return
    goal = os.path.realpath(out)
    for path in inputs:
        source = None if path is None or not os.path.lexists(path) else os.path.realpath(path)
        if source is not None and (source == goal or source.startswith(os.path.join(goal, ""))):
            raise BadInput(f"--out {out} would replace {path}, which this command reads; choose another --out")
