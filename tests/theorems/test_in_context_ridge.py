"""In-context ridge regression: against scikit-learn, against exact fractions, and the bounds on eigenvalues."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from flint import arb, ctx, fmpq

from certiformer.axioms.in_context_gradient import LearnerRun, run_bound, spectrum
from certiformer.axioms.in_context_gradient import find as find_gradient
from certiformer.axioms.in_context_ridge import chebyshev_bound, contraction, find, ridge_bounds
from certiformer.compiler.incontext import Request, context_learner, describe
from certiformer.compiler.incontext.compiled import ContextLearner
from certiformer.compiler.incontext.schedule import chebyshev, constant, lebedev, whitening
from certiformer.errors import BadInput
from certiformer.kernel import Refused
from certiformer.kernel.balls import decimal, working_precision
from certiformer.kernel.files import LEARNER
from certiformer.kernel.rounding import Format
from compiler.incontext.exact_linear import contexts, descent, forward, fractions, tokens_of


def made(**flags) -> ContextLearner:
    flags = {"learner": "ridge", "features": 2, "rows": 5, "strength": "0.25", **flags}
    return context_learner(describe(Request(**flags)))


def context_with_spectrum(rng, rows: int, low: float, high: float, features: int, strength: float):
    """Rows whose matrix mean x x^T + strength has eigenvalues from `low` to `high`, both ends met."""
    left = np.linalg.qr(rng.normal(size=(rows, features)))[0]
    right = np.linalg.qr(rng.normal(size=(features, features)))[0]
    values = np.concatenate([[low, high], rng.uniform(low, high, features - 2)])
    x = np.sqrt(rows) * left * np.sqrt(values - strength) @ right
    return x, rng.uniform(-1, 1, rows), rng.uniform(-1, 1, (3, features))


@pytest.mark.parametrize(("schedule", "reached"), [("whitening", 1e-8), ("chebyshev", 1e-4)])
def test_scikit_learn_at_condition_number_100(schedule, reached):
    """1e-8 in at most 64 layers: with whitening 7 are enough. Chebyshev's 64 steps guarantee 5.3e-6 of the weights."""
    linear_model = pytest.importorskip("sklearn.linear_model", reason="scikit-learn is not installed")
    rng, strength, features = np.random.default_rng(0), 0.005, 6
    layers = 64 if schedule == "chebyshev" else None
    compiled = made(
        features=features, rows=40, strength=str(strength), spectrum=(0.01, 1.0), bound=5.0, schedule=schedule,
        layers=layers, looped=False,
    )  # fmt: skip
    assert compiled.learner.layers == (7 if layers is None else 64)
    worst = 0.0
    for rows in (40, 11):
        x, y, queries = context_with_spectrum(rng, rows, 0.0101, 0.99, features, strength)
        assert np.abs(x).max() <= 5
        ridge = linear_model.Ridge(alpha=rows * strength, fit_intercept=False, solver="svd").fit(x, y)
        if layers is None:
            predicted = compiled.predict(x, y, queries)
        else:  # 64 layers take long to compile; the stored weights in NumPy say the same
            predicted = np.array([forward(compiled, tokens_of(compiled.learner, x, y, q)) for q in queries])
        worst = max(worst, np.abs(predicted - ridge.predict(queries)).max())
    assert worst <= reached
    if schedule == "whitening":
        assert worst <= 1e-12


@pytest.mark.parametrize("flags", [{}, {"schedule": "chebyshev", "layers": 4}, {"schedule": "constant", "layers": 3}])
def test_stored_weights_are_the_described_steps_in_exact_arithmetic(flags):
    compiled = made(**flags) if flags else made(layers=3)
    left, distance, _ = ridge_bounds(compiled.learner)
    for x, y, query in contexts(compiled.learner, 0, 8):
        steps = descent(compiled.learner, x, y, query)
        assert forward(compiled, tokens_of(compiled.learner, *map(fractions, (x, y, query)))) == steps
        missed = abs(steps - exact_ridge(compiled.learner.strength, x, y, query))
        assert missed <= Fraction(float(distance.upper()))
    assert left < 1


