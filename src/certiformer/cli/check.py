"""`certiformer check`: the checker and nothing else (no JAX, no NumPy, no search).

For a compiled program with few inputs, a run on all of them comes after the verdict and beside it; `--proof-only` omits it.
The run needs JAX, which the checker does not.
"""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from tyro.conf import Positional, arg

from certiformer.cli.options import Flag
from certiformer.cli.progress import progress_for
from certiformer.cli.terminal import Terminal
from certiformer.errors import BadInput
from certiformer.report.numbers import json_number

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
    recommender = "theorem binomial_tail" in rules_of(verdict)
    following = "recommend card" if recommender else "show"
    terminal.facts("next", [f"certiformer {following} {folder}   # what is claimed and what is not"])


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


SUMMARY = "Check the claim of a run folder from its files alone; nothing that its maker said is believed."
EXAMPLES = """
  certiformer check runs/sines                    # the claim in one sentence, or why not
  certiformer check runs/sines --json --quiet     # for a script: one object, and the exit code
  certiformer check runs/sines --workers 1        # in this process only
  certiformer check runs/shop --replay 20         # a recommender; the scores of 20 sealed users are enclosed, too
  certiformer check runs/reverse                  # a compiled program; fewer than 2 million inputs are also run, each

exit codes: 0 certified by this very check, 1 refused or refuted, 2 not a run folder, 3 nothing is claimed
"""


@dataclass(kw_only=True)
class Options:
    """The flags of `check`."""

    directory: Annotated[Positional[str], arg(metavar="DIR")]
    """the run folder"""
    workers: Annotated[int | None, arg(metavar="N", help_behavior_hint="(default: one per core)")] = None
    """how many processes share the boxes"""
    proof_only: Flag = False
    """do not also run a compiled program on every input"""
    replay: Annotated[int | None, arg(metavar="N", help_behavior_hint="")] = None
    """of a recommender: also enclose the scores of so many recorded users, drawn at random"""
    json: Flag = False
    """print one JSON object"""
    quiet: Flag = False
    """no progress"""


def run(options: Options, terminal: Terminal) -> int:
    """Check and say what was found; returns the exit code."""
    from certiformer.disk import recover
    from certiformer.kernel.check import check
    from certiformer.kernel.files import DESCRIPTIONS, HITS, PROGRAM

    recover(options.directory)
    if options.replay is not None and (options.replay < 1 or _subject(options.directory) != HITS):
        raise BadInput("--replay N is a number of recorded users, for the folder of a recommender")
    if options.workers is not None and options.workers < 1:
        raise BadInput(f"--workers is at least 1, not {options.workers}")
    began = time.monotonic()
    with progress_for(terminal) as progress:

        def confirmed(done: int, total: int) -> None:
            progress("check", done, total, f"{done:,} of {total:,} leaves confirmed")

        verdict = check(options.directory, workers=options.workers, progress=confirmed)
    seconds = time.monotonic() - began
    subject = _subject(options.directory)
    if options.replay is not None and verdict.accepted:
        return _replayed(verdict, options, seconds, terminal)
    if subject in (PROGRAM, *DESCRIPTIONS):
        return _compiled(verdict, subject == PROGRAM, options, seconds, terminal)
    if terminal.json:
        terminal.emit(_facts(verdict, options.directory, seconds))
    else:
        _describe(verdict, options.directory, seconds, terminal)
    return verdict.exit_code


def _subject(directory: str) -> str | None:
    """The file that the certificate is about, or None where that cannot be said and the folder was refused."""
    from certiformer.kernel.certificate import certificate_in
    from certiformer.kernel.files import read_files

    try:
        return certificate_in(read_files(directory)).subject
    except BadInput:
        return None


def _compiled(verdict: Verdict, program: bool, options: Options, seconds: float, terminal: Terminal) -> int:
    """A compiled program: the verdict, then the run; a wrong answer here is a failure whatever was proved."""

    wanted = program and verdict.outcome in ("proved", "undecided") and not options.proof_only
    ran = run_every_input(options.directory, terminal) if wanted else None
    if terminal.json:
        terminal.emit({**_facts(verdict, options.directory, seconds), "run": ran})
    else:
        describe(verdict, options.directory, seconds, ran, terminal)
    return 1 if ran is not None and ran["wrong"] is not None else verdict.exit_code


