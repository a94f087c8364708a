"""Locks that end with their process: `flock` on a file that its holder removes in the end.

Who waits for such a file may get the lock of one that is no longer under its name; so a lock counts only while the name
still leads to the locked file. Where there is no `flock` (Windows, some network file systems), nothing is locked.
"""

from __future__ import annotations

import os
from pathlib import Path

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
