"""Exchanging two folders in one step, where the system can: at no moment is there none under either name."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from pathlib import Path

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
