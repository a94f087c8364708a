"""The part of `certiformer check` that speaks of compiled programs: their verdict, and a run on every input besides.

The verdict is the checker's alone. The run needs JAX, which the checker does not, and comes after it.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from certiformer.cli.progress import progress_for
from certiformer.cli.terminal import Terminal

if TYPE_CHECKING:
    from certiformer.kernel.check import Verdict


def run_every_input(directory: str, terminal: Terminal) -> dict[str, Any] | None:
    """Run the transformer on all inputs where they are fewer than two million; None where they are not."""
    from certiformer.api.folders import load
    from certiformer.errors import MALFORMED, BadInput
    from certiformer.rasp.inputs import count_inputs

    try:
        compiled = load(directory).subject
    except MALFORMED as problem:  # of a claim that is left undecided nothing was read so far
        raise BadInput(f"the program in {directory} cannot be run: {problem}") from None
    count = count_inputs(compiled.vocab, compiled.length)
    from certiformer.compiler.programs.exhaustive import can_be_exhausted, exhaust

    if not can_be_exhausted(compiled):
        return {"inputs": count, "tried": 0, "wrong": None, "dtype": compiled.dtype}
    try:
        with progress_for(terminal) as progress:

            def tried(done: int, total: int) -> None:
                progress("run", done, total, f"{done:,} of {total:,} inputs")

            tried_all = exhaust(compiled, tried)
    except BadInput as problem:
        return {"inputs": count, "tried": 0, "wrong": None, "dtype": compiled.dtype, "reason": str(problem)}
    wrong = None
    if tried_all.wrong is not None:
        xs, position, answer, right = tried_all.wrong
        names = {"input": [str(x) for x in xs], "position": position, "answer": str(answer), "program": str(right)}
        wrong = names
    return {"inputs": count, "tried": tried_all.tried, "wrong": wrong, "dtype": compiled.dtype}


def describe(verdict: Verdict, directory: str, seconds: float, ran: dict[str, Any] | None, terminal: Terminal) -> None:
    """The verdict and the run for a reader."""
    from certiformer.cli.check import rules_of, steps_of
    from certiformer.report.wording import rests_on

    if verdict.outcome == "proved":
        terminal.fact("certified", verdict.sentence, "good")
        terminal.fact("rests on", rests_on(rules_of(verdict)))
        terminal.fact("proof", f"{steps_of(verdict)}{verdict.reason}; {seconds:.2f} s")
    else:
        if verdict.sentence:
            terminal.fact("claim", verdict.sentence)
        tone = "bad" if verdict.outcome == "refused" else "weak"
        terminal.fact(verdict.outcome, f"{verdict.reason[:1].upper()}{verdict.reason[1:]}.", tone)
        if verdict.outcome == "refused":
            terminal.fact("meaning", "these files do not prove the claim; that does not make it false")
    if ran is not None:
        _describe_run(ran, terminal)
    folder = shlex.quote(directory)
    terminal.facts("next", [f"certiformer show {folder}   # what is claimed and what is not"])


def _describe_run(ran: dict[str, Any], terminal: Terminal) -> None:
    wrong = ran["wrong"]
    if wrong is not None:
        terminal.fact(
            "run",
            f"on this machine the input {' '.join(wrong['input'])} is answered by {wrong['answer']} at position"
            f" {wrong['position']}, where the program says {wrong['program']}",
            "bad",
        )
    elif ran["tried"]:
        terminal.fact(
            "run",
            f"all {ran['tried']:,} inputs were also run on this machine in {ran['dtype']}, and each answer is right (a run,"
            " not part of the proof)",
        )
    else:
        why = ran.get("reason") or f"there are {_large(ran['inputs'])} inputs, too many or too long to run each"
        terminal.fact("run", f"{why}; the proof covers them all")


def _large(number: int) -> str:
    """A count, as a power of ten when it is long.

    >>> _large(1234), _large(3 * 10**20)
    ('1,234', '3e20')
    """
    text = str(number)
    return f"{number:,}" if len(text) <= 12 else f"{text[0]}e{len(text) - 1}"
