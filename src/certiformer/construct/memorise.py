"""One head and a feed-forward layer of one scalar key memorise any N sequences.

Statement
    Let X_1, ..., X_N be different sequences of n tokens in R^d and Y_1, ..., Y_N arbitrary outputs. For almost every
    w in R^d and almost all positional logits l the key  xi(X) = sum_j softmax(l)_j (w . x_j)  takes N different
    values on them. One softmax head with d_k = d_v = 1 computes xi at every position, and a piecewise linear function
    of xi with N - 1 pieces, hence N - 2 ReLU units and an affine read-out, takes the values Y_r at the keys. Outputs
    at every position need the nN keys xi(X_r) + (offset of position t), hence at most nN - 2 units. For n = 1 no head
    is needed.

Source
    Own construction. Kajitsuka and Sato 2024 (arXiv 2307.14023) memorise with one head and about 2nN units without
    position codes; Kim, Kim and Mozafari 2023 and Kajitsuka and Sato 2025 (arXiv 2409.17677) reach about sqrt(nN)
    weights, of growing length, with deep networks.

Differs from the source in
    Units may lie between the keys: the fewest pieces through the intervals [y - eps/2, y + eps/2] are found by a
    greedy (`construct.fewest_pieces`), about 0.78 N on random data, 1 on an affine table. Among many (w, l) the one
    with the fewest weights is taken. Rounding never accumulates: see *Proof*.

Proof
    Let X != X', D_j = x_j - x'_j. Since some D_j is not zero, sum_j alpha_j D_j = 0 holds only on a proper subspace of
    the alpha, so for almost all logits v = sum_j alpha_j D_j is not zero, and then xi(X) - xi(X') = w . v is zero only
    on a hyperplane of the w. Finitely many pairs of rows exclude only null sets. Interpolation: g(s) = c + m s +
    sum_j d_j relu(s - t_j) is determined from left to right. The units with t_j < s are the only ones that act at s,
    so each d_j can be chosen such that g meets the next prescribed value, given all *stored* numbers before it.
    Storing d_j in float64 then costs at most 2^-53 |d_j| (k_{j+1} - t_j) at that value, and the next unit corrects
    it. QED.

Assumptions
    different (**checked**): rows with equal inputs have equal outputs; otherwise nothing can memorise them.
    separated (**checked**): float64 can tell the keys apart; the errors at all rows are enclosed by the rule finite.

Certified
    Nothing by itself: the certificate is the rule finite, which evaluates the stored transformer at every row.

Not certified
    Anything between the rows. That no smaller transformer exists: the bounds in the notes of a run are for comparison.

Example
    >>> from fractions import Fraction
    >>> from certiformer.target import Table
    >>> rows = tuple(((Fraction(i, 10),), (Fraction(i * i, 100),)) for i in range(11))
    >>> built = memorise(Table("squares", "continuous", rows), Fraction(1, 10**6))
    >>> built.units, built.plain_units, built.error < Fraction(1, 10**6)
    (5, 9, True)

Tests
    tests/theorems/test_memorise.py
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from certiformer.construct.key_function import Units, fit
from certiformer.construct.key_head import Projection, key_transformer, projections
from certiformer.errors import BadInput
from certiformer.kernel import Refused
from certiformer.kernel.balls import working_precision
from certiformer.kernel.certificate import Witness
from certiformer.kernel.problem import FiniteProblem, PointNetwork
from certiformer.kernel.weights import read_model
from certiformer.model import Transformer
from certiformer.model.store import tensors_to_bytes
from certiformer.target import Table

THEOREM = {
    "id": "construct.memorise",
    "title": "One head and a feed-forward layer of one scalar key memorise any N sequences.",
    "kind": "exact",
    "sources": ("classical",),
    "verb": "build",
    "assumptions": (
        ("different", "rows with equal inputs have equal outputs", "checked"),
        ("separated", "float64 can tell the keys apart; errors are enclosed at every row", "checked"),
    ),
    "uses": (),
}

MAX_UNITS = 100_000
LARGEST = 10**300
TRIALS = 3  # transformers that are evaluated at every row before giving up

Progress = Callable[[str, float, float | None, str], None]


@dataclass(frozen=True)
class Memory:
    """A transformer that memorises a table: its proved error, the worst row, and how many hidden units it took.

    `plain_units` is what interpolation at every row takes, `fewest_units` the fewest of any piecewise linear function
    of the chosen key within epsilon (None with several outputs, for which the greedy is not optimal).
    """

    model: Transformer
    error: Fraction
    witness: Witness
    units: int
    plain_units: int
    fewest_units: int | None


def memorise(
    table: Table,
    epsilon: Fraction,
    *,
    tokens: int = 1,
    out_tokens: int = 1,
    seed: int = 0,
    progress: Progress | None = None,
) -> Memory:
    """The smallest transformer found that is within `epsilon` of every row; raises `Refused` with the best error reached.

    Arguments: `tokens` n, which must divide the number of inputs; `out_tokens` 1 (the last token answers for all
    outputs) or n (every token answers for its share of them); `seed` of the random projections.
    """
    report = progress or (lambda stage, done, total, note: None)
    _check_shape(table, tokens, out_tokens)
    working_precision()
    problem = _Rows(table, tokens, out_tokens)
    best: Memory | None = None
    tried = 0
    for projection, exactly in projections(
        problem.inputs, problem.outputs, float(epsilon), out_tokens > 1, seed, report
    ):
        keys = _stored_keys(problem, projection, report)
        try:
            found = fit(keys, problem.wanted, epsilon, exactly)
        except Refused:
            continue
        memory = _memory(problem, projection, found, report)
        if memory.error <= epsilon:
            return memory
        best = memory if best is None or memory.error < best.error else best
        tried += 1
        if tried == TRIALS:
            break
    if best is None:
        raise Refused("no projection of the rows gives keys that float64 can tell apart")
    reached = f"float64 weights of this construction come within {float(best.error):.3g} of the rows"
    raise Refused(f"{reached}, not within {float(epsilon):.3g}")


def _check_shape(table: Table, tokens: int, out_tokens: int) -> None:
    if type(tokens) is not int or tokens < 1 or table.inputs % tokens:
        raise BadInput(f"--tokens {tokens} does not divide the {table.inputs} inputs of a row")
    if table.kind == "ids" and tokens != table.inputs:
        raise BadInput(f"a row of {table.inputs} token ids has {table.inputs} tokens, not {tokens}")
    if out_tokens not in (1, tokens) or table.outputs % out_tokens:
        raise BadInput(f"a table with {tokens} tokens and {table.outputs} outputs cannot answer at {out_tokens} tokens")
    if table.count * out_tokens > MAX_UNITS:
        raise BadInput(f"the table needs up to {table.count * out_tokens:,} hidden units, more than {MAX_UNITS:,}")


class _Rows:
    """The table as arrays: inputs (rows, tokens, width) or ids (rows, tokens), and exact outputs key by key."""

    def __init__(self, table: Table, tokens: int, out_tokens: int):
        self.table, self.tokens, self.out_tokens = table, tokens, out_tokens
        if any(abs(number) > LARGEST for row in table.rows for part in row for number in part):
            raise BadInput("the table holds a number beyond 1e300, more than float64 can compute with")
        if table.kind == "ids":
            self.inputs = np.array([[int(x) for x in row] for row, _ in table.rows])
        else:
            flat = np.array([[float(x) for x in row] for row, _ in table.rows])
            self.inputs = flat.reshape(table.count, tokens, -1)
        share = table.outputs // out_tokens
        # Key order: row by row, and within a row position by position.
        self.wanted = [row[t * share : (t + 1) * share] for _, row in table.rows for t in range(out_tokens)]
        self.outputs = np.array([[float(y) for y in row] for row in self.wanted])


def _stored_keys(problem: _Rows, projection: Projection, report: Progress) -> list[Fraction]:
    """The keys that the stored attention weights give, to 96 bits: what the feed-forward part has to work with."""
    probe = key_transformer(projection, None, problem.out_tokens)
    network = _network(probe)
    keys = []
    for number, (row, _) in enumerate(problem.table.rows):
        keys.extend(_fraction(value.mid()) for value in network.values(row))
        if number % 100 == 0:
            report("construct", number, problem.table.count, f"{number:,} of {problem.table.count:,} keys")
    return keys


def _memory(problem: _Rows, projection: Projection, found: tuple[Units, int | None], report: Progress) -> Memory:
    """The transformer with its error at every row, enclosed."""
    units, fewest = found
    plain = max(problem.table.count * problem.out_tokens - 2, 0)
    model = key_transformer(projection, units, problem.out_tokens)
    finite = FiniteProblem(_network(model), problem.table)
    worst, place = Fraction(-1), (0, 0)
    for number, (row, wanted) in enumerate(problem.table.rows):
        for output, error in enumerate(finite.errors(row, wanted)):
            size = _fraction(error.abs_upper())
            if size > worst:
                worst, place = size, (number, output)
        if number % 100 == 0:
            report("search", number, problem.table.count, f"{number:,} of {problem.table.count:,} rows evaluated")
    point = tuple(str(x) for x in problem.table.rows[place[0]][0])
    return Memory(model, worst, Witness(point, place[1], "0"), len(units.thresholds), plain, fewest)


def _network(model: Transformer) -> PointNetwork:
    return PointNetwork(*read_model(model.config.to_bytes(), tensors_to_bytes(model)))


def _fraction(value) -> Fraction:
    mantissa, exponent = (int(part) for part in value.man_exp())
    return Fraction(mantissa) * Fraction(2) ** exponent
