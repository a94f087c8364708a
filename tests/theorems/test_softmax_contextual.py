"""One softmax head as a contextual mapping: gaps proved in balls, seen in the run, and refused where they are lost."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, combinations_with_replacement, pairwise

import numpy as np
import pytest
from flint import arb, ctx

from certiformer.errors import BadInput
from certiformer.expressivity.hardmax_not_contextual import twins
from certiformer.expressivity.softmax_contextual import (
    _boltzmann,
    _proved_gap,
    context,
    contextual_head,
    head,
    lemma_gap,
    token_numbers,
)
from certiformer.model import Transformer

HEAD = "blocks.0.attention.groups.0"


def subsets(length, levels, repeated=False):
    choose = combinations_with_replacement if repeated else combinations
    return np.array(list(choose(np.linspace(0.5, 1.5, levels), length)))[:, :, None]


@pytest.mark.parametrize(
    ("sequences", "contexts", "least"),
    [
        (subsets(2, 5), 20, 3e-3),
        (subsets(3, 6), 60, 3e-4),
        (subsets(5, 8), 280, 6e-6),
        (subsets(3, 6, repeated=True), 126, 9e-5),  # tokens may repeat: 56 multisets, 126 different contexts
        (np.random.default_rng(0).uniform(-1, 1, (100, 4, 3)), 400, 1.8e-4),
    ],
    ids=["2of5", "3of6", "5of8", "3of6-repeated", "random"],
)
def test_all_contexts_have_different_numbers(sequences, contexts, least):
    found = contextual_head(sequences)
    assert len(found.numbers) == contexts and found.gap > least
    # Every pair, not only neighbours: the sorting is not trusted here.
    numbers = list(found.numbers.values())
    with ctx.workprec(400):
        assert contexts > 100 or all(abs(a - b) >= found.gap for a, b in combinations(numbers, 2))
    # The run: the same numbers up to rounding, far below the gap.
    run = found.model.evaluate(sequences.reshape(len(sequences), -1))
    exact = [[float(found.numbers[context(s, j)].mid()) for j in range(len(s))] for s in sequences]
    assert np.abs(run - exact).max() < 2.0**-44 < float(found.gap) / 2


def test_numbers_do_not_depend_on_the_order():
    sequences = subsets(4, 6)
    found = contextual_head(np.concatenate([sequences, sequences[:, ::-1]]))
    assert len(found.numbers) == 4 * 15
    (forward,) = [token_numbers(found.model, sequences[0])]
    backward = token_numbers(found.model, sequences[0][::-1])
    assert all(a.overlaps(b) for a, b in zip(forward, reversed(backward), strict=True))


def test_the_twins_that_no_hard_attention_tells_apart():
    found = contextual_head(np.array(twins(6))[:, :, None] + 1.0)
    assert len(found.numbers) == 12 and found.gap > 9e-4


@pytest.mark.parametrize(("length", "levels", "gap"), [(2, 5, 2e-5), (3, 6, 1.5e-8)])
def test_the_lemma_holds_at_its_own_scale_and_promises_little(length, levels, gap):
    """All subsets of scores that are just more than 2 log n + 3 apart, as the lemma asks."""
    with ctx.workprec(200):
        step = 2 * arb(length).log() + 3 + arb(2) ** -20
        scores = [(k - arb(levels - 1) / 2) * step for k in range(levels)]
        means = sorted((_boltzmann(list(s), list(s)) for s in combinations(scores, length)), key=lambda x: x.mid())
        gaps = [(b - a).lower() for a, b in pairwise(means)]
        largest = (arb(levels - 1) / 2 * step).upper()
        promised = lemma_gap(length, Fraction(float(largest)) + Fraction(1, 2**20))
        assert all(g > promised for g in gaps)
        assert gap < min(gaps) < 2 * gap and promised < min(gaps) / 1000


# --- negative controls ------------------------------------------------------------------------------------------------


def gap_of(model, sequences):
    numbers = {context(s, j): n for s in sequences for j, n in enumerate(token_numbers(model, s))}
    return _proved_gap(list(numbers.values()))


@pytest.mark.parametrize("part", ["query", "output"])
def test_without_scores_or_output_contexts_are_confused(part):
    """Scores 0 leave the mean, which two sets share; output 0 leaves the token."""
    sequences = subsets(3, 6)
    found = contextual_head(sequences)
    assert gap_of(found.model, sequences) > 3e-4
    tensors = {**found.model.tensors, f"{HEAD}.{part}": 0 * found.model.tensors[f"{HEAD}.{part}"]}
    with pytest.raises(BadInput, match="300 bits or more"):
        gap_of(Transformer(found.model.config, tensors), sequences)


def test_a_scale_that_is_too_large_is_not_certified():
    """The hard limit: at a huge scale the numbers of different contexts are closer than the precision of the balls."""
    sequences = subsets(4, 7)
    with pytest.raises(BadInput, match="bits or more"):
        gap_of(head(np.ones(1), 4000.0, 2.0**-5, 4), sequences)


def test_too_close_tokens_are_refused_with_the_bits():
    close = np.array([[1.0, 2.0], [1.0, 2.0 + 2.0**-44]])[:, :, None]
    with pytest.raises(
        BadInput, match=r"separate these 4 contexts only with numbers of \d\d bits or more; float64 carries 42"
    ):
        contextual_head(close)
    contextual_head(np.array([[1.0, 2.0], [1.0, 2.0 + 2.0**-14]])[:, :, None])


@pytest.mark.parametrize(
    ("sequences", "reason"),
    [
        (np.zeros((1, 2, 1)), "not 0"),
        (np.array([[[1.0], [np.nan]]]), "finite"),
        (np.ones((2, 2)), "shape"),
        (np.ones((0, 2, 1)), "shape"),
        (np.ones((20_001, 1, 1)), "more than 20,000"),
    ],
)
def test_what_are_no_sequences(sequences, reason):
    with pytest.raises(BadInput, match=reason):
        contextual_head(sequences)


def test_one_context_alone():
    found = contextual_head(np.full((3, 2, 2), 0.5))
    assert len(found.numbers) == 1
