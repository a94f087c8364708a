"""Turing machines as transformers: a table goes in, the weights that run it come out.

`machine_loop` gives the looped block (one pass of one block is one step, exactly, for ever on a bounded tape);
`ChainOfThought` and `EncoderDecoder` write one token for each step, up to a horizon, on a free tape.
"""

from __future__ import annotations

from certiformer.compiler.machines.chain_of_thought import ChainOfThought as ChainOfThought
from certiformer.compiler.machines.compiled import LoopedMachine as LoopedMachine
from certiformer.compiler.machines.compiled import machine_loop as machine_loop
from certiformer.compiler.machines.costs import costs_of as costs_of
from certiformer.compiler.machines.decoder import Decoder as Decoder
from certiformer.compiler.machines.encoder_decoder import EncoderDecoder as EncoderDecoder
from certiformer.compiler.machines.file import notes as notes
from certiformer.compiler.machines.file import parse_machine as parse_machine
from certiformer.compiler.machines.file import read_machine as read_machine
from certiformer.compiler.machines.file import split_symbols as split_symbols
from certiformer.compiler.machines.simulate import Moment as Moment
from certiformer.compiler.machines.simulate import Result as Result
from certiformer.compiler.machines.simulate import simulate as simulate
from certiformer.compiler.machines.simulate import used_cells as used_cells
from certiformer.compiler.machines.simulate import used_tape as used_tape
from certiformer.compiler.machines.store import machine_from_files as machine_from_files
from certiformer.kernel.meanings.machine import Machine as Machine
