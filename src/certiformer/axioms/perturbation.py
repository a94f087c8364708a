"""Stored weights are never exactly those of a theorem: what the difference may cost.

The heads are compared one by one, by the rule *shares* of `kernel.layers`; a theorem has no affine part, so the
stored one counts in full.
"""

from __future__ import annotations

from flint import arb

from certiformer.kernel import Refused
from certiformer.kernel.balls import BallDomain
from certiformer.kernel.layers import Head, Prototypes


def registers_only(left: object, domain: BallDomain, heads: int = 1) -> Prototypes:
    """The heads over the register tokens alone; the data token's own key is dropped by the rule *lists*."""
    if not isinstance(left, Prototypes) or len(left.heads) != heads:
        wanted = "one softmax head" if heads == 1 else f"{heads} softmax heads"
        raise Refused(f"the transformer is not {wanted} over register tokens, as the theorem requires")
    return left.registers_only(domain.box(((0, 0),) * domain.dimension))


def charge(left: Prototypes, ideal: Head, domain: BallDomain) -> list[arb]:
    """Upper bounds, one an output, of |stored transformer - ideal head| over the domain."""
    return charge_heads(left, [ideal], domain)


def charge_heads(left: Prototypes, ideals: list[Head], domain: BallDomain) -> list[arb]:
    """The same for a sum of heads, compared one by one in the stored order."""
    box = domain.box(((0, 0),) * domain.dimension)
    if len(left.heads) != len(ideals):
        raise Refused(f"the transformer has {len(left.heads)} heads, the theorem speaks of {len(ideals)}")
    distances = [head.distance(ideal, box) for head, ideal in zip(left.heads, ideals, strict=True)]
    totals = []
    for o in range(left.outputs):
        affine, reach = left.bias[o], left.slack[o]
        for i in range(left.dimension):
            affine = affine + left.weight[i][o] * box.centre[i]
            reach = reach + abs(left.weight[i][o]) * box.radius[i]
        totals.append(sum((distance[o] for distance in distances), abs(affine) + reach).upper())
    return totals
