"""What `circuit.html` shows, as plain data: the circuit in sentences, and the transformer run on one example."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from certiformer.artifact import Artifact
from certiformer.compiler.programs.program import TokenProgram
from certiformer.compiler.programs.trace import Trace, sublayers
from certiformer.kernel.files import MODEL
from certiformer.kernel.situations.rasp.circuit import ATTENTION, EMBEDDING, FFN, HeadRole, UnitRole
from certiformer.rasp.graph import Graph
from certiformer.rasp.value import Value, plain

EXAMPLE_LENGTH = 8
MAX_HEADS = 24  # whose patterns are drawn; a page of hundreds helps nobody


def example_input(compiled: TokenProgram) -> list[Value]:
    """Some tokens to look at, always the same ones: as many different ones as fit."""
    n = min(compiled.length, EXAMPLE_LENGTH)
    return random.Random(0).sample(compiled.vocab * (1 + n // len(compiled.vocab)), n)


def circuit_data(artifact: Artifact, tokens: Sequence[Value] | None = None) -> dict[str, Any]:
    """The data of `report.circuit_page`; the subject of the artifact is a `TokenProgram`."""
    compiled: TokenProgram = artifact.subject
    xs = list(tokens) if tokens else example_input(compiled)
    bill, graph = compiled.bill, compiled.extended
    order = sublayers(compiled.config)
    return {
        "name": artifact.name,
        "word": artifact.word,
        "sentence": artifact.claim,
        "facts": [
            ("layers", f"{bill.layers:,}"),
            ("heads", f"{bill.heads:,}"),
            ("hidden units", f"{bill.units:,}"),
            ("width", f"{bill.width:,}"),
            ("parameters", f"{bill.parameters:,}"),
            ("dtype", compiled.dtype),
            ("file size", f"{len(compiled.files[MODEL]) / 1000:,.1f} kB"),
        ],
        "width": 1 + max((cell.coordinate for cell in compiled.circuit.cells), default=0),
        "sublayers": [sublayer_name(*sublayer) for sublayer in order],
        "cells": _cells(compiled, graph, compiled.trace(xs)),
        "steps": steps(compiled, graph),
        "example": {"tokens": list(map(spell, xs)), "outputs": list(map(spell, compiled.run_exactly(xs)))},
        "patterns": patterns(compiled, xs),
        "program": str(compiled.graph),
        "directory": None if artifact.directory is None else str(artifact.directory),
    }


def spell(value: Value) -> str:
    """A value in a table."""
    shown = plain(value)
    return f"{shown:.4g}" if isinstance(shown, float) else str(shown)


def sublayer_name(block: int, kind: str) -> str:
    """A sub-layer in words, counted from 1.

    >>> sublayer_name(0, "embedding"), sublayer_name(1, "ffn")
    ('embedding', 'feed-forward 2')
    """
    return {EMBEDDING: "embedding", ATTENTION: f"attention {block + 1}", FFN: f"feed-forward {block + 1}"}[kind]


def head_text(graph: Graph, head: HeadRole) -> str:
    """What a head does, in words."""
    node = graph.nodes[head.node]
    if head.kind == "width":
        return f"{node.name}: how many positions with {selector_text(graph, head.selector)}".replace(
            " with anywhere", " there are"
        )
    value = graph.nodes[node.inputs[1]].name if len(node.inputs) > 1 else node.name
    return f"{node.name}: {value} where {selector_text(graph, head.selector)}"


def selector_text(graph: Graph, number: int, depth: int = 0) -> str:
    """A selector in words: keys compared with queries."""
    node = graph.nodes[number]
    if depth > 3:
        return "..."
    parts = [selector_text(graph, i, depth + 1) for i in node.inputs] if node.kind in ("and", "or", "not") else []
    if node.kind in ("and", "or"):
        return f"({parts[0]} {node.kind} {parts[1]})"
    if node.kind == "not":
        return f"not {parts[0]}"
    if node.kind == "pattern":
        return "as written"
    word = getattr(node.function, "value", None)
    parts = [graph.nodes[i] for i in node.inputs]
    keys, queries = (spell(part.constant) if part.kind == "full" else part.name for part in parts)
    if word in ("True", "False"):
        return "anywhere" if word == "True" else "nowhere"
    return f"{keys} {word} {queries}" if isinstance(word, str) else f"{node.name}({keys}, {queries})"


def unit_text(compiled: TokenProgram, unit: UnitRole) -> str:
    """What a group of hidden units does, in words."""
    cells = compiled.circuit.cells
    written = ", ".join(cells[c].name for c in unit.cells)
    if unit.kind == "clear":
        return f"{written} is no longer needed"
    read = ", ".join(dict.fromkeys(cells[c].name for c in unit.reads)) or "nothing"
    return f"{written} from {read} ({unit.count:,} hidden unit{'' if unit.count == 1 else 's'})"


def steps(compiled: TokenProgram, graph: Graph) -> list[dict[str, Any]]:
    """Every embedding, head and group of units as a row of the drawing, in the order of computation."""
    order = sublayers(compiled.config)
    circuit, rows = compiled.circuit, []
    for number, cell in enumerate(circuit.cells):
        if cell.written[1] == EMBEDDING:
            rows.append(_step(0, "embedding", cell.name, writes=[number]))
    for head in circuit.heads:
        reads = {"query": head.queries, "key": head.keys, "value": head.values}
        where = order.index((head.block, ATTENTION))
        rows.append(_step(where, "head", head_text(graph, head), reads, head.writes))
    for unit in circuit.units:
        where = order.index((unit.block, FFN))
        if unit.kind == "clear":
            rows.append(_step(where, "clear", unit_text(compiled, unit), clears=unit.cells))
        else:
            rows.append(_step(where, "table", unit_text(compiled, unit), {"value": unit.reads}, unit.cells))
    return sorted(rows, key=lambda row: row["sublayer"])


def _step(
    sublayer: int,
    kind: str,
    text: str,
    reads: Mapping[str, Sequence[int]] | None = None,
    writes: Sequence[int] = (),
    clears: Sequence[int] = (),
) -> dict[str, Any]:
    used = {role: list(cells) for role, cells in (reads or {}).items()}
    return {
        "sublayer": sublayer,
        "kind": kind,
        "text": text,
        "reads": used,
        "writes": list(writes),
        "clears": list(clears),
    }


def patterns(compiled: TokenProgram, xs: Sequence[Value]) -> dict[str, Any]:
    """Where every head looks on one input, as a picture of the report."""
    tokens = list(map(spell, xs))
    heads = []
    weights = compiled.attention_weights(xs) if compiled.circuit.heads else []
    for head, matrix in list(zip(compiled.circuit.heads, weights, strict=True))[:MAX_HEADS]:
        name = f"{sublayer_name(head.block, ATTENTION)}: {head_text(compiled.extended, head)}"
        drawn = {"rows": tokens, "columns": ["start", *tokens], "values": matrix[1:].tolist()}
        heads.append({"name": name, "maps": [drawn]})
    more = len(weights) - len(heads)
    caption = "Row: the position that looks; column: where it looks. The first column is the beginning of the sequence."
    caption += f" {more} more heads are not drawn." if more > 0 else ""
    return {"kind": "attention", "title": "", "caption": caption, "inputs": [" ".join(tokens)], "heads": heads}


def _cells(compiled: TokenProgram, graph: Graph, readings: Trace) -> list[dict[str, Any]]:
    shown = {reading.number: reading for reading in readings.readings}
    rows = []
    for number, cell in enumerate(compiled.circuit.cells):  # in this order: a row is found by its id
        begin = sublayer_name(*cell.written)
        end = "the end" if cell.cleared is None else sublayer_name(*cell.cleared)
        values = graph.nodes[cell.node].values
        rows.append(
            {
                "id": number,
                "name": cell.name,
                "coordinate": cell.coordinate,
                "life": f"{begin} to {end}",
                "values": "" if values is None else str(values),
                "line": compiled.circuit.lines.get(str(cell.node), ""),
                "example": [f"{x:.4g}" for x in shown[number].held] if number in shown else [],
            }
        )
    return rows
