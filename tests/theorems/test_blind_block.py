"""One layer and a block that its query does not know: contents counted, the bound, the heads that attain it."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest

from certiformer.errors import BadInput
from certiformer.expressivity.blind_block import least_heads, needed, told_apart


@pytest.mark.parametrize("n", [2, 3])
def test_composition_tells_all_functions_apart(n):
    functions = list(product(range(n), repeat=n))
    x = 1
    count = told_apart(lambda f, g: f[g[x]], functions, functions)
    assert count == n**n and 2 ** needed("composition", n) >= count > 2 ** (needed("composition", n) - 1)


def test_pointer_chasing_tells_the_upper_half_apart():
    n = 4
    halves = list(product(range(n), repeat=n // 2))
    assert told_apart(lambda upper, lower: (lower + upper)[(lower + upper)[0]], halves, halves) == n ** (n // 2)
    assert needed("pointers", n) == 4


def test_recall_tells_all_values_apart():
    n, symbols = 3, 3
    count = told_apart(
        lambda values, keys: values[keys.index(0)], product(range(symbols), repeat=n), permutations(range(n))
    )
    assert count == symbols**n and needed("recall", n, symbols) == 5  # ceil(3 log2 3)


GROUP = list(permutations(range(3)))


def times(one, other):
    return tuple(one[k] for k in other)


def chain(odd, even):
    total = tuple(range(len(odd[0])))
    for a, b in zip(odd, even, strict=True):
        total = times(times(total, a), b)
    return total


def test_a_group_without_centre_tells_all_factors_apart():
    pairs = list(product(GROUP, repeat=2))
    assert told_apart(chain, pairs, pairs) == len(GROUP) ** 2


def test_a_group_with_a_centre_does_not():
    """Negative control of (d): the cyclic group tells products apart, and no more."""
    cycle = [(0, 1, 2), (1, 2, 0), (2, 0, 1)]
    pairs = list(product(cycle, repeat=2))
    assert told_apart(chain, pairs, pairs) == 3


def test_parity_and_depth_are_no_obstacle():
    bits = list(product((0, 1), repeat=5))
    assert told_apart(lambda a, b: (sum(a) + sum(b)) % 2, bits, bits) == 2 ** needed("parity", 5)
    assert told_apart(lambda a, b: 2 * sum(a) - 5 + 2 * sum(b) - 5, bits, bits) == 6 <= 2 ** needed("depth", 5)


@pytest.mark.parametrize("n", [2, 3])
def test_many_heads_attain_it(n):
    """n + 1 heads of size 1 with hard positions, 4 n units: exact for all pairs of functions."""
    for f, g in product(product(range(1, n + 1), repeat=n), repeat=2):
        for x in range(n):
            brought, target = np.array(f, float), float(g[x])  # what head y and head n + 1 bring
            total = 0.0
            for y in range(1, n + 1):
                for step, sign in ((y, 1), (y + 1, -1)):
                    total += sign * (max(brought[y - 1] + n * (target - step), 0) - max(n * (target - step), 0))
            assert total == f[g[x] - 1]
    heads = least_heads("composition", n, size=1, precision=max(1, (n).bit_length()))
    assert heads <= n + 1


def test_a_layer_below_the_bound_confuses_two_contents():
    """The argument itself: a head of size 1 with sums of one bit has 4 states for 4^2 contents; some pair collides, and a
    content of the rest then shows the difference."""
    n = 2
    rng = np.random.default_rng(0)
    functions = list(product(range(n), repeat=n))
    table = rng.normal(size=(n, n))
    kept = {f: round(float(sum(table[p, v] for p, v in enumerate(f)) > 0)) for f in functions}  # one bit
    assert len(set(kept.values())) < n**n
    pair = next((f, h) for f in functions for h in functions if f != h and kept[f] == kept[h])
    assert any(pair[0][g[1]] != pair[1][g[1]] for g in functions)


def test_mistakes_are_said():
    with pytest.raises(BadInput, match="a task is one of"):
        needed("sorting", 5)
    with pytest.raises(BadInput, match="at least two"):
        needed("recall", 1)
    assert least_heads("composition", 64, size=64, precision=32) == 1
