"""Reading a file that somebody else may have made: a regular file of a limited size, never a device or a pipe."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

from certiformer.errors import BadInput

LARGEST_TEXT = 32 << 20  # a table or a description; what is made of it takes some twenty times as much


def read_regular(path: Path, limit: int, *, links: bool) -> bytes:
    """The bytes of a file of at most `limit` bytes; through a symbolic link only where `links` says so.

    Raises `BadInput` for anything else, `OSError` where there is nothing to read.
    """
    if not links and path.is_symlink():
        raise BadInput(f"{path} is a symbolic link; the files of a run folder are read in the folder itself only")
    _require_regular(path, os.stat(path), limit)  # before it is opened: opening a device may already do something
    # Without waiting for a writer, and without following a link that has just been put there.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if links else os.O_NOFOLLOW))
    with os.fdopen(handle, "rb", buffering=0) as file:
        status = os.fstat(handle)
        _require_regular(path, status, limit)
        data = b""
        while part := file.read(max(status.st_size - len(data), 0) + 1):  # one more than there is, to see that it ends
            data = data + part if data else part
            if len(data) > limit:  # it grew
                raise _too_large(path, limit)
    return data


def read_text(path: str | Path, encoding: str = "utf-8") -> str:
    """The text of a file that a user names, with line ends as they are in the file.

    Raises `BadInput` for what is no file or too large, `OSError` and `UnicodeDecodeError` as `Path.read_text` does.
    """
    return read_regular(Path(path), LARGEST_TEXT, links=True).decode(encoding)


def require_regular(path: Path) -> None:
    """Refuse a pipe, a device or a folder before it is opened by somebody who reads it in pieces."""
    _require_regular(path, os.stat(path), sys.maxsize)


def _require_regular(path: Path, status: os.stat_result, limit: int) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise BadInput(f"{path} cannot be read: it is a folder")
    if not stat.S_ISREG(status.st_mode):
        raise BadInput(f"{path} cannot be read: it is not a regular file")
    if status.st_size > limit:
        raise _too_large(path, limit)


def _too_large(path: Path, limit: int) -> BadInput:
    return BadInput(f"{path} is larger than {limit:,} bytes, the most that is read of such a file")
