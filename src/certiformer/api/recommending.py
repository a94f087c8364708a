"""`recommend_fit`, `recommend_evaluate`, `recommend_top`, `recommend_guarantee`, `recommend_card`: a recommender with
guarantees. All but `recommend_fit` work on the folder that it wrote."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from certiformer.recommend.folder import Recommender
    from certiformer.recommend.guarantee import Guarantee

Progress = Callable[[str, float, float | None, str], None]


def recommend_fit(
    interactions: str | Path,
    *,
    user: str | None = None,
    item: str | None = None,
    time: str | None = None,
    missing: Literal["refuse", "drop"] = "refuse",
    core: int = 5,
    split: Literal["last", "time"] = "last",
    before: float = 0.9,
    seal: float = 0.1,
    seen: Literal["filter", "keep"] = "filter",
    length: int = 50,
    width: int = 64,
    blocks: int = 2,
    heads: int = 2,
    loss: Literal["cross-entropy", "sampled", "gbce"] = "cross-entropy",
    negatives: int = 256,
    dropout: float = 0.3,
    rate: float = 1e-3,
    batch: int = 32,
    epochs: int = 100,
    patience: int = 8,
    seed: int = 0,
    constrain: Sequence[str] = (),
    weight_decay: float = 0.0,
    out: str | Path | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Recommender:
    """Train a transformer that recommends the next item, and seal users for its guarantees.

    Tables are read by Apache Arrow (`certiformer[recommend]`).

    **Arguments:**

    - `interactions`: a CSV file (also compressed) or a Parquet file with a row for each interaction.
    - `user`, `item`, `time`: the names of the columns (default: found by their names; without times the order counts).
    - `missing`: whether a missing value is refused, or its row left out.
    - `core`: users and items with fewer interactions are left out, again and again.
    - `split`: `last` tests the last item of every user, `time` everything from a time T0 on.
    - `before`: the share of the events before T0.
    - `seal`: the share of users in each of three sealed groups.
    - `seen`: whether items that a user has seen are left out of the ranking.
    - `length`, `width`, `blocks`, `heads`: the size of the transformer.
    - `loss`, `negatives`: the full cross-entropy, or a sampled one with so many negatives.
    - `dropout`, `rate`, `batch`, `epochs`, `patience`, `seed`: how it is trained; a batch counts packed rows.
    - `constrain`: what the weights keep, for instance `["qk<=1", "ffn<=2"]`; proved in the end from the stored weights.
    - `weight_decay`: decoupled from the gradient.
    - `out`: the folder to write (default: `runs/` and the name of the file); an interrupted run goes on there.
    - `force`: whether it may replace an earlier one.
    - `progress`: called with the stage, what is done, all there is, and a note.

    >>> import certiformer
    >>> from tempfile import mkdtemp
    >>> from pathlib import Path
    >>> table = Path(mkdtemp(), "shop.csv")
    >>> rows = (f"u{u},i{(u + t) % 7},{t}" for u in range(40) for t in range(8))
    >>> _ = table.write_text("user,item,time\\n" + "\\n".join(rows))
    >>> shop = certiformer.recommend_fit(table, width=8, blocks=1, heads=1, length=8, epochs=2, out=table.parent / "shop")
    >>> shop.log.users, len(certiformer.recommend_top(shop.directory, "i1 i2", k=3))
    (40, 3)
    """
    from certiformer.recommend.fit import Fit, Order, Table, fit
    from certiformer.recommend.network import Shape
    from certiformer.recommend.training import Recipe

    table = Table(str(interactions), user, item, time, missing, core)
    shape = Shape(1, length, width, blocks, heads)
    recipe = Recipe(loss, negatives, dropout, rate, batch, epochs, patience, seed, tuple(constrain), weight_decay)
    place = Path(out) if out is not None else Path("runs") / Path(interactions).name.partition(".")[0]
    return fit(Fit(table, Order(split, before, seal, seen), shape, recipe), place, force, progress)


def recommend_evaluate(directory: str | Path, *, progress: Progress | None = None) -> dict[str, Any]:
    """Full-ranking metrics of the unsealed users, beside popularity and item-kNN.

    **Arguments:**

    - `directory`: the folder that `recommend_fit` wrote.
    - `progress`: called with the stage, what is done, all there is, and a note.

    >>> import certiformer
    >>> certiformer.recommend_evaluate("nowhere")
    Traceback (most recent call last):
    ...
    certiformer.errors.BadInput: nowhere is not the folder of a recommender: it has no recommend.json
    """
    from certiformer.recommend.evaluate import evaluate
    from certiformer.recommend.folder import open_recommender

    return evaluate(open_recommender(directory), progress)


def recommend_top(directory: str | Path, history: str | Sequence[str], *, k: int = 10) -> list[tuple[str, float]]:
    """The best next items after a history, with their scores.

    **Arguments:**

    - `directory`: the folder that `recommend_fit` wrote.
    - `history`: items, the oldest first: a list, or a text with blanks between them (quotes around an item with blanks).
    - `k`: how many.

    >>> import certiformer
    >>> certiformer.recommend_top("nowhere", "a b")
    Traceback (most recent call last):
    ...
    certiformer.errors.BadInput: nowhere is not the folder of a recommender: it has no recommend.json
    """
    from certiformer.errors import BadInput
    from certiformer.recommend.evaluate import top
    from certiformer.recommend.folder import open_recommender

    opened = open_recommender(directory)
    try:
        names = shlex.split(history) if isinstance(history, str) else [str(name) for name in history]
    except ValueError:
        raise BadInput("a quote in the history is not closed") from None
    return top(opened, names, k)


def recommend_guarantee(directory: str | Path, *, tries: int = 1, progress: Progress | None = None) -> list[Guarantee]:
    """Five statements about the recommender: what is proved, under which assumption, and what is vacuous.

    **Arguments:**

    - `directory`: the folder that `recommend_fit` wrote; what was found is written into it.
    - `tries`: how many looks at the sealed users are paid for.
    - `progress`: called with the stage, what is done, all there is, and a note.

    >>> import certiformer
    >>> certiformer.recommend_guarantee("nowhere")
    Traceback (most recent call last):
    ...
    certiformer.errors.BadInput: nowhere is not the folder of a recommender: it has no recommend.json
    """
    from certiformer.recommend.folder import open_recommender
    from certiformer.recommend.guarantee import guarantees

    return guarantees(open_recommender(directory), tries, progress)


def recommend_card(directory: str | Path, *, out: str | Path | None = None, force: bool = False) -> str:
    """A page about the recommender for a documentation site: metrics with intervals, guarantees in plain words, sources.

    **Arguments:**

    - `directory`: the folder that `recommend_fit` wrote, after `recommend_guarantee`.
    - `out`: a file to write, `.md` or `.html`.
    - `force`: whether it may replace an earlier one.

    The result is the page as Markdown, or as HTML where `out` ends so.

    >>> import certiformer
    >>> certiformer.recommend_card("nowhere")
    Traceback (most recent call last):
    ...
    certiformer.errors.BadInput: nowhere is not the folder of a recommender: it has no recommend.json
    """
    from certiformer.recommend.card import card, write_card
    from certiformer.recommend.folder import open_recommender

    opened = open_recommender(directory)
    return card(opened) if out is None else write_card(opened, Path(out), force)
