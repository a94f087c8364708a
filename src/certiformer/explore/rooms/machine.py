"""Machines and automata of the room *Program*: the tape runs, and any step can be opened."""

from __future__ import annotations

import time
from typing import Any

from certiformer.errors import BadInput
from certiformer.explore.requests import choice, read_entries, text, whole
from certiformer.explore.rooms.events import Emit

EXAMPLES = ("beaver 2", "beaver 3", "beaver 4", "increment", "palindrome", "own")
MOST_STEPS, MOST_CELLS = 20_000, 2_000


def read(request: dict[str, Any]) -> dict[str, Any]:
    """What may be asked."""
    return read_entries(
        request,
        kind=choice("machine", "automaton"),
        example=choice(*EXAMPLES),
        text=text(4_000, lines=True),
        input=text(400),
        steps=whole(1, MOST_STEPS),
        cells=whole(4, MOST_CELLS),
    )


def run(request: dict[str, Any], folder: str | None, emit: Emit) -> dict[str, Any]:
    """Compile and prove, then run the transformer and say every configuration."""
    return _machine(request, folder) if request["kind"] == "machine" else _automaton(request, folder)


def _machine(request: dict[str, Any], folder: str | None) -> dict[str, Any]:
    import certiformer
    from certiformer.compiler.machines.examples import INCREMENT, PALINDROME, busy_beaver
    from certiformer.compiler.machines.file import parse_machine, split_symbols

    name, own = request["example"], request["text"]
    if name.startswith("beaver"):
        machine = busy_beaver(int(name.split()[1]))
    else:
        known = {"increment": INCREMENT, "palindrome": PALINDROME, "own": own}
        machine = parse_machine(known[name])
    artifact = certiformer.compile_machine(machine, tape=request["cells"], out=folder)
    compiled, word = artifact.subject, split_symbols(request["input"], machine)
    began = time.monotonic()
    moments = compiled.trace(word, request["steps"])
    result = compiled.run(word, request["steps"])
    return {
        "claim": artifact.claim,
        "word": artifact.word,
        "kept": artifact.directory is not None,
        "blank": machine.blank,
        "start": machine.start,
        "halt": list(machine.halting),
        "states": list(machine.states),
        "symbols": list(machine.symbols),
        "rules": [list(row) for row in machine.rows],
        "input": list(word),
        "moments": [[m.state, m.cell, m.symbol] for m in moments],
        "result": {"halted": result.halted, "steps": result.steps, "state": result.state, "ones": result.ones,
                   "tape": list(result.tape), "first": result.first},
        "seconds": round(time.monotonic() - began, 3),
    }  # fmt: skip


def _automaton(request: dict[str, Any], folder: str | None) -> dict[str, Any]:
    import certiformer
    from certiformer.compiler.automata.file import parse_automaton, split_word
    from certiformer.compiler.automata.regular_expression import from_expression

    source = request["text"].strip()
    if not source:
        raise BadInput("an automaton is a regular expression such as (ab)*, or the text of its table")
    automaton = parse_automaton(source) if "=" in source else from_expression(source)
    artifact = certiformer.compile_automaton(automaton, length=min(request["cells"], 256), out=folder)
    word = split_word(request["input"], automaton)
    result = artifact.subject.run(word)
    return {
        "claim": artifact.claim,
        "word": artifact.word,
        "kept": artifact.directory is not None,
        "input": list(word),
        "states": [automaton.start, *result.states],
        "accepted": result.accepted,
        "steps": result.steps,
    }
