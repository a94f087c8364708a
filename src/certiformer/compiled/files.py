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

from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from certiformer.disk import Workplace, claimed, put_folder, recover
from certiformer.errors import BadInput
from certiformer.kernel.files import BASIS, CERTIFICATE, CIRCUIT, CONFIG, MODEL, PROGRAM, read_bytes

DRAWING = "circuit.html"
SEALED = (MODEL, CONFIG, PROGRAM, CIRCUIT)
FILES = (*SEALED, CERTIFICATE, DRAWING, BASIS)


def is_compiled(directory: str | Path) -> bool:
    """Whether a folder looks like that of a compiled program."""
    return (Path(directory) / PROGRAM).is_file()


def put_program(folder: Path, files: Mapping[str, bytes], force: bool) -> None:
    """Write the folder whole or not at all; an earlier one goes only with `force`."""
    with program_place(folder, force):
        put_folder(folder, files, FILES)


def program_place(folder: Path, force: bool) -> AbstractContextManager[Workplace]:
    """Hold a place that is free or, with `force`, taken by an earlier compiled program."""
    return claimed(folder, PROGRAM, FILES, "compiled program", force)


def read_folder(directory: str | Path) -> dict[str, bytes]:
    """The files of a compiled program."""
    folder = Path(directory)
    recover(folder)
    if not folder.is_dir():
        raise BadInput(f"{directory} is not a folder")
    missing = [name for name in (*SEALED, CERTIFICATE) if not (folder / name).is_file()]
    if missing:
        raise BadInput(f"{directory} is not the folder of a compiled program: it has no {missing[0]}")
    present = [name for name in (*SEALED, CERTIFICATE, BASIS) if (folder / name).is_file()]
    return {name: read_bytes(folder / name) for name in present}