def _replayed(verdict: Verdict, options: Options, seconds: float, terminal: Terminal) -> int:
    """A recommender: the verdict, then the hits of some users; a hit that is wrong is a failure whatever was proved."""
    from certiformer.kernel import Refused
    from certiformer.kernel.files import read_files
    from certiformer.kernel.meanings.hits import replay

    with progress_for(terminal) as progress:

        def enclosed(done: int, total: int) -> None:
            progress("replay", done, total, f"{done:,} of {total:,} users")

        try:
            found = replay(read_files(options.directory), options.replay or 0, enclosed)
        except Refused as problem:
            raise BadInput(f"the hits cannot be replayed: {problem}") from None
    if terminal.json:
        terminal.emit({**_facts(verdict, options.directory, seconds), "replay": found})
    else:
        describe(verdict, options.directory, seconds, None, terminal)
        words = f"of {found['rows']:,} recorded users {found['right']:,} were confirmed in balls"
        wrong, unsettled = found["wrong"], found["open"]
        more = f", {len(unsettled):,} are too close to tell" if unsettled else ""
        terminal.fact("replay", words + more + (f"; wrong: rows {wrong}" if wrong else ""), "bad" if wrong else "good")
    return 1 if found["wrong"] else verdict.exit_code


def rules_of(verdict: Verdict) -> list[str]:
    """The rules and theorems of the proof that this check has replayed, in order of first use; none without a proof."""
    from certiformer.kernel.certificate import rules_used

    return [] if verdict.proof is None else rules_used(verdict.proof)


def steps_of(verdict: Verdict) -> str:
    """How the proof went: its rules in order of use, and how many leaves, rows or cases it went through.

    >>> from certiformer.kernel.certificate import Boxes
    >>> from certiformer.kernel.check import Verdict
    >>> steps_of(Verdict("proved", 2, "1", None, "", "", proof=Boxes("1", 2, 0, 9), steps={"leaves": 1234}))
    'boxes; 1,234 leaves; '
    """
    counts = [f"{count:,} {name if count != 1 else name[:-1]}" for name, count in verdict.steps.items()]
    return "".join(f"{part}; " for part in (", then ".join(rules_of(verdict)), *counts))


def _facts(verdict: Verdict, directory: str, seconds: float) -> dict[str, object]:
    from certiformer.report.wording import rests_on

    run_error, rules = proved_run_error(verdict), rules_of(verdict)
    return {
        "outcome": verdict.outcome,
        "level": verdict.level,
        "upper": None if verdict.upper is None else json_number(verdict.upper),
        "lower": None if verdict.lower is None else json_number(verdict.lower),
        "reason": verdict.reason,
        "sentence": verdict.sentence,
        "rests_on": rests_on(rules, runs=run_error is not None) if rules else None,
        "rules": rules,
        "steps": dict(verdict.steps),
        "run_error": None if run_error is None else json_number(run_error),
        "seconds": round(seconds, 3),
        "directory": directory,
    }


def _describe(verdict: Verdict, directory: str, seconds: float, terminal: Terminal) -> None:
    from certiformer.report.numbers import bound_text
    from certiformer.report.wording import bracket_line, rests_on

    if verdict.accepted:
        terminal.fact("certified", verdict.sentence, "good")
        terminal.fact("error", bracket_line(verdict.lower, verdict.upper))
        run_error = proved_run_error(verdict)
        if run_error is not None:
            terminal.fact("runs", f"a run in the stored type adds at most {bound_text(run_error, up=True)}")
        terminal.fact("rests on", rests_on(rules_of(verdict), runs=run_error is not None))
        terminal.fact("proof", f"{steps_of(verdict)}{verdict.reason} in balls, {seconds:.2f} s")
    else:
        if verdict.sentence:
            terminal.fact("claim", verdict.sentence)
        tone = "bad" if verdict.outcome in ("refused", "refuted", "invalid") else "weak"
        terminal.fact(verdict.outcome, f"{verdict.reason[:1].upper()}{verdict.reason[1:]}.", tone)
        if verdict.outcome == "refused":
            terminal.fact("meaning", "these files do not prove the claim; that does not make it false")
        elif verdict.lower is not None and verdict.outcome != "refuted":
            terminal.fact("error", bracket_line(verdict.lower, None))
    _recorded_program(verdict, terminal)
    terminal.facts("next", [f"certiformer show {shlex.quote(directory)}   # what is claimed and what is not"])


def proved_run_error(verdict: Verdict) -> str | None:
    """The bound for runs that this check has confirmed, where the certificate claims one."""
    return verdict.claim.certificate.run_error if verdict.accepted and verdict.claim is not None else None


def _recorded_program(verdict: Verdict, terminal: Terminal) -> None:
    """The target as it was recorded, where it is too long for the sentence."""
    from certiformer.kernel.claim import FunctionOnBox

    if verdict.claim is None or not isinstance(verdict.claim.target, FunctionOnBox) or verdict.claim.target.is_short:
        return
    from certiformer.target.show import formula

    lines = [line for text in formula(verdict.claim.target.program) for line in text.splitlines()]
    if sum(map(len, lines)) > 400:
        terminal.listing("program", lines)
