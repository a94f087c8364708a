"""The choice among ridge strengths against the oracle: an explicit solver for every strength, and the smallest loss."""

from __future__ import annotations

import numpy as np
import pytest

from certiformer.compiler.incontext import Request, context_learner, describe
from compiler.incontext.numpy_relu import run

STRENGTHS, FEATURES, ROWS, VALIDATION = (0.01, 0.1, 1.0, 10.0), 5, 24, 8
# The rows below have entries in [-1, 1]: mean x x^T is near 1/3, and its eigenvalues stay below 3/2 in every task.
FLAGS = {"features": FEATURES, "rows": ROWS, "validation": VALIDATION, "label_bound": 8.0, "spectrum": (0.0, 1.5)}


def tasks(count: int, seed: int = 0):
    """Contexts of different sizes with weak, middling and strong noise, so that every strength is the best somewhere."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        n = int(rng.integers(ROWS - 8, ROWS + 1))
        x = rng.uniform(-1, 1, (n, FEATURES))
        y = x @ rng.normal(size=FEATURES) * rng.choice([0.2, 1.0]) + rng.choice([0.02, 0.5, 1.5]) * rng.normal(size=n)
        yield x, np.clip(y, -8, 8), rng.uniform(-1, 1, FEATURES)


def oracle(x, y, query):
    """The strength with the smallest validation loss, and its prediction."""
    n, losses, predictions = len(x) - VALIDATION, [], []
    for strength in STRENGTHS:
        w = np.linalg.solve(x[:n].T @ x[:n] / n + strength * np.eye(FEATURES), x[:n].T @ y[:n] / n)
        losses.append(np.mean((x[n:] @ w - y[n:]) ** 2))
        predictions.append(query @ w)
    return int(np.argmin(losses)), predictions[int(np.argmin(losses))]


def compiled(layers: int):
    text = ",".join(map(str, STRENGTHS))
    return context_learner(describe(Request(learner="select", strength=text, layers=layers, margin=1e-9, **FLAGS)))


def agreement(learner, count: int, evaluate):
    from certiformer.compiler.incontext.selection import points, refuse

    contexts = list(tasks(count))
    for x, y, query in contexts:
        refuse(learner.learner, x, y, query[None])
    inputs = np.concatenate([points(learner.learner, x, y, query[None]) for x, y, query in contexts])
    outputs = evaluate(inputs)
    wanted = [oracle(*context) for context in contexts]
    same = np.array([int(np.argmax(row[1:5])) == best for row, (best, _) in zip(outputs, wanted, strict=True)])
    apart = np.array([abs(row[0] - value) for row, (_, value) in zip(outputs, wanted, strict=True)])
    return same, apart, [best for best, _ in wanted]


def test_the_oracle_strength_is_chosen():
    learner = compiled(150)
    same, apart, best = agreement(learner, 12, lambda inputs: run(learner, inputs))
    assert same.mean() >= 0.95 and len(set(best)) >= 3
    assert apart[same].max() < 1e-3  # what 150 steps leave of the smallest strength


@pytest.mark.slow
def test_the_oracle_strength_is_chosen_in_200_tasks():
    """The one model, not a stand-in."""
    learner = compiled(400)
    same, apart, best = agreement(learner, 200, lambda inputs: learner.model.evaluate(inputs))
    print(f"\n{same.sum()} of 200 choose the oracle strength; largest distance there {apart[same].max():.2e}")
    assert same.mean() >= 0.95 and len(set(best)) == 4
    assert apart[same].max() < 1e-6
