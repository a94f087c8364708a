"""The scores of one head for every pair of a query and a key, against the selector that it claims to be.

The score of key j at query i is q_i . k_j; only differences matter, so it is taken relative to the key of the
beginning-of-sequence token, which every query sees: D = q . (k - k_start). q and k - k_start are sums over variables, so D
splits into groups of query and key variables that share a dimension, or a conjunct of the selector. A pair is selected when
it is selected in every group; in each group all pairs of cases are enumerated with exact integers. With the smallest and
largest D of selected keys and the largest of the others, query by query, the groups add up:

    selected - unselected >= min over groups c of (a_c + sum of b over the other groups),
    a_c = min over queries of (smallest selected - largest unselected),
    b = min over queries of (smallest selected - largest of all).

In a causal block only pairs with key index <= query index are scored, and the selector must be false for all others.

*Errors.* If q is off by e_q and k by e_k, dimension by dimension, the score is off by at most e_q |k| + |q| e_k + e_q e_k,
which splits into the same groups; every pair is compared at the worst end of its own error. So a feature that is an exact
zero where it matters may be inexact elsewhere. In a run the products and their sum are rounded on top (`loose`, `steady`:
the bounds for all pairs and for selected ones, which are absorbed if the errors of these are tiny).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from flint import arb, fmpz_mat

from certiformer.checker.margin.cases import components
from certiformer.checker.margin.fixed import BITS, Arithmetic, Plan, as_ball, ceil_shift, lowered, smallest_bit, times
from certiformer.checker.margin.pairs import of_indices
from certiformer.checker.margin.state import Content, Form
from certiformer.checker.margin.variables import IMPOSSIBLE, MOST, Side, Variables
from certiformer.checker.rules.refusal import Refused
from certiformer.rasp.value import identity

Matrix = Sequence[dict[int, int]]  # one dictionary (coordinate -> weight) for every column


@dataclass(frozen=True)
class Gaps:
    """What the scores of a head are like, in nats: bounds that hold at every query of every input.

    `over`: selected minus unselected; `selected`: the ends of D over selected keys; `unselected`: the largest D of the
    others; `apart`: how far two selected keys of one query differ; None where no such pair exists. `start`: the largest D
    when the query is the beginning-of-sequence token. All errors are included.
    """

    over: arb | None
    selected: tuple[arb, arb] | None
    unselected: arb | None
    apart: arb
    start: arb | None


@dataclass
class _Group:
    """Bounds within one group, as integers in units of 2^-4 BITS; None: there is no such pair. `steady` and `loose`: the
    largest errors of selected and of all pairs, in units of 2^-3 BITS.
    """

    over: int | None
    fall: int
    least: int | None
    most: int | None
    others: int | None
    apart: int
    steady: int = 0
    loose: int = 0


class Scores:
    """Queries and keys of one head as functions of the variables."""

    def __init__(
        self,
        arithmetic: Arithmetic,
        variables: Variables,
        contents: Sequence[Content],
        query: tuple[Matrix, list[int]],
        key: tuple[Matrix, list[int]],
        factor: arb,
        causal: bool,
    ):
        self.arithmetic, self.variables, self.factor, self.causal = arithmetic, variables, factor, causal
        queries, keys = (
            [Form(arithmetic, variables, contents, column, b) for column, b in zip(*side, strict=True)]
            for side in (query, key)
        )
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

    def gaps(self, selector: int, known: dict) -> Gaps:
        """Compare with a selector; `known` keeps what was enumerated, for another pass over the same numbers."""
        numbers = [
            (f.constant, f.start, f.constant_error, {x: part[:2] for x, part in f.parts.items()})
            for pair in self.pairs
            for f in pair
        ]
        exact = all(f.carried == 0 and plan.limit >= 0 for side in self._sides() for f, plan in side)
        case = (selector, numbers, "" if exact else self.arithmetic.name)
        if known.get("numbers") != case:
            known["groups"], known["numbers"] = self._groups(selector), case
        else:
            self._fix_errors(known["components"])
        known["components"] = self.components
        constant = sum(q * k for q, k in zip(self.fixed_query, self.fixed_key, strict=True))
        return self._together(known["groups"], constant)

    def _groups(self, selector: int) -> list[_Group]:
        v = self.variables
        query_read = {x for q, _ in self.pairs for x in q.parts}
        key_read = {x for _, k in self.pairs for x in k.parts}
        conjuncts = v.conjuncts(selector)
        if self.causal:
            self._nothing_ahead(selector, conjuncts)
            conjuncts = [c for c in conjuncts if not self._always(c)]
        needs = [self._needs(c, query_read | {v.indices}, key_read | {v.indices}) for c in conjuncts]
        # Variables of queries and keys are different variables: the former are counted from 0 up, the latter below -10.
        sets = [[*q, *map(_as_key, k)] for q, k in needs]
        sets += [[*q.parts, *map(_as_key, k.parts)] for q, k in self.pairs if q.parts and k.parts]
        asked, seen = query_read.union(*(q for q, _ in needs)), key_read.union(*(k for _, k in needs))
        sets += [[x] for x in query_read] + v.linked(asked)
        sets += [[*map(_as_key, x)] for x in [*([x] for x in key_read), *v.linked(seen)]]
        groups = []
        self._fix_errors(components(sets))
        for group in self.components:
            own = [
                c for c, need in zip(conjuncts, needs, strict=True) if {*need[0], *map(_as_key, need[1])} & set(group)
            ]
            asked, seen = [x for x in group if x > _KEYS], [_as_key(x) for x in group if x <= _KEYS]
            groups.append(self._group(own, asked, seen))
        loose = [c for c, need in zip(conjuncts, needs, strict=True) if not need[0] and not need[1]]
        return groups + [self._group([c], [], []) for c in loose]

    def _fix_errors(self, groups: list[list[int]]) -> None:
        """The errors of constant parts; a form whose variables are all in one group is rounded there, case by case."""
        self.components = groups
        found = []
        for side, name in zip(self._sides(), (int, _as_key), strict=True):
            owned = [any(set(map(name, f.parts)) <= set(group) for group in groups) for f, _ in side]
            found.append([_fixed_error(f, plan, own) for (f, plan), own in zip(side, owned, strict=True)])
        self.query_error, self.key_error = found

    def _needs(self, conjunct: int, queries: set[int], keys: set[int]) -> tuple[set[int], set[int]]:
        """The query and key variables that a conjunct depends on; a node that the head does not read is one itself."""

        def support(node: int, known: set[int]) -> set[int]:
            try:
                return self.variables.support(node, known)
            except Refused:
                return {node}

        leaves = self.variables.leaves(conjunct)
        return {x for _, q in leaves for x in support(q, queries)}, {x for k, _ in leaves for x in support(k, keys)}

    def _nothing_ahead(self, selector: int, conjuncts: list[int]) -> None:
        tables = [table for c in conjuncts if (table := of_indices(self.variables, c)) is not None]
        for i in range(self.variables.graph.length - 1):
            if not tables or any(all(column) for column in zip(*(table[i][i + 1 :] for table in tables), strict=True)):
                said = f"{self.variables.name(selector)} may select position {i + 1} from position {i}"
                raise Refused(f"{said}, which a causal block cannot see")

    def _always(self, conjunct: int) -> bool:
        """Whether a conjunct holds for every pair that a causal block sees."""
        table = of_indices(self.variables, conjunct)
        return table is not None and all(all(row[: i + 1]) for i, row in enumerate(table))

    def _cases(
        self, read: list[int], nodes: tuple[int, ...], forms: list[tuple[Form, Plan]]
    ) -> tuple[list[tuple[list[int], list[int]]], Side, list[int]]:
        """The distinct cases of one side: what the variables add to the forms and the errors; node values; the index."""
        v = self.variables
        if not all(map(v.listed, read)):
            raise Refused("it compares numbers that are too many to list")
        evaluators = [v.evaluator(node, read) for node in nodes]
        index = read.index(v.indices) if self.causal and v.indices in read else None
        found: dict[tuple, tuple[tuple[list[int], list[int]], tuple, int]] = {}
        tables = [[(at, form.parts[x]) for at, x in enumerate(read) if x in form.parts] for form, _ in forms]
        whole = [bool(form.parts) and set(form.parts) <= set(read) for form, _ in forms]
        for places in v.combinations(read):
            values = tuple(f(places) for f in evaluators)
            if any(x is IMPOSSIBLE for x in values):
                continue
            vector = [sum(part[0][places[at]] for at, part in row) for row in tables]
            errors = [sum(part[1][places[at]] for at, part in row) for row in tables]
            for d, (form, plan) in enumerate(forms):
                if whole[d]:  # all variables of the form are here, so that its rounding is known case by case
                    size = form.constant_size + sum(part[2][places[at]] for at, part in tables[d])
                    errors[d] += plan.added(errors[d] + form.constant_error, size)
            at = -1 if index is None else places[index]
            found.setdefault((*vector, *errors, at, *map(identity, values)), ((vector, errors), values, at))
        cases = list(found.values())
        return [c[0] for c in cases], Side(nodes, [c[1] for c in cases]), [c[2] for c in cases]

    def _group(self, conjuncts: list[int], asked: list[int], seen: list[int]) -> _Group:
        v = self.variables
        leaves = [pair for c in conjuncts for pair in v.leaves(c)]
        ours, theirs = self._sides()
        rows, queries, query_at = self._cases(asked, tuple({q for _, q in leaves}), ours)
        columns, keys, key_at = self._cases(seen, tuple({k for k, _ in leaves}), theirs)
        if len(rows) * len(columns) > MOST:
            raise Refused(f"{len(rows):,} queries and {len(columns):,} keys are more pairs than the checker enumerates")
        truths = [v.truth(c, keys, queries) for c in conjuncts]
        width = len(self.pairs) + 2
        left = [x for row, _ in rows for x in (*row, _dot(row, self.fixed_key), 1)]
        right = [x for column, _ in columns for x in (*column, 1, _dot(self.fixed_query, column))]
        products = fmpz_mat(len(rows), width, left) * fmpz_mat(len(columns), width, right).transpose()
        ordered = self.causal and v.indices in asked and v.indices in seen
        entries, errors = products.entries(), self._errors(rows, columns)
        result = _Group(None, 0, None, None, None, 0)
        for i in range(len(rows)):
            line = entries[i * len(columns) : (i + 1) * len(columns)]
            chosen = (
                truths[0][i]
                if len(truths) == 1
                else [all(t) for t in zip(*(table[i] for table in truths), strict=True)]
            )
            if not truths:
                chosen = [True] * len(columns)
            off = errors[i * len(columns) : (i + 1) * len(columns)] if errors else [0] * len(columns)
            if ordered:
                kept = [j for j, at in enumerate(key_at) if at <= query_at[i]]
                line, chosen, off = [line[j] for j in kept], [chosen[j] for j in kept], [off[j] for j in kept]
            if errors:
                steady = max((e for e, here in zip(off, chosen, strict=True) if here), default=0)
                result.steady, result.loose = (
                    max(result.steady, int(steady)),
                    max(result.loose, int(max(off, default=0))),
                )
                least = [s - (e << BITS) for s, e in zip(line, off, strict=True)]
                line = [s + (e << BITS) for s, e in zip(line, off, strict=True)]
            else:
                least = line
            inside = [s for s, here in zip(line, chosen, strict=True) if here]
            outside = [s for s, here in zip(line, chosen, strict=True) if not here]
            low = int(min(s for s, here in zip(least, chosen, strict=True) if here)) if inside else None
            _note(result, low, int(max(inside)) if inside else None, int(max(outside)) if outside else None)
        return result

    def _errors(self, rows: list, columns: list) -> list | None:
        """What the errors of queries and keys in this group do to each pair, in units of 2^-3 BITS; None: nothing."""
        if not any(any(e) for _, e in (*rows, *columns)) and not any(self.query_error) and not any(self.key_error):
            return None
        left, right, width = [], [], 2 * len(self.pairs) + 2
        for row, e in rows:
            reach = [abs(x) + (y << BITS) for x, y in zip(row, e, strict=True)]
            left += [*e, *reach, _dot(e, self.key_reach) + _dot(reach, self.key_error), 1]
        sizes = [abs(q) for q in self.fixed_query]
        for column, e in columns:
            reach = [abs(x) + (y << BITS) for x, y in zip(column, e, strict=True)]
            right += [*map(abs, column), *e, 1, _dot(self.query_error, reach) + _dot(sizes, e)]
        return (fmpz_mat(len(rows), width, left) * fmpz_mat(len(columns), width, right).transpose()).entries()

    def _together(self, groups: list[_Group], constant: int) -> Gaps:
        """Add up the groups, see the module docstring."""
        none_selected = any(g.least is None for g in groups)
        falls = sum(g.fall for g in groups)
        overs = [g.over + falls - g.fall for g in groups if g.over is not None]
        tops = [
            max(x for x in (g.most, g.others) if x is not None) for g in groups if (g.most, g.others) != (None, None)
        ]
        if len(tops) < len(groups):
            raise Refused("a group of query and key variables has no case")
        unselected = [g.others + sum(tops) - top for g, top in zip(groups, tops, strict=True) if g.others is not None]
        steady, loose = self._slip(sum(g.steady for g in groups)), self._slip(sum(g.loose for g in groups))
        selected = None
        if not none_selected:
            least, most = sum(g.least or 0 for g in groups), sum(g.most or 0 for g in groups)
            selected = (self._nats(least + constant) - steady, self._nats(most + constant) + steady)
        start = self._at_start()
        return Gaps(
            None if none_selected or not overs else self._nats(min(overs)) - steady - loose,
            selected,
            self._nats(max(unselected) + constant) + loose if unselected else None,
            self._nats(sum(g.apart for g in groups)) + 2 * steady,
            None if start is None else start + self._slip(None),
        )

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
        total = _dot(first, self.fixed_key)
        for x in {x for _, k in self.pairs for x in k.parts}:
            tables = [k.parts[x][0] if x in k.parts else None for _, k in self.pairs]
            size = len(self.variables.domain(x))
            total += max(sum(f * t[p] for f, t in zip(first, tables, strict=True) if t) for p in range(size))
        return self._nats(total)


def _fixed_error(form: Form, plan: Plan, owned: bool) -> int:
    """The error of the constant part of a form, and its rounding where no group knows all of its variables."""
    if not form.parts:
        return plan.error(form.constant_error, form.constant_size)
    if owned:
        return form.constant_error
    return form.constant_error + plan.added(form.carried, form.size + abs(form.bias))


_KEYS = -10


def _as_key(x: int) -> int:
    """Query variables are numbers from -2 on; key variables are the same numbers reflected to -10 and below."""
    return _KEYS - 3 - x


def _dot(a: Sequence[int], b: Sequence[int]) -> int:
    return sum(x * y for x, y in zip(a, b, strict=True))


def _note(group: _Group, low: int | None, high: int | None, other: int | None) -> None:
    """One more query: the ends of its selected scores, and the largest of the others."""

    def extreme(pick: Any, *values: int | None) -> int | None:
        return pick((x for x in values if x is not None), default=None)

    group.least, group.most = extreme(min, group.least, low), extreme(max, group.most, high)
    group.others = extreme(max, group.others, other)
    if low is None or high is None:
        return
    group.apart = max(group.apart, high - low)
    group.fall = min(group.fall, low - high if other is None else low - max(high, other))
    if other is not None:
        group.over = extreme(min, group.over, low - other)
