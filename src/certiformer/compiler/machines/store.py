"""The folder of a compiled machine.

| file | holds |
|---|---|
| `model.safetensors`, `config.json` | the transformer |
| `machine.json` | the table of the machine |
| `certificate.json` | the claim, and the hashes of the other three |
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from certiformer.certificate import CERTIFICATE, CONFIG, MODEL, Certificate, read_bytes, write_atomically
from certiformer.compiler.machines.compiled import CompiledMachine
from certiformer.errors import BadInput
from certiformer.model.tensor_file import arrays_to_bytes
from certiformer.target.machine import Machine

MACHINE = "machine.json"
FILES = (MODEL, CONFIG, MACHINE, CERTIFICATE)


def machine_files(compiled: CompiledMachine) -> dict[str, bytes]:
    """The files of a compiled machine, all but the certificate."""
    return {
        MODEL: arrays_to_bytes(compiled.tensors),
        CONFIG: compiled.config.to_bytes(),
        MACHINE: compiled.machine.to_text().encode("ascii"),
    }


def save_machine(compiled: CompiledMachine, directory: str | Path, force: bool = False) -> Certificate:
    """Ask the independent checker, then write the folder whole or not at all; an earlier one goes only with `force`."""
    from certiformer.checker.machine_folder import machine_certificate

    check_place(Path(directory), force)
    files = machine_files(compiled)
    certificate = machine_certificate(files)
    _put(Path(directory), {**files, CERTIFICATE: certificate.to_bytes()})
    return certificate


def load_machine(directory: str | Path) -> CompiledMachine:
    """The compiled machine that `save_machine` wrote."""
    from certiformer.model.store import from_bytes

    folder = Path(directory)
    machine = Machine.from_text(read_bytes(folder / MACHINE))
    model = from_bytes(read_bytes(folder / CONFIG), read_bytes(folder / MODEL), folder)
    found = CompiledMachine(
        machine, model.config.tokens, model.config, {name: np.asarray(t) for name, t in model.tensors.items()}
    )
    layout = found.layout
    sizes = (model.config.width, model.config.outputs, model.config.input.vocabulary)
    if sizes != (layout.width, layout.outputs, layout.vocabulary) or len(model.config.blocks) != 1:
        raise BadInput(f"the transformer in {directory} is not that of the machine beside it")
    return found


def check_place(folder: Path, force: bool) -> None:
    """Refuse a place that is taken by something else than an earlier compiled machine."""
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"{folder} is a file; a compiled machine is a folder")
    present = {path.name for path in folder.iterdir()} if folder.exists() else set()
    if present and (MACHINE not in present or present - set(FILES)):
        raise BadInput(f"{folder} is not empty and not an earlier compiled machine; choose another --out")
    if present and not force:
        raise BadInput(f"{folder} already holds a compiled machine; add --force to replace it or choose another --out")


def _put(folder: Path, files: Mapping[str, bytes]) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        staged = scratch / "new"
        staged.mkdir()
        for name, data in files.items():
            write_atomically(staged / name, data)
        if folder.exists():
            os.replace(folder, scratch / "old")
        os.replace(staged, folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
