r"""Without position codes, masks and score biases a transformer cannot see the order of its tokens.

Permuting the tokens permutes the rows of the output, or, when these are pooled, changes nothing. It holds for every
choice of weights, so it is a property of the architecture and a limit of all that can be trained in it.

Statement
---------
Let a configuration have n data tokens behind R registers, and let sigma be any permutation of the data tokens. Suppose

1. the position codes of all data tokens are equal (in particular: there is none),
2. every mask and every table of score biases is *blind*: M_ij depends only on whether i and j are the same token, and
   for each of them on whether it is a data token or which register it is (in particular: there is neither mask nor
   bias).

Then for all weights and every input x_1, ..., x_n, the sequence after any number of blocks and loops satisfies
H(x_sigma) = H(x)_sigma on the data tokens, and the registers do not change. Hence the read-out `all` is equivariant,
and `mean`, `sum` and `register` are invariant. For n = 1 there is nothing to permute.

Source
------
Yun et al. 2020 (arXiv 1912.10077), for softmax attention with residuals and ReLU.

Differs from the source in
--------------------------
All options of the model: softmax, hard, nearest, linear and
relu attention, any feed-forward kind, layer norm before or after, with or without residuals and biases, registers,
loops; and masks or biases that happen to be blind.

Proof ----- Let P permute the data tokens and leave the registers in place. Embedding: row by row, and all codes are
equal, so H_0(x_sigma) = P H_0(x). Attention: scores S = (H W_Q)(H W_K)^T + B go to P S P^T, since P B P^T = B for a
blind B; a mask likewise. What turns a row of scores into weights (softmax, hard, nearest, linear, relu) treats the
columns alike, so the weights go to P A P^T, and A H W_V to P A P^T P H W_V = P (A H W_V). Feed-forward part, norm,
residual and biases act row by row. So every sub-layer commutes with P, hence every stack and loop of them does. Mean
and sum over the data tokens do not change under P, and a register is not moved by it. QED.

Assumptions
-----------
- equal-codes: **checked** there is no code, or all rows of it are equal (`is_equivariant`).
- blind-tables: **checked** there is no mask and no score bias, or, with the tensors at hand, each is blind.
- read-out: **checked** the read-out does not single out a data token.

Certified
---------
`is_equivariant(config)` is True only if the statement holds for *every* choice of weights of this configuration; with
`tensors`, for these codes, masks and biases and every choice of the other weights.

Not certified
-------------
False means that the theorem does not apply. Particular weights may still ignore the order: a code that nothing reads. A
run in floating point adds up in another order after a permutation, so its outputs agree up to rounding only.

Example
-------
>>> from certiformer.model import Attention, Block, Code, Config, Heads, Input, Readout
>>> layer = Block(Attention((Heads(2, 4, 4),)))
>>> is_equivariant(Config(Input("continuous", 5, width=1), 8, 1, Readout("sum"), blocks=(layer,)))
Symmetry(holds=True, reason='whatever the weights are, a permutation of the tokens changes nothing')
>>> is_equivariant(Config(Input("continuous", 5, width=1), 8, 1, Readout("all"), (layer,), code=Code("one-hot", offset=0)))
Symmetry(holds=False, reason='the one-hot code tells the tokens apart')

Tests
-----
`tests/theorems/test_permutation_equivariance.py`
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from certiformer.expressivity.attention_tables import mask_table, score_bias_tables
from certiformer.model import Config

THEOREM = {
    "id": "expressivity.permutation_equivariance",
    "title": "Without position codes, masks and score biases a transformer cannot see the order of its tokens",
    "kind": "impossibility",
    "sources": ("yun2020",),
    "verb": "audit",
    "assumptions": (
        ("equal-codes", "The position codes of all data tokens are equal, or there is none.", "checked"),
        ("blind-tables", "Masks and score biases do not tell two data tokens apart.", "checked"),
        ("read-out", "The read-out does not single out a data token.", "checked"),
    ),
    "uses": (),
}

# How each kind turns a row of scores into weights treats the columns alike. A kind that is not listed is not covered.
COLUMNS_ALIKE = frozenset({"softmax", "hard", "nearest", "linear", "relu"})


class Symmetry(NamedTuple):
    """Whether a theorem about a symmetry applies, and why or why not."""

    holds: bool
    reason: str


def is_equivariant(config: Config, tensors: Mapping[str, ArrayLike] | None = None) -> Symmetry:
    """Whether permuting the tokens permutes the rows that are read (`all`), or changes nothing (other read-outs).

    Without `tensors` a stored code, mask or bias counts as one that sees the order.
    """
    if config.tokens == 1:
        return Symmetry(True, "there is only one token")
    reasons = [*code_reasons(config, tensors), *_table_reasons(config, tensors)]
    if config.readout.kind == "token":
        reasons.append(f"the read-out singles out token {config.readout.token}")
    if reasons:
        return Symmetry(False, "; ".join(reasons))
    effect = "permutes the rows of the output" if config.readout.kind == "all" else "changes nothing"
    return Symmetry(True, f"whatever the weights are, a permutation of the tokens {effect}")


def code_reasons(config: Config, tensors: Mapping[str, ArrayLike] | None) -> Iterator[str]:
    """Why the position codes tell data tokens apart; nothing when they do not."""
    kind = config.code.kind
    if kind == "table" and tensors is not None:
        rows = np.asarray(tensors["code.table"])
        if (rows != rows[0]).any():
            yield "the rows of the table of codes differ"
    elif not (kind == "none" or (kind == "circle" and config.code.period == 1)):
        # Circle: cos and sin of 2 pi t / 1 are 1 and 0 at every t. One-hot codes differ, and so does sin(t).
        yield f"the {kind} code tells the tokens apart"


def _table_reasons(config: Config, tensors: Mapping[str, ArrayLike] | None) -> Iterator[str]:
    for index, block in enumerate(config.blocks):
        attention = block.attention
        if attention is None:
            continue
        if attention.kind not in COLUMNS_ALIKE:
            yield f"we do not know how {attention.kind} attention of block {index} treats the order"
        if attention.mask != "none":
            mask = mask_table(config, index, tensors)
            if mask is None or not is_blind(mask, config.registers):
                yield f"the {attention.mask} mask of block {index} depends on the order"
        if attention.score_bias != "none":
            tables = score_bias_tables(config, index, tensors)
            if tables is None or not all(is_blind(table, config.registers) for table in tables):
                yield f"the {attention.score_bias} score bias of block {index} depends on the order"


def is_blind(table: np.ndarray, registers: int) -> bool:
    """Whether an (N, N) table stays the same under every permutation of the data tokens, which come after the registers.

    >>> is_blind(np.eye(3), 0), is_blind(np.tri(3), 0), is_blind(np.array([[1, 2, 2], [3, 4, 5], [3, 5, 4]]), 1)
    (True, False, True)
    """
    data = table[registers:, registers:]
    off = data[~np.eye(len(data), dtype=bool)]
    to, back = table[:registers, registers:], table[registers:, :registers]
    parts = [off == off[:1], np.diag(data) == data[0, 0], to == to[:, :1], back == back[:1]]
    return all(bool(part.all()) for part in parts)
