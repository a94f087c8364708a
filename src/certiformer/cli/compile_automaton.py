"""`certiformer compile automaton`: from a regular expression or a table to a transformer that is proved to recognise it."""

from __future__ import annotations

import re
import shlex
import time
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from tyro.conf import Positional, arg

from certiformer.cli.options import Flag, OptionalFolder, OptionalText
from certiformer.cli.terminal import Terminal
from certiformer.errors import BadInput

if TYPE_CHECKING:
    from certiformer.kernel.meanings.automaton import Automaton

SUMMARY = "Turn a finite automaton into a transformer that is proved to read every word up to a length as it does."
EXAMPLES = """
  certiformer compile automaton "(ab)*" --length 1000                    # a regular expression; needs certiformer[automata]
  certiformer compile automaton "(a|b)*abb" --length 100 --form log-depth
  certiformer compile automaton ".*a" --alphabet "a b c" --length 20 --form chain-of-thought
  certiformer compile automaton parity.toml --length 1000 --dtype float32

An automaton file has start, accept and transitions = [[state, symbol, next], ...].
exit codes: 0 certified, 2 a mistake in the expression, the file or the flags, 3 compiled but not proved
"""

LONGEST_PATH = 250  # characters; a longer text cannot name a file everywhere, and is an expression


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
    from certiformer.compiler.automata import compile_automaton, notes
    from certiformer.compiler.automata.store import RULES, automaton_files
    from certiformer.compiler.folder import computation_place, save_computation
    from certiformer.kernel.files import AUTOMATON

    began = time.monotonic()
    if options.length is None:
        raise BadInput("--length says how many symbols a word may have, for instance --length 1000")
    automaton, name = _automaton(options)
    out = Path(options.out) if options.out is not None else Path("runs") / name
    with computation_place(out, AUTOMATON, options.force):
        compiled = compile_automaton(automaton, options.length, options.form, options.dtype)
        for note in notes(automaton):
            terminal.note(f"note: {note}")
        files, rule = automaton_files(compiled), RULES[compiled.form]
        certificate = save_computation(files, rule, out, options.force)
    sentence = import_module(f"certiformer.axioms.{rule}").sentence(files)
    hidden = sum(block.ffn.width for block in compiled.config.blocks if block.ffn is not None)
    sizes = {
        "states": len(automaton.states),
        "symbols": len(automaton.symbols),
        "width": compiled.config.width,
        "hidden": hidden,
        "passes": compiled.config.loops,
    }
    seconds = round(time.monotonic() - began, 3)
    if terminal.json:
        facts = {"outcome": certificate.outcome.value, "level": certificate.level, "reason": certificate.reason}
        facts |= {"sentence": sentence, "form": compiled.form, "length": compiled.length}
        terminal.emit({**facts, **sizes, "seconds": seconds, "directory": str(out)})
    else:
        proved = certificate.level == 2
        terminal.fact("certified" if proved else "not proved", sentence, "good" if proved else "weak")
        terminal.fact("proof", certificate.reason)
        passes = f"{sizes['passes']:,} pass{'es' * (sizes['passes'] > 1)}"
        size = f"{sizes['states']} states, width {sizes['width']}, {hidden:,} hidden units, {passes}, {options.dtype}"
        terminal.fact("size", f"{size}; {seconds:.2f} s")
        word = " ".join((automaton.symbols * 4)[: min(4, options.length)])
        terminal.facts("next", [f"certiformer run {shlex.quote(str(out))} {shlex.quote(word)}"])
    return certificate.outcome.exit_code(certificate.level)


def _automaton(options: Options) -> tuple[Automaton, str]:
    """The automaton of the source, and a name for its folder."""
    from certiformer.compiler.automata import from_expression, read_automaton

    source = options.source
    if source.endswith(".toml") or (len(source) < LONGEST_PATH and Path(source).is_file()):
        if options.alphabet is not None:
            raise BadInput("--alphabet is for regular expressions; the alphabet of a file is written in the file")
        return read_automaton(source), Path(source).stem
    alphabet = None if options.alphabet is None else options.alphabet.split()
    if alphabet is not None and len(alphabet) == 1:
        alphabet = list(alphabet[0])
    name = re.sub(r"\W+", "-", source).strip("-")[:40] or "automaton"
    return from_expression(source, alphabet), name
