"""How a comparison becomes a part of an attention score: 0 for pairs that hold, -1 or less for all others.

The parts of a conjunction are added, so the whole is 0 exactly where all hold. A part is a sum of products of a feature
of the query and a feature of the key. The ways, the cheapest of which is taken:

* a part that depends on the key alone (comparison with a constant): minus a *penalty* that is 0 where it holds and at
  least 1 elsewhere, a multiple of the code itself when the accepted value is the smallest or the largest;
* the same for the query alone;
* equality, with codes q and k at least 1 apart when different: -(q - k)^2 = 2 q k - k^2 - q^2. A value that equals
  nothing but whose code would is kept away by adding 1 to its square;
* the same where codes carry errors: minus the number of binary digits in which the classes of q and k differ;
* anything else: sum over classes c of equal columns of the matrix T of truth values: [query in c] (T[key, c] - 1), or
  the same with rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from jaxtyping import Bool, Int

from certiformer.compiler.linear_form import Number
from certiformer.construct.one_block import squared_difference

Matrix = Bool[np.ndarray, "keys queries"]
Numbers = tuple[Number, ...]

MANY = 8  # from here on, classes always cost more than an equality


@dataclass(frozen=True)
class Part:
    """Sum of factor * query feature * key feature, minus penalties of the key and of the query.

    Features are one number for each value of the node, undefined last. The ways differ in what they ask of inexact values:
    `snap` says how their features must be made exact, if at all.
    """

    products: tuple[tuple[Number, Numbers, Numbers], ...] = ()  # factor, query, key
    key_penalties: tuple[Numbers, ...] = ()
    query_penalties: tuple[Numbers, ...] = ()
    snap: str = ""

    def features(self) -> tuple[set[Numbers], set[Numbers]]:
        """The features of the query and of the key that the part needs."""
        return (
            {query for _, query, _ in self.products} | set(self.query_penalties),
            {key for _, _, key in self.products} | set(self.key_penalties),
        )


def parts_for(truth: Matrix, key_codes: Numbers, query_codes: Numbers, robust: bool) -> list[Part]:
    """All ways to score a comparison; codes are those of the nodes, undefined last, as the rows and columns are.

    With `robust` only those whose score is exactly 0 for selected pairs even if the codes carry errors.
    """
    if truth.all():
        return [Part()]
    if not truth.any():
        return [Part(query_penalties=((1,) * truth.shape[1],))]
    columns, column_of = _different(truth.T)
    rows, row_of = _different(truth)
    snap = "zero" if robust else ""
    if len(columns) == 1:
        return [Part(key_penalties=(p,), snap=snap) for p in _penalties(truth[:, 0], key_codes, robust)]
    if len(rows) == 1:
        return [Part(query_penalties=(p,), snap=snap) for p in _penalties(truth[0], query_codes, robust)]
    found = _bits(columns, column_of) if robust else _equality(truth, key_codes, query_codes)
    ways = [] if found is None else [found]
    if found is not None and min(len(columns), len(rows)) > MANY:
        return ways
    ways.append(_classes(columns, column_of, snap))
    flipped = _classes(rows, row_of, snap)
    products = tuple((factor, key, query) for factor, query, key in flipped.products)
    ways.append(Part(products, flipped.query_penalties, flipped.key_penalties, snap))
    return ways


def _penalties(accepted: Bool[np.ndarray, " values"], codes: Numbers, robust: bool) -> list[Numbers]:
    """0 where accepted and at least 1 elsewhere: linear in the code where that works, and plain 0 and 1."""
    plain = tuple(0 if a else 1 for a in accepted.tolist())
    inside = [c for c, a in zip(codes, accepted.tolist(), strict=True) if a]
    outside = [c for c, a in zip(codes, accepted.tolist(), strict=True) if not a]
    if len(set(inside)) == 1 and not robust:
        gaps = [c - inside[0] for c in outside]
        if min(gaps) > 0 or max(gaps) < 0:
            nearest = min(gaps, key=abs)
            factor = _plain(Fraction(1) / nearest) if abs(nearest) < 1 else (1 if nearest > 0 else -1)
            return [tuple(factor * (c - inside[0]) for c in codes), plain]
    return [plain]


def _equality(truth: Matrix, key_codes: Numbers, query_codes: Numbers) -> Part | None:
    """-(q - k)^2 when every query accepts one code and different queries with different keys accept different ones."""
    accepted = [np.flatnonzero(column) for column in truth.T]
    wanted: list[Number | None] = []
    for keys in accepted:
        codes = {key_codes[k] for k in keys.tolist()}
        if len(codes) > 1:
            return None
        wanted.append(codes.pop() if codes else None)
    own_code_works = all(w is None or w == c for w, c in zip(wanted, query_codes, strict=True))
    above = max(key_codes) + 1
    queries = list(query_codes) if own_code_works else [above if w is None else w for w in wanted]
    matched = _any(truth, 1)
    if not _codes_decide(truth, key_codes, queries):
        return None
    apart = _smallest_gap({*key_codes, *queries})
    scale = _plain(1 / Fraction(apart) ** 2) if apart < 1 else 1
    key_set, query_set = set(key_codes), set(queries)
    key_extra = [0 if hit or code not in query_set else 1 for code, hit in zip(key_codes, matched, strict=True)]
    query_extra = [0 if w is not None or code not in key_set else 1 for w, code in zip(wanted, queries, strict=True)]
    score = squared_difference(queries, key_codes, scale)
    return Part(
        ((score.factor, tuple(queries), key_codes),),
        (tuple(square + extra for square, extra in zip(score.key_squares, key_extra, strict=True)),),
        (tuple(square + extra for square, extra in zip(score.query_squares, query_extra, strict=True)),),
    )


def _codes_decide(truth: Matrix, keys: Numbers, queries: list[Number]) -> bool:
    """Whether a pair of equal codes holds, or its key matches no query at all, or its query no key."""
    place: dict[Number, list[int]] = {}
    for k, code in enumerate(keys):
        place.setdefault(code, []).append(k)
    by_key, by_query = _any(truth, 1), _any(truth, 0)
    return all(
        truth[k, q] or not by_key[k] or not by_query[q] for q, code in enumerate(queries) for k in place.get(code, ())
    )


def _any(truth: Matrix, axis: int) -> list[bool]:
    return np.asarray(truth.any(axis=axis)).tolist()


def _smallest_gap(codes: set[Number]) -> Number:
    ordered = sorted(codes)
    return min((b - a for a, b in zip(ordered, ordered[1:], strict=False)), default=1)


def _different(rows: Bool[np.ndarray, "n m"]) -> tuple[list[np.ndarray], Int[np.ndarray, " n"]]:
    """The different rows in the order in which they come, and which of them each row is."""
    packed = np.packbits(rows, axis=1)
    size, data = packed.shape[1], packed.tobytes()
    seen: dict[bytes, int] = {}
    class_of = [seen.setdefault(data[at : at + size], len(seen)) for at in range(0, len(data), size)]
    first = dict(zip(reversed(class_of), range(len(class_of) - 1, -1, -1), strict=True))
    return [rows[first[c]] for c in range(len(seen))], np.array(class_of)


def _classes(columns: list[np.ndarray], class_of: Int[np.ndarray, " queries"], snap: str) -> Part:
    """[query in c] (T[key, c] - 1) over the different columns; one that accepts no key is a penalty of the query."""
    products, penalties = [], []
    for c, column in enumerate(columns):
        members = tuple((class_of == c).astype(int).tolist())
        if not column.any():
            penalties.append(members)
        elif not column.all():
            products.append((-1, members, tuple((~column).astype(int).tolist())))
    return Part(tuple(products), (), tuple(penalties), snap)


def _bits(columns: list[np.ndarray], class_of: Int[np.ndarray, " queries"]) -> Part | None:
    """Equality of classes by their binary digits: minus the number of different ones, k + q - 2 k q for each.

    Keys that no query accepts and queries that accept no key have numbers of their own.
    """
    key_class = np.full(len(columns[0]), len(columns))
    query_number = np.arange(len(columns))
    for c, column in enumerate(columns):
        if (key_class[column] < len(columns)).any():
            return None
        key_class[column] = c
        if not column.any():
            query_number[c] = len(columns) + 1
    keys, queries = key_class, query_number[class_of]
    products, key_penalties, query_penalties = [], [], []
    for bit in range(int(max(keys.max(), queries.max())).bit_length()):
        k, q = (tuple((numbers >> bit & 1).tolist()) for numbers in (keys, queries))
        products.append((2, q, k))
        key_penalties.append(k)
        query_penalties.append(q)
    return Part(tuple(products), tuple(key_penalties), tuple(query_penalties), "bit")


def _plain(number: Fraction) -> Number:
    return number.numerator if number.denominator == 1 else number
