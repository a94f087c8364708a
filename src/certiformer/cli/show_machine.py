"""The part of `certiformer show` that speaks of compiled machines."""

from __future__ import annotations

import shlex
from pathlib import Path

from certiformer.cli.terminal import Terminal

NOT_CLAIMED = (
    "Longer tapes: a step off the tape is not made; it raises a flag, and `run` says which cell was needed.",
    "Whether the machine halts: the proof is about every single step.",
    "Other engines: a run counts when it keeps the rules of float semantics (docs); not every engine was tried.",
)


def show_machine(directory: str, terminal: Terminal) -> int:
    """Say what a machine's folder claims; returns the exit code."""
    from certiformer.certificate import CERTIFICATE, Certificate, read_bytes
    from certiformer.checker.machine_folder import machine_sentence
    from certiformer.compiler.machines import load_machine

    compiled = load_machine(directory)
    certificate = Certificate.from_bytes(read_bytes(Path(directory) / CERTIFICATE))
    config = compiled.config
    sentence = machine_sentence(compiled.machine, compiled.cells, config.dtype)
    recorded = {"outcome": certificate.outcome.value, "level": certificate.level, "reason": certificate.reason}
    if terminal.json:
        sizes = {"width": config.width, "cells": compiled.cells, "dtype": config.dtype}
        terminal.emit({"sentence": sentence, **recorded, **sizes, "not_claimed": NOT_CLAIMED, "directory": directory})
    elif terminal.quiet:
        terminal.say(sentence)
    else:
        terminal.fact("claim", sentence, "strong")
        outcome = f"{recorded['outcome']} at level {recorded['level']}: {recorded['reason']}"
        terminal.fact("recorded", f"{outcome} (not verified here; `check` does that)")
        for number, text in enumerate(NOT_CLAIMED):
            terminal.fact("not said" if number == 0 else "", text)
        folder = shlex.quote(directory)
        terminal.facts("next", [f"certiformer check {folder}   # believes nothing of the above"])
    return 0
