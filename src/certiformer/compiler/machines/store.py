"""A compiled machine and its folder: `compiler.folder` with the table of the machine in `machine.json`."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from certiformer.compiler.folder import files_of, load_model, save_computation
from certiformer.compiler.machines.chain_of_thought import ChainOfThought
from certiformer.compiler.machines.compiled import CompiledMachine
from certiformer.compiler.machines.decoder import Decoder
from certiformer.compiler.machines.encoder_decoder import EncoderDecoder
from certiformer.errors import BadInput
from certiformer.kernel.certificate import Certificate
from certiformer.kernel.files import MACHINE, read_bytes
from certiformer.kernel.meanings.machine import Machine
from certiformer.model.config import Config

RULE = "looped_machine"


def machine_files(compiled: CompiledMachine) -> dict[str, bytes]:
    """The files of a compiled machine, all but the certificate."""
    return files_of(compiled.config, compiled.tensors, MACHINE, compiled.machine.to_text())


def save_machine(compiled: CompiledMachine, directory: str | Path, force: bool = False) -> Certificate:
    """Write the folder, with the certificate of the checker, which is returned."""
    return save_computation(machine_files(compiled), RULE, directory, force)


def load_form(directory: str | Path) -> CompiledMachine | Decoder:
    """The machine of a folder in the form that it was compiled to."""
    machine = Machine.from_text(read_bytes(Path(directory) / MACHINE))
    model = load_model(directory)
    tensors = {name: np.asarray(t) for name, t in model.tensors.items()}
    kinds = [block.attention.kind for block in model.config.blocks if block.attention is not None]
    if not model.config.registers and "nearest" not in kinds:
        return _looped(machine, model.config, tensors, directory)
    shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    dtype, tokens = model.config.dtype, model.config.tokens
    try:
        if model.config.registers:
            place = len(machine.symbols) + len(machine.states) + 1
            symbols = int(np.count_nonzero(tensors["blocks.0.ffn.up"][place])) // 2
            found: Decoder = ChainOfThought(machine, tokens - 1 - symbols, symbols, dtype)
        else:
            mark = shapes["code.table"][1] - len(machine.symbols) - 2
            cells = int(np.count_nonzero(tensors["code.table"][:, mark]))
            found = EncoderDecoder(machine, tokens - cells, cells - 2, dtype)
    except (KeyError, IndexError, BadInput):
        raise _not_of_machine(directory) from None
    if found.config != model.config:
        raise _not_of_machine(directory)
    return found.with_tensors(tensors)


def load_machine(directory: str | Path) -> CompiledMachine:
    """The looped machine that `save_machine` wrote."""
    found = load_form(directory)
    if not isinstance(found, CompiledMachine):
        raise BadInput(f"{directory} holds the {found.form} of a machine, not a looped one")
    return found


def _looped(machine: Machine, config: Config, tensors: dict[str, np.ndarray], directory: str | Path) -> CompiledMachine:
    found = CompiledMachine(machine, config.tokens, config, tensors)
    layout = found.layout
    sizes = (config.width, config.outputs, config.input.vocabulary)
    if sizes != (layout.width, layout.outputs, layout.vocabulary) or len(config.blocks) != 1:
        raise _not_of_machine(directory)
    return found


def _not_of_machine(directory: str | Path) -> BadInput:
    return BadInput(f"the transformer in {directory} is not that of the machine beside it")
