"""`certiformer compile machine`: from the table of a Turing machine to a looped transformer that is proved to run it."""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from certiformer.cli.options import Flag, OptionalFolder
from certiformer.cli.terminal import Terminal

SUMMARY = "Turn a Turing machine into a looped transformer that is proved to run it, any number of steps."
EXAMPLES = """
  certiformer compile machine bb5.toml --tape 400                    # two-sided, cell 0 in the middle
  certiformer compile machine bb5.toml --tape 24600 --dtype float32  # long enough for its 47,176,870 steps

A machine file has blank, start, halt and transitions = [[state, read, write, L|R|S, next], ...].
exit codes: 0 certified, 2 a mistake in the file or the flags, 3 compiled but not proved
"""


@dataclass(kw_only=True)
class Options:
    """The flags of `compile machine`."""

    file: Annotated[Positional[str], arg(metavar="FILE.toml")]
    """the machine"""
    tape: Annotated[int, arg(metavar="N")] = 400
    """how many cells the tape has"""
    out: OptionalFolder = None
    """the folder to write (default: runs/NAME)"""
    dtype: Literal["float64", "float32", "bfloat16"] = "float64"
    """the type of the weights and of the runs that the proof speaks of"""
    force: Flag = False
    """replace an earlier folder"""
    json: Flag = False
    """print one JSON object"""
    quiet: Flag = False
    """no notes"""


def run(options: Options, terminal: Terminal) -> int:
    """Compile, certify, write and report; returns the exit code."""
    from certiformer.certificate import MACHINE
    from certiformer.checker.rules.looped_machine import sentence as sentence_of
    from certiformer.compiler.folder import require_place
    from certiformer.compiler.machines import compile_machine, notes, read_machine
    from certiformer.compiler.machines.store import machine_files

    began = time.monotonic()
    machine = read_machine(options.file)
    out = Path(options.out) if options.out is not None else Path("runs") / Path(options.file).stem
    require_place(out, MACHINE, options.force)
    for note in notes(machine):
        terminal.note(f"note: {note}")
    compiled = compile_machine(machine, options.tape, options.dtype)
    certificate = compiled.save(out, options.force)
    ffn = compiled.config.blocks[0].ffn
    sizes = {"width": compiled.config.width, "hidden": 0 if ffn is None else ffn.width, "cells": compiled.cells}
    sentence = sentence_of(machine_files(compiled))
    seconds = round(time.monotonic() - began, 3)
    if terminal.json:
        facts = {"outcome": certificate.outcome.value, "level": certificate.level, "reason": certificate.reason}
        terminal.emit({**facts, "sentence": sentence, **sizes, "seconds": seconds, "directory": str(out)})
    else:
        proved = certificate.level == 2
        terminal.fact("certified" if proved else "not proved", sentence, "good" if proved else "weak")
        terminal.fact("proof", certificate.reason)
        size = f"width {sizes['width']}, {sizes['hidden']} hidden units, 2 heads, {options.dtype}"
        terminal.fact("size", f"{size}; {seconds:.2f} s")
        terminal.facts("next", [f'certiformer run {shlex.quote(str(out))} "" --steps 1000'])
    return certificate.outcome.exit_code(certificate.level)
