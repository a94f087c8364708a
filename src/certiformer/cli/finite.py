"""The part of `certiformer build` that speaks of finite sets: a table of data, or all sequences over an alphabet."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from certiformer.cli.terminal import Terminal
from certiformer.errors import BadInput

if TYPE_CHECKING:
    from certiformer.cli.build import Options

# The names of `search.sequences`, spelled out: the command line needs them before anything is imported.
WORDS = ("sort", "count", "parity", "majority", "hist", "induction")
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
    """Whether the target is a CSV file or a word such as `sort`, not a formula."""
    return options.target.lower().endswith(".csv") or options.target in WORDS


def run(options: Options, terminal: Terminal) -> int:
    """Build, check and report; returns the exit code."""
    from certiformer.cli.outcome import carry_out

    for name, default in _FOR_BOXES.items():
        if getattr(options, name) != default:
            raise BadInput(f"--{name.replace('_', '-')} is for functions on a box, not for {options.target}")
    common: dict[str, Any] = {"out": options.out, "force": options.force, "keep": True}
    if options.eps is not None:
        common["eps"] = options.eps
    if options.target in WORDS:
        alphabet = 2 if options.target == "parity" and options.alphabet is None else options.alphabet
        if alphabet is None or options.tokens is None:
            sizes = "--alphabet V and --tokens N: the number of letters and the length"
            raise BadInput(f"build {options.target} needs {sizes}")
        if options.dtype is not None:
            common["dtype"] = options.dtype
        from certiformer.search.sequences import build_sequences

        return carry_out(partial(build_sequences, options.target, alphabet, options.tokens, **common), terminal)
    if options.dtype is not None:
        raise BadInput("--dtype is for functions on a box and for maps on sequences, not for a table")
    common |= {"inputs": options.inputs, "outputs": options.outputs, "teacher": options.teacher, "seed": options.seed}
    common |= {"tokens": options.tokens or 1, "out_tokens": options.out_tokens or 1}
    from certiformer.search.finite import build_table

    return carry_out(partial(build_table, options.target, **common), terminal)
