"""What `audit` prints: three sentences, coverage, a table of layers, a table of theorems, the diagnostics."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median
from typing import TYPE_CHECKING

from certiformer.audit.figures import summary
from certiformer.cli.terminal import Terminal

if TYPE_CHECKING:
    from rich.table import Table

    from certiformer.audit import Audit
    from certiformer.audit.measure import LayerFigures

# What says something comes first.
TONES = {
    "holds": "green", "false": "red", "vacuous": "red", "holds-if": "yellow", "open": "yellow", "does-not-apply": "dim",
}  # fmt: skip
SAYING = [verdict for verdict in TONES if verdict != "does-not-apply"]
SENTENCES = "what it says"  # the heading of the column that is wrapped
LAYERS = 12  # rows of the table of layers: the first ones, then only a count


def say_audit(found: Audit, terminal: Terminal, met: list[str], *, everything: bool = False) -> None:
    """The audit, three sentences first; coverage and conditions only when quiet; with `everything` all theorems."""
    if not terminal.quiet:
        _say_model(found, terminal)
        label = "in short"
        for sentence in summary(found):
            terminal.fact(label, sentence, "strong")
            label = ""
    _say_coverage(found, terminal)
    if not terminal.quiet:
        terminal.say()
        terminal.table(layer_table(found))
        if len(found.measurements.layers) > LAYERS:
            left = len(found.measurements.layers) - LAYERS
            terminal.say(f"... and {left} layers more (--json and --out FILE.html have all)")
        _say_theorems(found, terminal, everything)
        for each in found.diagnostics:
            terminal.fact(each.id, f"{each.name}: {each.sentence}", "weak" if each.level == "warning" else "label")
    for sentence in met:
        terminal.fact("fails", sentence, "bad")


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


def layer_table(found: Audit) -> Table:
    """The figures of the first layers."""
    table = _table("layer", "heads", "QK/√e max", "median", "random", "OV max", "random", "score bound", "α median")
    for number, layer in enumerate(found.measurements.layers[:LAYERS]):
        times = f" x{layer.repeats}" if layer.repeats > 1 else ""
        table.add_row(f"{number}{times}", *_layer_cells(layer))
    return table


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


def _say_theorems(found: Audit, terminal: Terminal, everything: bool) -> None:
    terminal.say()
    terminal.table(theorem_table(found, TONES if everything else SAYING))
    terminal.say()
    silent = [] if everything else [each for each in found.verdicts if each.verdict not in SAYING]
    if silent:
        names = ", ".join(each.id.rpartition(".")[2] for each in silent)
        terminal.fact("silent", f"{len(silent)} theorems do not apply (--all says why): {names}")


def theorem_table(found: Audit, verdicts: Iterable[str]) -> Table:
    """The theorems with one of these verdicts, what says something first."""
    from rich.text import Text

    table = _table("theorem", "verdict", "value", "what it says")
    chosen = [each for each in found.verdicts if each.verdict in verdicts]
    for each in sorted(chosen, key=lambda each: list(TONES).index(each.verdict)):
        says = each.sentence if not each.needs else f"{each.sentence} Needs {'; '.join(each.needs)}."
        name = each.id.rpartition(".")[2]
        table.add_row(Text(name), Text(each.verdict, TONES[each.verdict]), _number(each.value), Text(says))
    return table


def _table(*names: str) -> Table:
    """Numbers stand to the right and are never broken; the one column of sentences is."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for place, name in enumerate(names):
        text, words = name == SENTENCES, place == 0 or name in ("verdict", SENTENCES)
        table.add_column(name, justify="left" if words else "right", no_wrap=not text, min_width=30 if text else None)
    return table


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
