r"""Relative position biases inside the softmax cannot tell equal tokens apart: half the target's spread is lost.

The weights of a softmax row add up to one. So on a sequence of equal tokens every row gets the same mixture, whatever
the biases are, and no depth, width or training can make two outputs differ.

Statement
---------
Let a configuration with n data tokens and the read-out `all` have equal position codes (in
particular: none), and let every attention be of one of two sorts:

(a) softmax, hard or nearest, any score bias and any mask that leaves each row a key, in a model without registers;
(b) of any kind, with blind mask and score bias (`expressivity.permutation_equivariance`), registers allowed.

Then for every input of n equal tokens all rows of the output are equal. Hence for every target G with n rows on a
domain that contains the sequence (a, ..., a), and *every* choice of weights,

    sup_x max_i |T(x)_i - G(x)_i|  >=  1/2 max_(i,j) |G(a, ..., a)_i - G(a, ..., a)_j|.

For the position target G(x)_i = i/n (i = 1, ..., n) this is (n-1)/(2n), and the constant output (n+1)/(2n) attains it.

Source
------
Luo et al. 2022 (arXiv 2205.13401): Transformers with relative position encoding are not universal
approximators in the sup norm.

Differs from the source in
--------------------------
The number: the source shows that some positive distance exists,
here it is the best possible constant. Layer norm, biases, hard attention and masks are covered. Two traps are
excluded that the usual wording "rows sum to one" passes over: a register (or a first token that is always the same)
lets a row's share of it depend on the position, and linear or relu attention has no rows that sum to one. Both break
the theorem, and the tests show that they do.

Proof
-----
Let all rows of the data tokens be equal to u. (a) All keys have the value u W_V, and the weights of each
row sum to one: every row gets u W_V W_O. (b) By equivariance under all permutations, rows that are equal stay equal.
Embedding, codes that are equal, feed-forward part, norm, residual and biases are the same map at every row. So after
every sub-layer the data rows are equal, and so are the rows read. If y is their common value, |y - G_i| and |y - G_j|
cannot both be below |G_i - G_j|/2. Position target: G_n - G_1 = (n-1)/n, and (n+1)/(2n) is at distance (n-1)/(2n)
from both and no farther from the others. QED.

Assumptions
-----------
- equal-codes: **checked** there is no code, or all its rows are equal.
- rows-sum-to-one: **checked** every attention is of sort (a) or (b); a stored mask counts only with the tensors at
hand.
- constant-sequence: **trusted** the domain contains the witness; it is the caller's, and `prove` encloses the error
there.

Certified
---------
`refute_position_target` returns the exact rational (n-1)/(2n) for every model of the configuration, and the witness. In
`certiformer prove`, sequences of equal tokens are among the points at which a counterexample is sought, and the one that
is recorded is enclosed in balls by the checker.

Not certified
-------------
The bound is in the sup norm. Sequences of equal tokens have measure zero: nothing is said
about the L^p distance for p < inf, nor about domains that stay away from them.

Example
-------
>>> from certiformer.model import Attention, Block, Config, Heads, Input, Readout
>>> relative = Block(Attention((Heads(4, 8, 8),), score_bias="toeplitz"))
>>> config = Config(Input("continuous", 5, width=1), 32, 1, Readout("all"), blocks=6 * (relative,))
>>> found = refute_position_target(config)
>>> found.bound, found.witness
(Fraction(2, 5), (Fraction(0, 1), Fraction(0, 1), Fraction(0, 1), Fraction(0, 1), Fraction(0, 1)))

Tests
-----
`tests/theorems/test_relative_bias_not_universal.py`
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from numpy.typing import ArrayLike

from certiformer.errors import BadInput
from certiformer.expressivity.attention_tables import mask_table, score_bias_tables
from certiformer.expressivity.exact_numbers import Real, exact
from certiformer.expressivity.permutation_equivariance import COLUMNS_ALIKE, Symmetry, code_reasons, is_blind
from certiformer.model import Config

THEOREM = {
    "id": "expressivity.relative_bias_not_universal",
    "title": "Relative position biases inside the softmax cannot tell equal tokens apart: half the target's spread is lost",
    "kind": "lower bound",
    "sources": ("luo2022",),
    "verb": "audit",
    "assumptions": (
        ("equal-codes", "The position codes of all data tokens are equal, or there is none.", "checked"),
        ("rows-sum-to-one", "The weights of every row sum to one, or no table sees the order.", "checked"),
        ("constant-sequence", "The domain contains a sequence of equal tokens.", "trusted"),
    ),
    "uses": ("expressivity.permutation_equivariance",),
}

# Kinds whose weights sum to one in every row that has a key.
_ROWS_SUM_TO_ONE = frozenset({"softmax", "hard", "nearest"})


@dataclass(frozen=True)
class Refutation:
    """For every choice of weights the largest error is at least `bound`, and it is at `witness`, a flat input."""

    bound: Fraction
    witness: tuple[Fraction, ...]
    reason: str


def equal_tokens_stay_equal(config: Config, tensors: Mapping[str, ArrayLike] | None = None) -> Symmetry:
    """Whether every input of equal tokens has equal rows, for all weights; the reason when that is not certain.

    >>> from certiformer.model import Attention, Block, Heads, Input, Readout
    >>> linear = Block(Attention((Heads(1, 1, 1),), kind="linear", score_bias="toeplitz"))
    >>> equal_tokens_stay_equal(Config(Input("continuous", 3, width=1), 1, 1, Readout("all"), (linear,))).reason
    'the weights of linear attention in block 0 need not sum to one'
    """
    reasons = [*code_reasons(config, tensors), *_block_reasons(config, tensors)]
    if reasons and config.tokens > 1:
        return Symmetry(False, "; ".join(reasons))
    return Symmetry(True, "whatever the weights are, equal tokens keep equal rows")


def _block_reasons(config: Config, tensors: Mapping[str, ArrayLike] | None) -> Iterator[str]:
    for index, block in enumerate(config.blocks):
        if block.attention is None:
            continue
        kind, mask, biases = (
            block.attention.kind,
            mask_table(config, index, tensors),
            score_bias_tables(config, index, tensors),
        )
        tables = None if mask is None or biases is None else [mask, *biases]
        if kind in COLUMNS_ALIKE and tables is not None and all(is_blind(t, config.registers) for t in tables):
            continue
        if kind not in _ROWS_SUM_TO_ONE:
            yield f"the weights of {kind} attention in block {index} need not sum to one"
        elif config.registers:
            yield f"in block {index} the share of the registers can depend on the position"
        elif mask is None or not mask.any(axis=1).all():
            yield f"the mask of block {index} may leave a row without a key"


def spread_bound(rows: Sequence[Sequence[Real]]) -> Fraction:
    """Half the largest distance of two of the target's rows at a sequence of equal tokens, over all coordinates."""
    columns = [[exact(value) for value in column] for column in zip(*rows, strict=True)]
    if not columns:
        raise BadInput("a target has at least one row with at least one number")
    return max(max(column) - min(column) for column in columns) / 2


