"""`certiformer build`: from a function, a box and a tolerance to a proved transformer."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal

from tyro.conf import Positional, arg

from certiformer.cli.search_options import SearchOptions
from certiformer.cli.terminal import Terminal

SUMMARY = "Turn a function into a one-block transformer with a certificate that holds at every point of a box."
EXAMPLES = """
  certiformer build "sin(x1)+sin(x2)" --on "[0,2*pi]^2" --eps 0.1       # the main job
  certiformer build "exp(-x1**2)" --on "[-2,2]" --eps 1e-3 --level 1    # explore: the float64 search only
  certiformer build "[x1*x2, x1-x2]" --on "[0,1]^2" --eps 0.05          # two outputs
  certiformer build surface.py:height --on "[0,1]x[-1,2]" --eps 0.1     # a jax.numpy function
  certiformer build "x1*x2+x3*x4" --on "[0,1]^4" --eps 0.1 --dry-run    # size and time, nothing else
  certiformer build --config sines.toml --eps 0.05                      # the rest of the flags from a file

exit codes: 0 certified, 1 refuted, 2 bad input or invalid, 3 undecided or level 1 only
"""


@dataclass(kw_only=True)
class Options(SearchOptions):
    """The flags of `build`."""

    target: Annotated[Positional[str], arg(metavar="FORMULA|FILE.py:NAME")]
    """a formula in x1, ..., xD, or a function written in jax.numpy"""
    method: Literal["voronoi"] = "voronoi"
    """the construction that makes the weights"""


def run(options: Options, terminal: Terminal) -> int:
    """Build, prove, check and report; returns the exit code."""
    from certiformer import search

    if options.dry_run:
        return _dry_run(options, terminal)
    arguments = {**options.search_arguments(), "method": options.method}
    from certiformer.cli.outcome import carry_out

    return carry_out(partial(search.build, options.target, **arguments), terminal)


def _dry_run(options: Options, terminal: Terminal) -> int:
    from certiformer import search

    estimate = search.dry_run(options.target, on=options.on, eps=options.eps, method=options.method)
    if terminal.json:
        terminal.emit({"outcome": "estimate", **estimate})
    else:
        _describe(estimate, terminal)
    return 0 if estimate["possible"] else 3


def _describe(estimate: dict[str, Any], terminal: Terminal) -> None:
    from certiformer.report.numbers import size_text

    if "prototypes" in estimate:
        size = f"{estimate['prototypes']:,} registers, {estimate['parameters']:,} weights"
        terminal.fact("size", f"{size}, {size_text(estimate['bytes'])} (method {estimate['method']})")
        terminal.fact("bound", f"{estimate['apriori']:.4g} by the theorem {estimate['theorem']}, before any search")
        work = f"about {estimate['estimated_boxes']:,} boxes" if estimate["estimated_boxes"] else "no boxes"
        terminal.fact("effort", f"{work}, about {estimate['estimated_seconds']:g} s on two cores (a rough guess)")
    if not estimate["possible"]:
        reason = estimate.get("reason") or "this is larger than a transformer that the method makes; raise --eps"
        terminal.fact("not so", reason, "bad")
    terminal.fact("written", "nothing: this was a dry run")
