"""The part of `certiformer run` that speaks of compiled machines: the tape in, the tape after so many steps out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from certiformer.cli.terminal import Terminal
from certiformer.errors import BadInput

if TYPE_CHECKING:
    from certiformer.artifact import Artifact
    from certiformer.cli.run import Options
    from certiformer.compiler.machines import Decoder, LoopedMachine, Moment, Result

STEPS = 1_000  # where --steps is not given


def run(artifact: Artifact, options: Options, terminal: Terminal) -> int:
    """Run the machine of a folder and print where it stands; returns the exit code."""
    from certiformer.cli.run import refuse_flags
    from certiformer.compiler.machines import Decoder, split_symbols

    refuse_flags(options, "a compiled machine", "tokens", "steps", "trace")
    compiled = artifact.subject
    word = split_symbols(options.tokens or "", compiled.machine)
    if isinstance(compiled, Decoder):
        result, moments = _decode(compiled, word, options)
    else:
        limit = STEPS if options.steps is None else options.steps
        # Single steps for a trace; a long run needs windows that are looked up.
        moments = compiled.trace(word, limit) if options.trace else []
        result = compiled.run(word, limit, "near" if limit <= 100_000 else "cached")
    if terminal.json:
        terminal.emit(_facts(result, moments, options.directory, compiled))
        return 0
    if terminal.quiet:
        terminal.say(" ".join(_used(result, compiled)))
        return 0
    for moment in moments:
        terminal.say(f"{moment.step:>8,}  {moment.state:<8} cell {moment.cell:>6}  reads {moment.symbol}")
    end = "halted" if result.halted else "running"
    terminal.fact(end, f"after {result.steps:,} steps in state {result.state}, the head on cell {result.cell}", "good")
    terminal.fact("tape", " ".join(_used(result, compiled)))
    terminal.fact("ones", f"{result.ones:,} cells are not blank")
    return 0


def _decode(compiled: Decoder, word: tuple[str, ...], options: Options) -> tuple[Result, list[Moment]]:
    """Steps up to the horizon; more are asked for only if the machine stops before."""
    asked = min(STEPS, compiled.steps) if options.steps is None else options.steps
    result, moments = compiled.follow(word, min(asked, compiled.steps))
    if asked > compiled.steps and not result.halted:
        raise BadInput(
            f"this {compiled.form} is proved for {compiled.steps:,} steps, and the machine has not stopped by then; compile"
            f" it with a longer horizon, or run it with --steps {compiled.steps}"
        )
    return result, moments if options.trace else []


def _facts(result: Result, moments: list[Moment], directory: str, compiled: LoopedMachine | Decoder) -> dict[str, Any]:
    facts: dict[str, Any] = {"outcome": "done", "halted": result.halted, "steps": result.steps, "state": result.state}
    facts |= {"tape": list(result.tape), "first": result.first, "cell": result.cell, "ones": result.ones}
    if moments:
        facts["trace"] = [[m.step, m.state, m.cell, m.symbol] for m in moments]
    return {**facts, "dtype": compiled.config.dtype, "directory": directory}


def _used(result: Result, compiled: LoopedMachine | Decoder) -> list[str]:
    """The used part of the tape, the head's cell in brackets."""
    from certiformer.compiler.machines import used_cells

    head = result.cell - result.first
    marked = [f"[{symbol}]" if place == head else symbol for place, symbol in enumerate(result.tape)]
    low, high = used_cells(result, compiled.machine)
    return marked[low : high + 1]
