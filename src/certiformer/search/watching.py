"""Letting somebody look on while a transformer is planned, trained and proved.

Whoever wants to see more than the notes of `progress` enters `watched_by`; the search then shows what it has at a few
moments. What is shown is made only when somebody looks, and nothing that is shown decides anything.

| moment | what is shown |
|---|---|
| `planned` | a `Candidate` |
| `training` | a `Trainer`, its networks as an array (one row a start), and their sampled errors |
| `boxes` | a `SplitTree` during branch and bound, and the bound at which a leaf counts as closed |
| `lower` | an `Evidence` whose proved lower end has risen |
| `proof` | a `Tree` that is about to be checked |
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

Watcher = Callable[..., None]

_WATCHER: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


@contextmanager
def watched_by(watcher: Watcher) -> Iterator[None]:
    """Call `watcher(moment, *things)` while the block runs.

    >>> moments = []
    >>> with watched_by(lambda moment, *things: moments.append((moment, things))):
    ...     show("planned", lambda: (1, 2))
    >>> show("planned", lambda: (3,))
    >>> moments
    [('planned', (1, 2))]
    """
    token = _WATCHER.set(watcher)
    try:
        yield
    finally:
        _WATCHER.reset(token)


def show(moment: str, things: Callable[[], tuple[Any, ...]]) -> None:
    """Show what `things` makes, if somebody looks on."""
    watcher = _WATCHER.get()
    if watcher is not None:
        watcher(moment, *things())
