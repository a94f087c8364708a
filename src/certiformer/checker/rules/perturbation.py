"""Stored weights are never exactly those of a theorem: what the difference may cost.

Lemma. Let p and p' be softmax weights of scores s and s' = s + D over the same list, and let osc = max_j D_j - min_j D_j.
Then for all values v: |sum p'_j v_j - sum p_j v_j| <= (max v - min v) tanh(osc / 4).

Proof. The likelihood ratio L_j = p'_j / p_j lies in an interval [l, u] with u/l <= R = e^osc and sum p_j L_j = 1, so
l <= 1 <= u. Among all such L the total variation sum p_j (L_j - 1)^+ is largest for two values: (1 - l)(u - 1)/(u - l);
with u = l R this is largest at l = R^(-1/2), where it equals (R^(1/2) - 1)/(R^(1/2) + 1) = tanh(osc/4). The difference of
the two means is at most (max v - min v) times the total variation. QED.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from flint import arb

from certiformer.kernel.affine_softmax import Head, Prototypes, scores_at_centre
from certiformer.kernel.balls import ZERO, BallDomain, Box, larger
from certiformer.kernel.refusal import Refused


@dataclass(frozen=True)
class IdealHead:
    """The softmax a theorem speaks of: slopes, offsets and values in balls, scores relative to the domain's middle."""

    slopes: list[list[arb]]
    offsets: list[arb]
    values: list[list[arb]]


def registers_only(left: object, domain: BallDomain, heads: int = 1) -> Prototypes:
    """The heads over the register tokens alone; the data token's own key is dropped by the rule *lists*."""
    if not isinstance(left, Prototypes) or len(left.heads) != heads:
        wanted = "one softmax head" if heads == 1 else f"{heads} softmax heads"
        raise Refused(f"the transformer is not {wanted} over register tokens, as the theorem requires")
    box, slack, kept = domain.box(((0, 0),) * domain.dimension), list(left.slack), []
    for head in left.heads:
        tail = _self_weight(head, left.registers, box)
        kept.append(head.only(range(left.registers)))
        for o in range(left.outputs):
            slack[o] = (slack[o] + tail * head.spread(o)).upper()
    return replace(left, heads=kept, slack=slack)


def _self_weight(head: Head, registers: int, box: Box) -> arb:
    """An upper bound of the weight that the head puts on tokens that are not registers."""
    if len(head.offsets) < registers:
        raise Refused("some register tokens are masked, which the theorem does not allow")
    middle = scores_at_centre(head, box)
    reference = max(range(registers), key=lambda j: middle[j].mid())
    tail = ZERO
    for j in range(registers, len(head.offsets)):
        reach = middle[j] - middle[reference]
        for a, b, r in zip(head.slopes[j], head.slopes[reference], box.radius, strict=True):
            reach = reach + abs(a - b) * r
        tail = tail + reach.exp().upper()
    return tail


def charge(left: Prototypes, ideal: IdealHead, domain: BallDomain) -> list[arb]:
    """Upper bounds, one an output, of |stored transformer - ideal head| over the domain."""
    return charge_heads(left, [ideal], domain)


def charge_heads(left: Prototypes, ideals: list[IdealHead], domain: BallDomain) -> list[arb]:
    """The same for a sum of heads, compared one by one in the stored order."""
    box = domain.box(((0, 0),) * domain.dimension)
    if len(left.heads) != len(ideals):
        raise Refused(f"the transformer has {len(left.heads)} heads, the theorem speaks of {len(ideals)}")
    shifts = [_shift(head, ideal, box) for head, ideal in zip(left.heads, ideals, strict=True)]
    return [_output_charge(left, ideals, box, shifts, o) for o in range(left.outputs)]


def _shift(head: Head, ideal: IdealHead, box: Box) -> arb:
    """tanh(osc/4) of the lemma for the differences of the scores."""
    if len(head.offsets) != len(ideal.offsets):
        raise Refused(f"the transformer has {len(head.offsets)} prototypes, the theorem speaks of {len(ideal.offsets)}")
    largest = ZERO
    for j in range(len(head.offsets)):
        # Score difference at the box centre and its reach over the box: affine, so this is its exact range.
        gap = head.offsets[j] - ideal.offsets[j]
        reach = ZERO
        for a, b, c, r in zip(head.slopes[j], ideal.slopes[j], box.centre, box.radius, strict=True):
            gap = gap + (a - b) * c
            reach = reach + abs(a - b) * r
        largest = larger(largest, (abs(gap) + reach).upper())
    return (largest / 2).tanh().upper()  # osc <= 2 largest, so tanh(osc/4) <= tanh(largest/2)


def _output_charge(left: Prototypes, ideals: list[IdealHead], box: Box, shifts: list[arb], o: int) -> arb:
    affine, reach = left.bias[o], ZERO
    for i in range(left.dimension):
        affine = affine + left.weight[i][o] * box.centre[i]
        reach = reach + abs(left.weight[i][o]) * box.radius[i]
    total = abs(affine) + reach + left.slack[o]
    for head, ideal, shift in zip(left.heads, ideals, shifts, strict=True):
        distance = ZERO
        for stored, wanted in zip(head.values, ideal.values, strict=True):
            distance = larger(distance, abs(stored[o] - wanted[o]).upper())
        total = total + head.spread(o) * shift + distance
    return total.upper()