def exact_ridge(strength: float | Fraction, x: np.ndarray, y: np.ndarray, query: np.ndarray) -> Fraction:
    """Ridge regression with two features by Cramer's rule."""
    x, y, query = fractions(x), fractions(y), fractions(query)
    (a, b), (_, d) = x.T @ x / len(x) + Fraction(strength) * fractions(np.eye(2))
    u, v = x.T @ y / len(x)
    return (query[0] * (d * u - b * v) + query[1] * (a * v - b * u)) / (a * d - b * b)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("flags", [{}, {"strength": "0.02"}, {"schedule": "chebyshev", "layers": 16}])
def test_runs_stay_within_the_proved_bound(flags, dtype):
    compiled = made(dtype=dtype, **flags)
    learner = compiled.learner
    bound, worst = float(run_bound(learner)), 0.0
    with precise():
        for x, y, query in contexts(learner, 1, 40):
            small = [part.astype(dtype) for part in (x, y, query)]
            run = forward(compiled, tokens_of(learner, *small))
            real = descent(learner, *(part.astype(float) for part in small), number=arb)
            worst = max(worst, float(abs(arb(float(run)) - real).upper()))
    # Condition numbers enter the bound, and these contexts do not meet the worst of them.
    assert 0 < worst <= bound < 1e8 * worst


@contextmanager
def precise():
    """Balls of 400 bits, so that their radius never matters."""
    before, ctx.prec = ctx.prec, 400
    try:
        yield
    finally:
        ctx.prec = before


def test_errors_of_features_and_keys_go_through_whitening_as_bounded():
    """X - beta (X K^T) X with errors E of X and F of K in the directions of singular vectors, one at a time and together."""
    learner = made(strength="0.1", spectrum=(0.1, 1.0), layers=3).learner
    form = Format("exact", 400, 500, -4000, 4000)
    run = LearnerRun(learner, form, spectrum(learner.steps, learner.whiten, 0.1, 1.0))
    beta, size = learner.whiten[0], 1e-6
    x = np.diag(np.sqrt([0.1, 1.0]))
    true = x - beta * x @ x.T @ x
    unit = [np.outer(a, b) * size for a in np.eye(2) for b in np.eye(2)]
    for e, f in product([np.zeros((2, 2)), *unit, *(-u for u in unit)], repeat=2):
        errors = (*(arb(float(np.linalg.norm(part, 2))) for part in (e, f)), arb(0))
        found, _ = run.whitened(0, arb(beta), errors, arb(1))
        matrix = (x + e) @ (x + f).T
        missed = [
            np.linalg.norm(part - true, 2)
            for part in (x + e - beta * matrix @ (x + e), x + f - beta * matrix @ (x + f))
        ]
        assert missed[0] <= float(found[0]) * (1 + 1e-9) and missed[1] <= float(found[1]) * (1 + 1e-9)
    both, _ = run.whitened(0, arb(beta), (arb(size), arb(size), arb(0)), arb(1))
    # beta is near 0.7 here, so errors grow by at most 1 + 2 * 0.7 and never by more.
    assert 1.5 * size < float(both[0]) < 2.6 * size
    query, reach = run.whitened(0, arb(beta), (arb(0), arb(0), arb(size)), arb(2))
    assert float(query[2]) == pytest.approx((1 - beta * 0.1) * size, rel=1e-6)
    assert float(reach) == pytest.approx(2 * (1 - beta * 0.1), rel=1e-6)
    shaken, _ = run.whitened(0, arb(beta), (arb(size), arb(0), arb(0)), arb(2))
    assert float(shaken[2]) == pytest.approx(beta * size * 2, rel=1e-6)


