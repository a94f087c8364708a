r"""Blocks with norms and the units of real models compute every function of words up to a length.

The shapes of BERT, GPT-2, Llama and SASRec: layer norm or RMS norm, before or behind the parts, GELU, SiLU, ReLU or
gated units, with biases or without, all tokens in sight or only those before.

Statement
---------
Words have 1 to n letters out of V. A shape is one of `word_network.NormedShape`: a place and a kind of the norms, any
epsilon >= 0, units ReLU, GELU (exact, by tanh, by a sigmoid), SiLU or tanh, gated or not, with or without biases; softmax
heads, at least one in each block, with keys of size 1 (2 under rotary codes) and values of size 2; residuals; a linear
read-out at every token. What is trained: the table of letters, all maps, gains; codes of positions where they are
added. Positions are told in one of two ways:

- *codes*: a trained row is added at each position. One block is enough (`parallel`: two).
- *start*: nothing is added (scores may have rotary codes or the slopes of ALiBi), attention is causal, and every word
  begins with a start token. Two blocks are enough (`parallel`: four).

Then for every F that gives each token of each word c numbers, and, where attention is causal, gives token i a function
of the first i letters, there are weights of that shape with T = F at every token of every word, exactly. The width is
2 max(7, c + 1) or more (12 in the place of 7 under rotary codes). What grows are the hidden units: as many as there are
different contexts (word and place; under a causal mask, first i letters) are enough. More heads and more blocks do no
harm; heads without a map behind them, whose outputs stand side by side, need values of size 4. With a read-out tied to
the table, c = V and the width 2 (V + 8) (under rotary codes 2 (V + 13)) is enough. Without a read-out, the tokens
themselves may be any numbers if no norm is behind them, and any below the largest gain times sqrt(d) behind an RMS norm
with epsilon > 0.

Source
------
Yun et al. 2020 (arXiv 1912.10077) and Kajitsuka and Sato 2024 (arXiv 2307.14023) for blocks without norms; the proof here
is our own.

Differs from the source in
--------------------------
Norms, other units than ReLU, gates, missing biases, causal masks, start tokens, tied tables; exact equality on finitely
many words in the place of a distance on a compact set.

Proof
-----
*Norms are harmless.* Tokens are (h, -h, 0), so their mean is 0 and a layer norm does what an RMS norm does: it divides by
sqrt(|x|^2 / d + epsilon). On tokens of one common length it multiplies by one positive number.

*Embedding.* h = (1; a, sqrt(1 - a^2); t, sqrt(1 - t^2); 0, 0) with a = letter / V and t = place / n: the first and the
fourth and fifth from the code, the others from the table. All have |h|^2 = 3.

*Attention.* One head asks for the 1 and answers with t: the scores are t_j n log B with B = max(V, 2), so weights are
proportional to B^j. It writes the means of a and of t into the two zeros. The mean of t grows with the number of
tokens in sight, which it determines; then the mean of a is a number in base B whose digits are the letters in sight.
So tokens y in different contexts differ. All of them have the 1 (behind a norm: a multiple).

*Units.* Different contexts have u = r y with r > 0 and different y with first coordinate 1, so no two are multiples of
each other and none is 0. The vectors (s(w . u_k))_k over all w span R^K. For if sum_k c_k s(w . u_k) = 0 for all w: for
ReLU the left side would have kinks along K different hyperplanes {w . u_k = 0}, so all c_k = 0. The other s are
analytic at 0 and no polynomials, x/2 plus an even function (tanh: odd); with w = z v, and v such that all |v . u_k|
are different and not 0, the coefficient of z^m gives sum_k c_k (v . u_k)^m = 0 for infinitely many m; divided by the
largest |v . u_k|^m among those with c_k != 0, it says that this c_k is 0, a contradiction. With a gate take the map
beside the gate to be w' . u = first coordinate of u, which is positive, and c_k r_k in the place of c_k. Biases, where
there are any, may be 0. So K units exist whose matrix is invertible, and the map behind them takes the K contexts to
any K vectors, hence the sum with the residual to any K vectors.

*Read-out.* Let these be z = (h, -h, 0), h = (F / M, sqrt(1 - |F|^2 / M^2), 0) with M >= |F|_2 everywhere: of one
length, so the last norm multiplies by a constant, and the read-out by M over twice that constant. Blocks whose parts
write 0 multiply tokens of one length by positive constants, so there may be any number of them.

*Tied.* Give every letter of the table V coordinates more, with one 1 among them: still of one length. The last tokens
have F / M there, and sqrt(1 - |F|^2 / M^2) where the means were written, where the table has 0; the gain of the last
norm (or the size of these coordinates) is the constant.

*Heads side by side.* The four coordinates that are written, two and their negatives, may be those of the first head.

*No read-out.* The units take the last tokens anywhere; an RMS norm with epsilon > 0 maps R^d onto the open ball of
radius sqrt(d), which the gain stretches.

*Start.* In the first block queries are 0, so weights are uniform (ALiBi: proportional to e^(m j)), and the share of the
start token falls strictly with i, so the head that averages a flag tells the place. Units of the first block then take
(letter, place) to the embedding above. Under rotary codes of angle z they also write (cos iz, sin iz) and t (cos iz, sin
iz); the query (cos iz, -sin iz) and the key t (cos jz, -sin jz) are turned into (1, 0) and (t, 0). `parallel`: the
units of a block do not see its attention, so attention and units take turns. QED.

Assumptions
-----------
- shape: **checked** each of the hypotheses, on the facts of a model (`expressivity.universality`).
- size: **trusted** the width and the number of units may be as large as is said. A trained model has those it has.

Certified
---------
`word_network` makes such a network for given words, and `proved_error` encloses the largest error of its *stored* float64
weights over all words, in balls.

Not certified
-------------
That training finds such weights. Words longer than n. Numbers of letters or lengths beyond a laptop: there are V^n
contexts.

Example
-------
A block in the shape of BERT reads words backwards:

>>> bert = NormedShape("post", "layer", 1e-12, "gelu", causal=False)
>>> network = word_network(bert, lambda word, place: (word[-1 - place],), letters=2, longest=3)
>>> proved_error(network, lambda word, place: (word[-1 - place],), letters=2, longest=3) < 1e-6
True

Tests
-----
`tests/theorems/test_words_in_normed_blocks.py`
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from flint import arb, ctx
from jaxtyping import Float

from certiformer.errors import BadInput
from certiformer.expressivity.word_network import (
    BALLS,
    FINAL,
    FLOATS,
    PRECISION,
    NormedShape,
    WordBlock,
    WordNetwork,
    before_attention,
    before_hidden_units,
    normed,
    outputs,
    silent,
)

THEOREM = {
    "id": "expressivity.words_in_normed_blocks",
    "title": "Blocks with norms and the units of real models compute every function of words up to a length",
    "kind": "exact",
    "sources": ("yun2020", "kajitsuka2024", "classical"),
    "verb": "audit",
    "assumptions": (
        ("shape", "Norms, units, masks, positions and read-out are of one of the shapes of the statement.", "checked"),
        ("size", "The width and the number of hidden units may be as large as is said.", "trusted"),
    ),
    "uses": (),
}

Word = tuple[int, ...]
Target = Callable[[Word, int], Sequence[float]]
ONE, LETTER, PLACE, POOL = 0, slice(1, 3), slice(3, 5), slice(5, 7)
TURN, REST = slice(7, 11), 11  # under rotary codes: (cos, sin), t (cos, sin), and what makes the length one number
LARGEST = 2_000  # contexts
SPREAD = 2.0  # how far arguments of units reach


def half_width(outputs: int, rotary: bool) -> int:
    """Half of the width that is enough for so many outputs.

    >>> half_width(1, False), half_width(100, False), half_width(1, True)
    (7, 101, 12)
    """
    return max(12 if rotary else 7, outputs + 1)


def words(letters: int, longest: int) -> Iterator[Word]:
    """All words, short ones first."""
    for length in range(1, longest + 1):
        yield from product(range(letters), repeat=length)


@dataclass(frozen=True)
class Context:
    """What a token may depend on, and one word and place where it is met."""

    key: tuple[Word, int]
    word: Word
    place: int


def contexts(shape: NormedShape, letters: int, longest: int) -> list[Context]:
    """All contexts: the first letters under a causal mask, else the word and the place."""
    collected: dict[tuple[Word, int], Context] = {}
    for word in words(letters, longest):
        for place in range(len(word)):
            key = (word[: place + 1] if shape.causal else word, place)
            collected.setdefault(key, Context(key, word, place))
    return list(collected.values())


def word_network(shape: NormedShape, target: Target, letters: int, longest: int, seed: int = 0) -> WordNetwork:
    """A network of the shape for the target, which gives the numbers of a word at a place (counted from 0).

    `BadInput` for a target that is no prefix map under a causal mask, with two words that show it, and for more than
    2,000 contexts.
    """
    known = _values(shape, target, letters, longest)
    count, rotary = len(next(iter(known.values()))), shape.rotary is not None
    half = half_width(count, rotary)
    rng = np.random.default_rng(seed)
    network = _embedding(shape, letters, longest, half, count)
    every = contexts(shape, letters, longest)
    if shape.start:
        network = _with_places(network, every, longest, half, rng)
    network = _with_letters(network, max(letters, 2), longest, half)
    if shape.place == "parallel":
        network = _appended(network, silent(_blank(2 * half), attention=True))
    largest = max(float(np.linalg.norm(value)) for value in known.values()) or 1.0
    # A little above: the square root stays away from 0.
    largest *= 1.25
    rows = []
    for one in every:
        value = np.asarray(known[one.key]) / largest
        rows.append([*value, math.sqrt(max(0.0, 1 - float(value @ value))), *np.zeros(half - count - 1)])
    network = _with_units(network, every, np.array(rows), rng)
    return replace(network, readout=_read_out(shape, half, count, largest))


def proved_error(network: WordNetwork, target: Target, letters: int, longest: int) -> float:
    """An upper bound of the largest error over all words and tokens, for the real-number function of the weights."""
    worst, first = 0.0, int(network.shape.start)
    with ctx.workprec(PRECISION):
        for word in words(letters, longest):
            rows = outputs(network, _fed(network.shape, word, letters), BALLS)[first:]
            for place, row in enumerate(rows):
                for collected, wanted in zip(row, target(word, place), strict=True):
                    off = abs(collected - arb(float(wanted))).upper()
                    if not off.is_finite():
                        return math.inf
                    worst = max(worst, math.nextafter(float(off), math.inf))
    return worst


def _values(shape: NormedShape, target: Target, letters: int, longest: int) -> dict[tuple[Word, int], np.ndarray]:
    """The target by context."""
    if letters < 1 or longest < 1:
        raise BadInput(f"words need letters and a length, not {letters} letters and {longest} places")
    if sum(letters**n * (1 if shape.causal else n) for n in range(1, longest + 1)) > LARGEST:
        raise BadInput(f"{letters} letters at {longest} places are more than {LARGEST:,} contexts; take fewer")
    known: dict[tuple[Word, int], tuple[Word, np.ndarray]] = {}
    for word in words(letters, longest):
        for place in range(len(word)):
            key = (word[: place + 1] if shape.causal else word, place)
            value = np.asarray(target(word, place), float)
            other, before = known.setdefault(key, (word, value))
            if not np.array_equal(before, value):
                raise BadInput(
                    f"causal attention gives token {place + 1} of {other} and of {word} the same output, and the target"
                    " does not: it is no prefix map"
                )
    return {key: value for key, (_, value) in known.items()}


def _fed(shape: NormedShape, word: Word, letters: int) -> Word:
    """The word as the network reads it: behind the start token, which is the last row of the table."""
    return (letters, *word) if shape.start else word


def _embedding(shape: NormedShape, letters: int, longest: int, half: int, count: int) -> WordNetwork:
    letter = np.arange(letters + shape.start) / letters
    table, codes = np.zeros((len(letter), half)), np.zeros((longest, half))
    table[:, LETTER] = np.stack([letter, np.sqrt(1 - letter**2)], axis=1)
    place = np.arange(1, longest + 1) / longest
    codes[:, ONE], codes[:, PLACE] = 1.0, np.stack([place, np.sqrt(1 - place**2)], axis=1)
    if shape.start:
        # Until the places are known their coordinates hold a flag: whether this is the start token.
        table[:, ONE], table[:-1, PLACE], table[-1, PLACE] = 1.0, (0.0, 1.0), (1.0, 0.0)
    readout = np.zeros((count, 2 * half))
    return WordNetwork(shape, _doubled(table), None if shape.start else _doubled(codes), (), readout)


def _doubled(rows: Float[np.ndarray, "rows half"]) -> Float[np.ndarray, "rows width"]:
    return np.concatenate([rows, -rows], axis=1)


def _blank(width: int, size: int = 2) -> WordBlock:
    query, key, value = (np.zeros((size, width)) for _ in range(3))
    return WordBlock(query, key, value, np.zeros((width, size)), np.zeros((1, width)), np.zeros((width, 1)))


def _appended(network: WordNetwork, block: WordBlock) -> WordNetwork:
    return replace(network, blocks=(*network.blocks, block))


def _pooling(width: int, read: Sequence[int]) -> WordBlock:
    """A head that writes the means of two coordinates into `POOL`, still with equal weights."""
    block = _blank(width)
    for channel, coordinate in enumerate(read):
        block.value[channel, coordinate] = 1.0
        block.output[POOL.start + channel, channel] = 1.0
        block.output[width // 2 + POOL.start + channel, channel] = -1.0
    return block


def _with_places(
    network: WordNetwork, every: list[Context], longest: int, half: int, rng: np.random.Generator
) -> WordNetwork:
    """The block of a start token: the share of the flag tells the place, and hidden units write it down."""
    shape, letters = network.shape, len(network.table) - 1
    network = _appended(network, _pooling(2 * half, (PLACE.start, ONE)))
    if shape.place == "parallel":
        network = _appended(network, silent(_blank(2 * half), attention=True))
    seen = {(letters, 0): _fed(shape, every[0].word, letters)}
    seen |= {(one.word[one.place], one.place + 1): _fed(shape, one.word, letters) for one in every}
    wanted = np.zeros((len(seen), half))
    for row, (letter, place) in zip(wanted, seen, strict=True):
        share, t = letter / letters, place / longest
        row[ONE], row[LETTER], row[PLACE] = 1.0, (share, math.sqrt(1 - share**2)), (t, math.sqrt(1 - t**2))
        if shape.rotary is not None:
            turn = place * shape.rotary
            row[TURN] = (math.cos(turn), math.sin(turn), t * math.cos(turn), t * math.sin(turn))
            row[REST] = math.sqrt(1 - t**2)
    places = [(word, place) for (_, place), word in seen.items()]
    return _units_for(network, places, wanted, rng)


def _with_letters(network: WordNetwork, base: int, longest: int, half: int) -> WordNetwork:
    """The head whose weights are proportional to base^j: the mean of the letters is a number in that base."""
    block = _pooling(2 * half, (LETTER.start, PLACE.start))
    network = _appended(network, block)
    word = (len(network.table) - 1,) if network.shape.start else (0,)
    asking, asked = (float(rows[0, ONE]) for rows in before_attention(network, word))
    size = longest * math.log(base) / (asking * asked)
    if network.shape.rotary is None or not network.shape.start:
        block.query[0, ONE], block.key[0, PLACE.start] = size, 1.0
    else:
        turn = TURN.start
        block.query[0, turn], block.query[1, turn + 1] = size, -size
        block.key[0, turn + 2], block.key[1, turn + 3] = 1.0, -1.0
    return network


def _with_units(
    network: WordNetwork, every: list[Context], wanted: Float[np.ndarray, "contexts half"], rng: np.random.Generator
) -> WordNetwork:
    letters, first = len(network.table) - network.shape.start, int(network.shape.start)
    places = [(_fed(network.shape, one.word, letters), one.place + first) for one in every]
    return _units_for(network, places, wanted, rng)


def _units_for(
    network: WordNetwork,
    places: list[tuple[Word, int]],
    wanted: Float[np.ndarray, "contexts half"],
    rng: np.random.Generator,
) -> WordNetwork:
    """Hidden units of the last block that take the token at each place to (wanted, -wanted), up to float64."""
    shape = network.shape
    pairs = {word: before_hidden_units(network, word) for word, _ in places}
    read = np.array([pairs[word][0][place] for word, place in places])
    kept = np.array([pairs[word][1][place] for word, place in places])
    # Directions in which the tokens differ much, so that the equations are well conditioned.
    left, sizes, right = np.linalg.svd(read, full_matrices=False)
    used = sizes > 1e-9 * sizes[0]
    count = 3 * len(places)
    drawn = rng.normal(size=(count, int(used.sum()))) * math.sqrt(len(places)) * SPREAD
    maps = np.round((drawn / sizes[used]) @ right[used] * 2**20) / 2**20
    one = np.zeros_like(maps)
    one[:, ONE] = 1.0
    bias = np.round(rng.normal(size=count) * SPREAD * 2**20) / 2**20 if shape.biased else None
    up, gate = (one, maps) if shape.gated else (maps, None)
    raised = read @ up.T + (0.0 if bias is None else bias)
    unit = FLOATS.units[shape.activation]
    hidden = unit(raised) if gate is None else unit(read @ gate.T) * raised
    down = np.linalg.lstsq(hidden, _doubled(wanted) - kept, rcond=1e-13)[0].T
    last = replace(network.blocks[-1], up=up, gate=gate, up_bias=bias, down=down)
    return replace(network, blocks=(*network.blocks[:-1], last))


def _read_out(shape: NormedShape, half: int, count: int, largest: float) -> Float[np.ndarray, "outputs width"]:
    """The first coordinates times a constant; the rows behind the last norm have one length."""
    row = np.zeros((1, 2 * half))
    row[0, 0], row[0, half] = 1.0, -1.0
    inside = normed(shape, row, FLOATS) if shape.place in FINAL or shape.place == "post" else row
    return _doubled(np.eye(count, half)) * largest / (2 * float(inside[0, 0]))
