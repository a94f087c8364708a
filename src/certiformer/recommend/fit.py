"""`fit`: from a table of interactions to the folder of a trained recommender."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from certiformer._version import __version__
from certiformer.disk import Workplace
from certiformer.errors import BadInput
from certiformer.kernel.files import canonical, digest
from certiformer.recommend.folder import (
    GUARANTEE,
    Recommender,
    contents,
    open_recommender,
    read_json,
    require_place,
    write_new,
)
from certiformer.recommend.interactions import read_interactions
from certiformer.recommend.log import Log, make_log, start_after
from certiformer.recommend.network import Shape, with_readout
from certiformer.recommend.split import CONFORMAL, COUNTED, HOLDOUT, OPEN, Split, make_split
from certiformer.recommend.training import Recipe, learn
from certiformer.train.rounds import Progress

SEEN = ("filter", "keep")


@dataclass(frozen=True)
class Table:
    """Which columns are read, and how."""

    path: str
    user: str | None = None
    item: str | None = None
    time: str | None = None
    missing: str = "refuse"
    core: int = 5


@dataclass(frozen=True)
class Order:
    """How the log is split, who is sealed, and whether seen items compete."""

    split: str = "last"
    before: float = 0.9
    seal: float = 0.1
    seen: str = "filter"


@dataclass(frozen=True)
class Fit:
    """All that `fit` is asked for; the shape without the number of items."""

    table: Table
    order: Order = field(default_factory=Order)
    shape: Shape = field(default_factory=lambda: Shape(1))
    recipe: Recipe = field(default_factory=Recipe)


def fit(asked: Fit, out: Path, force: bool = False, progress: Progress | None = None) -> Recommender:
    """Read, split, train, write. A run that was killed goes on from its last checkpoint when it is asked for again."""
    if asked.order.seen not in SEEN:
        raise BadInput(f"--seen is one of {', '.join(SEEN)}, not {asked.order.seen!r}")
    require_place(out, force)
    table = asked.table
    rows = read_interactions(table.path, table.user, table.item, table.time, table.missing)
    start = start_after(rows, asked.order.before) if asked.order.split == "time" else None
    log, notes = make_log(rows, table.core, start)
    split = make_split(log, asked.order.split, asked.order.seal, asked.recipe.seed, start)
    shape = replace(asked.shape, items=len(log.item_names))
    data = {"sha256": log.digest(), "rows": len(rows.users), "interactions": len(log.items), "core": table.core}
    data |= {"users": log.users, "items": len(log.item_names), "notes": [*rows.notes, *notes]}
    facts: dict[str, Any] = {"data": data, "split": _split_facts(log, split, asked), "seen": asked.order.seen}
    facts |= {"shape": asdict(shape), "recipe": asdict(asked.recipe), "version": __version__}
    earlier = read_json(out / GUARANTEE)
    if earlier is not None:  # who fits again after a look at the sealed users has looked
        facts["looks"] = int(earlier.get("looks", 0))
    del rows
    with Workplace(out, digest(canonical(facts))) as place:
        require_place(out, force)
        learnt = learn(log, split, shape, asked.recipe, progress, place.kept / "training")
        facts["training"] = {
            "epochs": learnt.epochs,
            "validation_ndcg": round(learnt.validation, 6),
            "losses": [round(loss, 5) for loss in learnt.losses],
            "kept": [asdict(kept) for kept in learnt.kept],
        }
        write_new(place, contents(facts, with_readout(shape, learnt.tensors), log, split))
    return open_recommender(out)


def _split_facts(log: Log, split: Split, asked: Fit) -> dict[str, Any]:
    names = {"open": OPEN, "holdout": HOLDOUT, "conformal": CONFORMAL, "counted": COUNTED}
    counts = {name: len(split.tested(group)) for name, group in names.items()}
    facts = {
        "kind": asked.order.split,
        "seal": asked.order.seal,
        "tested": counts,
        "untested": int((split.test < 0).sum()),
    }
    return facts | ({} if split.start is None else {"start": split.start, "before": asked.order.before})
