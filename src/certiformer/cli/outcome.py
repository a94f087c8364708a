"""What `build` and `prove` say when they are done: about ten lines, or one JSON object."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from certiformer.artifact.folder import REPORT
from certiformer.cli.progress import progress_for
from certiformer.cli.signals import interrupted_code
from certiformer.cli.terminal import Terminal
from certiformer.report.wording import bracket_line, sizes_text

if TYPE_CHECKING:
    from certiformer.artifact import Artifact

FILES = ("model.safetensors", "config.json", "target.json", "certificate.json", "leaves.bin")
NUMERICAL = "proved (numerical)"
TONES = {"certified": "good", "refuted": "bad", "invalid": "bad"}


def carry_out(command: Callable[..., Artifact], terminal: Terminal) -> int:
    """Run the search with progress, draw the report, print the result; returns the exit code."""
    try:
        with progress_for(terminal) as progress:
            run = command(progress=progress)
    except KeyboardInterrupt as interrupt:
        return terminal.error(_interruption(interrupt, terminal.command), interrupted_code(interrupt))
    if run.directory is not None and run.model is not None:
        write_report(run, terminal)
    if terminal.json:
        terminal.emit(run.summary())
    else:
        describe(run, terminal)
    return run.outcome.exit_code(run.level)


def _interruption(interrupt: KeyboardInterrupt, command: str) -> str:
    from certiformer.disk import can_go_on

    if can_go_on(interrupt):
        return f"interrupted; the same command goes on from what is kept: {command}"
    return f"interrupted, and nothing is kept; the same command begins again: {command}"


def write_report(run: Artifact, terminal: Terminal) -> Path | None:
    """Draw `report.html` into the run folder; a picture that fails never spoils a proof."""
    from certiformer.disk import write_atomically

    if run.directory is None:
        return None
    path = run.directory / REPORT
    try:
        write_atomically(path, run.page().encode("utf-8"))
    except (ArithmeticError, LookupError, OSError, RuntimeError, TypeError, ValueError) as problem:
        terminal.note(f"the report could not be drawn ({type(problem).__name__}: {problem}); the proof is not affected")
        return None
    return path


def describe(run: Artifact, terminal: Terminal) -> None:
    """The result for a reader."""
    from certiformer.report.wording import verdict

    word = verdict(run.outcome.value, run.level, checked=True)
    if len(run.candidates) > 1:
        terminal.facts("auto", candidate_lines(run.candidates))
    if run.model is not None:
        terminal.fact("built" if run.certificate.method != "given" else "model", size_line(run))
    if run.outcome.value != "invalid":
        terminal.fact("error", bracket_line(run.certificate.lower, run.certificate.upper))
    if run.certificate.run_error is not None and run.model is not None and run.certificate.proof is not None:
        from certiformer.report.numbers import bound_text

        more = bound_text(run.certificate.run_error, up=True)
        terminal.fact("runs", f"a run in {run.model.config.dtype} adds at most {more} (docs: float semantics)")
    label = "level 1" if word == NUMERICAL else word
    terminal.fact(label, _result_line(run, word), TONES.get(word, "weak"))
    if run.certificate.proof is not None:
        terminal.fact("proof", proof_line(run))
    for number, note in enumerate(run.notes):
        terminal.fact("note" if number == 0 else "", note)
    if run.directory is not None:
        present = [name for name in (*FILES, REPORT) if (run.directory / name).exists()]
        terminal.fact("folder", f"{run.directory} ({', '.join(present)})")
        terminal.facts("next", next_commands(run, str(run.directory)))


def _result_line(run: Artifact, word: str) -> str:
    claim, reason = run.claim, run.certificate.reason
    if word == "certified":
        return claim
    if word == NUMERICAL:
        return f"{NUMERICAL}: {claim[0].lower()}{claim[1:]} The checker was not asked."
    return f"{reason[:1].upper()}{reason[1:]}. The claim was: {claim[0].lower()}{claim[1:]}"


def size_line(run: Artifact) -> str:
    """The transformer in one line."""
    facts = run.summary()
    blocks = len(run.model.config.blocks) if run.model is not None else 0
    how = "" if run.certificate.method == "given" else f" (method {run.certificate.method})"
    return sizes_text({**facts, "blocks": blocks}) + how


def candidate_lines(rows: list[dict[str, Any]]) -> list[str]:
    """The table of candidates, smallest first: method, size, predicted bound, what became of it.

    >>> row = {"method": "ridge", "nonzero": 1234, "heads": 2, "bound": 0.0098, "outcome": "proved"}
    >>> other = {**row, "nonzero": None, "bound": None, "outcome": "does not apply: a kink"}
    >>> print("\\n".join(candidate_lines([row, other])))
    method  nonzero  heads  predicted
    ridge     1,234      2     0.0098  proved
    ridge                              does not apply: a kink
    """
    width = max(6, *(len(row["method"]) for row in rows))
    lines = [f"{'method':<{width}}  {'nonzero':>7}  {'heads':>5}  {'predicted':>9}"]
    for row in rows:
        nonzero = "" if row["nonzero"] is None else f"{row['nonzero']:,}"
        heads = "" if row["nonzero"] is None else f"{row['heads']:,}"
        bound = "" if row["bound"] is None else f"{row['bound']:.3g}"
        lines.append(f"{row['method']:<{width}}  {nonzero:>7}  {heads:>5}  {bound:>9}  {row['outcome']}")
    return lines


def proof_line(run: Artifact) -> str:
    """The rules the proof rests on, and the time it took."""
    facts = run.summary()
    leaves = f" ({facts['leaves']:,} leaves)" if facts["leaves"] else ""
    steps = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in run.certificate.seconds.items() if seconds >= 0.05)
    return f"{', then '.join(facts['rules'])}{leaves}; {facts['seconds']:.1f} s in all{f': {steps}' if steps else ''}"


def next_commands(run: Artifact, directory: str) -> list[str]:
    """What a reader may want to type now."""
    folder = shlex.quote(directory)
    commands = [f"certiformer check {folder}", f"certiformer show {folder} --open"]
    comments = ["the checker alone", "what is claimed and what is not, with pictures"]
    if run.outcome.value == "undecided":
        comments[0] = "confirms that nothing is claimed"
    width = max(map(len, commands))
    return [f"{command:<{width}}   # {comment}" for command, comment in zip(commands, comments, strict=True)]
