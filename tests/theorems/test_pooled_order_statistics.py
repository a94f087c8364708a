"""Pooled order statistics: stored weights in exact rationals, the bound attained, the rate, the lower bound."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

from certiformer.construct.pooled_order_statistics import error_bound, pooled_lower_bound, pooled_order_statistics
from certiformer.errors import BadInput
from certiformer.expressivity.permutation_equivariance import is_equivariant
from certiformer.kernel import Refused
from certiformer.kernel.balls import BallDomain
from certiformer.kernel.problem import Problem, ProgramFunction
from certiformer.kernel.rules import prove_piece, root
from certiformer.model import Transformer
from certiformer.verify import Budget, FloatDomain, search
from certiformer.verify.bounder import BallBounder
from kernel.networks import network_of
from negative.forge import target_of

HEAD = "blocks.1.attention.groups.0"


def one(length, j):
    """The coefficients of the j-th largest number."""
    return [int(i == j) for i in range(1, length + 1)]


class Exactly:
    """The real-number function of the stored weights: all its parts are rational when the scores are equal."""

    def __init__(self, model):
        self.w = {n: np.vectorize(Fraction, otypes=[object])(t) for n, t in model.tensors.items()}
        if any(v for part in ("query", "key") for v in self.w[f"{HEAD}.{part}"].flat):
            raise ValueError("the scores are not equal")

    def feed(self, h, block):
        hidden = np.maximum(h @ self.w[f"blocks.{block}.ffn.up"] + self.w[f"blocks.{block}.ffn.up_bias"], Fraction(0))
        return hidden @ self.w[f"blocks.{block}.ffn.down"] + self.w[f"blocks.{block}.ffn.down_bias"]

    def __call__(self, numbers):
        w = self.w
        h = self.feed(np.array([[x] for x in numbers], dtype=object) @ w["embed.weight"] + w["embed.bias"], 0)
        mean = h.sum(axis=0, keepdims=True) / Fraction(len(numbers))
        h = mean @ w[f"{HEAD}.value"][0] @ w[f"{HEAD}.output"][0]
        if "blocks.1.ffn.up" in w:
            h = h + self.feed(h, 1)
        return (h @ w["readout.weight"] + w["readout.bias"])[0]


def worst_inputs(length, j, latent):
    """The two inputs of the proof, in cell 0 of [0, 1] with `latent` cells (and in the last one)."""
    h = Fraction(1, latent)
    for cell in (0, latent - 1):
        start = cell * h
        yield [start + (1 - Fraction(1, j)) * h] * j + [start] * (length - j)
        yield [start + h] * (j - 1) + [start + Fraction(1, length - j + 1) * h] * (length - j + 1)


@pytest.mark.parametrize(("length", "latent"), [(1, 4), (2, 1), (3, 4), (5, 8), (6, 2)])
def test_the_error_is_exactly_the_bound(length, latent):
    """Powers of two: the stored weights are the ideal ones, so the supremum is attained to the last digit."""
    draw = random.Random(length)
    for j in range(1, length + 1):
        exactly = Exactly(pooled_order_statistics(length, latent, [one(length, j)]))
        bound = error_bound(length, latent, one(length, j))
        errors = []
        for numbers in worst_inputs(length, j, latent):
            draw.shuffle(numbers)
            errors.append(abs(exactly(numbers)[0] - sorted(numbers, reverse=True)[j - 1]))
        assert max(errors) == bound
        for _ in range(30):
            # Many numbers in few cells, ends included: where the error is.
            numbers = [Fraction(draw.randint(0, 24 * latent), 24 * latent) for _ in range(length)]
            assert abs(exactly(numbers)[0] - sorted(numbers, reverse=True)[j - 1]) <= bound


def test_the_bound_in_numbers():
    assert error_bound(1, 3, [1]) == 0
    assert [error_bound(4, 10, one(4, j)) for j in (1, 2, 3, 4)] == [
        Fraction(k, d) for k, d in ((3, 40), (1, 15), (1, 15), (3, 40))
    ]
    # A mutation of the constant would be false: 1 - 1/n is attained for the largest number.
    assert error_bound(2, 1, [1, 0]) == Fraction(1, 2)


@pytest.mark.parametrize("row", [[1, 0, 0], [0, 1, 0], [1, 0, -1], [Fraction(1, 4), Fraction(1, 2), Fraction(1, 4)]])
def test_l_statistics_on_other_intervals(row):
    low, high, latent = -2, 5, 6
    exactly = Exactly(pooled_order_statistics(3, latent, [row], low, high))
    # The weights 1/h = 6/7 and h are rounded: some dozens of roundings of 2^-53 of numbers below 100.
    bound = error_bound(3, latent, row, low, high) + Fraction(1, 10**12)
    draw = random.Random(0)
    for _ in range(60):
        numbers = [Fraction(draw.randint(-200, 500), 100) for _ in range(3)]
        wanted = sum(c * x for c, x in zip(row, sorted(numbers, reverse=True), strict=True))
        assert abs(exactly(numbers)[0] - wanted) <= bound


def test_the_mean_is_exact_and_needs_no_second_layer():
    model = pooled_order_statistics(4, 2, [[Fraction(1, 4)] * 4])
    assert model.config.blocks[1].ffn is None
    numbers = [Fraction(1, 3), Fraction(1, 7), Fraction(1), Fraction(0)]
    assert Exactly(model)(numbers)[0] == sum(numbers) / 4


def test_sorting_and_the_model_itself():
    """All order statistics at once, through the one transformer; invariant by its architecture."""
    model = pooled_order_statistics(4, 64, [one(4, j) for j in (1, 2, 3, 4)])
    assert is_equivariant(model.config).holds
    rows = np.random.default_rng(0).uniform(0, 1, (50, 4))
    errors = np.abs(model.evaluate(rows) - np.sort(rows, axis=1)[:, ::-1])
    assert errors.max() <= 3 / 4 / 64 + 1e-13  # rounding of sums of 64 numbers below 4
    assert errors.max() > 0


def test_the_rate_is_one_over_the_latent_dimension():
    for length in (2, 5, 9):
        for latent in range(1, length):
            upper, lower = error_bound(length, latent, one(length, 1)), pooled_lower_bound(length, latent)
            assert lower <= upper < 4 * lower
        assert error_bound(length, 2 * length, one(length, 1)) * 2 == error_bound(length, length, one(length, 1))
    assert pooled_lower_bound(5, 5) == 0
    # One below the length, lower and upper end differ by a factor of two.
    assert error_bound(9, 8, one(9, 1)) == 2 * pooled_lower_bound(9, 8)


def test_the_lower_bound_on_a_pooled_model_of_dimension_one():
    """m = 1, phi(x) = x and n = 2: the antipodal pair of the proof is (1/4, 3/4) +- 1/4 (1, -1)."""
    bound = pooled_lower_bound(2, 1)
    pair = [(Fraction(0), Fraction(1)), (Fraction(1, 2), Fraction(1, 2))]
    assert sum(pair[0]) == sum(pair[1])
    # Whatever rho answers for the common sum, the larger number is missed by at least half the gap, which is the bound.
    assert (max(pair[0]) - max(pair[1])) / 2 == bound == Fraction(1, 4)


def test_a_changed_weight_breaks_it():
    """Negative control of the exact evaluation: the bound at the worst inputs no longer holds."""
    model = pooled_order_statistics(3, 4, [one(3, 1)])
    tensors = {n: np.array(t) for n, t in model.tensors.items()}
    tensors["blocks.0.ffn.up_bias"][2] -= 1.0
    exactly, bound = Exactly(Transformer(model.config, tensors)), error_bound(3, 4, one(3, 1))
    grid = [[Fraction(a, 12), Fraction(b, 12), Fraction(0)] for a in range(13) for b in range(13)]
    assert any(abs(exactly(numbers)[0] - max(numbers)) > bound for numbers in grid)


def test_the_rule_boxes_proves_a_maximum():
    """The checker's own rule on the stored weights: 1/4 is attained, so 0.27 can be proved and 0.24 cannot."""
    model = pooled_order_statistics(2, 2, [[1, 0]])
    target = target_of("max(x1, x2)", "[0,1]^2")
    problem = Problem(network_of(model), ProgramFunction(target.program), BallDomain(target.domain))
    domain = FloatDomain(problem.domain)
    found = search(BallBounder(problem, 1), domain, 0.269, Budget(4000, 60))
    assert found.closed
    tree = found.tree.to_bytes()
    assert prove_piece(problem, root(2), tree, 1, arb("0.27"), lambda _: None) <= arb("0.27")
    with pytest.raises(Refused, match="could only be bounded"):
        prove_piece(problem, root(2), tree, 1, arb("0.24"), lambda _: None)


@pytest.mark.slow
def test_the_whole_way_to_a_certificate():
    from certiformer import prove

    model = pooled_order_statistics(2, 4, [[1, 0]])
    run = prove(model, "max(x1, x2)", on="[0,1]^2", eps="0.13")
    assert run.certified and run.lower >= 0.1249  # the bound is 1/8, and it is attained


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ((0, 4, [[]]), "positive integers"),
        ((2, 0, [[1, 0]]), "positive integers"),
        ((2, 4, [[1]]), "each of the 2"),
        ((2, 4, []), "at least one row"),
        ((2, 4, [[1, 0]], 1, 1), "empty"),
        ((2, 4, [[float("nan"), 0]]), "finite"),
    ],
)
def test_other_requests_are_refused(arguments, why):
    with pytest.raises(BadInput, match=why):
        pooled_order_statistics(*arguments)