@pytest.mark.parametrize("layers", [1, 2, 5, 16, 64])
@pytest.mark.parametrize(("low", "high"), [(0.01, 1.0), (0.3, 2.0), (1e-4, 1.0)])
def test_chebyshev_products_are_below_the_closed_bound(low, high, layers):
    working_precision()
    steps = chebyshev(low, high, layers)
    bound = chebyshev_bound(steps, low, high)
    assert bound is not None
    sizes = []
    for i in range(0, 501):
        t = arb(low) + (arb(high) - arb(low)) * fmpq(i, 500)
        product = arb(1)
        for step in steps:
            product = product * (1 - arb(step) * t)
        sizes.append(abs(product))
        assert abs(product) <= bound
    # Both ends are extrema: the bound is met there up to the rounding of the steps.
    assert sizes[0] > bound * (1 - 1e-8) and sizes[-1] > bound * (1 - 1e-8)
    root = (high / low) ** 0.5
    rho = (root - 1) / (root + 1)
    assert float(bound) == pytest.approx(2 * rho**layers / (1 + rho ** (2 * layers)), rel=1e-9)


def test_other_steps_are_not_chebyshev():
    assert chebyshev_bound(constant(0.01, 1.0, 8), 0.01, 1.0) is None
    steps = chebyshev(0.01, 1.0, 8)
    assert chebyshev_bound((*steps[:-1], steps[-1] * 1.1), 0.01, 1.0) is None


def test_the_bounds_over_cells_hold_every_eigenvalue():
    working_precision()
    for steps, betas, low, high in (
        (chebyshev(0.02, 1.0, 8), (0.0,) * 8, 0.02, 1.0),
        (*whitening(0.02, 1.0, 6), 0.02, 1.0),
        (constant(0.0, 2.0, 5), (0.0,) * 5, 0.0, 2.0),
        ((1.7,) * 4, (0.0,) * 4, 0.0, 2.0),
    ):
        found = spectrum(steps, betas, low, high)
        with precise():
            hold_every_eigenvalue(found, steps, betas, low, high)


def hold_every_eigenvalue(found, steps, betas, low, high):
    for t in np.linspace(low, high, 37):
        values = [arb(float(t))]
        for beta in betas:
            values.append(values[-1] * (1 - arb(beta) * values[-1]) ** 2)
        for i in range(len(steps)):
            product, reach = arb(1), arb(0)
            for k in range(i, len(steps)):
                assert found.lowest[k] <= values[k] and values[k] <= found.highest[k]
                share = values[k] / values[0] if t > 0 else arb(1)
                reach = reach + arb(steps[k]) * share * product
                product = product * (1 - arb(steps[k]) * values[k])
                assert abs(product) <= found.at(i, k + 1)[0]
                assert abs(reach) * arb(float(t)).sqrt() <= found.at(i, k + 1)[1] * (1 + arb("1e-25"))
            if i == 0:
                assert abs(product) <= found.left


def test_whitening_is_twice_exponential():
    left = [contraction(made(strength="0.01", spectrum=(0.01, 1.0), layers=k).learner) for k in range(3, 8)]
    logs = [-float(x.log()) for x in left]
    assert all(later > 1.7 * earlier for earlier, later in zip(logs[1:], logs[2:], strict=False))
    assert left[4] < 1e-16


def test_the_order_of_lebedev_keeps_products_small():
    """In increasing order the same steps multiply errors by more than a million times as much on the way."""
    steps = chebyshev(0.01, 1.0, 32)
    sizes = [
        max(float(spectrum(order, (0.0,) * 32, 0.01, 1.0).at(i, k)[0]) for i in range(32) for k in range(i, 33))
        for order in (steps, tuple(sorted(steps, reverse=True)))
    ]
    assert sizes[0] < 2000 and sizes[1] > 1e6 * sizes[0]
    for layers in (1, 2, 3, 7, 12, 64):
        assert sorted(lebedev(layers)) == list(range(1, layers + 1))


@pytest.mark.parametrize("change", [1.2, 1e9])
def test_whitening_that_may_lose_a_direction_is_refused(change):
    compiled = made(layers=3)
    learner = replace(compiled.learner, whiten=(compiled.learner.whiten[0] * 1.5 * change, 0.1, 0.0))
    with pytest.raises(Refused, match="may lose a direction"):
        contraction(learner)


def test_no_changed_weight_passes():
    compiled = made(layers=2)
    find(compiled.files())
    for name, tensor in compiled.tensors.items():
        for place in range(tensor.size):
            tensors = {n: t.copy() for n, t in compiled.tensors.items()}
            tensors[name].flat[place] = np.nextafter(tensors[name].flat[place], 9.0)
            with pytest.raises(Refused):
                find(ContextLearner(compiled.learner, compiled.config, tensors).files())


