r"""One softmax head of rank one gives every token a number of its own in every context.

What hard attention cannot do in one layer (`expressivity.hardmax_not_contextual`), softmax does with a single head
whose query, key and value weights are one column each: the weighted mean of the keys remembers the whole multiset.

Statement
---------
Finitely many sequences of n tokens in R^d, no token 0. For w in R^d and real a, o give token x in the sequence X the
number

    id(x, X) = w.x + o sum_j s_j w.x_j,     s = softmax_j( a (w.x)(w.x_j) ).

(a) For almost every (w, a, o) two tokens of any of the sequences have the same number only if they are equal and their
    sequences are equal up to order. One softmax head without biases computes it, with query a w, key w and value w.
(b) For given sequences, `contextual_head` finds w, a, o with a moderate a and proves in balls that numbers of different
    tokens, or of the same token in different multisets, are at least `gap` > 0 apart. So any labels of (token,
    multiset) are a function of one number, which a feed-forward layer can take (`construct.memorise_sets`).
(c) The source's lemma separates the weighted means by (log n)^2 e^-2r once |a (w.x)(w.x_j)| < r and different scores
    are more than 2 log n + 3 apart (`lemma_gap`). For K tokens r is then about K log n: the bits of a number grow with
    the size of the vocabulary, while N numbers need log2(N) of them. The moderate scale of (b) is nearer to the latter.
    What needs more than 42 bits is refused, with the number of bits.

Source
------
Kajitsuka and Sato 2024 (arXiv 2307.14023), Theorem 2 and Lemma 1: the weighted mean is the Boltzmann operator.

Differs from the source in
--------------------------
(a) is qualitative, has another proof, and allows tokens that repeat inside a sequence; the constants of Theorem 2 are
not used. The scale comes from a search and its gap from balls. For all 3-subsets of 6 equispaced tokens the lemma
promises 6e-12 at its scale, where the true gap of the means is 2e-8; the scale found here gives numbers that are 4e-4
apart.

Proof
-----
(a) There are finitely many tokens. Outside of finitely many hyperplanes of the w, different tokens have different p =
w.x, and none is 0. Fix a token with p = w.x and two sequences whose multisets of projections P, P' differ. Let Z_P(c)
be the sum of e^(c q) over q in P; the weighted mean is (log Z_P)'(c) at c = a p. Both means are real analytic in c. If
they agree at uncountably many c they agree everywhere, so Z_P = k Z_P' with a constant k, which is 1 at c = 0 because
both have n elements. Exponentials with different exponents are linearly independent, hence P = P', a contradiction. So
for all but countably many a, and for all of finitely many pairs, the means differ; then the numbers of one token in two
multisets differ for o != 0. For two different tokens p - p' + o (mean - mean') = 0 has at most one solution o. QED.

Assumptions
-----------
- nonzero: **checked** no token is the zero vector, and all are finite (`contextual_head`).
- separated: **checked** the numbers of all pairs are apart in balls, by at least 2^-42 of their size
(`contextual_head`).

Certified
---------
The gap, for the real-number function of the stored weights: the numbers are enclosed in balls of 300 bits and sorted;
neighbours are at least the gap apart, hence all pairs are.

Not certified
-------------
A floating-point run: its rounding, about 2^-44 of the size, is below the smallest gap that is accepted, which is tested
and not proved. Sequences that were not given. That the search finds weights when there are some.

Example
-------
>>> import numpy as np
>>> first, second = [0.5, 1.0, 2.5, 3.0], [0.5, 1.5, 2.0, 3.0]
>>> found = contextual_head(np.array([first, second])[:, :, None])
>>> len(found.numbers), float(found.gap) > 1e-3
(8, True)

Tests
-----
`tests/theorems/test_softmax_contextual.py`
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from flint import arb, ctx
from jaxtyping import Float

from certiformer.errors import BadInput
from certiformer.expressivity.exact_numbers import Real, ball
from certiformer.model import Attention, Block, Config, Heads, Input, Readout, Transformer

THEOREM = {
    "id": "expressivity.softmax_contextual",
    "title": "One softmax head of rank one gives every token a number of its own in every context",
    "kind": "exact",
    "sources": ("kajitsuka2024, Theorem 2 and Lemma 1",),
    "verb": "explore",
    "assumptions": (
        ("nonzero", "No token is the zero vector.", "checked"),
        ("separated", "In balls, all numbers are at least 2^-42 of their size apart.", "checked"),
    ),
    "uses": (),
}

PRECISION = 300
CARRIED_BITS = 42  # of the 53 of float64; the others are for the rounding of a run
DIRECTIONS = 64  # that are drawn, and of which the best few are tried with every scale
TRIED = 4
SCALES = 2.0 ** np.arange(-3, 6.5, 0.25)  # of the largest score
LARGEST = 20_000  # tokens in all sequences together

Sequences = Float[np.ndarray, "count tokens width"]
Context = tuple[tuple[float, ...], tuple[tuple[float, ...], ...]]


@dataclass(frozen=True)
class Contextual:
    """The transformer that outputs the numbers, each context with its number, and how far apart they are at least."""

    model: Transformer
    numbers: dict[Context, arb]
    gap: arb


def context(sequence: Sequence[Sequence[float]], token: int) -> Context:
    """What a number stands for: the token, and its sequence without order."""
    rows = [tuple(map(float, row)) for row in sequence]
    return rows[token], tuple(sorted(rows))


def contextual_head(sequences: Sequences, seed: int = 0) -> Contextual:
    """The head of the theorem for these sequences, with its proved gap; `BadInput` when float64 cannot carry it."""
    sequences = _checked(sequences)
    contexts = {context(s, j): (i, j) for i, s in enumerate(sequences) for j in range(len(s))}
    best: tuple[float, np.ndarray, float, float] | None = None
    places = np.array(list(contexts.values()))
    for w in _directions(sequences, seed):
        p = sequences @ w
        top = float(np.abs(p).max())
        levels = np.unique(p)
        between = float(np.diff(levels).min()) if len(levels) > 1 else top
        o = 2.0 ** math.floor(math.log2(between / (4 * top)))
        for a in SCALES / top**2:
            numbers = np.sort((p + o * _means(p, float(a)))[places[:, 0], places[:, 1]])
            apart = float(np.diff(numbers).min()) / top if len(numbers) > 1 else 1.0
            if best is None or apart > best[0]:
                best = apart, w, float(a), o
    if best is None:
        raise BadInput("no direction tells the tokens apart in float64; they are too close to each other")
    model = head(*best[1:], tokens=sequences.shape[1])
    enclosed = {name: token_numbers(model, sequences[i])[j] for name, (i, j) in contexts.items()}
    return Contextual(model, enclosed, _proved_gap(list(enclosed.values())))


def head(w: Float[np.ndarray, " width"], a: float, o: float, tokens: int) -> Transformer:
    """The transformer of one head whose output at every token is its number. Stream: the token, then the weighted mean."""
    width = len(w)
    column = np.append(w, 0.0)
    attention = Attention((Heads(1, 1, 1),), scale="unit")
    source = Input("continuous", tokens, width=width)
    config = Config(source, width + 1, 1, Readout("all"), blocks=(Block(attention),))
    name = "blocks.0.attention.groups.0"
    return Transformer(
        config,
        {
            "embed.weight": np.eye(width, width + 1),
            "embed.bias": np.zeros(width + 1),
            f"{name}.query": a * column[None, :, None],
            f"{name}.key": column[None, :, None],
            f"{name}.value": column[None, :, None],
            f"{name}.output": o * np.eye(width + 1)[None, -1:, :],
            "readout.weight": np.append(w, 1.0)[:, None],
            "readout.bias": np.zeros(1),
        },
    )


def token_numbers(model: Transformer, sequence: Float[np.ndarray, "tokens width"]) -> list[arb]:
    """Balls around the numbers of all tokens of a sequence, from the stored weights of `head`."""
    name = "blocks.0.attention.groups.0"
    stored = {
        part: np.asarray(model.tensors[f"{name}.{part}"], float)[0] for part in ("query", "key", "value", "output")
    }
    width, read = sequence.shape[1], np.asarray(model.tensors["readout.weight"], float)[:, 0]
    with ctx.workprec(PRECISION):
        rows = [[ball(float(x)) for x in row] for row in sequence]
        query, key, value = ([_dot(row, stored[part][:width, 0]) for row in rows] for part in ("query", "key", "value"))
        own = [_dot(row, read[:width]) for row in rows]
        factor = ball(float(stored["output"][0, width])) * ball(float(read[width]))
        return [p + factor * _boltzmann([q * k for k in key], value) for p, q in zip(own, query, strict=True)]


def lemma_gap(length: int, largest: Real) -> arb:
    """(log n)^2 e^-2r: what the source's lemma promises for keys below r, if they are 2 log n + 3 apart.

    >>> print(lemma_gap(3, 12).str(3, radius=False))
    4.56e-11
    """
    return arb(length).log() ** 2 * (-2 * ball(largest)).exp()


def _boltzmann(scores: list[arb], values: list[arb]) -> arb:
    powers = [score.exp() for score in scores]
    return sum((w * v for w, v in zip(powers, values, strict=True)), arb(0)) / sum(powers, arb(0))


def _dot(row: list[arb], weights: np.ndarray) -> arb:
    return sum((x * ball(float(w)) for x, w in zip(row, weights, strict=True)), arb(0))


def _means(p: Float[np.ndarray, "count tokens"], a: float) -> Float[np.ndarray, "count tokens"]:
    scores = a * p[:, :, None] * p[:, None, :]
    powers = np.exp(scores - scores.max(axis=2, keepdims=True))
    return (powers @ p[:, :, None])[:, :, 0] / powers.sum(axis=2)


def _directions(sequences: Sequences, seed: int) -> Iterator[np.ndarray]:
    """Directions in which different tokens are well apart, and none is near 0; in one dimension there is only one."""
    tokens = np.unique(sequences.reshape(-1, sequences.shape[2]), axis=0)
    width = tokens.shape[1]
    normal = np.random.default_rng(seed).normal(size=(DIRECTIONS, width))
    drawn = [np.ones(1)] if width == 1 else list(np.round(normal * 2**16) / 2**16)

    def quality(w: np.ndarray) -> float:
        p = np.sort(tokens @ w)
        between = np.diff(p).min() if len(p) > 1 else np.inf
        return float(min(between, np.abs(p).min()) / np.abs(p).max()) if p.any() else 0.0

    good = sorted((w for w in drawn if quality(w) > 0), key=quality, reverse=True)
    yield from good[:TRIED]


def _proved_gap(numbers: list[arb]) -> arb:
    """A lower bound of the distance of any two numbers; refuses what is too close."""
    with ctx.workprec(PRECISION):
        ordered = sorted(numbers, key=lambda x: x.mid())
        size = max((abs(x).upper() for x in ordered), default=arb(0))
        gaps = [(b - a).lower() for a, b in zip(ordered, ordered[1:], strict=False)]
        gap = min(gaps, default=size)
        if not gap > size / 2**CARRIED_BITS:
            bits = PRECISION if not gap > size / 2**PRECISION else math.ceil(float((size / gap).log() / arb(2).log()))
            raise BadInput(
                f"the best weights found separate these {len(numbers):,} contexts only with numbers of {bits} bits or"
                f" more; float64 carries {CARRIED_BITS} beside the rounding of a run: use fewer or shorter sequences"
            )
        return gap


def _checked(sequences: Sequences) -> Sequences:
    array = np.asarray(sequences, float)
    if array.ndim != 3 or 0 in array.shape:
        raise BadInput(f"sequences are numbers of the shape (sequences, tokens, width), not {array.shape}")
    if not np.isfinite(array).all() or not array.any(axis=2).all():
        raise BadInput("every token is a finite vector that is not 0; move the tokens away from 0 first")
    if array.shape[0] * array.shape[1] > LARGEST:
        raise BadInput(f"there are {array.shape[0] * array.shape[1]:,} tokens, more than {LARGEST:,}")
    return array
