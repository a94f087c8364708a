"""Equivariant functions in the sup norm: the bound exactly attained, certified by the checker, and broken by codes."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
from flint import arb

from certiformer.construct.equivariant_universal import Ridges, equivariant, equivariant_bound, no_units
from certiformer.errors import BadInput
from certiformer.expressivity.rational_run import rational_outputs
from certiformer.kernel import Refused
from certiformer.kernel.balls import BallDomain, working_precision
from certiformer.kernel.certificate import Outcome
from certiformer.kernel.problem import Network, Problem, ProgramFunction
from certiformer.kernel.rules import prove_piece
from certiformer.kernel.weights import read_model
from certiformer.model import Block, Code, Transformer
from certiformer.model.store import tensors_to_bytes
from certiformer.search.job import prove
from certiformer.target import parse_domain, parse_formula
from certiformer.verify import Budget, FloatDomain, search
from certiformer.verify.bounder import BallBounder


def behind(tokens):
    """g = largest - own: how far each token is behind the largest. G = 1, and no units, so e_0 = 0."""
    slopes = np.zeros((1 + tokens, 1))
    slopes[0], slopes[1] = -1.0, 1.0
    return Ridges(slopes, np.zeros(1), *no_units(1 + tokens, 1))


def own_times_largest(tokens, pieces):
    """g = own * largest = ((own + largest)^2 - (own - largest)^2)/4, both squares interpolated at knots 2/pieces apart.

    Interpolation of s^2 with step h is too large by at most h^2/4, so e_0 = h^2/16. G = 1.
    """
    step, slopes, constant = 2 / pieces, np.zeros((1 + tokens, 1)), np.zeros(1)
    weights, bias, coefficients = [], [], []
    for sign, low in ((1, 0.0), (-1, -1.0)):
        direction = np.zeros(1 + tokens)
        direction[:2] = 1, sign
        first = 2 * low + step
        slopes[:, 0] += sign / 4 * first * direction
        constant += sign / 4 * (low - first) * low
        for i in range(1, pieces):
            weights.append(direction)
            bias.append(-(low + i * step))
            coefficients.append([sign / 2 * step])
    return Ridges(slopes, constant, np.array(weights), np.array(bias), np.array(coefficients))


def exactly(model, tokens):
    """Rational arithmetic on the stored weights: a head whose scores are all 0 is the same with hard attention."""
    first, second, *rest = model.config.blocks
    assert not np.any(model.tensors["blocks.1.attention.groups.0.query"])
    hard = Block(replace(second.attention, kind="hard"), second.ffn)
    twin = Transformer(replace(model.config, blocks=(first, hard, *rest)), model.tensors)
    return [row[0] for row in rational_outputs(twin, [[Fraction(x)] for x in tokens])]


@pytest.mark.parametrize("latent", [1, 2, 4])
def test_the_supremum_is_exactly_the_bound(latent):
    """T - F is linear between the lines m x_i = k, R_k = 1 and x_1 = x_2, which cross at multiples of 1/(2m) only."""
    model = equivariant(behind(2), 2, latent)
    grid = [Fraction(k, 2 * latent) for k in range(2 * latent + 1)]
    errors = []
    for pair in product(grid, repeat=2):
        errors += [abs(t - (max(pair) - x)) for t, x in zip(exactly(model, pair), pair, strict=True)]
    assert max(errors) == equivariant_bound(2, latent, 1) == Fraction(1, 2 * latent)


@pytest.mark.parametrize("tokens", [1, 3, 5])
def test_random_tokens_stay_within_the_bound_exactly(tokens):
    model, generator = equivariant(own_times_largest(tokens, 8), tokens, 8), np.random.default_rng(tokens)
    bound = equivariant_bound(tokens, 8, 1, Fraction(1, 256))  # h = 1/4, e_0 = h^2/16
    cells = np.arange(65) / 64
    for numbers in generator.choice(cells, (30, tokens)):
        numbers = [Fraction(float(x)) for x in numbers]
        for t, x in zip(exactly(model, numbers), numbers, strict=True):
            assert abs(t - x * max(numbers)) <= bound


def test_the_bound_is_reached_by_equal_tokens():
    """n equal numbers a share 1/n into a cell: the largest is taken for the end of the cell."""
    model = equivariant(behind(4), 4, 8)
    numbers = [Fraction(1, 4) / 8] * 4
    assert exactly(model, numbers) == [equivariant_bound(4, 8, 1)] * 4 == [Fraction(3, 32)] * 4


def test_it_commutes_with_permutations_exactly_and_a_code_breaks_that():
    model = equivariant(own_times_largest(3, 4), 3, 4)
    numbers = [Fraction(1, 8), Fraction(7, 16), Fraction(29, 32)]
    outputs = exactly(model, numbers)
    for order in permutations(range(3)):
        assert exactly(model, [numbers[i] for i in order]) == [outputs[i] for i in order]
    code = np.zeros((3, model.config.width))
    code[0, 0] = 0.125
    coded = Transformer(replace(model.config, code=Code("table")), {**model.tensors, "code.table": code})
    assert exactly(coded, numbers[::-1]) != exactly(coded, numbers)[::-1]


def test_the_run_differs_by_rounding_only():
    model = equivariant(own_times_largest(3, 8), 3, 8)
    numbers = np.random.default_rng(0).integers(0, 2**20, (20, 3)) / 2**20
    exact = [[float(t) for t in exactly(model, row)] for row in numbers]
    # Sums of some forty terms below 8 and three layers: a few hundred units of 2^-53.
    np.testing.assert_allclose(model.evaluate(numbers), exact, atol=1e-13, rtol=0)


def test_a_mean_instead_of_a_sum_is_wrong():
    """Negative control: without the factor n of the pooling the order statistics are wrong by more than the bound."""
    model = equivariant(behind(2), 2, 4)
    name = "blocks.1.attention.groups.0.value"
    broken = Transformer(model.config, {**model.tensors, name: model.tensors[name] / 2})
    assert exactly(broken, [Fraction(1), Fraction(0)])[1] == Fraction(1, 2)  # not 1


def proved_by_boxes(model, formula, eps, boxes=1000):
    """The checker's rule boxes on the stored weights: the bound it proves, or `Refused`."""
    working_precision()
    domain = BallDomain(parse_domain(f"[0,1]^{model.config.tokens}"))
    network = Network(*read_model(model.config.to_bytes(), tensors_to_bytes(model)))
    problem = Problem(network, ProgramFunction(parse_formula(formula)), domain)
    found = search(BallBounder(problem, 1), FloatDomain(domain), eps, Budget(boxes, 60))
    return prove_piece(problem, ((0, 0),) * domain.dimension, found.tree.to_bytes(), 1, arb(eps), lambda leaves: None)