def test_no_changed_description_passes():
    compiled = made()
    learner = compiled.learner
    for other in (
        replace(learner, strength=0.26),
        replace(learner, low=0.1, tolerance=1e-9),
        replace(learner, low=1e-9),
        replace(learner, whiten=(0.0,) * learner.layers),
        replace(learner, steps=(learner.steps[0] * 1.5, *learner.steps[1:])),
        replace(learner, learner="gd", strength=0.0, low=0.0),
        replace(learner, label_bound=1e9),
    ):
        with pytest.raises(Refused):
            find({**compiled.files(), LEARNER: other.to_text().encode()})


def test_an_error_as_large_as_the_answers_is_not_certified():
    compiled = made(strength="1e-8", features=5)
    assert compiled.learner.tolerance == 1.0
    with pytest.raises(Refused, match="above the tolerance 1"):
        find(compiled.files())


def test_the_theorem_on_gradient_descent_does_not_speak_of_ridge_regression():
    for compiled in (made(layers=2), made(schedule="constant", layers=1)):
        with pytest.raises(Refused, match="not that of gradient descent"):
            find_gradient(compiled.files())


def test_the_whole_box_is_covered_by_default():
    for dtype in ("float64", "float32"):
        for strength in ("0.1", "0.3", "1e-3"):
            learner = made(strength=strength, bound=0.7, dtype=dtype, tolerance=1.0).learner
            assert learner.everywhere and "eigenvalues" not in learner.sentence
    assert not replace(learner, high=learner.high * 0.99).everywhere
    assert not replace(learner, low=learner.low * 1.01).everywhere


def test_contexts_that_are_not_covered_are_refused():
    compiled = made(spectrum=(0.3, 0.5))
    x, y = np.array([[0.1, 0.0], [0.0, 0.1]]), np.array([1.0, -1.0])
    for context, answers, query, sentence in (
        (x, y, x, "the eigenvalues of this context are 0.255 to 0.255, but this learner was compiled for 0.3 to 0.5"),
        (3 * x / 0.1, y, x, "the features reach 3 in size, but this learner was compiled for 1"),
        (x, 2 * y, x, "the answers reach 2 in size"),
        (x, y, 40 * x, "the queries reach 4 in size"),
    ):
        with pytest.raises(BadInput, match=sentence):
            compiled.predict(context, answers, query)


def test_fewer_rows_than_features_are_ridge_regression_too():
    compiled = made(features=3, rows=4)
    x, y, query = np.array([[0.5, -0.25, 1.0]]), np.array([0.75]), np.array([[1.0, 0.5, -0.5]])
    weights = np.linalg.solve(x.T @ x + 0.25 * np.eye(3), x.T @ y)
    # Both sides round; numbers are at most 1 and the condition number is below 20.
    assert forward(compiled, tokens_of(compiled.learner, x, y, query[0])) == pytest.approx(
        (query @ weights)[0], abs=1e-13
    )


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"strength": None}, "needs --strength"),
        ({"strength": "0"}, "--strength is a positive number"),
        ({"strength": "0.1,1"}, "the learner select takes several"),
        ({"spectrum": (0.1, 0.2)}, "at least the strength 0.25"),
        ({"spectrum": (2.0, 1.0)}, "--spectrum is LOW HIGH"),
        ({"spectrum": (-1e-3, 1.0)}, "--spectrum is LOW HIGH"),
        ({"spectrum": (float("nan"), 1.0)}, "--spectrum is LOW HIGH"),
        ({"layers": 0}, "--layers is a positive number"),
        ({"step": 0.5, "schedule": "chebyshev"}, "--step is for constant"),
        ({"step": -1.0}, "--step is a positive number"),
        ({"looped": True, "schedule": "whitening"}, "a looped block makes the same step"),
        ({"attention": "softmax-pair", "schedule": "whitening"}, "whitening needs linear attention"),
        ({"margin": 0.1}, "--margin is not for the learner ridge"),
        ({"bound": float("nan")}, "--bound is a number from 1e-30 to 1e"),
        ({"bound": 1e200}, "--bound is a number from 1e-30 to 1e"),
        ({"features": 0}, "the number of features"),
    ],
)
def test_impossible_requests_are_refused(flags, message):
    with pytest.raises(BadInput, match=message):
        made(**flags)


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
@pytest.mark.parametrize("strength", ["0.1", "0.3", "0.0123"])
def test_the_claim_is_about_the_strength_that_was_asked_for(dtype, strength):
    """The registers hold another number, and what that changes is within the proved distance, in exact fractions."""
    compiled = made(strength=strength, dtype=dtype, rows=3, layers=3, tolerance=1.0)
    held, asked = float(compiled.tensors["registers"][0, 0]), Fraction(strength)
    assert Fraction(held) != asked and f"of strength {strength} predicts" in compiled.learner.sentence
    left, distance, _ = ridge_bounds(compiled.learner, held=held)
    for x, y, query in contexts(compiled.learner, 1, 8):
        predicted = forward(compiled, tokens_of(compiled.learner, *map(fractions, (x, y, query))))
        missed = abs(predicted - exact_ridge(asked, x, y, query))
        assert missed <= Fraction(decimal(distance, up=True))
    assert left > 0


