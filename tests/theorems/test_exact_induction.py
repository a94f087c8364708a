"""Induction heads: the theorem agrees with every sequence, covers changed weights, refuses leads that are not there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from certiformer.axioms import exact_induction
from certiformer.construct.induction_head import induction_network
from certiformer.kernel import Refused
from certiformer.kernel.certificate import Theorem
from certiformer.kernel.check import check
from certiformer.kernel.rules import finite
from certiformer.model import Attention, FeedForward, Heads, Readout, Transformer
from certiformer.search.sequences import build_sequences
from certiformer.target import InductionMap, SortMap
from negative.forge import reseal
from theorems.sequence_claims import all_places, changed, float_error, problem_of

NODE = Theorem("1", "exact_induction", {"lead": "63.999"})
FREE = Theorem("1", "exact_induction")  # states no lead
RUN = 1e-11  # of a float64 run: scores up to 1e3 are off by 1e-13 each, and values below 1e3
ROUNDING = 1e-24  # both numbers are upper ends of balls of 96 bits, less than this above the largest error


@pytest.mark.parametrize(("alphabet", "tokens"), [(1, 1), (1, 4), (3, 1), (3, 2), (2, 6), (3, 4), (4, 3)])
def test_the_theorem_agrees_with_every_single_sequence(alphabet, tokens):
    problem = problem_of(induction_network(alphabet, tokens), InductionMap("", alphabet, tokens))
    bound, truth = exact_induction.check(NODE, problem), finite(problem)
    assert bound < 4 * tokens * 1.7e-28  # 4 n exp(-64), as the theorem says
    assert truth <= bound + ROUNDING


def test_the_bound_covers_the_damage_of_changed_weights():
    network = induction_network(2, 3)
    harmful = 0
    for name, index in all_places(network):
        other = changed(network, name, index, 1e-3 if sum(index) % 2 else -1e-3)
        truth = float_error(other, InductionMap("", 2, 3))
        bound = exact_induction.check(FREE, problem_of(other, InductionMap("", 2, 3)))
        assert truth <= float(bound) + RUN
        harmful += truth > 1e-6
    assert harmful > 20


@pytest.mark.parametrize("by", [0.3, -40.0, 500.0])
def test_large_changes_are_covered_or_refused(by):
    """A head that reads the wrong position somewhere must lose its proof."""
    generator = np.random.default_rng(0)
    network = induction_network(2, 4)
    places = all_places(network)
    wrong = refused = 0
    for k in generator.choice(len(places), 60, replace=False):
        other = changed(network, *places[k], by)
        truth = float_error(other, InductionMap("", 2, 4))
        wrong += truth > 0.4
        try:
            assert (
                truth <= float(exact_induction.check(FREE, problem_of(other, InductionMap("", 2, 4)))) * (1 + RUN) + RUN
            )
        except Refused as reason:
            refused += 1
            assert "wrong position" in str(reason)
    assert wrong
    assert refused


def test_softer_heads_have_larger_bounds():
    config, tensors = induction_network(2, 5)
    softer = {name: tensor / 4 if name.endswith(".query") else tensor for name, tensor in tensors.items()}
    problem = problem_of((config, softer), InductionMap("", 2, 5))
    truth, bound = finite(problem), exact_induction.check(FREE, problem)
    assert 1e-7 < float(truth) < float(bound) < 1e-4  # exp(-16) = 1e-7
    with pytest.raises(Refused, match="does not lead by as much"):
        exact_induction.check(NODE, problem)
    blunt = {name: tensor / 1024 if name.endswith(".query") else tensor for name, tensor in tensors.items()}
    with pytest.raises(Refused, match="wrong position"):
        exact_induction.check(FREE, problem_of((config, blunt), InductionMap("", 2, 5)))


def with_second(network, **parts):
    config, tensors = network
    return replace(config, blocks=(config.blocks[0], replace(config.blocks[1], **parts))), tensors


def with_units(network):
    config, tensors = with_second(network, ffn=FeedForward(1))
    width, name = config.width, "blocks.1.ffn"
    shapes = {"up": (width, 1), "up_bias": (1,), "down": (1, width), "down_bias": (width,)}
    return config, {**tensors, **{f"{name}.{part}": np.zeros(shape) for part, shape in shapes.items()}}


REFUSED = {
    "attention alone": with_units,
    "causal softmax": lambda n: with_second(n, attention=Attention((Heads(1, 3, 2),), scale="unit")),
    "does not read": lambda n: (
        replace(n[0], input=replace(n[0].input, tokens=4)),
        {**n[1], "code.table": np.zeros((4, 9))},
    ),
    "all positions": lambda n: (replace(n[0], readout=Readout("mean")), n[1]),
    "applied once": lambda n: (replace(n[0], loops=2), n[1]),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_other_forms_are_refused(reason):
    with pytest.raises(Refused, match=reason):
        exact_induction.check(NODE, problem_of(REFUSED[reason](induction_network(2, 3)), InductionMap("", 2, 3)))


def test_other_claims_are_refused():
    problem = problem_of(induction_network(2, 3), InductionMap("", 2, 3))
    with pytest.raises(Refused, match="one parameter"):
        exact_induction.check(Theorem("1", "exact_induction", {"tokens": 3}), problem)
    with pytest.raises(Refused, match="what followed"):
        exact_induction.check(NODE, replace(problem, target=SortMap("", 2, 3)))
    with pytest.raises(Refused, match="does not lead"):
        exact_induction.check(Theorem("1", "exact_induction", {"lead": "64.001"}), problem)


def test_a_run_folder_is_certified_and_a_forged_one_is_not(tmp_path):
    run = build_sequences("induction", 4, 20, out=tmp_path / "run")
    assert run.certified
    assert check(tmp_path / "run").accepted
    weight = ("blocks.1.attention.groups.0.value", (0, 1, 1), 1e-5)
    reseal(tmp_path / "run", model=lambda m: Transformer(*changed((m.config, m.tensors), *weight)))
    assert "only" in check(tmp_path / "run").reason
    rank = ("code.table", (7, 10), -1.0)  # position 7 now ranks with position 6
    reseal(tmp_path / "run", model=lambda m: Transformer(*changed((m.config, m.tensors), *rank)))
    assert check(tmp_path / "run").outcome == "refused"
    reseal(tmp_path / "run", run_error="1")
    assert "does not lead" in check(tmp_path / "run").reason
