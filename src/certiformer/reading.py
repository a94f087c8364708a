"""Reading a file that a user names: a regular file of a limited size, never a device or a pipe."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from certiformer.kernel import files
from certiformer.kernel.files import read_regular as read_regular

LARGEST_TEXT = 32 << 20  # a table or a description; what is made of it takes some twenty times as much


def read_text(path: str | Path, encoding: str = "utf-8") -> str:
    """The text of a file that a user names, with line ends as they are in the file.

    Raises `BadInput` for what is no file or too large, `OSError` and `UnicodeDecodeError` as `Path.read_text` does.
    """
    return read_regular(Path(path), LARGEST_TEXT, links=True).decode(encoding)


def require_regular(path: Path) -> None:
    """Refuse a pipe, a device or a folder before it is opened by somebody who reads it in pieces."""
    files.require_regular(path, os.stat(path), sys.maxsize)
