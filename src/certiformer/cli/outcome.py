"""What `build` and `prove` say when they are done: about ten lines, or one JSON object."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from certiformer.cli.progress import progress_for
from certiformer.cli.terminal import Terminal

if TYPE_CHECKING:
    from certiformer.search import Run

FILES = ("model.safetensors", "config.json", "target.json", "certificate.json", "leaves.bin")
REPORT = "report.html"
NUMERICAL = "proved (numerical)"
TONES = {"certified": "good", "refuted": "bad", "invalid": "bad"}


def carry_out(command: Callable[..., Run], terminal: Terminal) -> int:
    """Run the search with progress, draw the report, print the result; returns the exit code."""
    try:
        with progress_for(terminal) as progress:
            run = command(progress=progress)
    except KeyboardInterrupt:
        return terminal.error(f"interrupted; the same command resumes: {terminal.command}", 130)
    if run.directory is not None and run.model is not None:
        write_report(run, terminal, checked=run.level == 2)
    if terminal.json:
        terminal.emit({**run.summary(), "sentence": claim_of(run)})
    else:
        describe(run, terminal)
    return run.outcome.exit_code(run.level)


def claim_of(run: Run) -> str:
    """The claim in one sentence."""
    from certiformer.target import claim_sentence, formula

    target = run.target
    sizes = target.domain.dimension, len(target.program.outputs)
    return claim_sentence(*sizes, str(target.domain), formula(target.program), run.certificate.epsilon)


def write_report(run: Run, terminal: Terminal, *, checked: bool) -> Path | None:
    """Draw `report.html` into the run folder; a picture that fails never spoils a proof."""
    from certiformer import report
    from certiformer.certificate import write_atomically
    from certiformer.search.report_data import report_data

    if run.directory is None:
        return None
    path = run.directory / REPORT
    try:
        write_atomically(path, report.write(report_data(run, checked=checked)).encode("utf-8"))
    except (ArithmeticError, LookupError, OSError, RuntimeError, TypeError, ValueError) as problem:
        terminal.note(f"the report could not be drawn ({type(problem).__name__}: {problem}); the proof is not affected")
        return None
    return path


def describe(run: Run, terminal: Terminal) -> None:
    """The result for a reader."""
    from certiformer.report import verdict

    word = verdict(run.outcome.value, run.level, checked=True)
    if run.model is not None:
        terminal.fact("built" if run.certificate.method != "given" else "model", size_line(run))
    if run.outcome.value != "invalid":
        terminal.fact("error", bracket_line(run.certificate.lower, run.certificate.upper))
    label = "level 1" if word == NUMERICAL else word
    terminal.fact(label, _result_line(run, word), TONES.get(word, "weak"))
    if run.certificate.proof is not None:
        terminal.fact("proof", proof_line(run))
    if run.directory is not None:
        present = [name for name in (*FILES, REPORT) if (run.directory / name).exists()]
        terminal.fact("folder", f"{run.directory} ({', '.join(present)})")
        terminal.facts("next", next_commands(run, str(run.directory)))


def _result_line(run: Run, word: str) -> str:
    claim, reason = claim_of(run), run.certificate.reason
    if word == "certified":
        return claim
    if word == NUMERICAL:
        return f"{NUMERICAL}: {claim[0].lower()}{claim[1:]} The independent checker was not asked."
    return f"{reason[:1].upper()}{reason[1:]}. The claim was: {claim[0].lower()}{claim[1:]}"


def size_line(run: Run) -> str:
    """The transformer in one line."""
    facts = run.summary()
    blocks = len(run.model.config.blocks) if run.model is not None else 0
    how = "" if run.certificate.method == "given" else f" (method {run.certificate.method})"
    return sizes_text({**facts, "blocks": blocks}) + how


def sizes_text(facts: dict[str, Any]) -> str:
    """How large a transformer is, from its counts.

    >>> sizes_text({"blocks": 1, "heads": 2, "registers": 1600, "nonzero": 9, "dense": 12})
    '1 block, 2 heads, 1,600 registers, 9 nonzero of 12 weights'
    """
    parts = [_count(facts[f"{noun}s"], noun) for noun in ("block", "head", "register")]
    return f"{', '.join(parts)}, {facts['nonzero']:,} nonzero of {facts['dense']:,} weights"


def bracket_line(lower: str | None, upper: str | None) -> str:
    """Where the largest error lies, both ends rounded outward."""
    from certiformer.report.numbers import bound_text

    if upper is None and lower is None:
        return "no bound of sup |T - f| was proved"
    if upper is None:
        return f"{bound_text(lower, up=False)} <= sup |T - f|, and no upper bound was proved"
    return f"{bound_text(lower or '0', up=False)} <= sup |T - f| <= {bound_text(upper, up=True)}"


def proof_line(run: Run) -> str:
    """The rules the proof rests on, and the time it took."""
    facts = run.summary()
    leaves = f" ({facts['leaves']:,} leaves)" if facts["leaves"] else ""
    steps = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in run.certificate.seconds.items() if seconds >= 0.05)
    return f"{', then '.join(facts['rules'])}{leaves}; {facts['seconds']:.1f} s in all{f': {steps}' if steps else ''}"


def next_commands(run: Run, directory: str) -> list[str]:
    """What a reader may want to type now."""
    folder = shlex.quote(directory)
    commands = [f"certiformer check {folder}", f"certiformer show {folder} --open"]
    comments = ["the independent checker alone", "what is claimed and what is not, with pictures"]
    if run.outcome.value == "undecided":
        comments[0] = "confirms that nothing is claimed"
    width = max(map(len, commands))
    return [f"{command:<{width}}   # {comment}" for command, comment in zip(commands, comments, strict=True)]


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
