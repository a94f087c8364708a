"""`certiformer completion`: what a shell reads to complete verbs and flags; tyro makes it from the flags there are."""

from __future__ import annotations

import contextlib
import io
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Any, Literal, Union

import tyro
from tyro.conf import Positional, arg

from certiformer.cli.options import FLAG_STYLE
from certiformer.cli.terminal import Terminal

SUMMARY = "Print the script that lets a shell complete verbs and flags."
EXAMPLES = """
  certiformer completion bash > ~/.local/share/bash-completion/completions/certiformer
  certiformer completion zsh > ~/.zfunc/_certiformer    # a folder of $fpath; compinit then finds it

exit codes: 0 done, 2 no such shell
"""


@dataclass(kw_only=True)
class Options:
    """The arguments of `completion`."""

    shell: Annotated[Positional[Literal["bash", "zsh"]], arg(metavar="{bash,zsh}")]
    """the shell"""


def run(options: Options, terminal: Terminal) -> int:
    """Print the script; returns the exit code."""
    terminal.page(script(options.shell))
    return 0


def script(shell: str) -> str:
    """What the shell has to read; the flags of studies of `rates`, which depend on the study, are not in it."""
    from certiformer.cli.main import VERBS

    verbs: list[Any] = []
    for verb, line in VERBS.items():
        flags: Any = import_module(f"certiformer.cli.{verb}").Options
        verbs.append(Annotated[flags, tyro.conf.subcommand(verb, description=line)])
    printed = io.StringIO()
    parser: Any = Union[tuple(verbs)]  # noqa: UP007
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):  # tyro prints the script and ends
        asked = ["--tyro-print-completion", shell]
        tyro.cli(parser, args=asked, prog="certiformer", config=FLAG_STYLE)
    return printed.getvalue().rstrip()
