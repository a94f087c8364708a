r"""Hard attention that shifts one token after another gives every token of every grid sequence its own number.

The heart of the first universality proof for transformers, as weights. It is a theorem about the mean error (L^p), and
its numbers grow so fast that float64 carries only small grids; both are part of the statement here.

Statement
---------
Tokens x_1, ..., x_n in [0, 1]^d, D >= 2 cells a coordinate, A = D^d. Write x_j on the grid when D x_j is a vector m_j
of whole numbers below D; its letter is m_j1 + D m_j2 + ... + D^(d-1) m_jd, from 0 to A - 1. With positions token j = 1,
..., n starts from the id g_j = letter + (j-1) A; without, from its letter, and then the letters of a sequence have to
differ.

(a) *Contextual mapping.* For b = 0, 1, ..., (number of ids) - 1 two hard heads add B (largest id - smallest id) to the
    token whose id is b, and a last head adds C times the largest id to all tokens. With

        B = A   (A + 1 for n = 2 with positions),    top = B^n (number of ids - 1),    C = top + 1,

    the final ids are whole numbers below (top + 1)^2, those of all tokens of all grid sequences are different, and the
    id alone determines the sequence and the token. Without positions it determines the set of letters and the letter.
(b) *Approximation in L^p.* Put a quantiser before and a table of the n A^n ids behind it. For f: [0,1]^(dn) -> R^n with
    |f_j| <= M and |f_j(X) - f_j(Y)| <= L max |X - Y|, table entries f_j at the midpoint of the cell (rounded to
    float64), ramps of width r <= 1/2 (in cells) and 1 <= p < infinity,

        ( integral |T_j - f_j|^p )^(1/p)  <=  ( w^p + (2M)^p mu )^(1/p),
        w = L (1 + r)/(2D) + 2^-53 M,    mu = 1 - (1 - r (D+1)/(2D))^(dn),

    and |T_j| <= M everywhere. Since w -> 0 with D and mu -> 0 with r, every continuous f is approximated in L^p.
(c) *Not in the sup norm.* On the ramps ids are no whole numbers and T is near the value of no cell: for d = 1, n = 2,
    D = 3 and f_j = 1 the output is 0 at x = ((1 - 3r/4)/3, 0), an error of 1, whatever r.
(d) *Layers.* n A + 1 attention layers (A + 1 without positions) and 4 feed-forward layers. The source takes
    d D + d + (n A + 1) + n A^n layers with at most 4 hidden units each (D = 1/delta).

Source
------
Yun, Bhojanapalli, Rawat, Reddi and Kumar 2020 (arXiv 1912.10077), Theorems 2 and 3 and their proofs.

Differs from the source in
--------------------------
Ids are counted in units of delta, so that all of them are whole numbers. Positions shift the last coordinate only, by
D (j-1) cells, and C is smaller. B = A with positions, as the layers are usually restated, is wrong for n = 2 and d = 1
in one sequence: letters D - 1 and 0 have the ids A - 1 and A, the first is shifted to 2A - 1, which is an id that the
last layer shifts again. Quantiser and table are two wide layers each instead of many narrow ones. Attention stays
hard; the source ends by replacing it by softmax with large scores.

Proof
-----
(a) Number the tokens by increasing id, g_1 < ... < g_n (with positions this is their order). Layer b = g_1 shifts token
1 to s_1 = g_1 + B (g_n - g_1). All ids are below G := number of ids, and s_1 >= G: without positions B (g_n - g_1) >= A
= G. With positions and n >= 3, g_n - g_1 >= (n-2)A + 1, and A ((n-2)A + 1) >= n A = G as A >= 2. For n = 2 and a gap of
t, g_1 >= A - t and s_1 >= A - t + (A + 1) t = A + A t >= 2A = G. So token 1 is out of reach of all later layers, and it
is the largest. Layer g_2 then shifts token 2 to s_2 = g_2 + B (s_1 - g_2), and so on: s_j = g_j + B (s_(j-1) - g_j),
and s_j - s_(j-1) = (B - 1)(s_(j-1) - g_j) > 0, so s_1 < ... < s_n. (For n = 1 nothing moves.) Since s_1 <= B (G - 1)
and s_j <= B s_(j-1), all s_j <= top. Now s_n mod B = g_n mod B, and g_n lies in a known window of A <= B whole numbers,
so s_n determines g_n, then s_(n-1) = (s_n - g_n)/B + g_n, then g_(n-1), and so on down to g_1. The final id s_j + C s_n
has s_j as its remainder modulo C and s_n as its quotient, because 0 <= s_j < C: it determines both. The heads: the
score of token k in row i is id_k (id_i - b'), largest at the largest id when id_i > b' and at the smallest when id_i <
b'. With b' = b - 1/2 and b + 1/2 the two heads differ for id_i = b only, by largest minus smallest.
(b) The quantiser gives m where D x lies in [m - r/2, m + 1 - r] in every coordinate. The rest has measure
r (D+1)/(2D) in each coordinate, mu in all. There T_j is the table entry of the cell, w away from f_j at most, as every
point is within (1 + r)/(2D) of the midpoint. Elsewhere |T_j| <= M, since the table's bumps have width 1 and the ids are
whole numbers, so at most one bump is not 0; hence |T_j - f_j| <= 2M. (c) is a computation in rationals (see the tests).

Assumptions
-----------
- whole-numbers: **checked** all ids are below 2^52, so that float64 carries them and the scores exactly
(`Grid.require_float64`).
- distinct-letters: **checked** without positions a sequence with two equal letters has no ids (`token_ids`).
- regular: **trusted** M and L bound f and its slope; they are the caller's promise, and the bound of (b) scales with
them.

Certified
---------
The numbers B, C, top are whole and stored exactly, and so are all scores below 2^52: the run in float64 gives the
same ids as real arithmetic. `lp_bound` encloses the bound of (b) in a ball.

Not certified
-------------
Anything in the sup norm, see (c) (`construct.equivariant_universal` is a sup-norm theorem without positions,
`axioms.korovkin_ridges` one with them). Points of the ramps. Softmax in place of hard attention.

Example
-------
>>> grid = Grid(width=1, tokens=2, cells=3)
>>> token_ids(grid, [[2], [0]])
(1221, 1230)
>>> contextual_mapping(grid).evaluate([[2 / 3, 0]])
array([[1221., 1230.]])
>>> contextual_mapping(Grid(width=2, tokens=8, cells=16))
Traceback (most recent call last):
...
certiformer.errors.BadInput: the ids of 8 tokens with d = 2 and 16 cells need whole numbers of 150 bits; float64 ...

Tests
-----
`tests/theorems/test_selective_shifts.py`
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from flint import arb
from jaxtyping import Float

from certiformer.errors import BadInput
from certiformer.expressivity.exact_numbers import Real, ball
from certiformer.expressivity.shift_layers import Stack, look_up, quantise
from certiformer.model import Code, Config, Input, Readout, Transformer

THEOREM = {
    "id": "expressivity.selective_shifts",
    "title": "Hard attention that shifts one token after another gives every token of every grid sequence its own number",
    "kind": "exact",
    "sources": ("yun2020, Theorems 2 and 3",),
    "verb": "explore",
    "assumptions": (
        ("whole-numbers", "All ids are below 2^52: float64 carries them and the scores exactly.", "checked"),
        ("distinct-letters", "Without positions the letters of a sequence differ.", "checked"),
        ("regular", "M bounds f and L its slope in the largest coordinate.", "trusted"),
    ),
    "uses": (),
}

BITS = 52
RAMP = 2.0**-10
LARGEST_TABLE = 4096

Letters = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Grid:
    """n = `tokens` tokens of d = `width` coordinates, each cut into D = `cells` cells."""

    width: int
    tokens: int
    cells: int
    positions: bool = True

    def __post_init__(self) -> None:
        for number, least in ((self.width, 1), (self.tokens, 1), (self.cells, 2)):
            if type(number) is not int or not least <= number < 2**16:
                raise BadInput(f"a grid has at least one coordinate, one token and two cells, not {self}")
        if not self.positions and self.tokens > self.letters:
            raise BadInput(f"{self.tokens} tokens cannot have different letters when there are {self.letters} of them")

    @property
    def letters(self) -> int:
        """A, the number of different tokens."""
        return self.cells**self.width

    @property
    def starting_ids(self) -> int:
        """G, the number of ids before the first shift."""
        return self.letters * (self.tokens if self.positions else 1)

    @property
    def multiplier(self) -> int:
        """B."""
        return self.letters + (1 if self.positions and self.tokens == 2 else 0)

    @property
    def top(self) -> int:
        """No id is larger than this before the last layer; C is one more."""
        return self.multiplier**self.tokens * (self.starting_ids - 1)

    @property
    def bits(self) -> int:
        """How long the whole numbers of the final ids get."""
        return ((self.top + 1) ** 2 - 1).bit_length()

    @property
    def key(self) -> Float[np.ndarray, " width"]:
        """u = (1, D, ..., D^(d-1)): u.m is the letter of m."""
        return float(self.cells) ** np.arange(self.width)

    def require_float64(self) -> None:
        """Refuse a grid whose ids float64 does not carry."""
        if self.bits > BITS:
            size = f"{self.tokens} tokens with d = {self.width} and {self.cells} cells"
            raise BadInput(
                f"the ids of {size} need whole numbers of {self.bits} bits; float64 carries {BITS} of them exactly in"
                " the ids and in the scores of this construction"
            )

    def sequences(self) -> Iterator[Letters]:
        """All grid sequences, as whole numbers D x; without positions those of different tokens, each order once."""
        tokens = list(product(range(self.cells), repeat=self.width))
        for sequence in product(tokens, repeat=self.tokens):
            if self.positions or len(set(sequence)) == self.tokens:
                yield sequence


def token_ids(grid: Grid, sequence: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """The final ids of the tokens, in whole numbers of any size, by the recursion of the proof."""
    letters = [sum(m * grid.cells**i for i, m in enumerate(token)) for token in sequence]
    ids = [letter + (j * grid.letters if grid.positions else 0) for j, letter in enumerate(letters)]
    if len(set(ids)) < len(ids):
        raise BadInput("without positions equal tokens of a sequence have equal ids; their letters have to differ")
    order, shift = sorted(range(len(ids)), key=ids.__getitem__), grid.multiplier
    largest, shifted = max(ids), dict.fromkeys(order, 0)
    for token in order:
        largest = shifted[token] = ids[token] + shift * (largest - ids[token])
    return tuple(shifted[token] + (grid.top + 1) * largest for token in range(len(ids)))


def contextual_mapping(grid: Grid, ramp: float = RAMP) -> Transformer:
    """The transformer of (a) behind its quantiser; the output of token j is its final id."""
    grid.require_float64()
    stack = _shifts(grid, ramp, width=0)
    read = np.zeros((stack.width, 1))
    read[: grid.width, 0] = grid.key
    return _transformer(grid, stack, read)


def approximator(grid: Grid, values: Callable[[Letters], Sequence[float]], ramp: float = RAMP) -> Transformer:
    """The transformer of (b): token j answers values(sequence)[j] on the cell of the grid sequence D x."""
    if not grid.positions:
        raise BadInput("the table of values is built for tokens with positions")
    count = grid.tokens * grid.letters**grid.tokens
    if count > LARGEST_TABLE:
        raise BadInput(f"the table of this grid has {count:,} ids, more than {LARGEST_TABLE:,}")
    grid.require_float64()
    stack = _shifts(grid, ramp, width=count)
    ids, entries = [], []
    for sequence in grid.sequences():
        ids += token_ids(grid, sequence)
        entries += [[float(value)] for value in values(sequence)]
    look_up(stack, grid.key, ids, np.array(entries))
    return _transformer(grid, stack, np.eye(stack.width)[:, :1])


def lp_bound(grid: Grid, lipschitz: Real, largest: Real, p: Real = 2, ramp: float = RAMP) -> arb:
    """The bound of (b) on the L^p norm of the error of one output, for L = `lipschitz` and M = `largest`."""
    if p < 1:
        raise BadInput(f"L^p norms have p >= 1, not {p}")
    _check_ramp(ramp)
    r, cells, most = ball(ramp), grid.cells, ball(largest)
    near = ball(lipschitz) * (1 + r) / (2 * cells) + most / 2**53
    bad = 1 - (1 - r * (cells + 1) / (2 * cells)) ** (grid.width * grid.tokens)
    return (near ** ball(p) + (2 * most) ** ball(p) * bad) ** (1 / ball(p))


@dataclass(frozen=True)
class Layers:
    """How many layers quantise, map contexts to ids, and map ids to values."""

    quantise: int
    contextual: int
    value: int


def layers(grid: Grid) -> Layers:
    """The layers built here."""
    return Layers(2, grid.starting_ids + 1, 2)


def source_layers(grid: Grid) -> Layers:
    """The layers of the source, of at most 4 hidden units or 2 heads of size 1 each; values for all orders of tokens.

    >>> grid = Grid(width=2, tokens=3, cells=10)
    >>> layers(grid), source_layers(grid)
    (Layers(quantise=2, contextual=301, value=2), Layers(quantise=22, contextual=301, value=3000000))
    """
    quantiser = grid.width * (grid.cells + 1)
    return Layers(quantiser, grid.starting_ids + 1, grid.tokens * grid.letters**grid.tokens)


def _shifts(grid: Grid, ramp: float, width: int) -> Stack:
    _check_ramp(ramp)
    steps = [grid.cells - 1] * grid.width
    if grid.positions:
        steps[-1] = grid.cells * grid.tokens - 1
    stack = Stack(max(width, sum(steps), grid.width))
    quantise(stack, steps, ramp)
    for b in range(grid.starting_ids):
        stack.hard_heads(grid.key, (b - 0.5, b + 0.5), (grid.multiplier, -grid.multiplier))
    stack.hard_heads(grid.key, (-0.5,), (grid.top + 1,))
    return stack


def _transformer(grid: Grid, stack: Stack, read: Float[np.ndarray, "width 1"]) -> Transformer:
    embed, tensors = np.zeros((grid.width, stack.width)), dict(stack.tensors)
    embed[:, : grid.width] = grid.cells * np.eye(grid.width)
    if grid.positions:
        code = np.zeros((grid.tokens, stack.width))
        code[:, grid.width - 1] = grid.cells * np.arange(grid.tokens)
        tensors["code.table"] = code
    config = Config(
        Input("continuous", grid.tokens, width=grid.width),
        stack.width,
        outputs=1,
        readout=Readout("all"),
        blocks=tuple(stack.blocks),
        code=Code("table" if grid.positions else "none"),
    )
    ends = {"embed.weight": embed, "embed.bias": np.zeros(stack.width), "readout.weight": read}
    return Transformer(config, {**tensors, **ends, "readout.bias": np.zeros(1)})


def _check_ramp(ramp: float) -> None:
    mantissa, exponent = np.frexp(ramp)
    if mantissa != 0.5 or not -20 <= exponent - 1 <= -1:
        raise BadInput(f"the width of a ramp is a power of two from 2^-20 to 1/2, not {ramp!r}")
