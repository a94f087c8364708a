"""Learners with ReLU attention on data: beside scikit-learn, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

from certiformer.axioms.in_context_relu import find
from certiformer.compiler.incontext import Request, context_learner, describe
from certiformer.compiler.incontext.registry import module_of
from certiformer.errors import BadInput
from compiler.incontext.numpy_relu import run

linear_model = pytest.importorskip("sklearn.linear_model", reason="scikit-learn is not installed")


def task(seed: int, rows: int = 30, features: int = 4, noise: float = 0.1):
    """Rows, answers, queries, and the eigenvalues of the mean of x x^T."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (rows, features))
    y = np.clip(x @ rng.normal(size=features) * 0.5 + noise * rng.normal(size=rows), -4, 4)
    values = np.linalg.eigvalsh(x.T @ x / rows)
    return x, y, rng.uniform(-1, 1, (5, features)), (0.99 * float(values[0]), 1.01 * float(values[-1]))


def outputs(word: str, x, y, queries, **flags):
    learner = context_learner(describe(Request(learner=word, features=x.shape[1], rows=32, **flags)))
    module = module_of(word)
    module.refuse(learner.learner, x, y, queries)
    return learner, run(learner, module.points(learner.learner, x, y, queries))


@pytest.mark.parametrize("seed", range(3))
def test_least_squares_beside_scikit_learn(seed):
    x, y, queries, spectrum = task(seed)
    learner, out = outputs("relu", x, y, queries, spectrum=spectrum, label_bound=4.0, tolerance=1e-11)
    reference = linear_model.LinearRegression(fit_intercept=False).fit(x, y)
    # What is left after the steps is at most 1e-11 of the weights, |w| < 4; scikit-learn solves to about 1e-14.
    assert np.abs(out[:, 0] - reference.predict(queries)).max() < 1e-10
    assert np.abs(out[:, 1:] - reference.coef_).max() < 1e-10
    assert len(learner.config.blocks) == 2


def test_a_column_of_ones_is_an_intercept():
    x, y, queries, _ = task(5)
    y = 0.5 * y + 1
    x[:, 0] = queries[:, 0] = 1
    values = np.linalg.eigvalsh(x.T @ x / len(x))
    spectrum = (0.99 * float(values[0]), 1.01 * float(values[-1]))
    _, out = outputs("relu", x, y, queries, spectrum=spectrum, label_bound=4.0, tolerance=1e-11)
    reference = linear_model.LinearRegression().fit(x[:, 1:], y)
    assert np.abs(out[:, 0] - reference.predict(queries[:, 1:])).max() < 1e-10


@pytest.mark.parametrize("rows", [2, 30])
def test_ridge_beside_scikit_learn(rows):
    x, y, queries, spectrum = task(1, rows)
    _, out = outputs("relu", x, y, queries, spectrum=spectrum, label_bound=4.0, strength="0.1", tolerance=1e-11)
    reference = linear_model.Ridge(alpha=0.1 * rows, fit_intercept=False).fit(x, y)
    assert np.abs(out[:, 0] - reference.predict(queries)).max() < 1e-10


FLAGS = {"ridge": {"strength": "0.1"}, "lasso": {"strength": "0.1"}, "select": {"strength": "0.1,1"}}


@pytest.mark.parametrize("rounding", [-1.75e-17, 1.75e-17, -2e-13, 0.0])
@pytest.mark.parametrize("word", ["gd", "ridge", "relu", "logistic", "lasso", "select"])
def test_a_spectrum_that_begins_at_zero_up_to_rounding_begins_at_zero(word, rounding):
    """Two rows of four features have an eigenvalue 0, of which a library gives any number near it."""
    flags = {"learner": word, "features": 4, "rows": 8, "layers": 3, **FLAGS.get(word, {})}
    exact = describe(Request(**flags, spectrum=(0.0, 1.25)))
    assert describe(Request(**flags, spectrum=(rounding, 1.25))) == exact
    if word == "ridge":
        assert exact.low == exact.strength  # no context has a smaller eigenvalue
        assert describe(Request(**flags, spectrum=(2e-3, 1.25))).low == 2e-3
    x = np.array([[0.5, 0.25, -0.5, 0.75], [1.0, -0.5, 0.25, 0.5]])
    if word in FLAGS and word != "select":
        y, queries = np.array([1.0, 0.0]), np.eye(4)
        compiled = context_learner(exact)
        module_of(word).refuse(exact, x, y, queries)
        assert np.isfinite(compiled.outputs(x, y, queries)).all()


