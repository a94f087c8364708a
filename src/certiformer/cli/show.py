"""`certiformer show`: what a run folder says about itself. Nothing is checked here, and nothing is called proved."""

from __future__ import annotations

import shlex
import tempfile
import webbrowser
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import Positional, arg

from certiformer.cli.options import Flag
from certiformer.cli.terminal import Terminal
from certiformer.errors import MALFORMED, BadInput

SUMMARY = "Say what a run folder claims, in one sentence, and what it does not claim."
EXAMPLES = """
  certiformer show runs/sines            # claim, bracket, sizes, rules, what is not claimed
  certiformer show runs/sines --open     # also open the report with its pictures
  certiformer show runs/sines --json     # for a script

exit codes: 0 done, 2 not a run folder
"""
CLAIMED = "claimed, not checked: "


@dataclass(kw_only=True)
class Options:
    """The flags of `show`."""

    directory: Annotated[Positional[str], arg(metavar="DIR")]
    """the run folder"""
    open: Flag = False
    """draw the report from the files of the folder and open it in the browser"""
    json: Flag = False
    """print one JSON object"""
    quiet: Flag = False
    """the sentence only"""


def run(options: Options, terminal: Terminal) -> int:
    """Read the folder and say what it holds; returns the exit code."""
    from certiformer.disk import recover
    from certiformer.kernel.refusal import Refused

    recover(options.directory)
    try:
        return _shown(options, terminal)
    except (BadInput, Refused) as problem:
        raise BadInput(str(problem)) from None
    except MALFORMED as problem:
        what = f"{type(problem).__name__}: {str(problem)[:200]}"
        raise BadInput(f"{options.directory} holds files that are not those of a finished run ({what})") from None


def _shown(options: Options, terminal: Terminal) -> int:
    from certiformer.kernel.certificate import read_certificate
    from certiformer.kernel.files import DESCRIPTIONS, PROGRAM

    subject = read_certificate(options.directory).subject
    if subject == PROGRAM:
        from certiformer.cli.show_compiled import show_compiled

        return show_compiled(options.directory, options.open, terminal)
    if subject in DESCRIPTIONS:
        from certiformer.cli.show_computation import show_computation

        return show_computation(options.directory, terminal)
    facts = read_facts(options.directory)
    if options.open:
        facts["report"] = str(_opened(Path(options.directory), terminal))
    if terminal.json:
        terminal.emit(facts)
    elif options.quiet:
        terminal.say(facts["sentence"])
    else:
        _describe(facts, terminal)
    return 0


def read_facts(directory: str) -> dict[str, Any]:
    """Everything `show` says, as JSON data; nothing is verified beyond the shape of the files."""
    from certiformer.kernel.certificate import read_certificate, rules_used
    from certiformer.kernel.cover import LEAF
    from certiformer.kernel.files import CONFIG, LEAVES, MODEL, TARGET, read_bytes
    from certiformer.kernel.weights import read_model
    from certiformer.report import NOT_CLAIMED, NOT_CLAIMED_OF_ROWS, verdict
    from certiformer.target import FiniteTarget, any_target_from_text, sentence_of
    from certiformer.target.anything import place_of, programs_of

    folder = Path(directory)
    certificate = read_certificate(folder)
    target = any_target_from_text(read_bytes(folder / TARGET))
    model = read_bytes(folder / MODEL)
    config, tensors = read_model(read_bytes(folder / CONFIG), model)
    not_claimed = NOT_CLAIMED_OF_ROWS if isinstance(target, FiniteTarget) else NOT_CLAIMED
    masks = {name for name in tensors if name.endswith(".mask")}
    weights = [tensor.data for name, tensor in tensors.items() if name not in masks]
    groups = [group for block in config["blocks"] if block["attention"] for group in block["attention"]["heads"]]
    return {
        "sentence": sentence_of(target, certificate.epsilon),
        "checked": False,
        "recorded": verdict(certificate.outcome.value, certificate.level, checked=False),
        "outcome": certificate.outcome.value,
        "level": certificate.level,
        "epsilon": certificate.epsilon,
        "lower": certificate.lower,
        "upper": certificate.upper,
        "reason": certificate.reason,
        "source": target.source,
        "program": programs_of(target),
        "domain": place_of(target),
        "method": certificate.method,
        "rules": [] if certificate.proof is None else rules_used(certificate.proof),
        "leaves": read_bytes(folder / LEAVES).count(LEAF),
        "blocks": len(config["blocks"]) * config["loops"],
        "heads": sum(group["count"] for group in groups),
        "units": sum(block["ffn"]["width"] for block in config["blocks"] if block["ffn"]),
        "registers": config["registers"],
        "nonzero": sum(sum(1 for value in numbers if value) for numbers in weights),
        "dense": sum(map(len, weights)),
        "bytes": len(model),
        "seconds": round(sum(certificate.seconds.values()), 3),
        "versions": certificate.versions,
        "run_error": certificate.run_error,
        "dtype": config["dtype"],
        "not_claimed": [f"{subject}: {text}" for subject, text in not_claimed],
        "report": str(folder / "report.html") if (folder / "report.html").is_file() else None,
        "directory": directory,
    }


