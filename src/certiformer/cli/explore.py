"""`certiformer explore`: a page on this machine where the theorems can be seen at work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tyro.conf import Positional, arg

from certiformer.cli.options import Flag
from certiformer.cli.terminal import Terminal

SUMMARY = "Open a page where transformers approximate, attend and compute before your eyes, and reports can be touched."
EXAMPLES = """
  certiformer explore                          # starts a server for this machine alone and opens the browser
  certiformer explore runs/sines               # with a run folder, a study or a checkpoint to look at
  certiformer explore --port 8000 --no-open    # prints the address, and nothing else
  certiformer explore --host 0.0.0.0           # for other machines, too: the address carries a token

exit codes: 0 the server has ended, 2 bad usage, 130 ended by Ctrl-C
"""


@dataclass(kw_only=True)
class Options:
    """The flags of `explore`."""

    directory: Annotated[Positional[str | None], arg(metavar="DIR", help_behavior_hint="")] = None
    """a run folder, the folder of a study or a checkpoint to look at; it is never changed"""
    port: Annotated[int | None, arg(metavar="N", help_behavior_hint="(default: 8642, or a free one)")] = None
    """the port of the address"""
    host: Annotated[str, arg(metavar="ADDRESS")] = "127.0.0.1"
    """where to listen; any address but this machine's own needs the token that is printed"""
    workers: Annotated[int | None, arg(metavar="N", help_behavior_hint="(default: one for each core)")] = None
    """how many jobs run at once"""
    no_open: Flag = False
    """do not open the browser"""


def run(options: Options, terminal: Terminal) -> int:
    """Serve until interrupted; returns the exit code."""
    from certiformer.explore.serving import explore

    explore(
        options.directory,
        port=options.port,
        host=options.host,
        workers=options.workers,
        no_open=options.no_open,
        say=terminal.say,
    )
    return 0
