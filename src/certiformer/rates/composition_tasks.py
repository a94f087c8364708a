"""Targets that need composition: tokens in, one class at the last token; what one layer needs for them, and programs.

* `composition`: tokens f(0) .. f(n-1), g(0) .. g(n-1), x; asked is f(g(x)).
* `pointers`: one table t(0) .. t(n-1) and x; asked is t(t(t(t(x)))), four hops.
* `induction`: letters; asked is what followed the last earlier occurrence of the last letter, and what followed in turn
  the last earlier occurrence of that (two hops; one more class stands for *none*).
* `parity`: of n bits.
* `depth`: the greatest depth that n brackets reach, closing ones that nothing opened counted below zero.
* `chain`: the product of n elements of the group of all permutations of three things.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from jaxtyping import Int

from certiformer.errors import BadInput
from certiformer.expressivity.blind_block import needed

Draw = Callable[[np.random.Generator, int], np.ndarray]
Tokens = Int[np.ndarray, "count length"]
HOPS = 4
LETTERS = 4
GROUP = list(permutations(range(3)))
TIMES = np.array([[GROUP.index(tuple(a[k] for k in b)) for b in GROUP] for a in GROUP])  # row: left factor


@dataclass(frozen=True)
class Task:
    """How inputs look and what is asked; `one_layer` is the least H (d + 1) p of one layer, None where none is proved."""

    name: str
    n: int
    length: int
    symbols: int
    classes: int
    answer: Callable[[Tokens], Int[np.ndarray, " count"]]
    one_layer: int | None

    def sample(self, count: int, seed: int) -> tuple[Tokens, Int[np.ndarray, " count"]]:
        """Uniform tokens, as int32, and their answers.

        >>> tokens, answers = task("parity", 4).sample(3, seed=0)
        >>> bool((tokens.sum(1) % 2 == answers).all())
        True
        """
        tokens = np.random.default_rng(seed).integers(0, self.symbols, (count, self.length))
        return tokens.astype(np.int32), self.answer(tokens).astype(np.int32)


def task(name: str, n: int) -> Task:
    """The task of that name; `n` is the size of a table, or the number of letters, bits, brackets or factors."""
    if name not in TASKS:
        raise BadInput(f"a task of composition is one of {', '.join(TASKS)}, not {name!r}")
    if not 4 <= n <= 64 or n % 2:
        raise BadInput(f"a task of composition has an even size of 4 to 64, not {n}")
    return TASKS[name](n)


def _composition(n: int) -> Task:
    def answer(tokens: Tokens) -> np.ndarray:
        f, g, x = tokens[:, :n], tokens[:, n : 2 * n], tokens[:, -1:]
        return np.take_along_axis(f, np.take_along_axis(g, x, 1), 1)[:, 0]

    return Task("composition", n, 2 * n + 1, n, n, answer, needed("composition", n))


def _pointers(n: int) -> Task:
    def answer(tokens: Tokens) -> np.ndarray:
        table, place = tokens[:, :n], tokens[:, -1:]
        for _ in range(HOPS):
            place = np.take_along_axis(table, place, 1)
        return place[:, 0]

    return Task("pointers", n, n + 1, n, n, answer, needed("pointers", n))


def _induction(n: int) -> Task:
    def follower(tokens: Tokens, place: np.ndarray) -> np.ndarray:
        """Where the token stands that followed the last earlier occurrence of the one at `place`; -1 for none."""
        letters = np.take_along_axis(tokens, np.maximum(place, 0)[:, None], 1)
        before = np.arange(n)[None] < place[:, None]
        hits = np.where((tokens == letters) & before, np.arange(n)[None] + 1, 0).max(1)
        return np.where((hits > 0) & (place >= 0), hits, -1)

    def answer(tokens: Tokens) -> np.ndarray:
        place = follower(tokens, follower(tokens, np.full(len(tokens), n - 1)))
        letters = np.take_along_axis(tokens, np.maximum(place, 0)[:, None], 1)[:, 0]
        return np.where(place >= 0, letters, LETTERS)

    # Half of the places hold keys in some order, the other half what follows them: recall of one letter each.
    return Task("induction", n, n, LETTERS, LETTERS + 1, answer, None)


def _parity(n: int) -> Task:
    return Task("parity", n, n, 2, 2, lambda tokens: tokens.sum(1) % 2, needed("parity", n))


def _depth(n: int) -> Task:
    def answer(tokens: Tokens) -> np.ndarray:
        return np.maximum(np.cumsum(1 - 2 * tokens, axis=1).max(1), 0)

    return Task("depth", n, n, 2, n + 1, answer, None)


def _chain(n: int) -> Task:
    def answer(tokens: Tokens) -> np.ndarray:
        product = tokens[:, 0]
        for place in range(1, n):
            product = TIMES[product, tokens[:, place]]
        return product

    return Task("chain", n, n, len(GROUP), len(GROUP), answer, needed("product", n // 2, len(GROUP)))


TASKS: dict[str, Callable[[int], Task]] = {
    "composition": _composition,
    "pointers": _pointers,
    "induction": _induction,
    "parity": _parity,
    "depth": _depth,
    "chain": _chain,
}
