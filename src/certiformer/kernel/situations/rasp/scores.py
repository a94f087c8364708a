"""The scores of one head for every pair of a query and a key, against the selector that it claims to be.

The score of key j at query i is q_i . k_j; only differences matter, so it is taken relative to the key of the
beginning-of-sequence token, which every query sees: D = q . (k - k_start). q and k - k_start are sums over variables, so D
splits into groups of query and key variables that share a dimension, or a conjunct of the selector. A pair is selected when
it is selected in every group; in each group all pairs of cases are enumerated with exact integers. How the groups add up is
said in `score_bounds`, what errors do in `score_errors`.

In a causal block only pairs with key index <= query index are scored, and the selector must be false for all others.
"""

from __future__ import annotations

from collections import Counter

from flint import fmpz_mat

from certiformer.kernel import Refused
from certiformer.kernel.meanings.rasp import identity
from certiformer.kernel.situations.numbers import BITS, times
from certiformer.kernel.situations.rasp.cases import components
from certiformer.kernel.situations.rasp.domains import MOST, Side
from certiformer.kernel.situations.rasp.fixed import Plan
from certiformer.kernel.situations.rasp.pairs import of_indices
from certiformer.kernel.situations.rasp.score_bounds import Gaps, Group
from certiformer.kernel.situations.rasp.score_errors import KEYS, Case, ScoreErrors, as_key, dot
from certiformer.kernel.situations.rasp.state import Form

AHEAD = "a key after its query, which a causal block does not see"


class Scores(ScoreErrors):
    """The scores of one head against a selector."""

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

    def _groups(self, selector: int) -> list[Group]:
        v = self.variables
        query_read = {x for q, _ in self.pairs for x in q.parts}
        key_read = {x for _, k in self.pairs for x in k.parts}
        conjuncts = v.conjuncts(selector)
        if self.causal:
            self._nothing_ahead(selector, conjuncts)
            conjuncts = [c for c in conjuncts if not self._always(c)]
        needs = [self._needs(c, query_read | {v.indices}, key_read | {v.indices}) for c in conjuncts]
        # Variables of queries and keys are different variables: the former are counted from 0 up, the latter below -10.
        sets = [[*q, *map(as_key, k)] for q, k in needs]
        sets += [[*q.parts, *map(as_key, k.parts)] for q, k in self.pairs if q.parts and k.parts]
        asked, seen = query_read.union(*(q for q, _ in needs)), key_read.union(*(k for _, k in needs))
        sets += [[x] for x in query_read] + v.linked(asked)
        sets += [[*map(as_key, x)] for x in [*([x] for x in key_read), *v.linked(seen)]]
        groups = []
        self._fix_errors(components(sets))
        for group in self.components:
            own = [
                c for c, need in zip(conjuncts, needs, strict=True) if {*need[0], *map(as_key, need[1])} & set(group)
            ]
            asked, seen = [x for x in group if x > KEYS], [as_key(x) for x in group if x <= KEYS]
            groups.append(self._group(own, asked, seen))
        loose = [c for c, need in zip(conjuncts, needs, strict=True) if not need[0] and not need[1]]
        return groups + [self._group([c], [], []) for c in loose]

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
    ) -> tuple[list[Case], Side, list[int]]:
        """The distinct cases of one side: what the variables add to the forms and the errors; node values; the index."""
        v = self.variables
        if not all(map(v.listed, read)):
            raise Refused("it compares numbers that are too many to list")
        index = read.index(v.indices) if self.causal and v.indices in read else None
        found: dict[tuple, tuple[Case, tuple, int]] = {}
        tables = [[(at, form.parts[x]) for at, x in enumerate(read) if x in form.parts] for form, _ in forms]
        whole = [bool(form.parts) and set(form.parts) <= set(read) for form, _ in forms]
        for places, values in v.cases(read, nodes):
            vector = [sum(part[0][places[at]] for at, part in row) for row in tables]
            errors = [sum(part[1][places[at]] for at, part in row) for row in tables]
            for d, (form, plan) in enumerate(forms):
                size = sum(part[2][places[at]] for at, part in tables[d])
                if whole[d]:  # all variables of the form are here, so that its rounding is known case by case
                    errors[d] += plan.added(errors[d] + form.constant_error, form.constant_size + size)
                elif form.carried > plan.limit:  # gamma times the sum of all terms: each group bears its own
                    errors[d] += times(plan.relative, errors[d] + size)
            at = -1 if index is None else places[index]
            found.setdefault((*vector, *errors, at, *map(identity, values)), ((vector, errors), tuple(values), at))
        cases = list(found.values())
        return [c[0] for c in cases], Side(nodes, [c[1] for c in cases]), [c[2] for c in cases]

    def _group(self, conjuncts: list[int], asked: list[int], seen: list[int]) -> Group:
        v = self.variables
        leaves = [pair for c in conjuncts for pair in v.leaves(c)]
        ours, theirs = self._sides()
        rows, queries, query_at = self._cases(asked, tuple({q for _, q in leaves}), ours)
        columns, keys, key_at = self._cases(seen, tuple({k for k, _ in leaves}), theirs)
        if len(rows) * len(columns) > MOST:
            raise Refused(f"{len(rows):,} queries and {len(columns):,} keys are more pairs than the checker enumerates")
        tables = [v.truth(c, keys, queries) for c in conjuncts]
        together = zip(*tables, strict=True)
        truths = tables[0] if len(tables) == 1 else [[*map(all, zip(*own, strict=True))] for own in together]
        width = len(self.pairs) + 2
        left = [x for row, _ in rows for x in (*row, dot(row, self.fixed_key), 1)]
        right = [x for column, _ in columns for x in (*column, 1, dot(self.fixed_query, column))]
        products = fmpz_mat(len(rows), width, left) * fmpz_mat(len(columns), width, right).transpose()
        ordered = self.causal and v.indices in asked and v.indices in seen
        unseen = 0
        entries, errors = products.entries(), self._errors(rows, columns)
        result = Group(None, 0, None, None, None, 0)
        for i in range(len(rows)):
            line = entries[i * len(columns) : (i + 1) * len(columns)]
            chosen = truths[i] if truths else [True] * len(columns)
            off = errors[i * len(columns) : (i + 1) * len(columns)] if errors else [0] * len(columns)
            if ordered:
                kept = [j for j, at in enumerate(key_at) if at <= query_at[i]]
                unseen += len(line) - len(kept)
                line, chosen, off = [line[j] for j in kept], [chosen[j] for j in kept], [off[j] for j in kept]
            if errors:
                steady = max((e for e, here in zip(off, chosen, strict=True) if here), default=0)
                result.steady = max(result.steady, int(steady))
                result.loose = max(result.loose, int(max(off, default=0)))
                least = [s - (e << BITS) for s, e in zip(line, off, strict=True)]
                line = [s + (e << BITS) for s, e in zip(line, off, strict=True)]
            else:
                least = line
            inside = [s for s, here in zip(line, chosen, strict=True) if here]
            outside = [s for s, here in zip(line, chosen, strict=True) if not here]
            low = int(min(s for s, here in zip(least, chosen, strict=True) if here)) if inside else None
            result.note(low, int(max(inside)) if inside else None, int(max(outside)) if outside else None)
        pairs = len(rows) * len(columns)
        v.tally.close(pairs, pairs - unseen, +Counter({AHEAD: unseen}))
        return result

    def _together(self, groups: list[Group], constant: int) -> Gaps:
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