def test_a_strength_that_is_too_far_from_the_claim_is_not_certified():
    """The control: all registers hold another strength than the claim's, and only a tolerance that covers it passes."""
    compiled = made(strength="0.25")
    for factor, fine in ((1 + 2.0**-50, True), (1.001, False), (0.999, False), (-1.0, False), (0.0, False)):
        tensors = {name: tensor.copy() for name, tensor in compiled.tensors.items()}
        d = compiled.learner.features
        tensors["registers"][:, :d] *= factor
        files = ContextLearner(compiled.learner, compiled.config, tensors).files()
        if fine:
            assert find(files).parameters["distance"]
        else:
            with pytest.raises(Refused):
                find(files)


@pytest.mark.parametrize("shift", [Fraction(1, 1000), Fraction(1, 50)])
def test_the_bound_of_a_moved_strength_covers_every_spectrum(shift):
    """One eigenvalue at a time: |1 / t - 1 / (t + delta)| against |delta| / (a (a - |delta|)), the proof's ingredients."""
    low, high = Fraction(1, 10), Fraction(2)
    for number in range(101):
        t = low + (high - low) * number / 100
        for delta in (shift, -shift):
            assert abs(1 / t - 1 / (t + delta)) <= shift / (low * (low - shift))


def test_whether_the_whole_box_is_covered_is_decided_exactly():
    """Rounded floats would say yes for some boxes whose largest eigenvalue is above the stated one, and no for others."""
    wrong = 0
    ridge = made().learner
    relu = describe(Request(learner="relu", features=3, rows=5, layers=2))
    select = describe(Request(learner="select", features=3, rows=5, layers=2, strength="0.5,1"))
    for number in range(1, 400):
        bound = number / 1000
        largest = 3 * max(Fraction(bound), Fraction(number, 1000)) ** 2
        near = float(largest)
        for stated in (near, float(np.nextafter(near, 0)), float(np.nextafter(near, 9))):
            truth = max(Fraction(stated), Fraction(repr(stated))) >= largest
            for learner in (relu, select):
                assert replace(learner, bound=bound, spectrum=stated).everywhere == truth
            gd = replace(ridge, learner="gd", features=3, strength=0.0, low=0.0, bound=bound, high=stated)
            assert gd.everywhere == truth
            wrong += (stated >= 3 * bound * bound) != truth
    assert wrong > 10  # the control: the comparison of floats is not this one


def test_the_default_covers_the_whole_box_for_every_bound():
    for number in range(1, 60):
        for word, more in (("gd", {}), ("relu", {}), ("select", {"strength": "0.5,1"}), ("ridge", {"strength": "0.3"})):
            request = Request(learner=word, features=3, rows=5, layers=2, bound=number / 1000, tolerance=0.5, **more)
            assert describe(request).everywhere
