"""Functions of counts: the theorem agrees with every single sequence, covers every changed weight, refuses other forms."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from certiformer.axioms import exact_count
from certiformer.construct.counting import counting_network, symmetric_network
from certiformer.construct.majority import majority_network
from certiformer.construct.parity import parity_network
from certiformer.kernel import Refused
from certiformer.kernel.certificate import Finite, Theorem
from certiformer.kernel.check import check
from certiformer.kernel.rules import finite
from certiformer.model import Attention, Code, FeedForward, Heads, Readout, Transformer
from certiformer.search.sequences import build_sequences
from certiformer.target import CountMap, SortMap
from negative.forge import reseal
from theorems.sequence_claims import all_places, changed, float_error, problem_of

NODE = Theorem("1", "exact_count")
ROUNDING = 1e-13  # of a float64 run with numbers below 10 and some dozens of roundings
CASES = [
    (parity_network(1), CountMap("", 2, 1, "parity")),
    (parity_network(6), CountMap("", 2, 6, "parity")),
    (parity_network(4, 3), CountMap("", 3, 4, "parity")),
    (majority_network(1, 4), CountMap("", 1, 4, "majority")),
    (majority_network(2, 1), CountMap("", 2, 1, "majority")),
    (majority_network(3, 4), CountMap("", 3, 4, "majority")),
    (counting_network(1, 3), CountMap("", 1, 3, "count")),
    (counting_network(4, 3), CountMap("", 4, 3, "count")),
]


@pytest.mark.parametrize(("network", "target"), CASES)
def test_the_theorem_agrees_with_every_single_sequence(network, target):
    problem = problem_of(network, target)
    assert exact_count.check(NODE, problem) < 1e-25
    assert finite(problem) < 1e-25


def test_the_bound_covers_the_damage_of_every_changed_weight():
    target, network = CountMap("", 2, 3, "parity"), parity_network(3)
    harmful = 0
    for name, index in all_places(network):
        other = changed(network, name, index, 1e-3 if sum(index) % 2 else -1e-3)
        truth = float_error(other, target)
        bound = exact_count.check(NODE, problem_of(other, target))  # one of queries and keys stays zero
        assert truth <= float(bound) + ROUNDING
        harmful += truth > 1e-4
    assert harmful > 20  # the changes are real: a bound that saw none of them would be found out


def test_the_bound_is_tight_where_the_damage_is_direct():
    problem = problem_of(changed(parity_network(5), "readout.bias", (0,), 1e-3), CountMap("", 2, 5, "parity"))
    assert 1 <= float(exact_count.check(NODE, problem) / finite(problem)) < 1 + 1e-12
    problem = problem_of(changed(parity_network(5), "blocks.0.ffn.down", (4, 3), 1e-3), CountMap("", 2, 5, "parity"))
    assert 1 <= float(exact_count.check(NODE, problem) / finite(problem)) < 1 + 1e-12


def test_a_wrong_table_is_off_by_what_it_is_wrong_by():
    values = [0, 1, 0, 1, 0, 0]  # the parity of five ones is 1
    problem = problem_of(symmetric_network(2, 5, (1,), values), CountMap("", 2, 5, "parity"))
    assert abs(float(exact_count.check(NODE, problem)) - 1) < 1e-12
    problem = problem_of(parity_network(5), CountMap("", 2, 5, "majority"))
    with pytest.raises(Refused, match="each letter"):
        exact_count.check(NODE, problem)


def test_a_head_that_is_not_uniform_is_refused():
    query, key = (f"blocks.0.attention.groups.0.{part}" for part in ("query", "key"))
    network, target = changed(parity_network(3), query, (0, 0, 0), 1e-3), CountMap("", 2, 3, "parity")
    assert exact_count.check(NODE, problem_of(network, target)) < 1e-25  # zero keys alone keep the head uniform
    with pytest.raises(Refused, match="uniform"):
        exact_count.check(NODE, problem_of(changed(network, key, (0, 0, 0), 1e-3), target))


def with_block(network, **parts):
    config, tensors = network
    return replace(config, blocks=(replace(config.blocks[0], **parts),)), tensors


REFUSED = {
    "ReLU units": lambda n: with_block(n, ffn=FeedForward(3, "gelu")),
    "plain softmax": lambda n: with_block(n, attention=Attention((Heads(1, 1, 1),), mask="causal")),
    "does not read": lambda n: (replace(n[0], input=replace(n[0].input, tokens=4)), n[1]),
    "one position": lambda n: (replace(n[0], readout=Readout("mean")), n[1]),
    "one block": lambda n: (replace(n[0], loops=2), n[1]),
    "no position code": lambda n: (replace(n[0], code=Code("one-hot", offset=0)), n[1]),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_other_forms_are_refused(reason):
    with pytest.raises(Refused, match=reason):
        exact_count.check(NODE, problem_of(REFUSED[reason](parity_network(3)), CountMap("", 2, 3, "parity")))


def test_other_claims_are_refused():
    problem = problem_of(parity_network(3), CountMap("", 2, 3, "parity"))
    with pytest.raises(Refused, match="parameters"):
        exact_count.check(Theorem("1", "exact_count", {"tokens": 3}), problem)
    with pytest.raises(Refused, match="numbers of letters"):
        exact_count.check(NODE, replace(problem, target=SortMap("", 2, 3)))


def test_a_run_folder_is_certified_and_a_forged_one_is_not(tmp_path):
    run = build_sequences("parity", 2, 6, out=tmp_path / "run")
    assert run.certified
    verdict = check(tmp_path / "run")
    assert verdict.accepted
    assert "2^6 = 64 sequences" in verdict.sentence
    reseal(tmp_path / "run", proof=Finite("1e-20"), upper="1e-20")
    assert check(tmp_path / "run").accepted  # the same claim, row by row
    proof = Theorem("1e-15", "exact_count")
    for what in ("majority", "count"):
        reseal(tmp_path / "run", proof=proof, target=CountMap("", 2, 6, what).to_text().encode())
        assert check(tmp_path / "run").outcome == "refused"
    weight = ("blocks.0.ffn.down", (2, 3), 1e-9)
    target = CountMap("", 2, 6, "parity").to_text().encode()
    reseal(tmp_path / "run", target=target, model=lambda m: Transformer(*changed((m.config, m.tensors), *weight)))
    refused = check(tmp_path / "run")
    assert refused.outcome == "refused"
    assert "only" in refused.reason


def test_the_run_of_the_folder_is_bounded_and_a_smaller_bound_is_refused(tmp_path):
    run = build_sequences("parity", 2, 12, out=tmp_path / "run")
    stated = run.certificate.run_error
    assert stated is not None
    assert float(stated) < 1e-10
    letters = np.random.default_rng(1).integers(0, 2, (200, 12))
    outputs = Transformer(run.model.config, run.model.tensors).evaluate(letters)[:, 0]
    assert np.max(np.abs(outputs - letters.sum(1) % 2)) <= float(stated) + 1e-25
    reseal(tmp_path / "run", run_error="1e-13")
    assert "bounds the error of a run by 1e-13" in check(tmp_path / "run").reason
