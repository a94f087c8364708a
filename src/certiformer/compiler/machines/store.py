"""A compiled machine and its folder: `compiler.folder` with the table of the machine in `machine.json`."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from certiformer.certificate import MACHINE, Certificate, read_bytes
from certiformer.compiler.folder import files_of, load_model, save_computation
from certiformer.compiler.machines.compiled import CompiledMachine
from certiformer.errors import BadInput
from certiformer.target.machine import Machine

RULE = "looped_machine"


def machine_files(compiled: CompiledMachine) -> dict[str, bytes]:
    """The files of a compiled machine, all but the certificate."""
    return files_of(compiled.config, compiled.tensors, MACHINE, compiled.machine.to_text())


def save_machine(compiled: CompiledMachine, directory: str | Path, force: bool = False) -> Certificate:
    """Write the folder, with the certificate of the independent checker, which is returned."""
    return save_computation(machine_files(compiled), RULE, directory, force)


def load_machine(directory: str | Path) -> CompiledMachine:
    """The compiled machine that `save_machine` wrote."""
    machine = Machine.from_text(read_bytes(Path(directory) / MACHINE))
    model = load_model(directory)
    found = CompiledMachine(
        machine, model.config.tokens, model.config, {name: np.asarray(t) for name, t in model.tensors.items()}
    )
    layout = found.layout
    sizes = (model.config.width, model.config.outputs, model.config.input.vocabulary)
    if sizes != (layout.width, layout.outputs, layout.vocabulary) or len(model.config.blocks) != 1:
        raise BadInput(f"the transformer in {directory} is not that of the machine beside it")
    return found
