"""`python -m certiformer`: build, prove, break one weight, show the refusal. Nothing is left on disk."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from certiformer.cli.progress import progress_for
from certiformer.cli.terminal import Terminal

if TYPE_CHECKING:
    from certiformer.artifact import Artifact
    from certiformer.kernel.check import Verdict

FORMULA, BOX, TOLERANCE = "sin(x1)+sin(x2)", "[0,2*pi]^2", "0.1"
MOVED_BY = 4 * float(TOLERANCE)

SUMMARY = "The short demonstration: build a transformer, prove it, break one weight, watch the checker refuse."
EXAMPLES = "\n  python -m certiformer    # takes a few seconds and leaves nothing on disk\n"


@dataclass(kw_only=True)
class Options:
    """There is nothing to choose."""


def run(options: Options, terminal: Terminal) -> int:
    """Show everything once; the exit code is 0 when the honest run is accepted and the broken one is not."""
    del options
    from certiformer import search
    from certiformer.disk import scratch

    with scratch() as place:
        folder = place.fresh()
        terminal.say(
            f'1. A function becomes a transformer:  build "{FORMULA}" --on "{BOX}" --eps {TOLERANCE} --method voronoi'
        )
        with progress_for(terminal) as progress:
            built = search.build(
                FORMULA, on=BOX, eps=TOLERANCE, method="voronoi", out=folder / "sines", progress=progress
            )
        _describe_run(built, terminal)
        registers = built.summary()["registers"]
        terminal.page(
            f"\n2. One of its weights is moved: the value of one of {registers:,} registers, by {MOVED_BY:g}."
        )
        terminal.say("   Every hash is recomputed, so that the folder looks untouched.")
        verdict = _break_and_check(built, folder / "broken")
        _describe_verdict(verdict, terminal)
    terminal.page("\nNothing was left on disk. Now yours:")
    terminal.say(f'  certiformer build "{FORMULA}" --on "{BOX}" --eps {TOLERANCE}')
    return 0 if built.certified and not verdict.accepted else 1


def _describe_run(built: Artifact, terminal: Terminal) -> None:
    from certiformer.cli.outcome import describe

    describe(replace(built, directory=None), terminal)  # the folder goes away: its place is of no use


def _describe_verdict(verdict: Verdict, terminal: Terminal) -> None:
    word = "certified" if verdict.accepted else verdict.outcome
    terminal.fact(word, f"{verdict.reason}.", "good" if verdict.accepted else "bad")


def _break_and_check(built: Artifact, folder: Path) -> Verdict:
    """A copy of the run whose one changed weight no hash gives away, and what the checker says about it."""
    import numpy as np

    from certiformer.disk import put_folder
    from certiformer.kernel.check import check
    from certiformer.kernel.files import CERTIFICATE, CONFIG, LEAVES, MODEL, TARGET, digest
    from certiformer.model import Transformer
    from certiformer.model.store import tensors_to_bytes

    if built.model is None or built.directory is None:
        raise RuntimeError("the demonstration's run has no files")
    registers = np.array(built.model.tensors["registers"])
    registers[len(registers) // 2, -2] += MOVED_BY  # the last columns of a register: its value, and room for the sum
    broken = Transformer(built.model.config, {**built.model.tensors, "registers": registers})
    files = {name: (built.directory / name).read_bytes() for name in (CONFIG, TARGET, LEAVES)}
    files[MODEL] = tensors_to_bytes(broken)
    seals = {name: digest(content) for name, content in files.items()}
    files[CERTIFICATE] = replace(built.certificate, seals=seals).to_bytes()
    put_folder(folder, files)
    return check(folder)
