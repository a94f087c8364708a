"""`certiformer build`: from a function, a box and a tolerance to a proved transformer."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal

from tyro.conf import Positional, arg

from certiformer.api.building import Layout, Method
from certiformer.cli.options import OptionalFolder, OptionalText
from certiformer.cli.search_options import SHARED, SearchOptions
from certiformer.cli.terminal import Terminal
from certiformer.errors import BadInput

SUMMARY = "Turn a function into a one-block transformer with a certificate that holds at every point of a box."
EXAMPLES = """
  certiformer build "sin(x1)+sin(x2)" --on "[0,2*pi]^2" --eps 0.1       # the main job
  certiformer build "exp(-x1**2)" --on "[-2,2]" --eps 1e-3 --level 1    # explore: the float64 search only
  certiformer build "[x1*x2, x1-x2]" --on "[0,1]^2" --eps 0.05          # two outputs
  certiformer build "[x1*x2, x1-x2]" --on "[0,1]^2" --eps 0.05 --tokens 2  # a row of outputs at each of two tokens
  certiformer build surface.py:height --on "[0,1]x[-1,2]" --eps 0.1     # a jax.numpy function
  certiformer build "x1*x2+x3*x4" --on "[0,1]^4" --eps 0.1 --dry-run    # size and time, nothing else
  certiformer build data.csv --inputs x1,x2 --outputs y                 # memorise a table, every row proved
  certiformer build sort --alphabet 7 --tokens 25                       # sort all sequences over an alphabet
  certiformer build parity --tokens 1000                                # also count, majority, hist, induction
  certiformer build --config sines.toml --eps 0.05                      # the rest of the flags from a file

exit codes: 0 certified, 1 refuted, 2 bad input or invalid, 3 undecided or level 1 only
"""
# The flags that are arguments of `certiformer.build` and not of `prove`.
CONSTRUCTION = ("method", "objective", "fit_seconds", "tokens", "out_tokens", "out_width", "layout")
ROWS = ("inputs", "outputs", "teacher", "alphabet")


@dataclass(kw_only=True)
class Options(SearchOptions):
    """The flags of `build`."""

    target: Annotated[Positional[str], arg(metavar="FORMULA|FILE.py:NAME|DATA.csv")]
    """a formula in x1, ..., xD, a function written in jax.numpy, a table of data, or the name of a map on all
    sequences: sort, count, parity, majority, hist, induction"""
    method: Annotated[Method, arg(metavar="NAME")] = "auto"
    """how the weights are made: auto (the smallest that can be proved), fit (trained), or a construction:
    gather, ridge, voronoi, temperatures, ridge-temperatures, sigmoid-heads, korovkin, shifted-grids, squares-rbf,
    max-norm"""
    objective: Literal["parameters", "heads", "time"] = "parameters"
    """what auto keeps small"""
    fit_seconds: Annotated[float, arg(metavar="S")] = 30.0
    """how long fit trains; a target that is not reached gets two and a half times as long once more"""
    tokens: Annotated[int | None, arg(metavar="N", help_behavior_hint="(default: one number a token)")] = None
    """read the inputs as N tokens; x2_1 is then coordinate 1 of token 2"""
    out_tokens: Annotated[int | None, arg(metavar="N", help_behavior_hint="(default: follows --tokens)")] = None
    """write the outputs as N rows; with as many rows as tokens, every token answers for its own"""
    out_width: Annotated[int | None, arg(metavar="N", help_behavior_hint="(default: the rest)")] = None
    """how many numbers each of these rows has"""
    layout: Annotated[
        Layout | None, arg(metavar="{token,sequence,output-token}", help_behavior_hint="(default: by the method)")
    ] = None
    """token: all inputs in one token; sequence: a token a row; output-token: the answer read off a special token"""
    inputs: OptionalText = None
    """the columns of a table that are read, for instance x1,x2"""
    outputs: OptionalText = None
    """the columns of a table that are memorised"""
    teacher: OptionalFolder = None
    """a folder with a transformer whose outputs are memorised instead of columns"""
    alphabet: Annotated[int | None, arg(metavar="V", help_behavior_hint="")] = None
    """the number of letters that sort, count, majority, hist and induction know"""


def run(options: Options, terminal: Terminal) -> int:
    """Build, prove, check and report; returns the exit code."""
    from certiformer.api.building import build, speaks_of_rows

    if options.dry_run:
        if speaks_of_rows(options.target):
            raise BadInput(f"--dry-run is for functions on a box, not for {options.target}")
        return _dry_run(options, terminal)
    from certiformer.cli.outcome import carry_out

    arguments = {name: getattr(options, name) for name in (*SHARED, *CONSTRUCTION, *ROWS)}
    return carry_out(partial(build, options.target, **arguments, keep=True), terminal)


def _dry_run(options: Options, terminal: Terminal) -> int:
    from certiformer import search

    construction = {name: getattr(options, name) for name in CONSTRUCTION if name != "fit_seconds"}
    estimate = search.dry_run(options.target, **options.claim_arguments(), **construction)
    if terminal.json:
        terminal.emit({**estimate, "outcome": "estimate"})
    else:
        _describe(estimate, terminal)
    return 0 if estimate["possible"] else 3


def _describe(estimate: dict[str, Any], terminal: Terminal) -> None:
    from certiformer.cli.outcome import candidate_lines
    from certiformer.report.numbers import size_text

    if "nonzero" in estimate:
        parts = ", ".join(f"{estimate[name]:,} {name}" for name in ("heads", "units", "registers") if estimate[name])
        size = f"{estimate['nonzero']:,} nonzero of {estimate['dense']:,} weights, {parts}"
        terminal.fact("size", f"{size}, {size_text(estimate['bytes'])} (method {estimate['method']})")
        terminal.fact("bound", f"{estimate['bound']:.4g} by {estimate['theorem'] or 'measurement'}, before any search")
        work = f"about {estimate['estimated_boxes']:,} boxes" if estimate["estimated_boxes"] else "no boxes"
        terminal.fact("effort", f"{work}, about {estimate['estimated_seconds']:g} s on two cores (a rough guess)")
    elif estimate["possible"]:
        terminal.fact("size", f"the method {estimate['method']} finds its size by training")
    if len(estimate["candidates"]) > 1:
        terminal.facts("auto", candidate_lines(estimate["candidates"]))
    if not estimate["possible"]:
        reason = estimate.get("reason") or "this is larger than a transformer that the method makes; raise --eps"
        terminal.fact("not so", reason, "bad")
    terminal.fact("written", "nothing: this was a dry run")
