"""`certiformer recommend top`: the best next items after a history."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tyro.conf import Positional, arg

from certiformer.cli.options import Flag
from certiformer.cli.terminal import Terminal

SUMMARY = "The best next items after a history."
EXAMPLES = """
  certiformer recommend top runs/shop --history "a b c"              # the oldest item first
  certiformer recommend top runs/shop --history "'red mug' plate"    # quotes around an item with blanks
  certiformer recommend top runs/shop --history "a b" --k 20 --json  # one JSON object

exit codes: 0 done, 2 bad input
"""


@dataclass(kw_only=True)
class Options:
    """The flags of `recommend top`."""

    directory: Annotated[Positional[str], arg(metavar="DIR")]
    """the folder that `recommend fit` wrote"""
    history: Annotated[str, arg(metavar="ITEMS")]
    """items with blanks between them, the oldest first"""
    k: Annotated[int, arg(metavar="K")] = 10
    """how many"""
    json: Flag = False
    """print one JSON object"""
    quiet: Flag = False
    """the items only"""


def run(options: Options, terminal: Terminal) -> int:
    """Print the items; returns the exit code."""
    from certiformer.api.recommending import recommend_top

    best = recommend_top(options.directory, options.history, k=options.k)
    if terminal.json:
        terminal.emit({"items": [{"item": item, "score": score} for item, score in best]})
    elif terminal.quiet:
        for item, _ in best:
            terminal.say(item)
    else:
        rows = [[str(place), item, f"{score:.3f}"] for place, (item, score) in enumerate(best, 1)]
        terminal.rows(["", "item", "score"], rows, texts=(1,))
    return 0
