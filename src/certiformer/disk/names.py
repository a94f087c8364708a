"""The hidden names that certiformer uses while it writes; everything else on the disk belongs to somebody else."""

from __future__ import annotations

from pathlib import Path

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
