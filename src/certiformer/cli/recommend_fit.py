"""`certiformer recommend fit`: from a table of interactions to the folder of a trained recommender."""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass, fields
from typing import Annotated, Literal

from tyro.conf import Positional, UseAppendAction, arg

from certiformer.cli.options import Flag, OptionalFile, OptionalFolder
from certiformer.cli.progress import progress_for
from certiformer.cli.terminal import Terminal

SUMMARY = "Train a transformer that recommends the next item, and seal users for its guarantees."
EXAMPLES = """
  certiformer recommend fit shop.csv                                       # columns are found by their names
  certiformer recommend fit orders.parquet --user CustomerID --item StockCode --time InvoiceDate --missing drop
  certiformer recommend fit ratings.csv --seal 0                           # to compare with the literature
  certiformer recommend fit ratings.csv --split time                       # everything from a time T0 on is the test
  certiformer recommend fit clicks.csv.gz --loss gbce --negatives 256      # for a large catalogue
  certiformer recommend fit ratings.csv --constrain "qk<=1" --constrain "ffn<=2"  # norms that are proved in the end

A run that was interrupted, or killed, goes on when the same command is given again.
exit codes: 0 done, 2 bad input, 130 interrupted
"""

Column = Annotated[str | None, arg(metavar="NAME", help_behavior_hint="(default: found by its name)")]


@dataclass(kw_only=True)
class Options:
    """The flags of `recommend fit`."""

    interactions: Annotated[Positional[str], arg(metavar="INTERACTIONS.csv")]
    """a CSV (also .gz) or Parquet file with a row for each interaction"""
    user: Column = None
    """the column of users"""
    item: Column = None
    """the column of items"""
    time: Column = None
    """the column of times: integers or ISO texts; without one the order of the file counts"""
    missing: Literal["refuse", "drop"] = "refuse"
    """a missing value is refused with its row, or its row is left out"""
    core: Annotated[int, arg(metavar="K")] = 5
    """users and items with fewer interactions are left out, again and again"""
    split: Literal["last", "time"] = "last"
    """test the last item of every user, or everything from a time T0 on"""
    before: Annotated[float, arg(metavar="SHARE")] = 0.9
    """the share of the events before T0"""
    seal: Annotated[float, arg(metavar="SHARE")] = 0.1
    """the share of users in each of three sealed groups"""
    seen: Literal["filter", "keep"] = "filter"
    """whether items that a user has seen are left out of the ranking"""
    length: Annotated[int, arg(metavar="N")] = 50
    """how many items of a history are read"""
    width: Annotated[int, arg(metavar="D")] = 64
    """the width of the transformer"""
    blocks: Annotated[int, arg(metavar="B")] = 2
    """how many blocks it has"""
    heads: Annotated[int, arg(metavar="H")] = 2
    """how many heads a block has"""
    loss: Literal["cross-entropy", "sampled", "gbce"] = "cross-entropy"
    """over all items, or over some that are drawn"""
    negatives: Annotated[int, arg(metavar="N")] = 256
    """how many are drawn"""
    dropout: Annotated[float, arg(metavar="P")] = 0.3
    """the share of every sub-layer's output that is left out in training"""
    rate: Annotated[float, arg(metavar="R")] = 1e-3
    """the learning rate of Adam"""
    batch: Annotated[int, arg(metavar="N")] = 32
    """how many packed rows are in a batch"""
    epochs: Annotated[int, arg(metavar="N")] = 100
    """at most so many"""
    patience: Annotated[int, arg(metavar="N")] = 8
    """stop after so many epochs without a better validation NDCG"""
    seed: int = 0
    """of the weights, the batches and the sealed users"""
    constrain: Annotated[UseAppendAction[tuple[str, ...]], arg(metavar="LIMIT", help_behavior_hint="(repeatable)")] = ()
    """keep a norm or a rank small and prove it: qk<=1, ov<=1, ffn<=2, frobenius<=3, l21<=9, rows<=1, gain<=1, rank<=4"""
    weight_decay: Annotated[float, arg(metavar="W")] = 0.0
    """decoupled from the gradient"""
    out: OptionalFolder = None
    """the folder to write (default: runs/ and the name of the file)"""
    force: Flag = False
    """replace an earlier recommender"""
    config: OptionalFile = None
    """read flags from a TOML file; flags given here win"""
    json: Flag = False
    """print one JSON object"""
    quiet: Flag = False
    """no progress"""


def run(options: Options, terminal: Terminal) -> int:
    """Train and say what was made; returns the exit code."""
    from certiformer.api.recommending import recommend_fit

    began = time.monotonic()
    flags = {f.name: getattr(options, f.name) for f in fields(options) if f.name not in ("json", "quiet", "config")}
    with progress_for(terminal) as progress:
        made = recommend_fit(**flags, progress=progress)
    seconds = round(time.monotonic() - began, 3)
    facts = {**made.facts, "directory": str(made.directory), "seconds": seconds}
    if terminal.json:
        terminal.emit(facts)
        return 0
    data, split, training = facts["data"], facts["split"], facts["training"]
    for note in data["notes"]:
        terminal.fact("read", f"{note[:1].upper()}{note[1:]}.")
    counts = f"{data['interactions']:,} interactions of {data['users']:,} users with {data['items']:,} items"
    terminal.fact("data", f"{counts}; {data['core']}-core; SHA-256 {data['sha256'][:12]}...")
    tested = split["tested"]
    sealed = f"{tested['holdout']:,} + {tested['conformal']:,} + {tested['counted']:,} users are sealed"
    where = "the last item of each user" if split["kind"] == "last" else "the first item of each user from T0 on"
    terminal.fact("split", f"{where} is the test; ties of time are ordered by item; {sealed}")
    size = f"{made.model.parameter_count():,} weights, read-out included"
    best = f"validation NDCG@10 {training['validation_ndcg']:.4f}"
    terminal.fact("trained", f"{training['epochs']} epochs, {size}; {best}; {seconds:.1f} s", "good")
    for kept in training["kept"]:
        terminal.fact("proved", f"{kept['what']} is at most {kept['proved']:.6g} (asked: {kept['largest']:g})", "good")
    place = shlex.quote(str(made.directory))
    terminal.facts("next", [f"certiformer recommend evaluate {place}", f"certiformer recommend guarantee {place}"])
    return 0
