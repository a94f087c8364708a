"""`certiformer compile machine`: from the table of a Turing machine to a transformer that is proved to run it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from certiformer.cli.options import Flag, OptionalFolder
from certiformer.cli.terminal import Terminal

SUMMARY = "Turn a Turing machine into a transformer that is proved to run it: looped, or writing one token a step."
EXAMPLES = """
  certiformer compile machine bb5.toml --tape 400                    # looped: any number of steps on 400 cells
  certiformer compile machine bb5.toml --tape 24600 --dtype float32  # long enough for its 47,176,870 steps
  certiformer compile machine bb4.toml --form chain-of-thought --steps 200 --symbols 0
  certiformer compile machine bb4.toml --form encoder-decoder --steps 200

A machine file has blank, start, halt and transitions = [[state, read, write, L|R|S, next], ...].
exit codes: 0 certified, 2 a mistake in the file or the flags, 3 compiled but not proved
"""


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
    from certiformer.api.compiling import compile_machine
    from certiformer.cli.compile import report
    from certiformer.compiler.machines import notes, read_machine

    began = time.monotonic()
    machine = read_machine(options.file)
    out = Path(options.out) if options.out is not None else Path("runs") / Path(options.file).stem
    for note in notes(machine):
        terminal.note(f"note: {note}")
    horizon = {name: getattr(options, name) for name in ("form", "tape", "steps", "symbols", "dtype")}
    compiled = compile_machine(machine, **horizon, out=out, force=options.force)
    steps = min(1_000, getattr(compiled.subject, "steps", 1_000))  # the looped form has no horizon
    return report(compiled, began, f'"" --steps {steps}', terminal)
