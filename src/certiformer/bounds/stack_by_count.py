r"""The same class by counting: entries, or ranks of scores and values; depth enters only through logarithms.

For deep models the norms of `bounds.normed_stack` multiply to astronomic numbers. Counting the weights takes the
logarithm of that product, and maps of low rank count as few.

Statement
---------
In the notation of `bounds.normed_stack`, let piece t have p_t entries, Frobenius norm F_t (a table: largest row) and
inputs of length B_t, and let P be the sum of the d_t below. Then for any eps > 0

    log N(eps) <= sum_t d_t log(1 + 2 F_t B_t b_t P / (d_t eps)),   d_t = p_t,                          (count)
    log N(eps) <= the same with d_t = r_t (rows + columns + 1) and log(9 F_t B_t b_t P / (d_t eps)) for maps of rank at
    most r_t for which that d_t is smaller (no term where its argument is below 9),                     (ranks)

and Rad <= chain(B, log N(e / 2), m), which is O(sqrt(P L / m)) for L layers, and with the root of the ranks.

Source
------
Classical (volume of balls); Candes and Plan 2011 (candes2011), Lemma 3.1, for the ranks.

Differs from the source in
--------------------------
A substitute for the rank-dependent bound of Truong 2024 (arXiv 2410.11500), whose theorem could not be read, for whole
transformers; its abstract promises a logarithm of the rank.

Proof
-----
Errors e_t = eps d_t / (P b_t) add up to sum_t b_t e_t = eps. A piece in the Frobenius ball of radius F_t with inputs B_t
has a cover of radius e_t of log size p_t log(1 + 2 F_t B_t / e_t) (`bounds.parameter_count`); rows of a table are
covered one by one, each in its ball. Matrices of rank r_t and Frobenius norm F_t have one of log size r_t (rows +
columns + 1) log(9 F_t B_t / e_t) for e_t <= F_t B_t, else one point is enough. The factors b_t are those of the
theorem, whatever covers are used. QED.

Assumptions
-----------
- stack: **trusted** all assumptions of `bounds.normed_stack`.
- ranks: **trusted** the ranks given bound those of the maps, as the size of a head does.
- net: **trusted** the lemma of the source.

Certified
---------
The right sides, in balls.

Not certified
-------------
That a number below the trivial one comes out: a model needs more sequences than it has weights.

Example
-------
>>> from certiformer.bounds.stack_norms import *
>>> head = StackHead(MapNorms(0.5, 1.0, 6.0, 64, 64, 4), MapNorms(0.4, 1.0, 5.0, 64, 64, 4))
>>> hidden = HiddenNorms(MapNorms(1.0, 2.0, 20.0, 64, 64, 64), MapNorms(1.0, 2.0, 20.0, 64, 64, 64))
>>> layer = StackLayer(AttentionNorms((head,)), hidden, NormNorms(1e-5), NormNorms(1e-5))
>>> model = StackNorms("pre", 64, (layer,) * 4, (TableNorms(20, 64, 30.0, 0.6),), final_norm=NormNorms(1e-5), tied=True)
>>> [round(above(complexity(model, 1.0, 10**9, by)), 3) for by in ("count", "ranks")]
[0.309, 0.227]

Tests
-----
`tests/theorems/test_stack_by_count.py`
"""

from __future__ import annotations

from flint import arb

from certiformer.bounds.chaining import unsaturated
from certiformer.bounds.normed_stack import LOSS, Piece, pieces
from certiformer.bounds.numbers import above as above
from certiformer.bounds.stack_norms import StackNorms
from certiformer.errors import BadInput

THEOREM = {
    "id": "bounds.stack_by_count",
    "title": "The same class by counting: entries, or ranks of scores and values; depth enters only through logarithms",
    "kind": "upper bound",
    "sources": (
        "candes2011, Lemma 3.1",
        "classical",
    ),
    "verb": "audit",
    "assumptions": (
        ("stack", "All assumptions of the bound by norms.", "trusted"),
        ("ranks", "The ranks given bound those of the maps.", "trusted"),
        ("net", "Low-rank matrices have the net of the source.", "trusted"),
    ),
    "uses": (
        "bounds.chaining",
        "bounds.normed_stack",
    ),
}

WAYS = ("count", "ranks")


def complexity(stack: StackNorms, largest_loss: float, sequences: int, by: str) -> arb:
    """The bound of the Rademacher complexity, by `count` or by `ranks`; above the trivial one where it says nothing."""
    made = pieces(stack)
    return unsaturated(largest_loss, lambda eps: log_cover(made, eps / LOSS, by), sequences)


def entries(made: list[Piece], by: str) -> int:
    """P: what is counted."""
    return sum(_counted(piece, by) for piece in made)


def log_cover(made: list[Piece], eps: arb, by: str) -> arb:
    """log N(eps)."""
    if by not in WAYS:
        raise BadInput(f"one counts by {' or '.join(WAYS)}, not by {by!r}")
    total, size = entries(made, by), arb(0)
    for piece in made:
        counted = _counted(piece, by)
        share = piece.reach * piece.factor * total / (counted * eps)
        if counted == piece.entries:
            size += counted * (1 + 2 * share).log()
        elif not share < 1:
            size += counted * (9 * share.max(arb(1))).log()
    return size


def _counted(piece: Piece, by: str) -> int:
    low = piece.rank_entries
    return piece.entries if by == "count" or low is None else min(piece.entries, low)
