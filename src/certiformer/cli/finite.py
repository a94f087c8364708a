"""The part of `certiformer build` that speaks of finite sets: a table of data, or sorting over an alphabet."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from certiformer.cli.terminal import Terminal
from certiformer.errors import BadInput

if TYPE_CHECKING:
    from certiformer.cli.build import Options

SORT = "sort"
_FOR_BOXES = {
    "on": None,
    "layout": None,
    "out_width": None,
    "method": "auto",
    "rule": "auto",
    "level": 2,
    "dry_run": False,
}


def speaks_of_rows(options: Options) -> bool:
    """Whether the target is a CSV file or the word `sort`, not a formula."""
    return options.target.lower().endswith(".csv") or options.target == SORT


def run(options: Options, terminal: Terminal) -> int:
    """Build, check and report; returns the exit code."""
    from certiformer.cli.outcome import carry_out
    from certiformer.search import finite

    for name, default in _FOR_BOXES.items():
        if getattr(options, name) != default:
            raise BadInput(f"--{name.replace('_', '-')} is for functions on a box, not for {options.target}")
    common: dict[str, Any] = {"out": options.out, "force": options.force, "keep": True}
    if options.eps is not None:
        common["eps"] = options.eps
    if options.target == SORT:
        if options.alphabet is None or options.tokens is None:
            raise BadInput("build sort needs --alphabet V and --tokens N: the number of letters and the length")
        return carry_out(partial(finite.build_sort, options.alphabet, options.tokens, **common), terminal)
    common |= {"inputs": options.inputs, "outputs": options.outputs, "teacher": options.teacher, "seed": options.seed}
    common |= {"tokens": options.tokens or 1, "out_tokens": options.out_tokens or 1}
    return carry_out(partial(finite.build_table, options.target, **common), terminal)
