"""Unordered contexts memorised: proved at every sequence, in every order, and refused where order would be needed."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import pytest

from certiformer.construct.memorise_sets import memorise_sets
from certiformer.errors import BadInput
from certiformer.kernel import Refused
from certiformer.kernel.rules import finite

EPS = Fraction(1, 10**6)


def random_labels(sequences, outputs, seed=0):
    """Random labels of (token, multiset)."""
    generator, known = np.random.default_rng(seed), {}
    return [
        [
            known.setdefault((tuple(t), tuple(sorted(map(tuple, s)))), generator.uniform(-1, 1, outputs)).tolist()
            for t in s
        ]
        for s in sequences.tolist()
    ]


@pytest.mark.parametrize(("count", "tokens", "width", "outputs"), [(12, 1, 2, 1), (20, 4, 2, 2), (40, 3, 3, 1)])
def test_every_label_is_within_epsilon_in_every_order(count, tokens, width, outputs):
    sequences = np.random.default_rng(1).uniform(-1, 1, (count, tokens, width))
    labels = random_labels(sequences, outputs)
    found = memorise_sets(sequences, labels, EPS)
    assert found.error <= EPS
    assert found.contexts == count * tokens and found.units <= found.contexts - 2
    shuffled, wanted = [], []
    for sequence, row in zip(sequences, np.array(labels), strict=True):
        order = np.random.default_rng(2).permutation(tokens)
        shuffled.append(sequence[order].ravel())
        wanted.append(row[order].ravel())
    # Slopes below 1e6 times the rounding of numbers near 1, over a few hundred units.
    assert np.abs(found.model.evaluate(shuffled) - wanted).max() <= float(found.error) + 1e-8


def test_repeated_tokens_and_repeated_sequences():
    """All multisets of 3 letters from 5, some given twice in different orders: the label is the multiplicity."""
    sequences = np.array(list(combinations_with_replacement([1.0, 1.5, 2.5, 3.0, 4.0], 3)))
    sequences = np.concatenate([sequences, sequences[:9, ::-1]])
    labels = [[[int((row == t).sum())] for t in row] for row in sequences]
    found = memorise_sets(sequences[:, :, None], labels, EPS)
    assert found.contexts == 75 and found.error <= EPS
    # The multiplicity is no function of the token, nor of token and mean: a head is needed, and it is there.
    run = found.model.evaluate(sequences)
    assert (run.round() == np.array(labels)[:, :, 0]).all()


def test_labels_that_need_the_order_are_refused():
    sequences = np.array([[1.0, 2.0], [2.0, 1.0]])[:, :, None]
    memorise_sets(sequences, [[[0], [1]], [[1], [0]]], EPS)
    with pytest.raises(BadInput, match="token 1 of sequence 2 has another label .* order"):
        memorise_sets(sequences, [[[0], [1]], [[0], [1]]], EPS)


def test_a_label_for_every_token():
    with pytest.raises(BadInput, match="each of the 2 tokens of each of the 1 sequences"):
        memorise_sets(np.ones((1, 2, 1)), [[[0]]], EPS)


def test_an_epsilon_beyond_float64_is_refused():
    sequences = np.random.default_rng(1).uniform(1, 2, (30, 3, 1))
    with pytest.raises(Refused, match="come within .* not epsilon"):
        memorise_sets(sequences, random_labels(sequences, 1), Fraction(1, 10**30))


def test_a_changed_weight_is_seen_by_the_proof():
    """Negative control: the error is measured on the stored weights, not assumed."""

    from certiformer.kernel.problem import FiniteProblem, PointNetwork
    from certiformer.kernel.weights import read_model
    from certiformer.model import Transformer
    from certiformer.model.store import tensors_to_bytes
    from certiformer.target import Table

    sequences = np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 4.0]])[:, :, None]
    found = memorise_sets(sequences, [[[0], [1], [0]], [[1], [0], [1]]], EPS)
    name = "blocks.0.attention.groups.0.query"
    broken = Transformer(found.model.config, {**found.model.tensors, name: found.model.tensors[name] * 1.5})
    rows = (((Fraction(1), Fraction(2), Fraction(3)), (Fraction(0), Fraction(1), Fraction(0))),)
    for model, good in ((found.model, True), (broken, False)):
        network = PointNetwork(*read_model(model.config.to_bytes(), tensors_to_bytes(model)))
        assert (finite(FiniteProblem(network, Table("", "continuous", rows))) < 1e-6) is good
