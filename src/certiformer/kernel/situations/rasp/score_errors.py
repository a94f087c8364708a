"""What the errors of queries and keys, and the rounding of a run, do to the scores of a head.

If q is off by e_q and k by e_k, dimension by dimension, the score is off by at most e_q |k| + |q| e_k + e_q e_k, which
splits into the same groups as the scores; every pair is compared at the worst end of its own error. So a feature that is
an exact zero where it matters may be inexact elsewhere. In a run the products and their sum are rounded on top (`slip`).

The rounding of a query or key form itself is at most gamma times the sum of the sizes of its terms. Where one group knows
all variables of a form it is bounded case by case; otherwise every group bears the share of its own terms, and the
constant the rest.
"""

from __future__ import annotations

from collections.abc import Sequence

from flint import arb, fmpz_mat

from certiformer.kernel.situations.numbers import BITS, ceil_shift, times
from certiformer.kernel.situations.rasp.fixed import Arithmetic, Plan, as_ball, lowered, smallest_bit
from certiformer.kernel.situations.rasp.state import Form
from certiformer.kernel.situations.rasp.variables import Variables

Case = tuple[list[int], list[int]]  # what the variables of a group add to every form of one side, and the errors


class ScoreErrors:
    """Queries and keys of one head as functions of the variables."""

    def __init__(
        self,
        arithmetic: Arithmetic,
        variables: Variables,
        queries: list[Form],
        keys: list[Form],
        factor: arb,
        causal: bool,
    ):
        self.arithmetic, self.variables, self.factor, self.causal = arithmetic, variables, factor, causal
        pairs = list(zip(queries, keys, strict=True))
        self.pairs = [(q, k) for q, k in pairs if (q.weights or q.bias) and (k.weights or k.bias)]
        self.fixed_query = [q.constant for q, _ in self.pairs]
        self.fixed_key = [k.constant - k.start for _, k in self.pairs]
        self.plans = [(q.plan(), k.plan()) for q, k in self.pairs]
        self.query_error = self.key_error = [0] * len(self.pairs)
        # |k| <= |k_start| + |k - k_start|
        self.key_reach = [abs(d) + abs(k.start) for d, (_, k) in zip(self.fixed_key, self.pairs, strict=True)]

    def _sides(self) -> tuple[list[tuple[Form, Plan]], list[tuple[Form, Plan]]]:
        plans = zip(self.pairs, self.plans, strict=True)
        both = [((q, p), (k, r)) for (q, k), (p, r) in plans]
        return [query for query, _ in both], [key for _, key in both]

    def _fix_errors(self, groups: list[list[int]]) -> None:
        """The errors of constant parts; a form whose variables are all in one group is rounded there, case by case."""
        self.components = groups
        found = []
        for side, name in zip(self._sides(), (int, as_key), strict=True):
            owned = [any(set(map(name, f.parts)) <= set(group) for group in groups) for f, _ in side]
            found.append([_fixed_error(f, plan, own) for (f, plan), own in zip(side, owned, strict=True)])
        self.query_error, self.key_error = found

    def _errors(self, rows: list[Case], columns: list[Case]) -> list | None:
        """What the errors of queries and keys in this group do to each pair, in units of 2^-3 BITS; None: nothing."""
        if not any(any(e) for _, e in (*rows, *columns)) and not any(self.query_error) and not any(self.key_error):
            return None
        left, right, width = [], [], 2 * len(self.pairs) + 2
        for row, e in rows:
            reach = [abs(x) + (y << BITS) for x, y in zip(row, e, strict=True)]
            left += [*e, *reach, dot(e, self.key_reach) + dot(reach, self.key_error), 1]
        sizes = [abs(q) for q in self.fixed_query]
        for column, e in columns:
            reach = [abs(x) + (y << BITS) for x, y in zip(column, e, strict=True)]
            right += [*map(abs, column), *e, 1, dot(self.query_error, reach) + dot(sizes, e)]
        return (fmpz_mat(len(rows), width, left) * fmpz_mat(len(columns), width, right).transpose()).entries()

    def _slip(self, carried: int | None) -> arb:
        """What is common to all pairs, and the rounding of two scores whose own errors are at most `carried` (2^-3 BITS).

        None: errors at their largest, for the beginning-of-sequence token as a query.
        """
        most, shared, size, grids = 0, 0, 0, []
        for (q, k), (plan_q, plan_k), e_q, e_k in zip(
            self.pairs, self.plans, self.query_error, self.key_error, strict=True
        ):
            size_q, size_k = q.size + abs(q.bias), k.size + abs(k.bias)
            off_q, off_k = plan_q.error(q.carried, size_q), plan_k.error(k.carried, size_k)
            first = abs(k.start) + ((off_k if k.start_error else k.at_start()[1]) << BITS)
            most += times(off_q, size_k + off_k) + times(size_q, off_k)
            # The constant parts of query and key, and the score of the beginning-of-sequence token itself.
            shared += times(e_q, ceil_shift(abs(k.constant)) + e_k) + times(ceil_shift(abs(q.constant)), e_k)
            shared += times(off_q, ceil_shift(first)) + times(size_q + off_q, k.at_start()[1])
            size += times(size_q, size_k)
            grid_q, grid_k = (smallest_bit([f.grid, (f.bias & -f.bias) << BITS]) for f in (q, k))
            grids.append(grid_q * grid_k)
        if not grids:
            return arb(0)
        own = 2 * most if carried is None else ceil_shift(carried, 2 * BITS)
        plan = self.arithmetic.plan_of(len(grids), True, 0, lowered(smallest_bit(grids), 3 * BITS), size, most)
        added = plan.added(own + shared, size) + plan.added(shared, size)
        return as_ball(shared + added + (own if carried is None else 0)) * self.factor

    def _nats(self, value: int) -> arb:
        return as_ball(value, 4) * self.factor

    def _at_start(self) -> arb | None:
        """The largest D over all data keys when the query is the beginning-of-sequence token."""
        if self.causal:
            return None
        first = [q.start for q, _ in self.pairs]
        total = dot(first, self.fixed_key)
        for x in {x for _, k in self.pairs for x in k.parts}:
            tables = [k.parts[x][0] if x in k.parts else None for _, k in self.pairs]
            size = len(self.variables.domain(x))
            total += max(sum(f * t[p] for f, t in zip(first, tables, strict=True) if t) for p in range(size))
        return self._nats(total)


def _fixed_error(form: Form, plan: Plan, owned: bool) -> int:
    """The error of the constant part of a form, and its own share of the rounding where no group knows all variables."""
    if not form.parts:
        return plan.error(form.constant_error, form.constant_size)
    if owned:
        return form.constant_error
    if form.carried <= plan.limit:
        return form.constant_error + plan.added(form.carried, 0)
    return form.constant_error + times(plan.relative, form.constant_error + form.constant_size) + plan.absolute


KEYS = -10


def as_key(x: int) -> int:
    """Query variables are numbers from -2 on; key variables are the same numbers reflected to -10 and below."""
    return KEYS - 3 - x


def dot(a: Sequence[int], b: Sequence[int]) -> int:
    return sum(x * y for x, y in zip(a, b, strict=True))
