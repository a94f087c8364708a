"""`certiformer compile automaton`: from a regular expression or a table to a transformer that is proved to recognise it."""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from certiformer.cli.options import Flag, OptionalFolder, OptionalText
from certiformer.cli.terminal import Terminal
from certiformer.errors import BadInput

SUMMARY = "Turn a finite automaton into a transformer that is proved to read every word up to a length as it does."
EXAMPLES = """
  certiformer compile automaton "(ab)*" --length 1000                    # a regular expression; needs certiformer[automata]
  certiformer compile automaton "(a|b)*abb" --length 100 --form log-depth
  certiformer compile automaton ".*a" --alphabet "a b c" --length 20 --form chain-of-thought
  certiformer compile automaton parity.toml --length 1000 --dtype float32

An automaton file has start, accept and transitions = [[state, symbol, next], ...].
exit codes: 0 certified, 2 a mistake in the expression, the file or the flags, 3 compiled but not proved
"""


@dataclass(kw_only=True)
class Options:
    """The flags of `compile automaton`."""

    source: Annotated[Positional[str], arg(metavar="REGEX|FILE.toml")]
    """a regular expression, or the table of an automaton"""
    length: Annotated[int | None, arg(metavar="N", help_behavior_hint="(needed)")] = None
    """how many symbols a word may have; shorter words and the empty one are read too"""
    form: Literal["looped", "chain-of-thought", "log-depth"] = "looped"
    """one block and a pass for every symbol, or a written state for every symbol, or two blocks and log2 N passes"""
    alphabet: OptionalText = None
    """of a regular expression: its letters, with blanks between (default: those it names)"""
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
    from certiformer.api.compiling import automaton_of, compile_automaton
    from certiformer.cli.compile import report
    from certiformer.compiler.automata import notes

    began = time.monotonic()
    if options.length is None:
        raise BadInput("--length says how many symbols a word may have, for instance --length 1000")
    automaton, name = automaton_of(options.source, options.alphabet)
    out = Path(options.out) if options.out is not None else Path("runs") / name
    for note in notes(automaton):
        terminal.note(f"note: {note}")
    compiled = compile_automaton(
        automaton, length=options.length, form=options.form, dtype=options.dtype, out=out, force=options.force
    )
    word = " ".join((automaton.symbols * 4)[: min(4, options.length)])
    return report(compiled, began, shlex.quote(word), terminal)
