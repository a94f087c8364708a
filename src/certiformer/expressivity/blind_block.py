r"""One attention layer learns no more about a block of tokens than the sums over that block can say.

A query that knows nothing of the other tokens must ask before it knows what it needs. So one layer cannot compose:
what it brings of a block has to answer every question that the rest of the sequence may turn out to ask.

Statement
---------
Let an attention layer have H heads with values of size d, and let F be a block of positions that does not contain the
query. Suppose that the layer's input at a position depends on the token there and the position alone (a first layer),
that a head uses of F its d + 1 sums over s in F of exp(q . k_s) v_s and of exp(q . k_s), kept in p bits each, and
that the answer is any function of the query's input and of what the heads bring. Let the query token be fixed, and
let D be the number of contents of F that can be told apart: for two of them there is a content of the other positions
with different answers. Then

    H (d + 1) p >= log2 D.

(a) *Function composition.* Tokens f(1), ..., f(n), g(1), ..., g(n), x; the answer is f(g(x)). D = n^n: H (d + 1) p >=
n log2 n. (b) *Pointer chasing.* One table t(1), ..., t(n), n even, and x; the answer is t(t(x)). H (d + 1) p >= (n/2)
log2 n. (c) *Recall.* n pairs of a key and a value out of V, each its own token, the keys in any order; the answer is
the value that follows the key x: H (d + 1) p >= n log2 V. An induction head over such pairs is a case of it. (d)
*Matrix chains.* The product of 2 n >= 4 elements of a finite group G without centre: H (d + 1) p >= n log2 |G|. (e)
*Parity* of n bits has D = 2, *bracket depth* after n brackets D <= n + 1: no obstacle, and one layer does compute
both.

(a) is attained up to a constant: n + 1 heads with d = 1 and 4 n ReLU units compose functions with whole numbers up to
n.

Source
------
peng2024 (Peng, Narayanan and Papadimitriou) for (a), sanford2024 for the use of communication; the lemma is proved
here. sanford2024b and chen2024 are cited for several layers only.

Differs from the source in
--------------------------
Deterministic, exact, with the constant 1, and for any block; the sources also bound randomised protocols. For several
layers there are lower bounds by others, which are not proved here: sanford2024b (k hops need depth log k, if a
conjecture about rounds of parallel computation holds) and chen2024 (L causal layers need a width of n^c to compose L
functions, c > 0 depending on L, without a conjecture).

Proof
-----
Fix the query token. The query vectors are fixed with it, so the H (d + 1) sums over F are a function of the content
of F alone, with at most 2^(H (d + 1) p) values. The sums over the other positions do not depend on F. Two contents of
F with the same sums therefore give the same answer whatever the other positions hold. So contents that can be told
apart have different sums. (a) F holds f; if f and h differ at y, take g(x) = y. (b) Let x <= n/2 and F the entries
above n/2, t(x) = y among them. (c) F are the values; if two contents differ at pair i, put x as key of pair i. (d) F
are the factors with odd numbers a_1, ..., a_n, the others are b_1, ..., b_n. Suppose a and a' always give the same
product. With all b_i = 1 but b_j, j < n, the product is A b B with A = a_1 ... a_j, B = a_(j+1) ... a_n, so A b B =
A' b B' for all b: b = 1 gives A'^-1 A = B' B^-1 =: w, and then w b = b w for all b, so w = 1: A = A' for every j < n,
and B = B' for j = n - 1. Hence a = a'. (e) Only the parity of F, or its balance, matters.

*Attained.* Head y looks at f(y), head n + 1 at g(x), by positions. With G = g(x), [G >= y] f(y) = relu(f(y) + n (G -
y)) - relu(n (G - y)), and sum_y ([G >= y] - [G >= y + 1]) f(y) = f(G). QED.

Assumptions
-----------
- first-layer: **trusted** nothing has mixed the tokens before.
- precision: **trusted** what a head keeps of a block are d + 1 numbers of p bits. Numbers of unlimited precision
  escape.

Certified
---------
`needed` is the whole number that H (d + 1) p is at least.

Not certified
-------------
More layers, and a chain of thought: two layers do (a) to (c), and `compile` proves them (`rates composition` builds
them).

Example
-------
Composing functions on 64 numbers with heads of size 8 in 16 bits takes at least three heads:

>>> needed("composition", 64), least_heads("composition", 64, size=8, precision=16)
(384, 3)

Tests
-----
`tests/theorems/test_blind_block.py`
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable

from certiformer.errors import BadInput
from certiformer.expressivity.logarithms import log2_below

THEOREM = {
    "id": "expressivity.blind_block",
    "title": "One attention layer learns no more about a block of tokens than the sums over that block can say",
    "kind": "lower bound",
    "sources": ("peng2024", "sanford2024", "sanford2024b", "chen2024"),
    "verb": "rates",
    "assumptions": (
        ("first-layer", "Nothing has mixed the tokens before.", "trusted"),
        ("precision", "What a head keeps of a block are d + 1 numbers of p bits.", "trusted"),
    ),
    "uses": (),
}


def needed(task: str, n: int, symbols: int = 2) -> int:
    """The least H (d + 1) p, rounded up; `symbols` is V of (c) and the order of the group in (d).

    Tasks: `composition`, `pointers`, `recall`, `product`, `parity`, `depth`.
    """
    if n < 2 or symbols < 2:
        raise BadInput("the bound is for at least two tokens in the block and two symbols")
    bits = {
        "composition": n * log2_below(n),
        "pointers": n // 2 * log2_below(n),
        "recall": n * log2_below(symbols),
        "product": n * log2_below(symbols),
        "parity": log2_below(2),
        "depth": log2_below(n + 1),
    }
    if task not in bits:
        raise BadInput(f"a task is one of {', '.join(bits)}, not {task!r}")
    return math.ceil(bits[task])


def least_heads(task: str, n: int, *, size: int, precision: int, symbols: int = 2) -> int:
    """How many heads one layer needs, with values of that size and numbers of that precision."""
    return -(-needed(task, n, symbols) // ((size + 1) * precision))


def told_apart(
    answer: Callable[[Hashable, Hashable], Hashable], contents: Iterable[Hashable], others: Iterable[Hashable]
) -> int:
    """D: how many contents of the block give different rows of answers.

    >>> told_apart(lambda block, rest: (sum(block) + rest) % 2, [(0, 0), (0, 1), (1, 1)], [0, 1])
    2
    """
    columns = list(others)
    return len({tuple(answer(content, other) for other in columns) for content in contents})
