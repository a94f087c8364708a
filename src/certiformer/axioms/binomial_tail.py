"""A lower bound of a hit rate from recorded hits: the exact binomial tail, with looks and bits paid for.

Statement
    Let n users be independent draws from one population, let the recommender be one of those of a prefix code that was
    fixed before these users were looked at, written in b bits (b = 0: the recommender itself was), and let k of the n users
    have the wanted item among the first c. If p is such that

        sum over j from k to n of C(n, j) p^j (1 - p)^(n - j) <= (1 - level) 2^-b / t,

    then, with probability at least `level` over the draw of the users and for all of t looks at once, the probability of
    such a hit for a new user of the population is above p.

Source: Clopper and Pearson 1934 (clopper1934) for b = 0 and t = 1; Langford 2005 (langford2005) for coded predictors.

Differs from the source in
    The tail is summed in balls at the stated p, so that the bound needs no quantile of a beta distribution. Looks are
    paid for by a union bound.

Proof
    For one recommender with hit probability q the number X of hits is binomial; let P_q be its law. The tail P_q(X >= k)
    falls with k and grows with q. Hence {k : P_q(X >= k) <= a} is of the form {k >= k0}, and P_q(X >= k0) <= a: the event
    that the observed tail at q is at most a has probability at most a. If q <= p and the tail at p is at most a, this
    event has occurred. Give a recommender of b bits the share 2^-b (these add up to at most 1 by Kraft's inequality) and
    each look 1 / t of 1 - level; the sum over all of them is at most 1 - level. QED.

Assumptions
    - independent-users (**trusted**): the users are independent draws from the population that is spoken of.
    - sealed (**trusted**): nobody chose the recommender with knowledge of these users, but for the stated bits and looks.
    - hits (**trusted**): the recorded hits are those of the sealed transformer; `check --replay` encloses scores.
    - tail (**checked**): the inequality above, at the stated p.

Certified: The inequality, for the numbers of hits and users in the file, at b = 0.

Not certified: The hits themselves, unless they are replayed; whether the users of tomorrow are those of the log.

Example
    >>> holds(100, 30, Fraction(22, 100), Fraction(5, 100)), holds(100, 30, Fraction(23, 100), Fraction(5, 100))
    (True, False)

Tests: tests/theorems/test_binomial_tail.py
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from flint import arb, fmpz

from certiformer.kernel import Refused
from certiformer.kernel.balls import ONE, ZERO, ball, working_precision
from certiformer.kernel.computation import Finding
from certiformer.kernel.files import HITS
from certiformer.kernel.meanings.hits import NOT_CLAIMED as NOT_CLAIMED
from certiformer.kernel.meanings.hits import counts, read_hits
from certiformer.kernel.meanings.hits import sentence as sentence
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
}


def find(files: Mapping[str, bytes]) -> Finding:
    """Why the bound holds; raises `Refused` where the tail at the stated probability is too large."""
    data = read_hits(files[HITS])
    (users, hits), lower = counts(data), exact(data["lower"])
    if lower == 0:
        return Finding("no probability is below 0", {"hits": hits, "users": users}, "1")
    if not holds(users, hits, lower, (1 - exact(data["level"])) / data["tries"]):
        raise Refused(f"{hits:,} hits of {users:,} users do not show a hit rate of {data['lower']}")
    reason = f"the binomial tail of {hits:,} hits of {users:,} users at {data['lower']} was summed and is small enough"
    return Finding(reason, {"hits": hits, "users": users}, str(1 - lower))


def holds(users: int, hits: int, p: Fraction, share: Fraction) -> bool:
    """Whether the tail from `hits` on, at p, is certainly at most `share`."""
    working_precision()
    return bool(tail(users, hits, p) <= ball(share))


def tail(users: int, hits: int, p: Fraction) -> arb:
    """A ball around the probability of at least so many hits, or around something larger."""
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
        if ratio < 1 and term < total * arb(2) ** -80:  # the quotients fall, so the rest is below a geometric series
            return total + term * ratio / (1 - ratio)
    return total
