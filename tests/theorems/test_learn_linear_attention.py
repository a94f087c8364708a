"""Linear attention learned by least squares: the function is found, and what is certified is true."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from certiformer.compiler.incontext.learn_linear_attention import (
    cubic_features,
    heads_model,
    identifiable,
    learn,
    proved_gap,
)
from certiformer.errors import BadInput
from certiformer.model.transformer import Transformer


def attention(tokens: np.ndarray, values: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """sum_h sum_j (z_j . Q_h z) V_h z_j at the last token, by loops over heads."""
    found = np.zeros((len(tokens), values.shape[1]))
    for value, query in zip(values, queries, strict=True):
        scores = np.einsum("ntd,nd->nt", tokens, tokens[:, -1] @ query.T)
        found += np.einsum("nt,ntd->nd", scores, tokens) @ value.T
    return found


def test_the_heads_are_found_and_run_in_the_one_model():
    rng = np.random.default_rng(0)
    values, queries = rng.normal(size=(2, 3, 4)), rng.normal(size=(2, 4, 4))
    examples, fresh = rng.normal(size=(120, 5, 4)), rng.normal(size=(20, 5, 4))
    learned = learn(examples, attention(examples, values, queries))
    assert learned.heads <= 16 and learned.residual < 1e-10
    wanted = attention(fresh, values, queries)
    found = Transformer(learned.config, learned.tensors).evaluate(fresh.reshape(20, -1))
    # 40 unknowns with a condition number near 30, outputs near 100: twelve digits are left.
    assert np.abs(found - wanted).max() < 1e-10
    config, tensors = heads_model(5, values, queries)
    assert np.abs(Transformer(config, tensors).evaluate(fresh.reshape(20, -1)) - wanted).max() < 1e-12


def test_the_rank_is_that_of_the_symmetric_features():
    """d = 4: 40 of 64 features, as the Gram matrix is symmetric; the 40th example is the one that decides."""
    rng = np.random.default_rng(1)
    examples = rng.normal(size=(60, 6, 4))
    assert cubic_features(examples).shape == (60, 40)
    assert [identifiable(examples[:count]) for count in (39, 40, 60)] == [False, True, True]


def test_the_rank_is_exact_where_floating_point_cannot_tell():
    rng = np.random.default_rng(2)
    examples = rng.normal(size=(30, 3, 2))
    examples[:, :, 1] = examples[:, :, 0] * 2.0**-30  # dependent for all examples but the last few
    examples[-4:, :, 1] += 2.0**-60 * rng.normal(size=(4, 3))
    features = cubic_features(examples)
    assert np.linalg.matrix_rank(features) < features.shape[1]
    exact = [[Fraction(x) for x in row] for row in exact_features(examples)]
    assert identifiable(examples) == (rank(exact) == features.shape[1])
    assert not identifiable(examples[:-4])


def exact_features(examples: np.ndarray) -> list[list[Fraction]]:
    rows = []
    for example in examples.tolist():
        z = [[Fraction(x) for x in token] for token in example]
        gram = [sum(t[j] * t[k] for t in z) for j in range(len(z[0])) for k in range(j, len(z[0]))]
        rows.append([g * x for g in gram for x in z[-1]])
    return rows


def rank(rows: list[list[Fraction]]) -> int:
    found, rows = 0, [list(row) for row in rows]
    for column in range(len(rows[0])):
        pivot = next((i for i in range(found, len(rows)) if rows[i][column]), None)
        if pivot is None:
            continue
        rows[found], rows[pivot] = rows[pivot], rows[found]
        for i in range(found + 1, len(rows)):
            factor = rows[i][column] / rows[found][column]
            rows[i] = [a - factor * b for a, b in zip(rows[i], rows[found], strict=True)]
        found += 1
    return found


def test_the_gap_is_below_the_least_eigenvalue():
    rng = np.random.default_rng(3)
    examples = rng.normal(size=(40, 4, 2))
    features = cubic_features(examples)
    least = np.linalg.eigvalsh(features.T @ features / 40)[0]
    gap = proved_gap(examples)
    assert 0.8 * least < gap < least
    examples[:, :, 1] = 0.0
    assert proved_gap(examples) == 0.0 and not identifiable(examples)


def test_examples_that_do_not_determine_the_function_have_many_minimisers():
    """The negative control of (2): without full rank two different functions fit the same examples exactly."""
    rng = np.random.default_rng(4)
    examples = rng.normal(size=(30, 4, 2))
    examples[:, :, 1] = examples[:, :, 0]
    values, queries = rng.normal(size=(1, 1, 2)), rng.normal(size=(1, 2, 2))
    other = values[:, :, ::-1]
    outputs = attention(examples, values, queries)
    assert not identifiable(examples)
    assert np.abs(outputs - attention(examples, other, queries)).max() < 1e-12
    fresh = rng.normal(size=(5, 4, 2))
    assert np.abs(attention(fresh, values, queries) - attention(fresh, other, queries)).max() > 0.1


@pytest.mark.parametrize("tokens", [np.zeros((3, 2)), np.zeros((0, 2, 2)), np.full((3, 2, 2), np.nan)])
def test_bad_examples_are_refused(tokens):
    for use in (identifiable, proved_gap, lambda t: learn(t, np.zeros((3, 1)))):
        with pytest.raises(BadInput, match="examples are finite numbers"):
            use(tokens)
    with pytest.raises(BadInput, match="one vector of finite outputs"):
        learn(np.ones((3, 2, 2)), np.zeros((2, 1)))
