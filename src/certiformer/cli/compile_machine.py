"""`certiformer compile machine`: from the table of a Turing machine to a transformer that is proved to run it."""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from tyro.conf import Positional, arg

from certiformer.cli.options import Flag, OptionalFolder
from certiformer.cli.terminal import Terminal
from certiformer.errors import BadInput

if TYPE_CHECKING:
    from certiformer.compiler.machines import CompiledMachine, Decoder
    from certiformer.kernel.meanings.machine import Machine

SUMMARY = "Turn a Turing machine into a transformer that is proved to run it: looped, or writing one token a step."
EXAMPLES = """
  certiformer compile machine bb5.toml --tape 400                    # looped: any number of steps on 400 cells
  certiformer compile machine bb5.toml --tape 24600 --dtype float32  # long enough for its 47,176,870 steps
  certiformer compile machine bb4.toml --form chain-of-thought --steps 200 --symbols 0
  certiformer compile machine bb4.toml --form encoder-decoder --steps 200

A machine file has blank, start, halt and transitions = [[state, read, write, L|R|S, next], ...].
exit codes: 0 certified, 2 a mistake in the file or the flags, 3 compiled but not proved
"""
TAPE, STEPS, SYMBOLS = 400, 500, 32  # where the flags are not given
ENCODER_STEPS = {"float64": 500, "float32": 15}  # the precision that this form needs grows with the steps


@dataclass(kw_only=True)
class Options:
    """The flags of `compile machine`."""

    file: Annotated[Positional[str], arg(metavar="FILE.toml")]
    """the machine"""
    form: Literal["looped", "chain-of-thought", "encoder-decoder"] = "looped"
    """one pass a step on a bounded tape; or one token a step on a free tape, up to a horizon"""
    tape: Annotated[int | None, arg(metavar="N", help_behavior_hint="(default: 400)")] = None
    """looped: how many cells the tape has"""
    steps: Annotated[int | None, arg(metavar="T", help_behavior_hint="(default: 500)")] = None
    """the other forms: the horizon"""
    symbols: Annotated[int | None, arg(metavar="L", help_behavior_hint="(default: 32)")] = None
    """the other forms: how long an input may be"""
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
    from certiformer.compiler.folder import computation_place, files_of
    from certiformer.compiler.machines import notes, read_machine
    from certiformer.kernel.files import MACHINE

    began = time.monotonic()
    machine = read_machine(options.file)
    out = Path(options.out) if options.out is not None else Path("runs") / Path(options.file).stem
    with computation_place(out, MACHINE, options.force):
        for note in notes(machine):
            terminal.note(f"note: {note}")
        compiled = _compiled(machine, options)
        certificate = compiled.save(out, options.force)
    config = compiled.config
    rule = import_module(f"certiformer.axioms.{options.form.replace('-', '_')}_machine")
    sentence = rule.sentence(files_of(config, compiled.tensors, MACHINE, machine.to_text()))
    hidden = sum(block.ffn.width for block in config.blocks if block.ffn is not None)
    sizes = {"form": options.form, "width": config.width, "hidden": hidden, **_horizon(compiled)}
    seconds = round(time.monotonic() - began, 3)
    if terminal.json:
        facts = {"outcome": certificate.outcome.value, "level": certificate.level, "reason": certificate.reason}
        terminal.emit({**facts, "sentence": sentence, **sizes, "seconds": seconds, "directory": str(out)})
    else:
        proved = certificate.level == 2
        terminal.fact("certified" if proved else "not proved", sentence, "good" if proved else "weak")
        terminal.fact("proof", certificate.reason)
        blocks = [block.attention for block in config.blocks if block.attention is not None]
        heads = sum(group.count for attention in blocks for group in attention.heads)
        size = f"width {config.width}, {hidden:,} hidden units, {heads} heads, {options.dtype}"
        terminal.fact("size", f"{size}; {seconds:.2f} s")
        steps = min(1_000, _horizon(compiled).get("steps", 1_000))
        terminal.facts("next", [f'certiformer run {shlex.quote(str(out))} "" --steps {steps}'])
    return certificate.outcome.exit_code(certificate.level)


def _compiled(machine: Machine, options: Options) -> CompiledMachine | Decoder:
    from certiformer.compiler.machines import ChainOfThought, EncoderDecoder, compile_machine

    foreign = ("steps", "symbols") if options.form == "looped" else ("tape",)
    for name in foreign:
        if getattr(options, name) is not None:
            reason = "which runs any number of steps" if options.form == "looped" else "whose tape is free"
            raise BadInput(f"--{name} is not for the form {options.form}, {reason}")
    if options.form == "looped":
        return compile_machine(machine, TAPE if options.tape is None else options.tape, options.dtype)
    symbols = SYMBOLS if options.symbols is None else options.symbols
    if options.form == "chain-of-thought":
        return ChainOfThought(machine, STEPS if options.steps is None else options.steps, symbols, options.dtype)
    steps = ENCODER_STEPS.get(options.dtype, STEPS) if options.steps is None else options.steps
    return EncoderDecoder(machine, steps, symbols, options.dtype)


def _horizon(compiled: CompiledMachine | Decoder) -> dict[str, int]:
    from certiformer.compiler.machines import CompiledMachine

    if isinstance(compiled, CompiledMachine):
        return {"cells": compiled.cells}
    return {"steps": compiled.steps, "symbols": compiled.symbols}
