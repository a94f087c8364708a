"""A path that visits every vertex of a directed graph once: found, proved impossible, or not found.

The problem is NP-complete, so there are three answers and not two. `found` comes with the path, which is verified
edge by edge. `does not exist` is a proof: an obstruction that is named, or an exhaustive search. `not found` says
only that the search ended without an answer.

Obstructions. A path orders the vertices, and each vertex reaches all later ones. So of any two vertices one must reach the
other; at most one vertex has no edge in, and at most one has no edge out. And if a vertex is taken away, the path falls
into at most two pieces, so at most two weakly connected components may remain.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Bool

from certiformer.errors import BadInput

Graph = Bool[np.ndarray, "vertices vertices"]

EXACT = 16  # up to here all subsets are visited: 2^16 of them take about a second
STEPS = 200_000


class PathSearch(NamedTuple):
    """What is known about a path through all vertices; `path` is empty unless it was found."""

    status: Literal["found", "does not exist", "not found"]
    path: tuple[int, ...]
    reason: str


def hamiltonian_path(edges: Graph, given: Sequence[int] | None = None, steps: int = STEPS) -> PathSearch:
    """A path v_1, ..., v_n with edges[v_i, v_(i+1)] for all i; loops do not matter.

    `given` is a path to be verified instead of sought; one that is not a path is a mistake of the request. Up to 16
    vertices the answer is exact, beyond a depth-first search makes at most `steps` steps.

    >>> ring = np.roll(np.eye(5, dtype=bool), 1, axis=1)
    >>> hamiltonian_path(ring).path
    (0, 1, 2, 3, 4)
    >>> star = np.zeros((5, 5), dtype=bool)
    >>> star[0], star[:, 0] = True, True
    >>> hamiltonian_path(star)[::2]
    ('does not exist', 'without vertex 0 there are 4 separate parts')
    """
    n = len(edges)
    edges = edges & ~np.eye(n, dtype=bool)
    if given is not None:
        return _verified(edges, tuple(given))
    obstruction = _obstruction(edges)
    if obstruction:
        return PathSearch("does not exist", (), obstruction)
    for order in (tuple(range(n)), tuple(range(n))[::-1]):
        if all(edges[a, b] for a, b in pairwise(order)):
            return PathSearch("found", order, "the tokens in their order")
    path, finished = (_by_subsets(edges), True) if n <= EXACT else _by_search(edges, steps)
    if path is not None:
        return _verified(edges, path)
    if finished:
        return PathSearch("does not exist", (), "all paths were tried")
    return PathSearch("not found", (), f"{steps:,} steps of the search did not decide it")


def _verified(edges: Graph, path: tuple[int, ...]) -> PathSearch:
    if sorted(path) != list(range(len(edges))):
        raise BadInput(f"a path visits each of the vertices 0 to {len(edges) - 1} once")
    for a, b in pairwise(path):
        if not edges[a, b]:
            raise BadInput(f"the path goes from {a} to {b}, but there is no such edge")
    return PathSearch("found", path, "every edge of the path was looked up")


def _obstruction(edges: Graph) -> str:
    """A reason why no path can exist, or nothing."""
    n = len(edges)
    for count, words in ((edges.sum(axis=0), "no edge in"), (edges.sum(axis=1), "no edge out")):
        lonely = np.flatnonzero(count == 0)
        if len(lonely) > 1:
            return f"vertices {lonely[0]} and {lonely[1]} both have {words}"
    reach = reachability(edges)
    apart = np.argwhere(~(reach | reach.T))
    if len(apart):
        return f"neither of the vertices {apart[0][0]} and {apart[0][1]} reaches the other"
    for v in range(n):
        rest = np.delete(np.delete(edges | edges.T, v, axis=0), v, axis=1)
        parts = len({row.tobytes() for row in reachability(rest)})
        if parts > 2:
            return f"without vertex {v} there are {parts} separate parts"
    return ""


def reachability(edges: Graph) -> Graph:
    """Whether b can be reached from a along edges, a itself included."""
    reach = edges | np.eye(len(edges), dtype=bool)
    while True:
        # Squares double the length of the paths, so there are about log2(n) of them. Counts are at most n: exact.
        longer = reach.astype(np.float64) @ reach.astype(np.float64) > 0
        if (longer == reach).all():
            return reach
        reach = longer


def _by_subsets(edges: Graph) -> tuple[int, ...] | None:
    """Held and Karp: for every set of vertices, the ones at which a path through exactly this set can end."""
    n = len(edges)
    before = [sum(1 << int(a) for a in np.flatnonzero(edges[:, v])) for v in range(n)]
    ends = [0] * (1 << n)
    for v in range(n):
        ends[1 << v] = 1 << v
    for visited in range(1, 1 << n):
        last = ends[visited]
        if last:
            for v in range(n):
                if not visited >> v & 1 and last & before[v]:
                    ends[visited | 1 << v] |= 1 << v
    visited, path = (1 << n) - 1, []
    allowed = ends[visited]
    while allowed:
        v = allowed.bit_length() - 1
        path.append(v)
        visited ^= 1 << v
        allowed = ends[visited] & before[v]
    return tuple(path[::-1]) if len(path) == n else None


def _by_search(edges: Graph, steps: int) -> tuple[tuple[int, ...] | None, bool]:
    """Depth first, vertices with few ways on first (Warnsdorff); the path, and whether everything was tried."""
    n = len(edges)
    free = np.ones(n, dtype=bool)
    path: list[int] = []
    choices = [sorted(range(n), key=lambda v: (int(edges[:, v].sum()), int(edges[v].sum())))]
    for _ in range(steps):
        while choices and not choices[-1]:
            choices.pop()
            if path:
                free[path.pop()] = True
        if not choices:
            return None, True
        v = choices[-1].pop(0)
        path.append(v)
        free[v] = False
        if len(path) == n:
            return tuple(path), True
        onward = np.flatnonzero(edges[v] & free)
        choices.append(sorted(map(int, onward), key=lambda w: int((edges[w] & free).sum())))
    return None, False
