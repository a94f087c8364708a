"""In-context gradient descent: exact for all contexts, runs within the proved bound, and no changed number passes."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from certiformer.axioms.in_context_gradient import LearnerRun, find, run_bound, softmax_errors, spectrum
from certiformer.compiler.computation import computation_certificate
from certiformer.compiler.incontext import Request, context_learner, describe
from certiformer.compiler.incontext.compiled import ContextLearner
from certiformer.compiler.incontext.gradient import explicit, points
from certiformer.errors import BadInput
from certiformer.kernel import Refused
from certiformer.kernel.certificate import Certificate
from certiformer.kernel.computation import check_computation
from certiformer.kernel.files import CERTIFICATE, LEARNER, digest
from certiformer.kernel.meanings.learner import read_learner
from certiformer.kernel.meanings.least_squares import LeastSquares
from certiformer.kernel.rounding import FORMATS, Format
from compiler.incontext.exact_linear import Leaning, contexts, descent, forward, fractions, tokens_of


def made(**flags) -> ContextLearner:
    return context_learner(describe(Request(**{"learner": "gd", "features": 2, "rows": 5, "layers": 3, **flags})))


@pytest.mark.parametrize("looped", [False, True])
@pytest.mark.parametrize("bound", [1.0, 7.5])
def test_stored_weights_are_gradient_descent_in_exact_arithmetic(looped, bound):
    compiled = made(looped=looped, bound=bound, step=0.3, tolerance=1.0)
    assert compiled.config.loops == (3 if looped else 1)
    for x, y, query in contexts(compiled.learner, 0, 15):
        tokens = tokens_of(compiled.learner, *map(fractions, (x, y, query)))
        assert forward(compiled, tokens) == descent(compiled.learner, x, y, query)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("flags", [{}, {"layers": 12, "rows": 9}, {"features": 4, "step": 0.6}, {"bound": 3.0}])
def test_runs_stay_within_the_proved_bound(flags, dtype):
    compiled = made(dtype=dtype, **flags)
    learner = compiled.learner
    bound = Fraction(float(run_bound(learner).upper()))
    worst = Fraction(0)
    for x, y, query in contexts(learner, 1, 60):
        small = [part.astype(dtype) for part in (x, y, query)]
        run = forward(compiled, tokens_of(learner, *small))
        error = abs(Fraction(float(run)) - descent(learner, *(part.astype(float) for part in small)))
        worst = max(worst, error)
    # The bound holds, it is not vacuous, and the test would notice one that is a thousand times too small.
    assert 0 < worst <= bound < 3000 * worst
    assert bound < learner.tolerance


@pytest.mark.parametrize(
    ("flags", "bits", "within"),
    [
        ({"features": 1, "rows": 1, "layers": 1, "step": 0.3}, 20, 3),
        ({"rows": 6, "layers": 1, "step": 0.3}, 20, 3),
        ({"rows": 6, "layers": 10, "step": 0.01}, 20, 3),
        ({"rows": 6, "layers": 5, "step": 0.95}, 20, 10),
        # Steps that are too long: errors of rows grow, and arrive at the query much later.
        ({"features": 1, "rows": 6, "layers": 12, "step": 2.95}, 20, 3),
        # So few bits that errors of errors count.
        ({"features": 1, "rows": 1, "layers": 24, "step": 3.95}, 6, 30),
    ],
)
def test_operations_that_round_as_badly_as_they_may(flags, bits, within, monkeypatch):
    """Every operation errs by a whole unit in the worst of few directions: the bound holds, and it is nearly reached."""
    compiled = made(tolerance=1e30, **flags)
    learner = compiled.learner
    form = Format("leaning", bits, 60, -1022, 1024)
    monkeypatch.setattr(Leaning, "UNIT", 2.0**-bits)
    bounds = LearnerRun(learner, form, spectrum(learner.steps, learner.whiten, 0.0, learner.high))
    bound, worst, rng = float(bounds.bound()), 0.0, np.random.default_rng(9)
    for leans in product((1, -1), repeat=3):
        monkeypatch.setattr(Leaning, "LEANS", leans)
        for rows, y in product((1, learner.rows), (0.999, None)):
            x = np.full((rows, learner.features), 0.999)
            y = np.full(rows, y) if y is not None else np.sign(rng.uniform(-1, 1, rows)) * 0.999
            run = forward(compiled, tokens_of(learner, *(fractions(p, Leaning) for p in (x, y, x[0]))), Leaning)
            worst = max(worst, abs(run.value - descent(learner, x, y, x[0], number=float)))
    assert worst <= bound <= within * worst


def test_the_rounding_of_keys_is_counted():
    """One feature, one row, one step: x / n is one rounding beside the 2 + 1 + 4 of the sums and that of the result."""
    learner, form = made(features=1, rows=1, layers=1, step=0.3).learner, FORMATS["float64"]
    u, g = form.unit, form.gamma(7)
    result = 2 * u * (1 + u) * (1 + g)
    assert run_bound(learner) >= learner.steps[0] * (u + g * (1 + u) + result)


def test_the_model_is_explicit_descent_to_1e_12():
    """30 steps, 8 features, up to 50 rows, in the one model."""
    rng = np.random.default_rng(2)
    compiled = made(features=8, rows=50, layers=30, looped=True)
    for n in (1, 7, 50):
        x, y, queries = rng.uniform(-1, 1, (n, 8)), rng.uniform(-1, 1, n), rng.uniform(-1, 1, (4, 8))
        assert np.abs(compiled.predict(x, y, queries) - explicit(compiled.learner, x, y, queries)).max() < 1e-12
    assert find(compiled.files()).parameters["run"] == find(compiled.files()).bound


def test_one_block_looped_is_the_stack():
    stacked, looped = made(layers=3), made(layers=3, looped=True)
    assert (len(stacked.config.blocks), len(looped.config.blocks), looped.config.loops) == (3, 1, 3)
    for x, y, query in contexts(stacked.learner, 3, 10):
        tokens = tokens_of(stacked.learner, x, y, query)
        assert forward(stacked, tokens) == forward(looped, tokens)
    x, y, query = next(contexts(stacked.learner, 4, 1))
    # In the one model the order of rounding may differ; both are within the bound of the same number.
    twice = 2 * float(run_bound(stacked.learner).upper())
    assert abs(stacked.predict(x, y, query)[0] - looped.predict(x, y, query)[0]) <= twice


@pytest.mark.parametrize(("attention", "layers"), [("softmax-pair", 1), ("softmax-pair", 3), ("softmax-mirror", 1)])
def test_softmax_attention_makes_the_same_steps(attention, layers):
    compiled = made(attention=attention, layers=layers, rows=4)
    learner, finding = compiled.learner, find(compiled.files())
    bound, worst = float(finding.bound), 0.0
    for x, y, query in contexts(learner, 5, 30):
        run = numpy_softmax(compiled, points(learner, x, y, query[None])[0])
        worst = max(worst, abs(Fraction(run) - descent(learner, x, y, query)))
    assert worst <= bound < 1e-6
    if layers == 1:  # the one model; more layers take long to compile
        x, y, query = next(contexts(learner, 6, 1))
        assert abs(Fraction(float(compiled.predict(x, y, query)[0])) - descent(learner, x, y, query)) <= bound


@pytest.mark.parametrize(("attention", "within"), [("softmax-pair", 100), ("softmax-mirror", 30)])
def test_shares_that_err_as_badly_as_they_may(attention, within):
    """Exponentials are allowed 8 units: turned against the answers, they come near the bound.

    The other part of it is for sums and, with a sink, for scores that are rounded beside its score of 36.
    """
    # Scores so small that rounding is all there is.
    learner = replace(made(attention=attention, layers=1, rows=6).learner, small=2.0**-20)
    compiled = context_learner(learner)
    x, y, query = np.full((6, 2), 0.5), np.sign(np.arange(6) - 2.5), np.ones(2)
    run = numpy_softmax(compiled, points(learner, x, y, query[None])[0], lean=8 * 2.0**-53)
    error = abs(Fraction(run) - descent(learner, x, y, query))
    assert error <= float(run_bound(learner)) <= within * error


def numpy_softmax(compiled: ContextLearner, point: np.ndarray, lean: float = 0.0) -> float:
    t, config = compiled.tensors, compiled.config
    data = point.reshape(config.tokens, -1) @ t["embed.weight"] + t["embed.bias"]
    stream = np.concatenate([t["registers"], data]) if config.registers else data
    for number in range(len(config.blocks)):
        name, change = f"blocks.{number}.attention.groups.0", np.zeros_like(stream)
        for head in range(len(t[f"{name}.query"])):
            query, key, value, output = (t[f"{name}.{role}"][head] for role in ("query", "key", "value", "output"))
            scores = (stream @ query) @ (stream @ key).T
            shares = np.exp(scores - scores.max(axis=1, keepdims=True))
            against = 1 + lean * np.sign(stream @ value)[:, 0] * (-1 if head else 1)
            change += (shares / shares.sum(axis=1, keepdims=True) * against) @ (stream @ value) @ output
        stream = stream + change
    return float(-stream[config.registers + (config.readout.token or 0), 2 * compiled.learner.features])


def test_softmax_errors_in_many_digits():
    """One step with the true exponential, in 60 digits: the error is that of the scores, which the bound must hold alone."""
    from flint import arb, ctx

    from certiformer.kernel.balls import ZERO
    from certiformer.kernel.rounding import FORMATS

    learner = replace(made(attention="softmax-mirror", layers=1, rows=3).learner, small=2.0**-4)
    relative, _ = softmax_errors(learner, FORMATS["float64"], ZERO)
    step, precision = learner.steps[0], ctx.prec
    try:
        ctx.dps = 60
        worst = 0.0
        for x, y, query in contexts(learner, 7, 20):
            scores = [sum(arb(a) / len(x) * arb(b) for a, b in zip(row, query, strict=True)) for row in x]
            total = 2 * sum((s * learner.small).cosh() for s in scores) + 2 * (learner.rows - len(x)) + 2
            sums = sum(2 * (s * learner.small).sinh() * arb(v) for s, v in zip(scores, y, strict=True))
            softmax = sums / total * 8 / (2 * arb(learner.small)) * step  # 8 tokens
            linear = sum(s * arb(v) for s, v in zip(scores, y, strict=True)) * step
            sizes = sum(abs(s * arb(v)) for s, v in zip(scores, y, strict=True)) * step
            assert abs(softmax - linear) <= sizes * relative
            worst = max(worst, float(abs(softmax - linear) / (sizes + arb("1e-30"))))
        assert worst > float(relative) / 100
    finally:
        ctx.prec = precision


def test_two_heads_without_a_sink_give_the_centred_mean():
    """mean (s_j - mean s) v_j up to (7/6) eps^2 S^3 max |v|; the factor cannot be 1/10.

    The third derivative of the mean of v under weights exp(eps s) is E (v - Ev)(s - Es)^3 - 3 cov(v, s) var(s), at most
    (4 + 3) S^3 max |v|, and the second one cancels.
    """
    rng, worst = np.random.default_rng(8), 0.0
    for _ in range(300):
        s, v = np.sign(rng.uniform(-1, 0.3, 6)), np.sign(rng.uniform(-1, 0.3, 6))
        small = 0.05
        up, down = np.exp(small * s), np.exp(-small * s)
        heads = (up @ v / up.sum() - down @ v / down.sum()) / (2 * small)
        worst = max(worst, abs(heads - ((s - s.mean()) * v).mean()) / small**2)
    assert 0.1 < worst < 7 / 6


def changed(compiled: ContextLearner, name: str, place: int, value: float) -> dict[str, bytes]:
    tensors = {n: t.copy() for n, t in compiled.tensors.items()}
    tensors[name].flat[place] = value
    return ContextLearner(compiled.learner, compiled.config, tensors).files()


@pytest.mark.parametrize("attention", ["linear", "softmax-pair", "softmax-mirror"])
def test_no_changed_weight_passes(attention):
    compiled = made(attention=attention, layers=1)
    find(compiled.files())
    for name, tensor in compiled.tensors.items():
        for place in range(tensor.size):
            value = float(tensor.flat[place])
            near = np.nextafter(value, np.inf) if "output" not in name or attention == "linear" else value * 1.001 + 1
            with pytest.raises(Refused):
                find(changed(compiled, name, place, near))


def test_no_changed_description_passes():
    compiled = made()
    learner = compiled.learner
    for other in (
        replace(learner, steps=(0.5, 0.25, 0.5)),
        replace(learner, features=3),
        replace(learner, rows=6),
        replace(learner, dtype="float32"),
        replace(learner, steps=learner.steps[:2], whiten=learner.whiten[:2]),
        replace(learner, looped=True),
        replace(learner, attention="softmax-pair", small=0.01, sink=30.0),
        replace(learner, tolerance=1e-17),
        replace(learner, learner="ridge", strength=1.0, low=1.0),
        replace(learner, whiten=(0.1, 0.0, 0.0)),
        replace(learner, bound=1e6, high=2e12),
    ):
        with pytest.raises(Refused):
            find({**compiled.files(), LEARNER: other.to_text().encode()})
    with pytest.raises(BadInput, match="not in its canonical form"):
        find({**compiled.files(), LEARNER: learner.to_text().encode() + b"\n"})


def test_a_narrower_claim_needs_its_condition():
    """With a smaller largest eigenvalue the bound is better, and the sentence says for which contexts."""
    whole, narrow = made(features=4).learner, made(features=4, spectrum=(0.1, 1.0), step=0.25).learner
    assert whole.everywhere and not narrow.everywhere
    assert "eigenvalues at most 1" in narrow.sentence and "eigenvalues" not in whole.sentence
    assert run_bound(narrow) < run_bound(replace(narrow, high=4.0))


@pytest.mark.parametrize(
    ("parameter", "better"), [("margin", "0.9"), ("run", "0.000000000000000001"), ("margin", None), ("run", 3)]
)
def test_no_better_certificate_passes(tmp_path, parameter, better):
    folder = tmp_path / "gd"
    made().certified().save(folder)
    assert check_computation(folder).outcome == "proved"
    data = json.loads((folder / CERTIFICATE).read_bytes())
    parameters = data["proof"]["parameters"]
    if better is None:
        del parameters[parameter]
    else:
        parameters[parameter] = better
    text = json.dumps(data, sort_keys=True, indent=1) + "\n"
    (folder / CERTIFICATE).write_text(text)
    assert check_computation(folder).outcome == "refused"


def test_a_swapped_description_is_noticed(tmp_path):
    folder = tmp_path / "gd"
    made().certified().save(folder)
    other = replace(read_learner((folder / LEARNER).read_bytes()), tolerance=1e-3)
    (folder / LEARNER).write_text(other.to_text())
    assert "was changed" in check_computation(folder).reason
    certificate = Certificate.from_bytes((folder / CERTIFICATE).read_bytes())
    seals = {**certificate.seals, LEARNER: digest(other.to_text().encode())}
    (folder / CERTIFICATE).write_bytes(replace(certificate, seals=seals).to_bytes())
    # Resealed: a wider tolerance leaves more, so the stated margin is still true.
    assert check_computation(folder).outcome == "proved"


def test_a_tolerance_that_is_not_reached_is_undecided():
    compiled = made(tolerance=1e-18)
    certificate = computation_certificate("in_context_gradient", compiled.files())
    assert certificate.level == 0 and "above the tolerance 1e-18" in certificate.reason


def test_too_large_steps_have_no_bound():
    with pytest.raises(BadInput, match="a number of the run may exceed the largest finite float64"):
        made(step=1e100, layers=20)
    grown = made(step=3.0, layers=20).learner  # each step may multiply errors by 5
    assert grown.tolerance > 1e-5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"steps": (), "whiten": ()}, "the number of layers"),
        ({"steps": (1, 2, 3)}, "a step is a number"),
        ({"steps": (float("nan"),) * 3}, "a step is a number"),
        ({"features": 0}, "the number of features"),
        ({"rows": True}, "the number of rows"),
        ({"bound": float("inf")}, "the bound of the features"),
        ({"looped": 1}, "looped is true or false"),
        ({"attention": "sparse"}, "attention is one of"),
        ({"strength": 0.5}, "gd has no strength"),
        ({"small": 0.5}, "the scale of the scores of linear attention is 0"),
        ({"attention": "softmax-mirror", "small": 0.5}, "mirrored tokens are for one step"),
        ({"steps": (0.1, 0.2, 0.3), "looped": True}, "the same step every time"),
        ({"learner": "svm"}, "gd or ridge"),
    ],
)
def test_impossible_descriptions_are_refused(change, message):
    with pytest.raises(BadInput, match=message):
        replace(made().learner, **change)


def test_descriptions_are_read_back():
    learner = made(attention="softmax-pair").learner
    assert read_learner(learner.to_text()) == learner and isinstance(learner, LeastSquares)
    for text in ("", "[]", "{}", '{"format":"certiformer-learner-1","learner":"gd"}', '{"format":1,"learner":"who"}'):
        with pytest.raises(BadInput):
            read_learner(text)
