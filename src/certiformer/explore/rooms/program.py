"""*Program*: a RASP program becomes a transformer, and is stepped through token by token and layer by layer."""

from __future__ import annotations

from typing import Any

from certiformer.explore.requests import choice, optional, read_entries, text, whole
from certiformer.explore.rooms.events import Emit
from certiformer.report.live import numbers

MOST_CELLS = 400


def read(request: dict[str, Any]) -> dict[str, Any]:
    """What may be asked: a program of the library, or one of your own as text."""
    return read_entries(
        request,
        name=optional(text(40)),
        program=optional(text(4_000, lines=True)),
        vocab=text(200),
        length=whole(1, 64),
        tokens=text(400),
        dtype=choice("auto", "float32", "float64"),
    )


def run(request: dict[str, Any], folder: str | None, emit: Emit) -> dict[str, Any]:
    """Compile, prove, run one input, and read every variable after every sub-layer."""
    import certiformer
    from certiformer.compiler.programs.circuit_data import circuit_data, spell, sublayer_name
    from certiformer.compiler.programs.sources import read_input, read_vocab
    from certiformer.errors import BadInput
    from certiformer.rasp.library import catalogue
    from certiformer.rasp.text import parse_program

    if request["program"]:
        program, name = parse_program(request["program"]), "program"
        if not request["vocab"].strip():
            raise BadInput("a program of your own needs its tokens, for instance a,b,c")
    else:
        entries, name = catalogue(), request["name"] or ""
        if name not in entries:
            raise BadInput(f"the library has no such program; it has {', '.join(entries)}")
        program = entries[name].make()
    vocab = read_vocab(request["vocab"]) if request["vocab"].strip() else list(catalogue()[name].vocab)
    emit("note", stage="compile", note="compiling and proving")
    artifact = certiformer.compile(
        program, vocab, request["length"], dtype=request["dtype"], name=name, out=folder,
        progress=lambda stage, done, total, note: emit("note", stage=stage, note=note),
    )  # fmt: skip
    compiled = artifact.subject
    tokens = read_input(request["tokens"], compiled.vocab) or None
    data = circuit_data(artifact, tokens)
    tokens = tokens or data["example"]["tokens"]
    trace = compiled.trace(read_input(" ".join(map(spell, tokens)), compiled.vocab), everywhere=True)
    readings = [
        {
            "cell": reading.number,
            "after": sublayer_name(*reading.after),
            "values": list(map(spell, reading.values)),
            "held": numbers(reading.held, 5),
            "wanted": numbers(reading.wanted, 5),
            "deviation": reading.deviation if reading.deviation < float("inf") else None,
            "wrong": list(reading.wrong),
        }
        for reading in trace.readings[: MOST_CELLS * 10]
    ]
    return {
        "circuit": {**data, "directory": None, "cells": data["cells"][:MOST_CELLS]},
        "readings": readings,
        "outcome": artifact.outcome.value,
        "reason": artifact.certificate.reason,
        "kept": artifact.directory is not None,
    }
