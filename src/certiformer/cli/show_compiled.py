"""The part of `certiformer show` that speaks of compiled programs."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from certiformer.cli.terminal import Terminal

if TYPE_CHECKING:
    from certiformer.compiled import CompiledProgram

NOT_CLAIMED = (
    "Other inputs: longer ones, and tokens outside of the vocabulary.",
    "What you meant: the proof is about the recorded program, not about the Python that made it.",
    "Other engines: a run counts when it keeps the rules of float semantics (docs); not every engine was tried.",
    "Who made the files: the hashes show accidents; anyone can make a consistent folder.",
)


def show_compiled(directory: str, draw: bool, terminal: Terminal) -> int:
    """Say what a compiled program's folder claims; returns the exit code."""
    from certiformer.compiled.program import load_compiled

    compiled = load_compiled(directory)
    page = _drawn(compiled, terminal) if draw else _page(Path(directory))
    facts = _facts(compiled, directory, page)
    if terminal.json:
        terminal.emit(facts)
    elif terminal.quiet:
        terminal.say(facts["sentence"])
    else:
        _describe(compiled, facts, terminal)
    return 0


def _page(folder: Path) -> Path | None:
    from certiformer.compiled.files import DRAWING

    return folder / DRAWING if (folder / DRAWING).is_file() else None


def _drawn(compiled: CompiledProgram, terminal: Terminal) -> Path:
    """The drawing, made from the files and shown in the browser."""
    from certiformer.cli.show import open_page, place_for_a_page
    from certiformer.compiled.circuit_data import circuit_data
    from certiformer.compiled.files import DRAWING
    from certiformer.disk import write_atomically
    from certiformer.report.circuit_page import write_circuit

    path = place_for_a_page() / DRAWING
    write_atomically(path, write_circuit(circuit_data(compiled)).encode("utf-8"))
    open_page(path, terminal)
    return path


def _facts(compiled: CompiledProgram, directory: str, page: Path | None) -> dict[str, Any]:
    from certiformer.kernel.certificate import rules_used

    certificate, bill = compiled.certificate, compiled.bill
    return {
        "sentence": compiled.sentence(),
        "checked": False,
        "recorded": compiled.word,
        "outcome": certificate.outcome.value,
        "level": certificate.level,
        "reason": certificate.reason,
        "rules": [] if certificate.proof is None else rules_used(certificate.proof),
        "layers": bill.layers,
        "width": bill.width,
        "heads": bill.heads,
        "units": bill.units,
        "parameters": bill.parameters,
        "bytes": bill.bytes,
        "causes": dict(bill.causes[:10]),
        "dtype": compiled.dtype,
        "seconds": round(sum(certificate.seconds.values()), 3),
        "versions": certificate.versions,
        "not_claimed": list(NOT_CLAIMED),
        "program": str(compiled.graph),
        "page": None if page is None else str(page),
        "directory": directory,
    }


def _describe(compiled: CompiledProgram, facts: dict[str, Any], terminal: Terminal) -> None:
    from certiformer.cli.show import say_recorded, say_rests_on
    from certiformer.report.numbers import size_text

    terminal.fact("claim", facts["sentence"], "strong")
    say_recorded(facts, terminal)
    say_rests_on(facts["rules"], 0, terminal)
    terminal.fact("size", f"{compiled.bill}, {size_text(facts['bytes'])} in {facts['dtype']}")
    causes = [f"{count:>9,} {name}" for name, count in compiled.bill.causes[:5]]
    terminal.listing("parameters", causes)
    program = facts["program"].splitlines()
    more = [f"... {len(program) - 30} more lines"] if len(program) > 30 else []
    terminal.listing("program", [*program[:30], *more])
    for number, sentence in enumerate(facts["not_claimed"]):
        terminal.fact("not said" if number == 0 else "", sentence)
    folder = shlex.quote(facts["directory"])
    terminal.fact("drawing", facts["page"] or f"none; certiformer show {folder} --open draws one")
    terminal.facts("next", [f"certiformer check {folder}   # believes nothing of the above"])