def say_recorded(facts: dict[str, Any], terminal: Terminal) -> None:
    """The outcome that the folder records, as no more than that."""
    level = f" at level {facts['level']}" if facts["outcome"] == "proved" else ""
    reason = f": {facts['reason']}" if facts["reason"] else ""
    decides = f"certiformer check {shlex.quote(facts['directory'])}"
    terminal.fact("recorded", f"{facts['outcome']}{level}{reason} (recorded, not checked; `{decides}` decides)")


def say_rests_on(rules: Sequence[str], leaves: int, terminal: Terminal, *, runs: bool = False) -> None:
    """What the recorded proof would rest on, if `check` accepts it, and its rules in order of use."""
    from certiformer.report.wording import rests_on

    many = f" ({leaves:,} leaves)" if leaves else ""
    text = f"{CLAIMED}{rests_on(rules, runs)}, by {', then '.join(rules)}{many}"
    terminal.fact("rests on", text if rules else "no proof")


def _describe(facts: dict[str, Any], terminal: Terminal) -> None:
    from certiformer.cli.outcome import bracket_line, sizes_text
    from certiformer.report.numbers import bound_text, size_text

    terminal.fact("claim", facts["sentence"], "strong")
    say_recorded(facts, terminal)
    terminal.fact("error", f"{CLAIMED}{bracket_line(facts['lower'], facts['upper'])}")
    say_rests_on(facts["rules"], facts["leaves"], terminal, runs=facts["run_error"] is not None)
    terminal.fact("size", f"{sizes_text(facts)}, {size_text(facts['bytes'])} (recorded method: {facts['method']})")
    if facts["run_error"] is not None:
        more = bound_text(facts["run_error"], up=True)
        terminal.fact("runs", f"{CLAIMED}a run in {facts['dtype']} adds at most {more}")
    for number, sentence in enumerate(facts["not_claimed"]):
        terminal.fact("not said" if number == 0 else "", sentence)
    folder = shlex.quote(facts["directory"])
    report = f"{facts['report']}" if facts["report"] else f"none; certiformer show {folder} --open draws one"
    terminal.fact("report", report)
    terminal.facts("next", [f"certiformer check {folder}   # believes nothing of the above"])


def _opened(folder: Path, terminal: Terminal) -> Path:
    """The report, drawn from the files and shown in the browser."""
    from certiformer.cli.outcome import write_report
    from certiformer.search.run import load_run

    path = write_report(load_run(folder), terminal, checked=False, folder=place_for_a_page())
    if path is None:
        raise BadInput(f"the report of {folder} could not be drawn")
    open_page(path, terminal)
    return path


def place_for_a_page() -> Path:
    """A folder of our own: a page that lies in a run folder may be anybody's and say, or run in the browser, anything."""
    return Path(tempfile.mkdtemp(prefix="certiformer-"))


def open_page(path: Path, terminal: Terminal) -> None:
    """Show a page that we have drawn in the browser."""
    if not webbrowser.open(path.resolve().as_uri()):
        terminal.note(f"no browser was found; open {path.resolve()} yourself")
