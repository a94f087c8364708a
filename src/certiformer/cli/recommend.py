"""`certiformer recommend`: lists what can be done with a recommender; each kind has a module of its own."""

from __future__ import annotations

from dataclasses import dataclass

from certiformer.cli.options import Flag
from certiformer.cli.terminal import Terminal

SUMMARY = "A sequence recommender with guarantees: fit it, measure it, say what is proved about it."
KINDS = {
    "fit": "train on a table of users, items and times; some users are sealed",
    "evaluate": "full-ranking metrics beside popularity and item-kNN",
    "top": "the best next items after a history",
    "guarantee": "five statements: what is proved, assumed, or vacuous",
    "card": "a page for your documentation site",
}
EXAMPLES = """
  certiformer recommend fit shop.csv --out runs/shop        # 5-core, last item of each user left out
  certiformer recommend evaluate runs/shop                  # HR, NDCG, MRR among all items
  certiformer recommend guarantee runs/shop                 # the sealed users are looked at
  certiformer recommend card runs/shop --out card.md        # for a documentation site
  certiformer check runs/shop                               # the bound of the hit rate, derived again

exit codes: 0 done, 2 bad input
"""


@dataclass(kw_only=True)
class Options:
    """The flags of `recommend` alone."""

    json: Flag = False
    """print one JSON object"""
    quiet: Flag = False
    """no notes"""


def run(options: Options, terminal: Terminal) -> int:
    """List the kinds."""
    if terminal.json:
        terminal.emit({"kinds": KINDS})
        return 0
    width = max(map(len, KINDS)) + 2
    terminal.page("kinds (certiformer recommend KIND --help has the flags of each):\n")
    for name, line in KINDS.items():
        terminal.entry(name, width, line)
    terminal.page(f"\nexamples:\n{EXAMPLES.rstrip()}")
    return 0
