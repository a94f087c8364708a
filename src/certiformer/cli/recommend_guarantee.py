"""`certiformer recommend guarantee`: five statements about a recommender."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Annotated

from tyro.conf import Positional, arg

from certiformer.cli.options import Flag
from certiformer.cli.progress import progress_for
from certiformer.cli.terminal import Terminal

SUMMARY = "Five statements about a recommender: what is proved, under which assumption, and what is vacuous."
EXAMPLES = """
  certiformer recommend guarantee runs/shop             # the sealed users are looked at, and the look is counted
  certiformer recommend guarantee runs/shop --tries 20  # pays for 20 looks
  certiformer recommend guarantee runs/shop --json      # a list of {id, value, level, vacuous, assumption}

exit codes: 0 done, 2 bad input
"""


@dataclass(kw_only=True)
class Options:
    """The flags of `recommend guarantee`."""

    directory: Annotated[Positional[str], arg(metavar="DIR")]
    """the folder that `recommend fit` wrote"""
    tries: Annotated[int, arg(metavar="K")] = 1
    """how many looks at the sealed users are paid for"""
    json: Flag = False
    """print one JSON object"""
    quiet: Flag = False
    """no progress"""


def run(options: Options, terminal: Terminal) -> int:
    """Find and print all five; returns the exit code."""
    from certiformer.api.recommending import recommend_guarantee

    with progress_for(terminal) as progress:
        found = recommend_guarantee(options.directory, tries=options.tries, progress=progress)
    if terminal.json:
        terminal.emit({"guarantees": [one.to_json() for one in found], "directory": options.directory})
        return 0
    for one in found:
        word = "no number" if one.value is None else "vacuous" if one.vacuous else "holds"
        terminal.fact(word, f"{one.id}: {one.sentence}", "weak" if one.value is None or one.vacuous else "good")
        terminal.fact("", f"Assumed: {one.assumption}")
    place = shlex.quote(options.directory)
    terminal.facts("next", [f"certiformer recommend card {place} --out card.md", f"certiformer check {place}"])
    return 0