def position_target(length: int) -> tuple[Fraction, ...]:
    """The rows 1/n, 2/n, ..., 1 of the position target."""
    if type(length) is not int or length < 1:
        raise BadInput(f"a length is a positive integer, not {length!r}")
    return tuple(Fraction(i, length) for i in range(1, length + 1))


def refute_position_target(
    config: Config, token: Sequence[Real] | None = None, tensors: Mapping[str, ArrayLike] | None = None
) -> Refutation:
    """Why no model of this configuration comes nearer to the position target than (n-1)/(2n); `BadInput` if one might.

    **Arguments:**

    - `token`: the token that the witness repeats, inside the domain; zeros (or id 0) by default.
    - `tensors`: needed when a mask or a code is stored in them.
    """
    symmetry = equal_tokens_stay_equal(config, tensors)
    if not symmetry.holds:
        raise BadInput(f"this architecture may compute positions: {symmetry.reason}")
    if config.readout.kind != "all" or config.outputs != 1:
        raise BadInput("the position target has one number for every token: it needs the read-out all and one output")
    width = config.input.width or 1
    repeated = tuple(exact(value) for value in ([0] * width if token is None else token))
    if len(repeated) != width:
        raise BadInput(f"a token of this model has {width} numbers, not {len(repeated)}")
    bound = spread_bound([[value] for value in position_target(config.tokens)])
    return Refutation(bound, repeated * config.tokens, symmetry.reason)
