"""`certiformer show`: what a run folder says about itself. Nothing is checked here, and nothing is called proved."""

from __future__ import annotations

import shlex
import tempfile
import webbrowser
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional, arg

from certiformer.cli.options import Flag
from certiformer.cli.terminal import Terminal
from certiformer.errors import MALFORMED, BadInput
from certiformer.kernel.files import PROGRAM, TARGET

if TYPE_CHECKING:
    from certiformer.artifact import Artifact

SUMMARY = "Say what a run folder claims, in one sentence, and what it does not claim."
EXAMPLES = """
  certiformer show runs/sines            # claim, bracket, sizes, rules, what is not claimed
  certiformer show runs/sines --open     # also open the report with its pictures
  certiformer show runs/sines --latex    # the claim as a paragraph for a paper, with the hashes of the files
  certiformer show runs/sines --json     # for a script

exit codes: 0 done, 2 not a run folder
"""
DRAWN = (TARGET, PROGRAM)  # the subjects that have a page


@dataclass(kw_only=True)
class Options:
    """The flags of `show`."""

    directory: Annotated[Positional[str], arg(metavar="DIR")]
    """the run folder"""
    open: Flag = False
    """draw the report from the files of the folder and open it in the browser"""
    latex: Flag = False
    """print the claim as a paragraph of LaTeX, with the hashes of the files"""
    json: Flag = False
    """print one JSON object"""
    quiet: Flag = False
    """the sentence only"""


def run(options: Options, terminal: Terminal) -> int:
    """Read the folder and say what it holds; returns the exit code."""
    from certiformer.kernel import Refused

    try:
        return _shown(options, terminal)
    except (BadInput, Refused) as problem:
        raise BadInput(str(problem)) from None
    except MALFORMED as problem:
        what = f"{type(problem).__name__}: {str(problem)[:200]}"
        raise BadInput(f"{options.directory} holds files that are not those of a finished run ({what})") from None


def _shown(options: Options, terminal: Terminal) -> int:
    from certiformer.api.folders import load
    from certiformer.artifact.folder import DRAWING, REPORT

    artifact = load(options.directory)
    page = next((str(path) for name in (REPORT, DRAWING) if (path := Path(options.directory) / name).is_file()), None)
    if options.open:
        page = str(_opened(artifact, terminal))
    facts = {**artifact.summary(), "checked": False, "report": page, "directory": options.directory}
    if terminal.json:
        terminal.emit({**facts, **({"latex": artifact.latex()} if options.latex else {})})
    elif options.latex:
        terminal.page(artifact.latex())
    elif options.quiet:
        terminal.say(facts["sentence"])
    else:
        _describe(artifact, page, options.directory, terminal)
    return 0


def _describe(artifact: Artifact, page: str | None, directory: str, terminal: Terminal) -> None:
    folder = shlex.quote(directory)
    for label, text in artifact.lines():
        if label == "recorded":
            text = text.replace(
                "(recorded, not checked)", f"(recorded, not checked; `certiformer check {folder}` decides)"
            )
        if "\n" in text:
            terminal.listing(label, text.splitlines())
        else:
            terminal.fact(label, text, "strong" if label == "claim" else "")
    if artifact.certificate.subject in DRAWN:
        terminal.fact("report", page or f"none; certiformer show {folder} --open draws one")
    terminal.facts("next", [f"certiformer check {folder}   # believes nothing of the above"])


def _opened(artifact: Artifact, terminal: Terminal) -> Path:
    """The page, drawn from the files and shown in the browser."""
    from certiformer.disk import write_atomically

    try:
        page = artifact.page()
    except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as problem:
        raise BadInput(f"the report of {artifact.directory} could not be drawn ({type(problem).__name__})") from None
    if not page:
        raise BadInput(f"there is no drawing of what {artifact.directory} holds")
    path = place_for_a_page() / "report.html"
    write_atomically(path, page.encode("utf-8"))
    open_page(path, terminal)
    return path


def place_for_a_page() -> Path:
    """A folder of our own: a page that lies in a run folder may be anybody's and say, or run in the browser, anything."""
    return Path(tempfile.mkdtemp(prefix="certiformer-"))


def open_page(path: Path, terminal: Terminal) -> None:
    """Show a page that we have drawn in the browser."""
    if not webbrowser.open(path.resolve().as_uri()):
        terminal.note(f"no browser was found; open {path.resolve()} yourself")
