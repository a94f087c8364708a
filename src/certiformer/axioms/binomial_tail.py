"""A lower bound of a hit rate from recorded hits: the exact binomial tail, with looks and bits paid for.

Statement
    Let n users be independent draws from one population, let the recommender be one of those of a prefix code that was
    fixed before these users were looked at, written in b bits (b = 0: the recommender itself was), and let k of the n users
    have the wanted item among the first c. If p is such that

        sum over j from k to n of C(n, j) p^j (1 - p)^(n - j) <= (1 - level) 2^-b / t,

    then, with probability at least `level` over the draw of the users and for all of t looks at once, the probability of
    such a hit for a new user of the population is above p.

Source
    Clopper and Pearson 1934 (clopper1934) for b = 0 and t = 1; Langford 2005 (langford2005) for coded predictors.

Differs from the source in
    The tail is summed in balls at the stated p, so that the bound needs no quantile of a beta distribution. Looks are
    paid for by a union bound.

Proof
    For one fixed recommender with hit probability q the number X of hits is binomial. Let P_q be its law. If q <= p, then
    P_q(X >= k) <= P_p(X >= k), since the tail grows with q; so the event that the k observed makes the tail at q at most a
    has probability at most a under q: {j : P_q(X >= j) <= a} is a set of the form {j >= j0}, and P_q(X >= j0) <= a. Give
    a recommender of b bits the share 2^-b (these add up to at most 1 by Kraft's inequality) and each look 1 / t of
    1 - level; the sum over all of them is at most 1 - level. QED.

Assumptions
    - independent-users (**trusted**): the users are independent draws from the population that is spoken of.
    - sealed (**trusted**): nobody chose the recommender with knowledge of these users, but for the stated bits and looks.
    - hits (**trusted**): the recorded hits are those of the sealed transformer; `check --replay` encloses scores.
    - tail (**checked**): the inequality above, at the stated p.

Certified
    The inequality, for the numbers of hits and users in the file.

Not certified
    The hits themselves, unless they are replayed; whether the users of tomorrow are those of the log.

Example
    >>> holds(100, 30, Fraction(22, 100), Fraction(5, 100)), holds(100, 30, Fraction(23, 100), Fraction(5, 100))
    (True, False)

Tests
    tests/theorems/test_binomial_tail.py
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from flint import arb, fmpz

from certiformer.errors import BadInput
from certiformer.kernel import Refused
from certiformer.kernel.balls import ONE, ZERO, ball, working_precision
from certiformer.kernel.computation import Finding
from certiformer.kernel.files import HITS, canonical, entries, parse_json
from certiformer.kernel.programs import exact

THEOREM = {
    "id": "axioms.binomial_tail",
    "title": "A lower bound of a hit rate from recorded hits: the exact binomial tail.",
    "kind": "exact",
    "sources": ("clopper1934", "langford2005"),
    "verb": "recommend",
    "assumptions": (
        ("independent-users", "the users are independent draws from the population", "trusted"),
        ("sealed", "nobody chose the recommender with knowledge of them, but for the stated bits and looks", "trusted"),
        ("hits", "the recorded hits are those of the sealed transformer", "trusted"),
        ("tail", "the tail at the stated probability is small enough", "checked"),
    ),
    "uses": (),
}
FORMAT = "certiformer-hits-1"
NOT_CLAIMED = (
    "The hits are as recorded; certiformer check --replay N encloses the scores behind N of them.",
    "That nobody looked at these users elsewhere is trusted.",
    "Users of another population, or of another time, are not spoken of.",
)


def sentence(files: Mapping[str, bytes]) -> str:
    """The claim in one plain sentence."""
    data = read_hits(files[HITS])
    hits, users = sum(row[3] for row in data["rows"]), len(data["rows"])
    looks = f" and {data['tries']} looks" if data["tries"] > 1 else ""
    return (
        f"If {hits:,} of {users:,} recorded users, independent draws from one population, have their item among the first"
        f" {data['cut']}, as recorded, then with confidence {data['level']}{looks} a new user of it has with probability at"
        f" least {data['lower']}."
    )


def find(files: Mapping[str, bytes]) -> Finding:
    """Why the bound holds; raises `Refused` where the tail at the stated probability is too large."""
    data = read_hits(files[HITS])
    hits, users, lower = sum(row[3] for row in data["rows"]), len(data["rows"]), exact(data["lower"])
    if not 0 <= lower < 1 or not 0 < exact(data["level"]) < 1:
        raise Refused("the stated probabilities are not between 0 and 1")
    if not holds(users, hits, lower, (1 - exact(data["level"])) / data["tries"]):
        raise Refused(f"{hits:,} hits of {users:,} users do not show a hit rate of {data['lower']}")
    reason = f"the binomial tail of {hits:,} of {users:,} at {data['lower']} is small enough"
    return Finding(reason, {"hits": hits, "users": users}, str(1 - lower))


def read_hits(raw: bytes) -> dict[str, Any]:
    """`hits.json`: rows of a history, the items already seen, the wanted item, and whether it was a hit (0 or 1)."""
    data = parse_json(raw, HITS)
    rules = {"format": (FORMAT,), "cut": 1, "tries": 1, "level": str, "lower": str, "rows": list}
    entries(data, rules, HITS)
    if canonical(data) != raw or not data["rows"]:
        raise BadInput(f"{HITS} is not in its canonical form, or has no rows")
    for row in data["rows"]:
        if type(row) is not list or len(row) != 4 or not all(type(part) is list for part in row[:2]):
            raise BadInput(f"{HITS} has a row that is not a history, the items seen, an item and a hit")
        if any(type(number) is not int for number in (*row[0], *row[1], *row[2:])) or row[3] not in (0, 1):
            raise BadInput(f"{HITS} has a row with something else than numbers of items")
    return data


def holds(users: int, hits: int, p: Fraction, share: Fraction) -> bool:
    """Whether the tail from `hits` on, at p, is certainly at most `share`."""
    working_precision()
    return bool(tail(users, hits, p) <= ball(share))


def tail(users: int, hits: int, p: Fraction) -> arb:
    """A ball that holds the probability of at least so many hits, or something larger."""
    if hits <= 0:
        return ONE
    if p <= 0:
        return ZERO
    odds, term = ball(p / (1 - p)), arb(fmpz.bin_uiui(users, hits)) * ball(p) ** hits * ball(1 - p) ** (users - hits)
    total = term
    for j in range(hits, users):
        ratio = odds * (users - j) / (j + 1)
        term = term * ratio
        total = total + term
        if ratio < 1 and term < total * arb(2) ** -80:  # what follows is a geometric series at most
            return total + term * ratio / (1 - ratio)
    return total
