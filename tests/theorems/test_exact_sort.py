"""Sorting over a finite alphabet: exact on every sequence, and refused as soon as one weight is wrong."""

from __future__ import annotations

import numpy as np
import pytest

from certiformer.axioms import exact_sort
from certiformer.construct.sort_alphabet import sort_network
from certiformer.kernel import Refused
from certiformer.kernel.balls import working_precision
from certiformer.kernel.certificate import Finite, Theorem
from certiformer.kernel.check import check
from certiformer.kernel.problem import FiniteProblem, PointNetwork
from certiformer.kernel.rules import finite, prove_finite
from certiformer.kernel.weights import read_model
from certiformer.model import Transformer
from certiformer.model.store import tensors_to_bytes
from certiformer.search.sequences import build_sort
from certiformer.target import SortMap
from negative.forge import reseal

working_precision()
NODE = Theorem("1", "exact_sort")


def sort_transformer(alphabet: int, tokens: int) -> Transformer:
    return Transformer(*sort_network(alphabet, tokens))


def problem_of(model: Transformer, alphabet: int, tokens: int) -> FiniteProblem:
    network = PointNetwork(*read_model(model.config.to_bytes(), tensors_to_bytes(model)))
    return FiniteProblem(network, SortMap("sort", alphabet, tokens))


def changed(model: Transformer, name: str, index: tuple[int, ...], by: float) -> Transformer:
    tensor = np.array(model.tensors[name])
    tensor[index] += by
    return Transformer(model.config, {**model.tensors, name: tensor})


@pytest.mark.parametrize(("alphabet", "tokens"), [(1, 1), (1, 4), (2, 1), (2, 6), (3, 4), (5, 2)])
def test_the_theorem_agrees_with_every_single_sequence(alphabet, tokens):
    problem = problem_of(sort_transformer(alphabet, tokens), alphabet, tokens)
    assert exact_sort.check(NODE, problem) < 1e-25
    assert finite(problem) < 1e-25


@pytest.mark.parametrize(("alphabet", "tokens"), [(7, 25), (26, 100)])
def test_random_sequences_are_sorted(alphabet, tokens):
    model = sort_transformer(alphabet, tokens)
    assert exact_sort.check(NODE, problem_of(model, alphabet, tokens)) < 1e-24
    letters = np.random.default_rng(0).integers(0, alphabet, (200, tokens))
    outputs = model.evaluate(letters).reshape(200, tokens, alphabet)
    assert np.array_equal(outputs.argmax(axis=2), np.sort(letters, axis=1))


@pytest.mark.slow
def test_a_thousand_tokens_over_a_hundred_symbols():
    model = sort_transformer(100, 1000)
    assert exact_sort.check(NODE, problem_of(model, 100, 1000)) < 1e-20
    letters = np.random.default_rng(0).integers(0, 100, (20, 1000))
    outputs = model.evaluate(letters).reshape(20, 1000, 100)
    assert np.array_equal(outputs.argmax(axis=2), np.sort(letters, axis=1))


CHANGES = [
    ("embed.weight", (1, 1)), ("embed.weight", (0, 5)), ("code.table", (2, 3)), ("code.table", (0, 9)),
    ("blocks.0.attention.groups.0.value", (0, 1, 2)), ("blocks.0.attention.groups.0.output", (0, 1, 5)),
    ("blocks.0.ffn.up", (4, 1)), ("blocks.0.ffn.up", (0, 2)), ("blocks.0.ffn.up_bias", (3,)), ("blocks.0.ffn.down", (2, 8)),
    ("blocks.0.ffn.down_bias", (7,)), ("readout.weight", (8, 1)), ("readout.weight", (0, 0)), ("readout.bias", (2,)),
]  # fmt: skip


@pytest.mark.parametrize("by", [1e-3, -1e-3])
@pytest.mark.parametrize(("name", "index"), CHANGES, ids=str)
def test_the_bound_notices_a_changed_weight_and_covers_its_damage(name, index, by):
    problem = problem_of(changed(sort_transformer(3, 3), name, index, by), 3, 3)
    bound, truth = exact_sort.check(NODE, problem), finite(problem)
    # Many changes do no harm, because a step is flat beyond 0 and 1; the bound does not count on that.
    assert truth <= bound
    assert bound > 1e-4


def test_the_bound_is_tight_where_the_damage_is_direct():
    # The bias of output 2 moves it by exactly 1e-3 everywhere, and the bound adds nothing else.
    problem = problem_of(changed(sort_transformer(3, 3), "readout.bias", (2,), 1e-3), 3, 3)
    assert 1 <= float(exact_sort.check(NODE, problem) / finite(problem)) < 1 + 1e-12
    # A unit's own bias reaches two outputs; C_v - t = 0 occurs, so the whole shift of 1e-3 appears.
    problem = problem_of(changed(sort_transformer(3, 3), "blocks.0.ffn.up_bias", (2,), 1e-3), 3, 3)
    assert 1 <= float(exact_sort.check(NODE, problem) / finite(problem)) < 1 + 1e-12


def test_a_head_that_is_not_uniform_is_refused():
    model = changed(sort_transformer(3, 3), "blocks.0.attention.groups.0.query", (0, 0, 0), 1e-3)
    assert exact_sort.check(NODE, problem_of(model, 3, 3)) < 1e-25  # zero keys alone keep the head uniform
    both = changed(model, "blocks.0.attention.groups.0.key", (0, 0, 0), 1e-3)
    with pytest.raises(Refused, match="uniform"):
        exact_sort.check(NODE, problem_of(both, 3, 3))


def test_other_shapes_and_other_claims_are_refused():
    with pytest.raises(Refused, match="parameters"):
        exact_sort.check(Theorem("1", "exact_sort", {"alphabet": 3}), problem_of(sort_transformer(3, 3), 3, 3))
    with pytest.raises(Refused, match="ReLU units"):
        exact_sort.check(NODE, problem_of(sort_transformer(4, 3), 3, 3))
    with pytest.raises(Refused, match="no axiom about sequences"):
        prove_finite(Theorem("1", "voronoi_first_order"), problem_of(sort_transformer(3, 3), 3, 3))


def test_too_many_sequences_are_not_enumerated():
    with pytest.raises(Refused, match="too many"):
        finite(problem_of(sort_transformer(7, 25), 7, 25))


def test_a_run_folder_is_certified_and_a_forged_one_is_not(tmp_path):
    run = build_sort(4, 5, out=tmp_path / "sort")
    assert run.certified
    verdict = check(tmp_path / "sort")
    assert verdict.accepted
    assert "4^5 = 1,024 sequences" in verdict.sentence
    reseal(tmp_path / "sort", proof=Finite("1e-20"))
    assert check(tmp_path / "sort").accepted  # the same claim, row by row
    reseal(tmp_path / "sort", proof=Theorem("1e-15", "exact_sort"), target=SortMap("sort", 5, 5).to_text().encode())
    assert check(tmp_path / "sort").outcome == "refused"
    reseal(
        tmp_path / "sort",
        target=SortMap("sort", 4, 5).to_text().encode(),
        model=lambda m: changed(m, "blocks.0.ffn.down", (2, 10), 1e-9),
    )
    refused = check(tmp_path / "sort")
    assert refused.outcome == "refused"
    assert "only" in refused.reason
