"""Affine recurrences, continued by ridge regression in the context."""

from __future__ import annotations

import numpy as np
import pytest

from certiformer.compiler.incontext import Request, context_learner, describe
from certiformer.compiler.incontext.gradient import explicit
from certiformer.compiler.incontext.recurrence import predict_next, rows_of_sequence
from certiformer.errors import BadInput
from compiler.incontext.exact_linear import forward, tokens_of


def test_the_next_term_is_found_to_the_bias_of_the_strength():
    """x' = 0.8 x - 0.3: with strength s the prediction is off by at most s |q| |w| / least eigenvalue."""
    strength = 1e-6
    learner = describe(Request(learner="ridge", features=2, rows=8, strength=str(strength), tolerance=1.0))
    compiled = context_learner(learner)
    terms = [1.0]
    for _ in range(7):
        terms.append(0.8 * terms[-1] - 0.3)
    x, y, query = rows_of_sequence(np.array(terms))
    least = np.linalg.eigvalsh(x.T @ x / len(x))[0]
    allowed = strength * np.linalg.norm(query) * np.hypot(0.8, 0.3) / least
    predicted = float(forward(compiled, tokens_of(learner, x, y, query)))
    assert abs(predicted - (0.8 * terms[-1] - 0.3)) <= 1.01 * allowed < 1e-3


def test_several_terms_of_second_order_in_the_one_model():
    compiled = context_learner(
        describe(
            Request(learner="ridge", features=3, rows=6, strength="1e-3", schedule="constant", layers=400, looped=True)
        )
    )
    terms = [0.1, 0.9]
    for _ in range(10):
        terms.append(0.5 * terms[-1] - 0.4 * terms[-2] + 0.2)
    found = predict_next(compiled, np.array(terms[:9]), 2)
    x, y, query = rows_of_sequence(np.array(terms[:9]), 2)
    wanted = explicit(compiled.learner, x[-6:], y[-6:], query[None])[0]
    assert abs(found[0] - wanted) < 1e-10  # numbers of size 1, 400 steps that do not amplify errors
    assert len(found) == 2 and abs(found[0] - terms[9]) < 0.05


@pytest.mark.parametrize(("terms", "order"), [([1.0], 1), ([1.0, 2.0], 2), ([1.0, 2.0], 0), ([[[1.0]], [[2.0]]], 1)])
def test_too_short_sequences_are_refused(terms, order):
    with pytest.raises(BadInput, match="needs a sequence"):
        rows_of_sequence(np.array(terms), order)


def test_vectors_are_continued_coordinate_by_coordinate_to_the_bias_of_the_strength():
    """x' = M x + b in the plane, and as a recurrence of second order: every coordinate to its own bound."""
    matrix, shift, strength = np.array([[0.6, -0.7], [0.5, 0.4]]), np.array([0.2, -0.1]), 1e-6
    states = [np.array([1.0, 0.5])]
    for _ in range(8):
        states.append(matrix @ states[-1] + shift)
    terms = np.array(states)
    request = Request(learner="ridge", features=3, rows=8, strength=str(strength), tolerance=1.0)
    compiled = context_learner(describe(request))
    x, y, query = rows_of_sequence(terms)
    least = np.linalg.eigvalsh(x.T @ x / len(x))[0]
    wanted, (found,) = matrix @ terms[-1] + shift, predict_next(compiled, terms)
    for place in range(2):
        assert y[:, place].tolist() == terms[1:, place].tolist()
        allowed = strength * np.linalg.norm(query) * np.linalg.norm([*matrix[place], shift[place]]) / least
        assert abs(found[place] - wanted[place]) <= 1.01 * allowed < 1e-2
    swapped = predict_next(compiled, terms[:, ::-1])[0]  # a coordinate does not care about its number
    np.testing.assert_allclose(swapped[::-1], found, atol=1e-6)
    with pytest.raises(BadInput, match="whole number of terms"):
        predict_next(compiled, np.zeros((9, 4)))
