"""The part of `certiformer show` that speaks of transformers that compute: machines, automata, circuits, learners."""

from __future__ import annotations

import shlex
from pathlib import Path

from certiformer.cli.terminal import Terminal

ENGINES = "Other engines: a run counts when it keeps the rules of float semantics (docs); not every engine was tried."


def show_computation(directory: str, terminal: Terminal) -> int:
    """Say what such a folder claims; returns the exit code."""
    from certiformer.cli.show import say_recorded, say_rests_on
    from certiformer.compiler.folder import load_model
    from certiformer.kernel.certificate import certificate_in, rules_used
    from certiformer.kernel.computation import claimed
    from certiformer.kernel.files import read_files

    folder = Path(directory)
    files = read_files(folder)
    certificate = certificate_in(files)
    sentence, not_claimed = claimed(certificate, files)
    model = load_model(directory)
    not_claimed = (*not_claimed, ENGINES)
    recorded = {
        "checked": False,
        "outcome": certificate.outcome.value,
        "level": certificate.level,
        "reason": certificate.reason,
        "rules": [] if certificate.proof is None else rules_used(certificate.proof),
    }
    if terminal.json:
        sizes = {"width": model.config.width, "tokens": model.config.tokens, "dtype": model.config.dtype}
        sizes["parameters"] = sum(int(tensor.size) for tensor in model.tensors.values())
        terminal.emit({"sentence": sentence, **recorded, **sizes, "not_claimed": not_claimed, "directory": directory})
    elif terminal.quiet:
        terminal.say(sentence)
    else:
        terminal.fact("claim", sentence, "strong")
        say_recorded({**recorded, "directory": directory}, terminal)
        say_rests_on(recorded["rules"], 0, terminal)
        for number, text in enumerate(not_claimed):
            terminal.fact("not said" if number == 0 else "", text)
        terminal.facts("next", [f"certiformer check {shlex.quote(directory)}   # believes nothing of the above"])
    return 0
