"""`certiformer prove`: bound the error of a transformer that the user brings."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated

from tyro.conf import Positional, arg

from certiformer.cli.search_options import SHARED, SearchOptions
from certiformer.cli.terminal import Terminal

SUMMARY = "Prove or refute that your own transformer stays within a tolerance of a function, at every point of a box."
EXAMPLES = """
  certiformer prove my-model "sin(x1)+sin(x2)" --on "[0,2*pi]^2" --eps 0.2               # the main job
  certiformer prove my-model surface.py:height --on "[0,1]^2" --eps 0.05 --seconds 60    # with a budget
  certiformer prove my-model "x1*x2" --on "[0,1]^2" --eps 0.1 --json --quiet             # for a script
  certiformer prove my-model "x1*x2" --on "[0,1]^2" --eps 0.1 --dry-run                  # a guess of the effort

my-model is a folder with model.safetensors and config.json; it is copied into the run folder, never changed.
exit codes: 0 certified, 1 refuted, 2 bad input or invalid, 3 undecided or level 1 only
"""


@dataclass(kw_only=True)
class Options(SearchOptions):
    """The flags of `prove`."""

    model: Annotated[Positional[str], arg(metavar="DIR")]
    """the folder of the transformer"""
    target: Annotated[Positional[str], arg(metavar="FORMULA|FILE.py:NAME")]
    """a formula in x1, ..., xD, or a function written in jax.numpy"""


def run(options: Options, terminal: Terminal) -> int:
    """Search, check and report; returns the exit code."""
    from certiformer.api.building import prove
    from certiformer.cli.outcome import carry_out

    if options.dry_run:
        return _dry_run(options, terminal)
    arguments = {name: getattr(options, name) for name in SHARED}
    return carry_out(partial(prove, options.model, options.target, **arguments, keep=True), terminal)


def _dry_run(options: Options, terminal: Terminal) -> int:
    from certiformer import search
    from certiformer.report.numbers import size_text

    estimate = search.dry_run_prove(options.model, options.target, **options.claim_arguments())
    if terminal.json:
        terminal.emit({"outcome": "estimate", **estimate})
        return 0
    terminal.fact("size", f"{estimate['parameters']:,} weights, {size_text(estimate['bytes'])}")
    if estimate["estimated_boxes"] is None:
        terminal.fact("effort", "unknown: the boxes of the pilot did not close; epsilon may be near or below the error")
    else:
        work = f"about {estimate['estimated_boxes']:,} boxes at {estimate['boxes_per_second']:,} a second"
        terminal.fact("effort", f"{work}, about {estimate['estimated_seconds']:g} s with the check (a rough guess)")
    terminal.fact("written", "nothing: this was a dry run")
    return 0
