"""The perturbation lemma and what the distance between stored and ideal weights is charged."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from flint import arb

from certiformer.axioms.perturbation import charge, registers_only
from certiformer.kernel import Refused
from certiformer.kernel.balls import BallDomain, working_precision
from certiformer.kernel.layers import Head, Prototypes
from certiformer.target import parse_domain
from kernel.networks import exact
from kernel.oracle import precisely

working_precision()


def softmax(scores: list[arb]) -> list[arb]:
    top = max(scores, key=lambda s: s.mid())
    weights = [(s - top).exp() for s in scores]
    return [w / sum(weights, arb(0)) for w in weights]


def mean(weights: list[arb], values: list[arb]) -> arb:
    return sum((w * v for w, v in zip(weights, values, strict=True)), arb(0))


@pytest.mark.parametrize("seed", range(20))
def test_the_lemma_holds_for_random_scores_and_moves(seed):
    rng = random.Random(seed)
    for _ in range(30):
        n, size = rng.randrange(2, 12), 10 ** rng.uniform(-3, 1.5)
        with precisely():
            scores = [arb(rng.uniform(-5, 5)) for _ in range(n)]
            moves = [arb(rng.uniform(-size, size)) for _ in range(n)]
            values = [arb(rng.uniform(-1, 1)) for _ in range(n)]
            change = abs(
                mean(softmax([s + d for s, d in zip(scores, moves, strict=True)]), values)
                - mean(softmax(scores), values)
            )
            osc = max(moves) - min(moves)
            assert not change > (max(values) - min(values)) * (osc / 4).tanh()


def test_the_lemma_is_reached_by_two_points():
    # p = (1/(1 + R^(1/2)), rest), moves (osc, 0): equality. A constant 1 % smaller would be false.
    with precisely():
        for osc in (arb("0.01"), arb(1), arb(5)):
            root = (osc / 2).exp()
            scores = [arb(0), root.log()]
            change = abs(
                mean(softmax([scores[0] + osc, scores[1]]), [arb(1), arb(0)]) - mean(softmax(scores), [arb(1), arb(0)])
            )
            bound = (osc / 4).tanh()
            assert abs(change - bound) < arb(2) ** -280
            assert change > bound * arb("0.99")


DOMAIN = BallDomain(parse_domain("[-1,2]x[0,1]"))


def random_pair(rng: random.Random, count: int, distance: float) -> tuple[Prototypes, Head]:
    """A stored head and an ideal one that differ by about `distance` in every number, and some affine part."""

    def near(row: list[arb]) -> list[arb]:
        return [x + arb(rng.uniform(-distance, distance)) for x in row]

    slopes = [[arb(rng.uniform(-3, 3)) for _ in range(2)] for _ in range(count)]
    offsets = [arb(rng.uniform(-3, 3)) for _ in range(count)]
    values = [[arb(rng.uniform(-1, 1)) for _ in range(2)] for _ in range(count)]
    stored = Head([near(row) for row in slopes], near(offsets), [near(row) for row in values])
    weight = [near([arb(0), arb(0)]) for _ in range(2)]
    left = Prototypes(2, 2, count, [stored], weight, near([arb(0), arb(0)]), [arb(0), arb(0)])
    return left, Head(slopes, offsets, values)


@pytest.mark.parametrize("seed", range(12))
def test_the_charge_bounds_the_distance_of_the_two_functions(seed):
    rng = random.Random(seed)
    for distance in (1e-9, 1e-3, 0.1, 1.0):
        left, ideal = random_pair(rng, rng.randrange(1, 9), distance)
        charges = charge(left, ideal, DOMAIN)
        zero = [[arb(0)] * 2] * 2
        wanted = Prototypes(2, 2, left.registers, [ideal], zero, [arb(0)] * 2, [arb(0)] * 2)
        for _ in range(10):
            point = [arb(rng.choice([-1.0, 2.0, rng.uniform(-1, 2)])), arb(rng.choice([0.0, 1.0, rng.uniform(0, 1)]))]
            for a, b, bound in zip(exact(left, point), exact(wanted, point), charges, strict=True):
                with precisely():
                    assert not abs(a - b) > bound
        # And it is no more than a few times the distance: score moves count at most 3 + 1 + 1 times, values and offsets once.
        assert all(float(c) < 12 * distance for c in charges)


def test_the_charge_is_nearly_reached_when_only_slopes_differ():
    """Two equal prototypes whose slopes are moved apart by +-d: nothing at the centre, everything at the ends.

    At distance 1 from the centre the scores differ by 2 d = 1, so osc = 1 and the bound is tanh(1/4) = 0.245; the mean
    moves from 1/2 to 0.731, by 0.231 (for equality one weight would have to be 0.378 at first).
    """
    domain, d = BallDomain(parse_domain("[-1,1]")), arb(0.5)
    ideal = Head([[arb(0)], [arb(0)]], [arb(0), arb(0)], [[arb(0)], [arb(1)]])
    head = Head([[d], [-d]], ideal.offsets, ideal.values)
    left = Prototypes(1, 1, 2, [head], [[arb(0)]], [arb(0)], [arb(0)])
    (bound,) = charge(left, ideal, domain)
    with precisely():
        moved = abs(exact(left, [arb(1)])[0] - arb(0.5))
        assert not moved > bound
    assert bound < arb("1.07") * moved


def test_equal_heads_cost_nothing():
    left, ideal = random_pair(random.Random(1), 6, 0.0)
    assert all(float(c) < 1e-25 for c in charge(left, ideal, DOMAIN))


@pytest.mark.parametrize("part", ["slopes", "offsets", "values", "bias", "weight", "slack"])
def test_every_part_of_the_stored_transformer_is_charged(part):
    left, ideal = random_pair(random.Random(2), 6, 0.0)
    head = left.heads[0]
    step = arb("0.01")
    if part in ("slopes", "values"):
        rows = getattr(head, part)
        head = replace(head, **{part: [[x + (step if j == 3 else 0) for x in row] for j, row in enumerate(rows)]})
    elif part == "offsets":
        head = replace(head, offsets=[x + (step if j == 3 else 0) for j, x in enumerate(head.offsets)])
    changes = {
        "bias": {"bias": [step, step]},
        "weight": {"weight": [[step, step], [arb(0), arb(0)]]},
        "slack": {"slack": [step, step]},
    }
    moved = replace(left, heads=[head], **changes.get(part, {}))
    assert all(float(c) > 0.002 for c in charge(moved, ideal, DOMAIN))


def test_another_number_of_prototypes_is_refused():
    left, ideal = random_pair(random.Random(3), 6, 0.0)
    fewer = Head(ideal.slopes[:5], ideal.offsets[:5], ideal.values[:5])
    with pytest.raises(Refused, match="over 6 prototypes is compared with one over 5"):
        charge(left, fewer, DOMAIN)


@pytest.mark.parametrize("seed", range(6))
def test_dropping_the_data_token_is_charged(seed):
    rng = random.Random(seed)
    left, _ = random_pair(rng, 6, 0.0)
    head = left.heads[0]
    offset = arb(-rng.uniform(0, 30))
    longer = Head([*head.slopes, [arb(0.5), arb(-0.25)]], [*head.offsets, offset], [*head.values, [arb(5), arb(-5)]])
    stored = replace(left, heads=[longer])
    kept = registers_only(stored, DOMAIN)
    assert len(kept.heads[0].offsets) == 6
    for _ in range(20):
        point = [arb(rng.uniform(-1, 2)), arb(rng.uniform(0, 1))]
        for a, b, slack in zip(exact(stored, point), exact(kept, point), kept.slack, strict=True):
            with precisely():
                assert not abs(a - b) > slack


def test_only_one_head_over_all_registers_is_accepted():
    left, _ = random_pair(random.Random(4), 6, 0.0)
    for wrong in (object(), replace(left, heads=left.heads * 2), replace(left, heads=[]), replace(left, registers=7)):
        with pytest.raises(Refused):
            registers_only(wrong, DOMAIN)
