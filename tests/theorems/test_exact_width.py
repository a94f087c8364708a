"""The histogram by a softmax head: the theorem agrees with every sequence, covers changed weights, refuses other forms."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import exp

import pytest

from certiformer.axioms import exact_width
from certiformer.axioms.relu_readout import ReluReadout
from certiformer.construct.selector_width import histogram_network
from certiformer.kernel import Refused
from certiformer.kernel.certificate import Theorem
from certiformer.kernel.check import check
from certiformer.kernel.rules import finite
from certiformer.model import Attention, Code, FeedForward, Heads, Readout, Transformer
from certiformer.search.sequences import build_sequences
from certiformer.target import SortMap, WidthMap
from negative.forge import reseal
from theorems.sequence_claims import all_places, changed, float_error, problem_of

NODE = Theorem("1", "exact_width")
RUN = 1e-13  # a float64 run has numbers below 100 and some dozens of roundings
ROUNDING = 1e-24  # both numbers are upper ends of balls of 96 bits, less than this above the largest error


@pytest.mark.parametrize(("alphabet", "tokens"), [(1, 1), (1, 4), (2, 1), (2, 5), (3, 4), (5, 2)])
def test_the_theorem_agrees_with_every_single_sequence(alphabet, tokens):
    problem = problem_of(histogram_network(alphabet, tokens), WidthMap("", alphabet, tokens))
    bound, truth = exact_width.check(NODE, problem), finite(problem)
    assert bound < 1e-24
    assert truth <= bound + ROUNDING


def test_the_bound_covers_the_damage_of_every_changed_weight():
    network = histogram_network(2, 3)
    harmful = 0
    for name, index in all_places(network):
        other = changed(network, name, index, 1e-3 if sum(index) % 2 else -1e-3)
        truth = float_error(other, WidthMap("", 2, 3))
        bound = exact_width.check(NODE, problem_of(other, WidthMap("", 2, 3)))
        assert truth <= float(bound) + RUN
        harmful += truth > 1e-5
    assert harmful > 20


def test_leakage_is_part_of_the_bound():
    """With the gap 2 at n = 6 the softmax leaks visibly, and the bound sees it."""
    config, tensors = histogram_network(2, 6)
    query = "blocks.0.attention.groups.0.query"
    blunt = {**tensors, query: tensors[query] * (2 / tensors[query].max())}
    problem = problem_of((config, blunt), WidthMap("", 2, 6))
    truth, bound = finite(problem), exact_width.check(NODE, problem)
    assert 0.4 < float(truth) <= float(bound) * (1 + 1e-12) < 3


def test_what_leaks_is_enclosed_value_by_value(monkeypatch):
    """The stream behind a blunt head with values for every letter lies in the balls, for all sequences."""
    config, tensors = histogram_network(3, 4)
    name = "blocks.0.attention.groups.0"
    query = tensors[f"{name}.query"] * (2 / tensors[f"{name}.query"].max())
    value = tensors[f"{name}.value"].copy()
    value[0, :3, 0] = [0.5, -0.25, 2.0]
    problem = problem_of((config, {**tensors, f"{name}.query": query, f"{name}.value": value}), WidthMap("", 3, 4))
    seen = []
    monkeypatch.setattr(ReluReadout, "at", lambda layer, stream: seen.append(stream[4]) or stream[4])
    assert exact_width.check(NODE, problem) > 1  # means are read off where widths are wanted
    balls = dict(zip(product(range(3), range(1, 5)), seen, strict=True))
    wide = {place: float(ball.rad()) for place, ball in balls.items()}
    assert max(wide.values()) > 0.05  # what the others do is not known
    for letters in product(range(3), repeat=4):
        for x in letters:
            weights = [exp(2 * (int(x == y) - 1)) for y in letters]
            r = (1 + sum(w * value[0, y, 0] for w, y in zip(weights, letters, strict=True))) / (1 + sum(weights))
            ball = balls[x, letters.count(x)]
            assert abs(r - float(ball.mid())) <= wide[x, letters.count(x)] + 1e-14


def with_block(network, **parts):
    config, tensors = network
    return replace(config, blocks=(replace(config.blocks[0], **parts),)), tensors


def unregistered(network):
    return replace(network[0], registers=0), {n: t for n, t in network[1].items() if n != "registers"}


REFUSED = {
    "ReLU units": lambda n: with_block(n, ffn=FeedForward(2, "gelu")),
    "plain softmax": lambda n: with_block(n, attention=Attention((Heads(1, 3, 1),), mask="causal")),
    "does not read": lambda n: (replace(n[0], input=replace(n[0].input, tokens=4)), n[1]),
    "every position": lambda n: (replace(n[0], readout=Readout("mean")), n[1]),
    "one register": unregistered,
    "no position code": lambda n: (replace(n[0], code=Code("circle", offset=0, period=3)), n[1]),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_other_forms_are_refused(reason):
    with pytest.raises(Refused, match=reason):
        exact_width.check(NODE, problem_of(REFUSED[reason](histogram_network(2, 3)), WidthMap("", 2, 3)))


def test_other_claims_are_refused():
    problem = problem_of(histogram_network(2, 3), WidthMap("", 2, 3))
    with pytest.raises(Refused, match="parameters"):
        exact_width.check(Theorem("1", "exact_width", {"tokens": 3}), problem)
    with pytest.raises(Refused, match="same letter"):
        exact_width.check(NODE, replace(problem, target=SortMap("", 2, 3)))


def test_a_run_folder_is_certified_and_a_forged_one_is_not(tmp_path):
    run = build_sequences("hist", 3, 40, out=tmp_path / "run")
    assert run.certified
    assert check(tmp_path / "run").accepted
    weight = ("blocks.0.ffn.up", (4, 2), 1e-6)
    reseal(tmp_path / "run", model=lambda m: Transformer(*changed((m.config, m.tensors), *weight)))
    assert "only" in check(tmp_path / "run").reason
