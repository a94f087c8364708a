"""What `audit` prints: coverage, a table of layers, a table of theorems, the diagnostics."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from certiformer.cli.terminal import Terminal

if TYPE_CHECKING:
    from rich.table import Table

    from certiformer.audit import Audit
    from certiformer.audit.measure import LayerFigures

# What says something comes first.
TONES = {"holds": "green", "vacuous": "red", "holds-if": "yellow", "does-not-apply": "dim"}
LAYERS = 12  # rows of the table of layers: the first ones, then only a count


def say_audit(found: Audit, terminal: Terminal, met: list[str]) -> None:
    """The whole audit, or coverage and conditions only when quiet."""
    if not terminal.quiet:
        _say_model(found, terminal)
    _say_coverage(found, terminal)
    if not terminal.quiet:
        _say_layers(found, terminal)
        _say_theorems(found, terminal)
        for each in found.diagnostics:
            terminal.fact(each.id, f"{each.name}: {each.sentence}", "weak" if each.level == "warning" else "label")
    for text in met:
        terminal.fact("fails", f"the condition {text!r} is met", "bad")


def say_comparison(first: Audit, second: Audit, terminal: Terminal) -> None:
    """Figures of both checkpoints, and the theorems whose verdict changed."""
    from certiformer.audit.compare import comparison

    data = comparison(first, second)
    table = _table("figure", "this", "other", "ratio")
    for name, (ours, theirs) in data["figures"].items():
        ratio = f"{ours / theirs:.3g}" if ours is not None and theirs else ""
        table.add_row(name, _number(ours), _number(theirs), ratio)
    terminal.say()
    terminal.fact("compared", f"with {second.path}", "strong")
    terminal.table(table)
    for each in data["theorems"]:
        before, after = each["verdict"]
        if before != after:
            terminal.fact("changed", f"{each['id']}: {before} here, {after} there")


def _say_model(found: Audit, terminal: Terminal) -> None:
    checkpoint = found.checkpoint
    depth = sum(layer.repeats for layer in checkpoint.layers)
    norms = f"{checkpoint.norm_place}-norm" if checkpoint.norm_place else "no norms"
    positions = checkpoint.positions or "not known"
    context = f", made for {checkpoint.context:,} tokens" if checkpoint.context else ""
    shape = f"{depth} layer{'s' * (depth != 1)} of width {checkpoint.width:,}"
    text = f"{checkpoint.family}: {shape}, {norms}, positions {positions}{context}"
    terminal.fact("model", text, "strong")
    for note in (*checkpoint.notes, *found.measurements.notes):
        terminal.fact("note", note, "weak")


def _say_coverage(found: Audit, terminal: Terminal) -> None:
    coverage = found.coverage
    text = f"{coverage.accounted:,} of {coverage.total:,} parameters accounted for"
    if coverage.buffers:
        text += f", {len(coverage.buffers)} buffer{'s' * (len(coverage.buffers) > 1)} aside"
    if coverage.copies:
        text += f", {len(coverage.copies)} tied cop{'ies' if len(coverage.copies) > 1 else 'y'} counted once"
    terminal.fact("coverage", text, "bad" if coverage.missing else "good")
    for name, shape in coverage.missing:
        terminal.fact("missing", f"{name} {tuple(shape)}", "bad")
    for name in found.measurements.not_finite:
        terminal.fact("not finite", f"{name} has NaN or infinite entries", "bad")


def _say_layers(found: Audit, terminal: Terminal) -> None:
    table = _table("layer", "heads", "QK/√e max", "median", "random", "OV max", "random", "score bound", "α (median)")
    layers = found.measurements.layers
    for number, layer in enumerate(layers[:LAYERS]):
        times = f" x{layer.repeats}" if layer.repeats > 1 else ""
        table.add_row(f"{number}{times}", *_layer_cells(layer))
    terminal.say()
    terminal.table(table)
    if len(layers) > LAYERS:
        terminal.say(f"... and {len(layers) - LAYERS} layers more (--json and --out have all)")


def _layer_cells(layer: LayerFigures) -> list[str]:
    qk, vo = [head.qk for head in layer.heads], [head.vo for head in layer.heads if head.vo is not None]
    bounds = [head.score_bound for head in layer.heads if head.score_bound is not None]
    alphas = [each.decay.alpha for each in qk if each.decay is not None]
    return [
        str(len(layer.heads)),
        _number(max((each.spectral for each in qk), default=None)),
        _number(median(each.spectral for each in qk) if qk else None),
        _number(max((each.gaussian_spectral for each in qk), default=None)),
        _number(max((each.spectral for each in vo), default=None)),
        _number(max((each.gaussian_spectral for each in vo), default=None)),
        _number(max(bounds, default=None)),
        _number(median(alphas) if alphas else None),
    ]


def _say_theorems(found: Audit, terminal: Terminal) -> None:
    from rich.text import Text

    table = _table("theorem", "verdict", "value", "what it says")
    table.columns[2].justify = "right"
    table.columns[3].justify = "left"
    for each in sorted(found.verdicts, key=lambda each: list(TONES).index(each.verdict)):
        says = each.sentence if not each.needs else f"{each.sentence} Needs {'; '.join(each.needs)}."
        name = each.id.rpartition(".")[2]
        table.add_row(Text(name), Text(each.verdict, TONES[each.verdict]), _number(each.value), Text(says))
    terminal.say()
    terminal.table(table)
    terminal.say()


def _table(*names: str) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for place, name in enumerate(names):
        whole = name in ("theorem", "verdict", "value", "figure")
        table.add_column(name, justify="left" if place == 0 else "right", no_wrap=whole, overflow="fold")
    if names[1] == "verdict":
        table.columns[1].justify = "left"
    return table


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
