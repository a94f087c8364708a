"""How many heads there are, and where each stands in the rows of the maps.

No matrix says how many heads it holds: d x d is one head of size d or d heads of size one. The number comes from the
config or from the user. Where it is not known and queries are as many as keys, the maps are read as one head, which
is said; where keys are fewer, or queries, keys and values are mixed head by head, no reading is right and there is none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from certiformer.audit.read.settings import HEAD_SIZE, HEADS, KEY_VALUE_HEADS, Settings
from certiformer.errors import BadInput

# Where queries, keys and values stand in the rows of one fused matrix. "blocks": all queries, all keys, all values.
# "groups": for each key-value head its queries, its key, its value, one after the other.
Layout = Literal["blocks", "groups"]


@dataclass(frozen=True)
class Heads:
    """`count` query heads that share `groups` keys and values, all of `size` rows."""

    count: int
    groups: int
    size: int
    known: bool = True

    @property
    def scale(self) -> float | None:
        """The usual factor of the scores, 1 / sqrt(size)."""
        return self.size**-0.5 if self.known else None


class FusedRows(NamedTuple):
    """The rows of the queries (heads, size), and of the keys and the values (groups, size)."""

    query: np.ndarray
    key: np.ndarray
    value: np.ndarray


def separate_heads(settings: Settings, query_rows: int, key_rows: int, name: str) -> Heads:
    """The heads of maps with so many rows of queries and of keys; `name` is the tensor that an error names."""
    count, size = settings.whole(*HEADS), settings.whole(*HEAD_SIZE)
    if count is None and size is None:
        if query_rows == key_rows:
            return Heads(1, 1, query_rows, known=False)
        raise BadInput(
            f"{name!r} has {query_rows} rows for queries and {key_rows} for keys, and no file says how many heads these"
            " are; say it with --heads"
        )
    if count is None:
        count = _shared(query_rows, size or 1, name, "heads of size")
    size = _agreed_size(_shared(query_rows, count, name, "heads"), size, name, count)
    groups = _shared(key_rows, size, name, "keys of size")
    said = settings.whole(*KEY_VALUE_HEADS)
    if said is not None and said != groups:
        raise BadInput(
            f"the config says {said} key-value heads, but the tensors beside {name!r} have rows for {groups}; is it of this"
            " model?"
        )
    return _grouped(count, groups, size, name)


def fused_heads(settings: Settings, rows: int, name: str, *, groups: int | None, layout: Layout) -> Heads:
    """The heads of one matrix with the rows of queries, keys and values; `groups` None means as many as queries."""
    count, size = settings.whole(*HEADS), settings.whole(*HEAD_SIZE)
    if count is None:
        if groups is not None or layout == "groups":
            raise BadInput(
                f"the rows of {name!r} are those of queries, keys and values, and cannot be told apart without the number"
                " of heads, which is in no file; say it with --heads"
            )
        return Heads(1, 1, _shared(rows, 3, name, "equal blocks"), known=False)
    groups = count if groups is None else groups
    found = _shared(rows, count + 2 * groups, name, f"heads ({count} queries, {groups} keys and values)")
    return _grouped(count, groups, _agreed_size(found, size, name, count), name)


def fused_rows(heads: Heads, layout: Layout) -> FusedRows:
    """Where the heads stand in the rows of a fused matrix.

    >>> fused_rows(Heads(2, 1, 2), "blocks").query.tolist()
    [[0, 1], [2, 3]]
    >>> fused_rows(Heads(2, 2, 2), "groups").query.tolist()
    [[0, 1], [6, 7]]
    """
    count, groups, size = heads.count, heads.groups, heads.size
    rows = np.arange((count + 2 * groups) * size)
    if layout == "blocks":
        query, key, value = np.split(rows, (count * size, (count + groups) * size))
        return FusedRows(query.reshape(count, size), key.reshape(groups, size), value.reshape(groups, size))
    by_group = rows.reshape(groups, count // groups + 2, size)
    return FusedRows(by_group[:, :-2].reshape(count, size), by_group[:, -2], by_group[:, -1])


def _grouped(count: int, groups: int, size: int, name: str) -> Heads:
    if count % groups:
        raise BadInput(f"{count} query heads cannot share the {groups} keys and values beside {name!r} evenly")
    return Heads(count, groups, size)


def _agreed_size(found: int, said: int | None, name: str, count: int) -> int:
    if said is not None and said != found:
        raise BadInput(
            f"the config says heads of size {said}, but {count} heads share the rows of {name!r} {found} each; is it of"
            " this model?"
        )
    return found


def _shared(rows: int, parts: int, name: str, what: str) -> int:
    if rows < 1 or rows % parts:
        raise BadInput(
            f"the {rows} rows of {name!r} cannot be shared among {parts} {what}; is the config of this model?"
        )
    return rows // parts
