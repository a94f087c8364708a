"""`certiformer recommend card`: a page about a recommender for a documentation site."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tyro.conf import Positional, arg

from certiformer.cli.options import Flag
from certiformer.cli.terminal import Terminal

SUMMARY = "A page about a recommender: metrics with intervals, the guarantees in plain words, what they do not say."
EXAMPLES = """
  certiformer recommend card runs/shop                  # as Markdown
  certiformer recommend card runs/shop --out card.md    # into a file
  certiformer recommend card runs/shop --out card.html  # with pictures

exit codes: 0 done, 2 bad input
"""


@dataclass(kw_only=True)
class Options:
    """The flags of `recommend card`."""

    directory: Annotated[Positional[str], arg(metavar="DIR")]
    """the folder that `recommend fit` wrote, after `recommend guarantee`"""
    out: Annotated[str | None, arg(metavar="FILE", help_behavior_hint="")] = None
    """write the page there: FILE.md or FILE.html"""
    force: Flag = False
    """replace an existing FILE"""
    json: Flag = False
    """print one JSON object"""
    quiet: Flag = False
    """no notes"""


def run(options: Options, terminal: Terminal) -> int:
    """Make the page; returns the exit code."""
    from certiformer.api.recommending import recommend_card

    page = recommend_card(options.directory, out=options.out, force=options.force)
    if terminal.json:
        terminal.emit({"out": options.out, "page": page})
    elif options.out is None:
        terminal.page(page)
    else:
        terminal.fact("wrote", options.out, "good")
    return 0
