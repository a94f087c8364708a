"""What may be written over, and what may not."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from certiformer.disk.names import is_partial
from certiformer.errors import BadInput


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