@pytest.mark.parametrize("strength", [0.01, 0.1])
def test_lasso_beside_scikit_learn(strength):
    x, y, queries, spectrum = task(2)
    _, out = outputs(
        "lasso", x, y, queries, spectrum=spectrum, label_bound=4.0, strength=str(strength), tolerance=1e-11
    )
    reference = linear_model.Lasso(alpha=strength, fit_intercept=False, tol=1e-14, max_iter=100_000).fit(x, y)
    assert np.abs(out[:, 1:] - reference.coef_).max() < 1e-9
    # Weights that the Lasso leaves out are exactly 0 in the run, too.
    assert ((out[0, 1:] == 0) == (reference.coef_ == 0)).all()
    if strength == 0.1:
        assert (out[0, 1:] == 0).any()


def test_lasso_with_fewer_rows_than_features():
    x, y, queries, (_, high) = task(9, rows=3)
    _, out = outputs("lasso", x, y, queries, spectrum=(0.0, high), label_bound=4.0, strength="0.02", layers=1000)
    reference = linear_model.Lasso(alpha=0.02, fit_intercept=False, tol=1e-14, max_iter=100_000).fit(x, y)
    assert np.abs(out[:, 0] - reference.predict(queries)).max() < 1e-6  # 1000 steps without strong convexity


@pytest.mark.parametrize("error", [1e-2, 1e-3])
def test_logistic_regression_beside_scikit_learn(error):
    x, y, queries, (_, high) = task(3, noise=0.5)
    labels = (y > 0).astype(float)
    learner, out = outputs("logistic", x, labels, queries, spectrum=(0.0, high), strength="0.05", error=error)
    reference = linear_model.LogisticRegression(C=1 / (0.05 * len(x)), fit_intercept=False, tol=1e-12).fit(x, labels)
    found = find(learner.files())
    # The steps are within 1e-9 of the minimum, so the certificate speaks of scikit-learn's answer as well.
    assert np.abs(out[:, 0] - reference.predict_proba(queries)[:, 1]).max() <= float(found.bound) + 1e-6
    assert np.linalg.norm(out[0, 2:] - reference.coef_[0]) <= float(found.parameters["weights"]) + 1e-6
    assert (out[:, 1] > 0).tolist() == reference.predict(queries).astype(bool).tolist()


def test_data_that_the_type_does_not_have_are_remarked():
    learner = context_learner(describe(Request(learner="relu", features=1, strength="1", dtype="float32", layers=2)))
    third = np.array([[1 / 3]])
    assert "rounded to float32" in learner.remarks(third, third[0], third)[0]
    assert learner.remarks(np.array([[0.5]]), np.array([0.25]), np.array([[1.0]])) == []


def tables(**changes):
    x, y, queries, _ = task(6, rows=6, features=3)
    return {"x": x, "y": np.clip(y, -1, 1), "queries": queries, **changes}


def changed(column, value):
    x = tables()["x"]
    x[:, column] = value
    return x


LOST = r"the last 4 are for validation"


