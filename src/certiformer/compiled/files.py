"""The folder of a compiled program: which files there are, and how they appear all at once or not at all.

| file | holds |
|---|---|
| `model.safetensors`, `config.json` | the transformer |
| `program.json` | the program as a typed graph; nothing of the user's Python |
| `circuit.json` | what every coordinate, head and hidden unit computes |
| `certificate.json` | the claim, and the hashes of the other four |
| `basis.json` | for realistic weights: which directions of the stream the coordinates of `circuit.json` are |
| `circuit.html` | a drawing, where one was asked for; no claim rests on it |
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from certiformer.certificate import CERTIFICATE, CIRCUIT, CONFIG, MODEL, PROGRAM, read_bytes, write_atomically
from certiformer.errors import BadInput

DRAWING, BASIS = "circuit.html", "basis.json"
SEALED = (MODEL, CONFIG, PROGRAM, CIRCUIT)


def is_compiled(directory: str | Path) -> bool:
    """Whether a folder looks like that of a compiled program."""
    return (Path(directory) / PROGRAM).is_file()


def put_folder(folder: Path, files: Mapping[str, bytes], force: bool) -> None:
    """Write the files under a temporary name and move the folder into place; an earlier one goes only with `force`."""
    check_place(folder, force)
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        staged, old = scratch / "new", scratch / "old"
        staged.mkdir()
        for name, data in files.items():
            write_atomically(staged / name, data)
        if folder.exists():
            os.replace(folder, old)
        os.replace(staged, folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def check_place(folder: Path, force: bool) -> None:
    """Refuse a place that is taken by something else than an earlier compiled program."""
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"{folder} is a file; a compiled program is a folder")
    present = {path.name for path in folder.iterdir()} if folder.exists() else set()
    if not present:
        return
    if PROGRAM not in present or present - {*SEALED, CERTIFICATE, DRAWING, BASIS}:
        raise BadInput(f"{folder} is not empty and not an earlier compiled program; choose another --out")
    if not force:
        raise BadInput(f"{folder} already holds a compiled program; add --force to replace it or choose another --out")


def read_folder(directory: str | Path) -> dict[str, bytes]:
    """The files of a compiled program."""
    folder = Path(directory)
    if not folder.is_dir():
        raise BadInput(f"{directory} is not a folder")
    missing = [name for name in (*SEALED, CERTIFICATE) if not (folder / name).is_file()]
    if missing:
        raise BadInput(f"{directory} is not the folder of a compiled program: it has no {missing[0]}")
    present = [name for name in (*SEALED, CERTIFICATE, BASIS) if (folder / name).is_file()]
    return {name: read_bytes(folder / name) for name in present}
