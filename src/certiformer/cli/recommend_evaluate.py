"""`certiformer recommend evaluate`: honest metrics beside the baselines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tyro.conf import Positional, arg

from certiformer.cli.options import Flag
from certiformer.cli.progress import progress_for
from certiformer.cli.terminal import Terminal

SUMMARY = "Full-ranking metrics of the unsealed users, beside popularity and item-kNN."
EXAMPLES = """
  certiformer recommend evaluate runs/shop           # every test item is ranked among all items
  certiformer recommend evaluate runs/shop --json    # one JSON object

exit codes: 0 done, 2 bad input
"""
SHOWN = ("HR@5", "NDCG@5", "HR@10", "NDCG@10", "MRR@10", "coverage@10")


@dataclass(kw_only=True)
class Options:
    """The flags of `recommend evaluate`."""

    directory: Annotated[Positional[str], arg(metavar="DIR")]
    """the folder that `recommend fit` wrote"""
    json: Flag = False
    """print one JSON object"""
    quiet: Flag = False
    """no progress"""


def run(options: Options, terminal: Terminal) -> int:
    """Measure and print; returns the exit code."""
    from certiformer.api.recommending import recommend_evaluate

    with progress_for(terminal) as progress:
        found = recommend_evaluate(options.directory, progress=progress)
    if terminal.json:
        terminal.emit({**found, "directory": options.directory})
        return 0
    terminal.fact(
        "measured", f"on the test items of {found['users']:,} unsealed users, among all {found['items']:,} items"
    )
    named = {"transformer": found["metrics"], **found["baselines"]}
    rows = [[name, *(f"{figures[key]:.4f}" for key in SHOWN)] for name, figures in named.items()]
    terminal.rows(["", *SHOWN], rows)
    if found["standard_errors"]["HR@10"] is not None:
        errors = ", ".join(f"{name} {value:.4f}" for name, value in found["standard_errors"].items())
        terminal.fact("errors", f"standard errors over users: {errors}")
    parts = [
        [row["history"], f"{row['users']:,}", f"{row['HR@10']:.4f}", f"{row['NDCG@10']:.4f}"]
        for row in found["segments"]
    ]
    terminal.rows(["history", "users", "HR@10", "NDCG@10"], parts)
    if found["repeated"]:
        terminal.fact(
            "leak",
            f"{100 * found['repeated']:.1f} % of the test items are also in the history of their user, hence in the"
            " training; with --seen keep seen items compete",
            "weak",
        )
    return 0