@pytest.mark.parametrize(
    "word, data, reason",
    [
        (
            "relu",
            tables(x=tables()["x"][:2], y=tables()["y"][:2]),
            "2 rows for 3 features, so the answer is not determined",
        ),
        ("logistic", tables(x=tables()["x"][:2], y=np.array([0.0, 1.0])), "2 rows for 3 features"),
        ("relu", tables(x=changed(1, 0.5)), "feature 2 is 0.5 in every row"),
        ("lasso", tables(x=changed(2, 0.0)), "feature 3 is 0 in every row"),
        ("select", tables(x=changed(0, 0.25)), "feature 1 is 0.25 in every row"),
        ("relu", tables(x=changed((0, 1), 1.0)), "features 1 and 2 are both 1"),
        ("relu", tables(x=changed(2, tables()["x"][:, 0])), "depend on each other"),
        ("relu", tables(x=changed(0, np.arange(6.0))), r"the features reach 5 in size, .* compile with --bound 5"),
        ("lasso", tables(queries=np.full((1, 3), 2.0)), "the queries reach 2"),
        ("select", tables(y=np.arange(6.0)), "the answers reach 5"),
        ("logistic", tables(), "the labels of logistic regression are 0 and 1, but row 1 has"),
        ("logistic", tables(y=np.array([0, 1, 2, 0, 1, 0.0])), "row 3 has 2"),
        ("relu", tables(x=changed(0, np.nan)), "not finite"),
        ("select", tables(queries=np.full((1, 3), np.inf)), "not finite"),
        ("select", tables(x=tables()["x"][:4], y=tables()["y"][:4]), LOST),
    ],
)
def test_contexts_that_cannot_be_learned_from(word, data, reason):
    flags = {"lasso": {"strength": "0.1"}, "select": {"validation": 4, "rows": 12}}.get(word, {})
    learner = context_learner(describe(Request(learner=word, features=3, layers=2, **flags)))
    with pytest.raises(BadInput, match=reason):
        learner.outputs(data["x"], data["y"], data["queries"])


@pytest.mark.parametrize("word", ["relu", "lasso", "select"])
def test_a_spectrum_that_does_not_hold_is_refused(word):
    data = tables()
    flags = {"lasso": {"strength": "0.1"}, "select": {"validation": 2}}.get(word, {})
    learner = context_learner(describe(Request(learner=word, features=3, layers=2, spectrum=(0.0, 0.01), **flags)))
    with pytest.raises(BadInput, match=r"the largest eigenvalue of the mean of x x\^T is"):
        learner.outputs(data["x"], data["y"], data["queries"])


@pytest.mark.parametrize(
    "flags, reason",
    [
        ({"learner": "relu", "margin": 0.1}, "--margin is not for the learner relu"),
        ({"learner": "lasso"}, "the learner lasso needs --strength"),
        ({"learner": "lasso", "strength": "0.1,0.2"}, "has one --strength, not 2"),
        ({"learner": "lasso", "strength": "-1"}, "positive number"),
        ({"learner": "logistic", "label_bound": 2.0}, "leave out --label-bound"),
        ({"learner": "logistic", "error": 0.5}, "--error is between"),
        ({"learner": "select", "strength": "1"}, "at least two strengths"),
        ({"learner": "select", "strength": "1,1"}, "the same number twice"),
        ({"learner": "select", "validation": 100}, "the number of rows for validation is a whole number from 1 to 99"),
        ({"learner": "select", "margin": 0.0}, "--margin is between"),
        ({"learner": "relu", "step": 3.0}, "a step of 3 is too long where the curvature reaches 2"),
        ({"learner": "relu", "step": -1.0}, "--step is a positive number"),
        ({"learner": "relu", "spectrum": (2.0, 1.0)}, "--spectrum LOW HIGH has 0 <= LOW <= HIGH"),
        ({"learner": "relu", "spectrum": (-1e-3, 1.0)}, "--spectrum LOW HIGH has 0 <= LOW <= HIGH"),
        ({"learner": "gd", "spectrum": (-1e-3, 1.0)}, "--spectrum is LOW HIGH with 0 <= LOW < HIGH"),
        ({"learner": "gd", "spectrum": (-1e-17, 1.0), "schedule": "chebyshev"}, "need a LOW above 0"),
        ({"learner": "relu", "layers": 0}, "the number of steps is a whole number from 1 to 1,000"),
        ({"learner": "relu", "tolerance": 1e-9}, "no number of steps are enough"),
        ({"learner": "relu", "tolerance": 1e-9, "strength": "0.001"}, "at most 1,000 are made"),
        ({"learner": "relu", "features": 0}, "the number of features"),
        ({"learner": "select", "bound": -1.0}, "the bound of the features is a number above 0"),
        ({"learner": "lasso", "strength": "1", "label_bound": float("nan")}, "label_bound is a number above 0"),
        ({"learner": "relu", "step": 1e-60, "dtype": "float32"}, "rate is a number above 0"),
    ],
)
def test_flags_that_make_no_sense(flags, reason):
    with pytest.raises(BadInput, match=reason):
        describe(Request(**{"features": 2, **flags}))