@pytest.mark.parametrize(
    ("tokens", "latent", "pieces", "eps"),
    [(2, 4, None, 0.13), (2, 8, None, 0.063), (3, 2, None, 0.34), (2, 4, 4, 0.145)],
)
def test_the_checker_certifies_examples(tokens, latent, pieces, eps):
    """behind: largest - own; otherwise own * largest by squares of so many pieces, e_0 = (2/pieces)^2/16."""
    names = [f"x{i + 1}" for i in range(tokens)]
    largest = f"max({', '.join(names)})"
    formula = ", ".join(f"{largest}-{x}" if pieces is None else f"{x}*{largest}" for x in names)
    network, error = behind(tokens), Fraction(0)
    if pieces is not None:
        network, error = own_times_largest(tokens, pieces), Fraction(4, 16 * pieces**2)
    assert equivariant_bound(tokens, latent, 1, error) <= eps
    model = equivariant(network, tokens, latent)
    assert proved_by_boxes(model, f"[{formula}]", eps) <= eps
    with pytest.raises(Refused):
        proved_by_boxes(model, f"[{formula}]", 0.7 * float(equivariant_bound(tokens, latent, 1)), boxes=40)


@pytest.mark.slow
def test_a_certificate_end_to_end():
    model, target = equivariant(own_times_largest(2, 8), 2, 8), "[x1*max(x1,x2), x2*max(x1,x2)]"
    run = prove(model, target, on="[0,1]^2", eps="0.0665")
    assert run.outcome is Outcome.PROVED and run.certified
    assert prove(model, target, on="[0,1]^2", eps="0.05").outcome is Outcome.REFUTED


def test_what_is_refused():
    for tokens, latent, reason in (
        (2, 3, "power of two"),
        (2, 0, "power of two"),
        (0, 4, "number of tokens"),
        (3, 4, "4 in all"),
    ):
        with pytest.raises(BadInput, match=reason):
            equivariant(behind(2), tokens, latent)
