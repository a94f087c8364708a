"""The part of `certiformer run` that speaks of compiled automata: a word in, the answer and every state out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from certiformer.cli.terminal import Terminal
from certiformer.errors import BadInput

if TYPE_CHECKING:
    from certiformer.artifact import Artifact
    from certiformer.cli.run import Options

_STEPS = {"chain-of-thought": ("token written", "tokens written"), "": ("pass", "passes")}


def run(artifact: Artifact, options: Options, terminal: Terminal) -> int:
    """Read a word with the automaton of a folder; returns the exit code."""
    from certiformer.cli.run import refuse_flags
    from certiformer.cli.run_tables import table_lines
    from certiformer.compiler.automata import split_word

    refuse_flags(options, "a compiled automaton", "tokens")
    if options.tokens is None:
        raise BadInput('give the word to read, as in "a b a b"; the empty word is ""')
    compiled = artifact.subject
    word = split_word(options.tokens, compiled.automaton)
    result = compiled.run(word)
    answer = "accepted" if result.accepted else "rejected"
    if terminal.json:
        facts = {"outcome": "done", "accepted": result.accepted, "state": result.state, "states": list(result.states)}
        facts |= {"steps": result.steps, "form": compiled.form, "dtype": compiled.config.dtype}
        terminal.emit({**facts, "word": list(word), "directory": options.directory})
    elif terminal.quiet:
        terminal.say(answer)
    else:
        for line in table_lines(["", *word], [compiled.automaton.start, *result.states]):
            terminal.say(line)
        one, many = _STEPS.get(compiled.form, _STEPS[""])
        steps = f"{result.steps:,} {one if result.steps == 1 else many}"
        read = f"{len(word):,} symbol{'s' * (len(word) != 1)}"
        terminal.fact(answer, f"in state {result.state} after {read}; {steps}", "good")
    return 0
