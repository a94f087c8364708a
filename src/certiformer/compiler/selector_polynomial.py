"""Selectors as polynomials: which conjunctions of comparisons, added and subtracted, give the number of selected
positions.

A head can look for a conjunction of comparisons ("literals") and nothing else. The truth value of any selector is a
polynomial in those of its comparisons, a -> 1 - a for `not`, ab for `and`, a + b - ab for `or`; and the width of a
selector is the same sum of the widths of its conjunctions.

Comparisons of indices with indices need no head: they say where the key j stands to the query i. So a selector is three
polynomials, A for j < i, B for j = i and C for j > i. With causal(X) the number of j <= i in X, its width is

    causal(A - C) + full(C) + ((B - A) at j = i).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Bool

from certiformer.errors import BadInput
from certiformer.rasp.graph import Node
from certiformer.rasp.selectors import Comparison

MAX_TERMS = 64  # conjunctions of one selector; each costs a head
MAX_PAIRS = 1_000_000  # up to here, two comparisons of the same key and query are looked at pair by pair

Literal = tuple[int, bool]  # a `select` or `pattern` node, and whether it holds
Conjunction = frozenset[Literal]
Polynomial = dict[Conjunction, int]
Matrix = Bool[np.ndarray, "keys queries"]

EVERYTHING: Conjunction = frozenset()
ONE: Polynomial = {EVERYTHING: 1}


@dataclass(frozen=True)
class Cases:
    """The polynomial of a selector left of, at, and right of the query."""

    left: Polynomial
    here: Polynomial
    right: Polynomial

    def as_tuple(self) -> tuple[Polynomial, Polynomial, Polynomial]:
        return (self.left, self.here, self.right)


_ORDERS = {
    Comparison.LT: (True, False, False),
    Comparison.LEQ: (True, True, False),
    Comparison.EQ: (False, True, False),
    Comparison.NEQ: (True, False, True),
    Comparison.GEQ: (False, True, True),
    Comparison.GT: (False, False, True),
}


class Selectors:
    """The cases of every selector of a growing list of nodes, each computed once, inputs first.

    `truth` gives the matrix of a literal, by which two comparisons of the same key and query are simplified: tokens
    that are equal are not smaller.
    """

    def __init__(self, nodes: Sequence[Node], truth: Callable[[Literal], Matrix]) -> None:
        self._nodes = nodes
        self._truth = lru_cache(maxsize=None)(truth)
        self._cases: dict[int, Cases] = {}
        self._whole: dict[int, Polynomial] = {}

    def cases(self, selector: int) -> Cases:
        """With comparisons of indices taken out."""
        for number in self._inputs_first(selector, self._cases):
            self._cases[number] = self._case(number)
        return self._cases[selector]

    def whole(self, selector: int) -> Polynomial:
        """With comparisons of indices kept as literals."""
        for number in self._inputs_first(selector, self._whole):
            node = self._nodes[number]
            self._whole[number] = self._combine(number, node, [self._whole[i] for i in self._below(node)])
        return self._whole[selector]

    def _below(self, node: Node) -> tuple[int, ...]:
        return node.inputs if node.kind in ("and", "or", "not") else ()

    def _inputs_first(self, selector: int, done: Mapping[int, object]) -> list[int]:
        order, stack, seen = [], [(selector, False)], set(done)
        while stack:
            number, ready = stack.pop()
            if ready:
                order.append(number)
            elif number not in seen:
                seen.add(number)
                stack.append((number, True))
                stack += [(i, False) for i in self._below(self._nodes[number])]
        return order

    def _case(self, number: int) -> Cases:
        node = self._nodes[number]
        if is_order(self._nodes, number):
            return Cases(*(ONE if holds else {} for holds in _ORDERS[node.function]))  # type: ignore[index]
        below = [self._cases[i].as_tuple() for i in self._below(node)]
        parts = zip(*below, strict=True) if below else ((), (), ())
        return Cases(*(self._combine(number, node, list(part)) for part in parts))

    def _combine(self, number: int, node: Node, below: list[Polynomial]) -> Polynomial:
        if node.kind == "not":
            return negated(below[0])
        if node.kind == "and":
            return self._product(*below)
        if node.kind == "or":
            plain = added(added(below[0], below[1]), self._product(*below), -1)
            opposite = negated(self._product(negated(below[0]), negated(below[1])))
            return min(plain, opposite, key=len)
        if node.function is Comparison.FALSE:
            return {}
        if node.function is Comparison.TRUE and not any(self._nodes[i].values.undefined for i in node.inputs):  # type: ignore
            return ONE
        return {frozenset([(number, True)]): 1}

    def _product(self, p: Polynomial, q: Polynomial) -> Polynomial:
        """p q, with a a = a, a (not a) = 0, and a b = a where b holds whenever a does."""
        total: Polynomial = {}
        for left, a in p.items():
            for right, b in q.items():
                both = self._joined(left, right)
                if both is not None:
                    total[both] = total.get(both, 0) + a * b
            if len(total) > MAX_TERMS:
                raise BadInput(f"a selector needs more than {MAX_TERMS} heads; join fewer selectors by or")
        return {conjunction: number for conjunction, number in total.items() if number}

    def _joined(self, left: Conjunction, right: Conjunction) -> Conjunction | None:
        """Both conjunctions without what the others imply; None when they contradict each other."""
        kept = set(left)
        for literal in right - left:
            if (literal[0], not literal[1]) in kept:
                return None
            implied = False
            for other in list(kept):
                relation = self._relation(literal, other)
                if relation == "contradicts":
                    return None
                if relation == "implies":
                    kept.discard(other)
                implied |= relation == "is implied by"
            if not implied:
                kept.add(literal)
        return frozenset(kept)

    def _relation(self, one: Literal, other: Literal) -> str | None:
        nodes = self._nodes[one[0]], self._nodes[other[0]]
        if (
            nodes[0].inputs != nodes[1].inputs
            or any(node.kind != "select" for node in nodes)
            or not self._small(nodes[0])
        ):
            return None
        a, b = self._truth(one), self._truth(other)
        both = a & b
        if not both.any():
            return "contradicts"
        return "implies" if (both == a).all() else "is implied by" if (both == b).all() else None

    def _small(self, node: Node) -> bool:
        size = 1
        for i in node.inputs:
            values = self._nodes[i].values
            size *= len(values.values) if values is not None and values.values is not None else MAX_PAIRS + 1
        return size <= MAX_PAIRS


def is_order(nodes: Sequence[Node], number: int) -> bool:
    """Whether a selector compares indices with indices."""
    node = nodes[number]
    if node.kind != "select" or node.function not in _ORDERS:
        return False
    return all(nodes[i].kind == "indices" for i in node.inputs)


def negated(p: Polynomial) -> Polynomial:
    """1 - p; the opposite of a single literal is a literal."""
    if len(p) == 1:
        ((conjunction, factor),) = p.items()
        if factor == 1 and len(conjunction) == 1:
            ((atom, holds),) = conjunction
            return {frozenset([(atom, not holds)]): 1}
    return added(ONE, p, -1)


def added(p: Polynomial, q: Polynomial, factor: int = 1) -> Polynomial:
    """p + factor q."""
    total = dict(p)
    for conjunction, number in q.items():
        total[conjunction] = total.get(conjunction, 0) + factor * number
    return {conjunction: number for conjunction, number in total.items() if number}
