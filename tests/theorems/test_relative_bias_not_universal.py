"""Relative biases are not universal: equal tokens stay equal in balls, the bound is attained, and each trap breaks it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from certiformer.errors import BadInput
from certiformer.expressivity.relative_bias_not_universal import (
    equal_tokens_stay_equal,
    position_target,
    refute_position_target,
    spread_bound,
)
from certiformer.kernel.balls import BallDomain
from certiformer.kernel.problem import PointNetwork, Problem, ProgramFunction
from certiformer.kernel.weights import read_model
from certiformer.model import Attention, Block, Code, Config, FeedForward, Heads, Input, Norm, Readout, Transformer
from certiformer.model.store import tensors_to_bytes
from certiformer.search.evidence import architecture_limit, equal_token_points
from certiformer.verify import FloatDomain
from kernel.networks import network_of
from negative.forge import target_of

TOKENS = 4


def config_of(attention, norm=None, loops=2, **changes) -> Config:
    blocks = (Block(attention, FeedForward(3), norm),)
    return Config(Input("continuous", TOKENS, width=1), 4, 1, Readout("all"), blocks, loops=loops, **changes)


def relative(**changes) -> Attention:
    return replace(Attention((Heads(2, 2, 2),), score_bias="toeplitz", bias=True), **changes)


def values_at(model, point):
    return PointNetwork(*read_model(model.config.to_bytes(), tensors_to_bytes(model))).values(tuple(point))


def rows_are_equal(model, point):
    """Whether all outputs at a point are certainly within 1e-15 of each other."""
    first, *others = values_at(model, point)
    return all(other.overlaps(first) and (other - first).abs_upper() < 1e-15 for other in others)


def with_mask(model, mask):
    return Transformer(model.config, {**model.tensors, "blocks.0.attention.mask": np.array(mask)})


MASK = [[1, 0, 0, 1], [1, 1, 1, 0], [0, 1, 0, 0], [1, 1, 1, 1]]
COVERED = [
    config_of(relative(kind=kind, mask=mask, residual=residual), norm)
    for kind, mask, norm, residual in product(
        ("softmax", "hard"), ("none", "causal", "table"), (None, Norm("pre"), Norm("post")), (True, False)
    )
]


@pytest.mark.parametrize("place", range(len(COVERED)))
def test_equal_tokens_stay_equal(place):
    config = COVERED[place]
    model = Transformer.random(config, seed=place)
    if config.blocks[0].attention.mask == "table":
        model = with_mask(model, MASK)
    assert equal_tokens_stay_equal(config, model.tensors).holds
    found = refute_position_target(config, [0.3], model.tensors)
    assert found.bound == Fraction(3, 8) and found.witness == (Fraction(0.3),) * TOKENS
    assert rows_are_equal(model, found.witness)
    outputs = values_at(model, found.witness)
    errors = [abs(y - float(i)) for y, i in zip(outputs, position_target(TOKENS), strict=True)]
    # i/4 is a double, so the errors are exact up to their balls: the largest is never certainly below the bound.
    assert not all(error < 0.375 for error in errors)
    # Different tokens do get different outputs, unless all rows pick the same key: it is not a constant for another reason.
    attention = config.blocks[0].attention
    if attention.kind == "softmax" or attention.residual:
        assert not rows_are_equal(model, [Fraction(i, 3) for i in range(TOKENS)])


BLIND = [
    config_of(Attention((Heads(1, 2, 2),), kind=kind), registers=2, norm=norm)
    for kind, norm in product(("softmax", "hard", "linear", "relu"), (None, Norm("pre")))
]


@pytest.mark.parametrize("place", range(len(BLIND)))
def test_without_tables_registers_and_other_kinds_are_covered(place):
    model = Transformer.random(BLIND[place], seed=place)
    assert equal_tokens_stay_equal(BLIND[place]).holds
    assert rows_are_equal(model, [Fraction(1, 2)] * TOKENS)
    assert not rows_are_equal(model, [Fraction(i, 3) for i in range(TOKENS)])


TRAPS = {
    "absolute code": config_of(relative(), code=Code("one-hot", offset=0)),
    "register with bias": config_of(relative(), registers=1),
    "register with causal mask": config_of(relative(score_bias="none", mask="causal"), registers=1),
    "linear with bias": config_of(relative(kind="linear")),
    "linear with causal mask": config_of(relative(kind="linear", score_bias="none", mask="causal")),
    "relu with bias": config_of(relative(kind="relu")),
    "row without a key": config_of(relative(mask="table")),
}


@pytest.mark.parametrize("name", TRAPS)
def test_what_the_theorem_does_not_cover_does_tell_positions_apart(name):
    """Negative control of every hypothesis: refused, and rightly so."""
    model = Transformer.random(TRAPS[name], seed=3)
    if name == "row without a key":
        model = with_mask(model, [[1, 0, 0, 0], [0, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 1]])
    assert not equal_tokens_stay_equal(TRAPS[name], model.tensors).holds
    with pytest.raises(BadInput, match="may compute positions"):
        refute_position_target(TRAPS[name], tensors=model.tensors)
    first, *others = values_at(model, [Fraction(1, 2)] * TOKENS)
    assert any(not other.overlaps(first) for other in others)


def test_a_stored_mask_counts_only_when_it_can_be_read():
    config = config_of(relative(mask="table"))
    assert not equal_tokens_stay_equal(config).holds
    assert "without a key" in equal_tokens_stay_equal(config).reason


@pytest.mark.parametrize("length", [1, 2, 3, 10, 1000])
def test_the_bound_is_attained_by_the_constant(length):
    rows = position_target(length)
    bound = spread_bound([[value] for value in rows])
    assert bound == Fraction(length - 1, 2 * length)
    middle = Fraction(length + 1, 2 * length)
    assert max(abs(middle - value) for value in rows) == bound
    # And no other constant reaches it: the largest of the two outer errors is at least the bound.
    for shift in (Fraction(1, 7), Fraction(-1, 7)):
        assert max(abs(middle + shift - value) for value in rows) == bound + Fraction(1, 7)


def test_the_bound_of_other_targets():
    assert spread_bound([[0, 5], [1, 5], [0.5, 4]]) == Fraction(1, 2)
    assert spread_bound([[2, 2], [2, 2]]) == 0
    with pytest.raises(BadInput, match="at least one row"):
        spread_bound([])
    with pytest.raises(BadInput, match="finite"):
        spread_bound([[float("nan")], [0]])


def test_other_requests_are_refused():
    config = config_of(relative())
    with pytest.raises(BadInput, match="read-out all"):
        refute_position_target(replace(config, readout=Readout("mean")))
    with pytest.raises(BadInput, match="has 1 numbers, not 2"):
        refute_position_target(config, [0, 0])
    with pytest.raises(BadInput, match="positive integer"):
        position_target(0)


def test_prove_refutes_at_a_sequence_of_equal_tokens():
    """The whole way: refuted, at least by the bound, and the reason says that no weights help."""
    from certiformer import prove

    config = Config(
        Input("continuous", TOKENS, width=1), 2, 1, Readout("all"), (Block(relative(heads=(Heads(1, 1, 1),))),)
    )
    run = prove(Transformer.random(config, 0), "[1/4, 2/4, 3/4, 1]", on="[0,1]^4", eps="0.374")
    assert run.outcome.value == "refuted" and run.level == 2 and run.lower >= 0.375
    assert "no other weights of this architecture would do" in run.certificate.reason
    assert "at least 0.375" in run.certificate.reason


class Asked:
    """As much of a case of the search as the limits of an architecture need."""

    def __init__(self, model, formula, on, epsilon="0.1"):
        target = target_of(formula, on)
        self.model, self.epsilon = model, Fraction(epsilon)
        self.problem = Problem(network_of(model), ProgramFunction(target.program), BallDomain(target.domain))
        self.domain = FloatDomain(self.problem.domain)


def test_the_limit_of_an_architecture():
    model = Transformer.random(config_of(relative(), loops=1), seed=0)
    case = Asked(model, "[x1/4, 2/4, 3/4, 1]", "[0,1]x[-1,2]x[0,1]x[0.5,3]")
    points = equal_token_points(case)
    assert (points == points[:, :1]).all() and points[:, 0].min() == 0.5 and points[:, 0].max() == 1
    # Between 1 and x1/4 at x1 = 1/2: half of 7/8.
    assert "at least 0.4375" in architecture_limit(case, points)
    assert architecture_limit(Asked(model, "[1/4, 2/4, 3/4, 1]", "[0,1]^4", "0.375"), points) == ""
    assert equal_token_points(Asked(model, "[x1, x2, x3, x4]", "[0,1]^3x[2,3]")) is None
    coded = Transformer.random(config_of(relative(), code=Code("one-hot", offset=0), loops=1), seed=0)
    assert equal_token_points(Asked(coded, "[1/4, 2/4, 3/4, 1]", "[0,1]^4")) is None
