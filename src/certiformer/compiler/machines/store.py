"""Which form of a machine a run folder holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from certiformer.compiler.computation import arrays_of
from certiformer.compiler.machines.chain_of_thought import ChainOfThought
from certiformer.compiler.machines.compiled import LoopedMachine
from certiformer.compiler.machines.decoder import Decoder
from certiformer.compiler.machines.encoder_decoder import EncoderDecoder
from certiformer.errors import BadInput
from certiformer.kernel.files import MACHINE
from certiformer.kernel.meanings.machine import Machine
from certiformer.model.config import Config

if TYPE_CHECKING:
    from certiformer.model.transformer import Transformer


def machine_from_files(files: Mapping[str, bytes], model: Transformer) -> LoopedMachine | Decoder:
    """The machine of a folder in the form that it was compiled to, which shows in its transformer."""
    machine, tensors = Machine.from_text(files[MACHINE]), arrays_of(model)
    kinds = [block.attention.kind for block in model.config.blocks if block.attention is not None]
    if not model.config.registers and "nearest" not in kinds:
        return _looped(machine, model.config, tensors)
    shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    dtype, tokens = model.config.dtype, model.config.tokens
    try:
        if model.config.registers:
            place = len(machine.symbols) + len(machine.states) + 1
            symbols = int(np.count_nonzero(tensors["blocks.0.ffn.up"][place])) // 2
            decoder: Decoder = ChainOfThought(machine, tokens - 1 - symbols, symbols, dtype)
        else:
            mark = shapes["code.table"][1] - len(machine.symbols) - 2
            cells = int(np.count_nonzero(tensors["code.table"][:, mark]))
            decoder = EncoderDecoder(machine, tokens - cells, cells - 2, dtype)
    except (KeyError, IndexError, BadInput):
        raise _not_of_machine() from None
    if decoder.config != model.config:
        raise _not_of_machine()
    return decoder.with_tensors(tensors)


def _looped(machine: Machine, config: Config, tensors: dict[str, np.ndarray]) -> LoopedMachine:
    machine_in_loops = LoopedMachine(machine, config.tokens, config, tensors)
    layout = machine_in_loops.layout
    sizes = (config.width, config.outputs, config.input.vocabulary)
    if sizes != (layout.width, layout.outputs, layout.vocabulary) or len(config.blocks) != 1:
        raise _not_of_machine()
    return machine_in_loops


def _not_of_machine() -> BadInput:
    return BadInput("the transformer in this folder is not that of the machine beside it")
