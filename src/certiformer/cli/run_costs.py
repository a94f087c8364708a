"""`certiformer run --costs`: how many steps the inputs of a machine need until it halts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from certiformer.cli.terminal import Terminal
from certiformer.errors import BadInput

if TYPE_CHECKING:
    from certiformer.artifact import Artifact
    from certiformer.cli.run import Options
    from certiformer.compiler.machines.costs import Costs, LengthCosts

QUANTILES = {"least": 0.0, "median": 0.5, "95 %": 0.95, "most": 1.0}


def say_costs(artifact: Artifact, options: Options, limit: int, terminal: Terminal) -> int:
    """Print the distribution of the steps over all inputs up to a length; returns the exit code."""
    from certiformer.compiler.machines import costs_of

    if options.tokens is not None or options.trace or options.costs is None:
        raise BadInput("--costs looks at all inputs; leave TOKENS and --trace away")
    costs = costs_of(artifact.subject, options.costs, limit)
    if terminal.json:
        rows = [_row(each) for each in costs.lengths]
        histogram = [[steps, inputs] for steps, inputs in costs.histogram().items()]
        facts: dict[str, Any] = {"outcome": "done", "lengths": rows, "histogram": histogram, "states": costs.states}
        facts |= {"costliest": None if costs.costliest is None else list(costs.costliest)}
        terminal.emit(
            {**facts, "proved": artifact.certificate.level == 2, "steps": limit, "directory": options.directory}
        )
        return 0
    terminal.rows(["length", "inputs", "halted", *QUANTILES, "mean"], [_cells(each) for each in costs.lengths])
    if not terminal.quiet:
        _facts(costs, limit, artifact.certificate.level == 2, terminal)
    return 0


def _row(each: LengthCosts) -> dict[str, Any]:
    counts = {"length": each.length, "inputs": each.inputs, "every": each.every, "halted": len(each.steps)}
    quantiles = {name.replace("95 %", "share_95"): each.quantile(share) for name, share in QUANTILES.items()}
    return {**counts, **quantiles, "mean": each.mean, "running": each.running, "off_tape": each.off}


def _cells(each: LengthCosts) -> list[str]:
    quantiles = [each.quantile(share) for share in QUANTILES.values()]
    shown = ["-" if cell is None else f"{cell:,}" for cell in quantiles]
    mean = "-" if each.mean is None else f"{each.mean:,.2f}"
    return [f"{each.length:,}", f"{each.inputs:,}", f"{len(each.steps):,}", *shown, mean]


def _facts(costs: Costs, limit: int, proved: bool, terminal: Terminal) -> None:
    drawn = [each.length for each in costs.lengths if not each.every]
    if drawn:
        terminal.fact("drawn", f"from length {drawn[0]:,} on the inputs are a sample; below, they are all there are")
    ends = ", ".join(f"{state} {count:,}" for state, count in costs.states.items())
    terminal.fact("halted", f"by state: {ends}" if ends else "no input", "good" if ends else "")
    running, off = (sum(getattr(each, name) for each in costs.lengths) for name in ("running", "off"))
    if running:
        terminal.fact("running", f"{running:,} inputs have not halted within {limit:,} steps")
    if off:
        terminal.fact("tape", f"{off:,} inputs need more of it")
    if costs.costliest is not None:
        word = " ".join(costs.costliest) or "(empty)"
        terminal.fact("costliest", f"{word}, {max(costs.histogram()):,} steps; run by the transformer, it took as many")
    if not proved:
        terminal.fact("note", "the claim of this folder is not proved; these are the steps of the machine alone")
