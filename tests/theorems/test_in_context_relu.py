"""The rule for learners with ReLU attention: its claim in exact rationals, its bounds on runs, and that no fault passes."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certiformer.axioms.in_context_relu import find, polygon_error, sentence
from certiformer.compiler.incontext import Request, context_learner, describe
from certiformer.compiler.incontext.compiled import ContextLearner
from certiformer.compiler.incontext.logistic import polygon
from certiformer.compiler.incontext.relu_steps import relu_points
from certiformer.kernel import Refused
from certiformer.kernel.balls import working_precision
from certiformer.kernel.certificate import Certificate
from certiformer.kernel.certificate import Theorem as Proof
from certiformer.kernel.computation import check_computation
from certiformer.kernel.meanings.learner import read_learner
from compiler.incontext.exact_relu import dot, relu_tokens, run, weights_of
from compiler.incontext.exact_relu import polygon as polygon_at
from compiler.incontext.numpy_relu import run as float_run

CASES = {
    "least squares": {"learner": "relu"},
    "ridge": {"learner": "relu", "strength": "0.3"},
    "logistic": {"learner": "logistic", "error": 0.05},
    "logistic ridge": {"learner": "logistic", "strength": "0.2", "error": 0.05},
    "lasso": {"learner": "lasso", "strength": "0.1"},
}


def compiled(name: str, **changes) -> ContextLearner:
    flags = {"features": 2, "rows": 4, "layers": 3, **CASES[name], **changes}
    return context_learner(describe(Request(**flags)))


numbers = st.fractions(-4, 4, max_denominator=7)


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=6, deadline=None)
@given(data=st.data())
def test_passes_are_steps_in_exact_rationals(name, data):
    """Any context, in the box or not, short ones too; zero tolerance."""
    learner = compiled(name).learner
    n = data.draw(st.integers(1, 4))
    xs = data.draw(st.lists(st.lists(numbers, min_size=2, max_size=2), min_size=n, max_size=n))
    labels = st.integers(0, 1).map(Fraction) if learner.knots else numbers
    ys, query = (
        data.draw(st.lists(labels, min_size=n, max_size=n)),
        data.draw(st.lists(numbers, min_size=2, max_size=2)),
    )
    outputs = run(compiled(name).model, relu_tokens(learner, xs, ys, query))
    w = weights_of(learner, xs, ys)
    score = dot(w, query)
    wanted = [polygon_at(learner, score), score, *w] if learner.knots else [score, *w]
    assert outputs == wanted


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", CASES)
def test_runs_stay_within_the_bound(name, dtype):
    learner = compiled(name, dtype=dtype, layers=6, rows=5, error=1e-3 if "logistic" in name else None)
    bound = float(find(learner.files()).bound)
    rng = np.random.default_rng(7)
    worst = 0.0
    for trial in range(40):
        n = 5 - trial % 4
        # numbers of the format, the corners of the box among them
        x = np.clip(rng.normal(size=(n, 2)) * 0.8, -1, 1).astype(dtype).astype(float)
        y = rng.integers(0, 2, n).astype(float) if learner.learner.knots else np.sign(rng.normal(size=n))
        query = np.sign(rng.normal(size=2))
        got = float(float_run(learner, relu_points(learner.learner, x, y, query[None]))[0, 0])
        xs, ys = [list(map(Fraction, row)) for row in x], list(map(Fraction, y))
        # the logistic function in float64, wrong by 2^-52, which is far below the bound
        slope = (lambda s: Fraction(1 / (1 + math.exp(-float(s))))) if learner.learner.knots else None
        score = float(dot(weights_of(learner.learner, xs, ys, slope), list(map(Fraction, query))))
        wanted = 1 / (1 + math.exp(-score)) if learner.learner.knots else score
        worst = max(worst, abs(got - wanted))
    assert worst <= bound
    if not learner.learner.knots:
        assert worst > 0 and bound < {"float64": 1e-12, "float32": 1e-3}[dtype]
    else:
        assert bound < 0.05


# The slopes of bfloat16 are multiples of 1/256: too coarse for 1e-3.
POLYGONS = [(error, dtype) for error in (0.1, 0.01, 1e-3) for dtype in ("float64", "float32")]


@pytest.mark.parametrize("error, dtype", [*POLYGONS, (0.1, "bfloat16"), (0.01, "bfloat16")])
def test_the_polygon_is_as_near_as_it_says(error, dtype):
    working_precision()
    knots, bends = polygon(error, dtype)
    bound = float(polygon_error(knots, bends))
    s = np.concatenate([np.linspace(-30, 30, 60_001), np.array(knots)])
    values = sum(b * np.maximum(s - k, 0) for k, b in zip(knots, bends, strict=True))
    seen = np.abs(values - 1 / (1 + np.exp(-s))).max()
    assert seen <= bound + 1e-14  # rounding of the samples
    assert bound <= seen * 1.001 and (bound <= error or dtype == "bfloat16")


@pytest.mark.parametrize("seed", range(8))
def test_any_polygon_is_bounded(seed):
    """Steep, falling and far-off pieces too: the bound is never below what is seen, and never far above."""
    working_precision()
    rng = np.random.default_rng(seed)
    knots = np.sort(rng.normal(size=5) * 3).round(3)
    bends = rng.integers(-8, 9, 5) / 16
    bends[-1] = -bends[:-1].sum()
    bound = float(polygon_error(knots.tolist(), bends.tolist()))
    s = np.linspace(-40, 40, 400_001)
    seen = np.abs(sum(b * np.maximum(s - k, 0) for k, b in zip(knots, bends, strict=True)) - 1 / (1 + np.exp(-s))).max()
    assert seen <= bound + 1e-13 and bound <= seen + 1e-3


@pytest.mark.parametrize("side", [1, -1])
def test_a_chord_across_one_side_is_bounded(side):
    """Where the logistic function is convex the edge is above it, elsewhere below: both must be seen."""
    working_precision()
    knots = np.sort(side * np.array([-9, -8, -7, -6, -5, -4, -3, -2, -1.5, -1, -0.5, 0, 0.25, 7.0]))
    values = np.concatenate([[0], 1 / (1 + np.exp(-knots[1:-1])), [1]])
    slopes = np.round(np.diff(values) / np.diff(knots) * 2**40) / 2**40
    bends = np.diff(np.concatenate([[0], slopes, [0]]))
    bound = float(polygon_error(knots.tolist(), bends.tolist()))
    s = np.linspace(-20, 20, 400_001)
    seen = np.abs(sum(b * np.maximum(s - k, 0) for k, b in zip(knots, bends, strict=True)) - 1 / (1 + np.exp(-s))).max()
    assert seen > 0.1 and seen <= bound + 1e-13 and bound <= seen + 1e-6


def test_a_polygon_that_runs_away_is_refused():
    knots, bends = polygon(0.01, "float64")
    with pytest.raises(Refused, match="do not add up to 0"):
        polygon_error(knots, (*bends[:-1], np.nextafter(bends[-1], 0)))


@pytest.mark.parametrize("name", CASES)
def test_every_single_weight_counts(name):
    """One unit in the last place, a number instead of a zero, a zero instead of a number, anywhere: refused."""
    learner = compiled(name)
    find(learner.files())
    rng = np.random.default_rng(1)
    for tensor, array in learner.tensors.items():
        places = [np.unravel_index(i, array.shape) for i in rng.integers(0, array.size, 2)]
        places += list(zip(*array.nonzero(), strict=True))[:2]
        for place in places:
            for value in {float(np.nextafter(array[place], np.inf)), 0.0 if array[place] else 1.0}:
                changed = array.copy()
                changed[place] = value
                with pytest.raises(Refused, match=f"of {tensor} is"):
                    find(replace(learner, tensors={**learner.tensors, tensor: changed}).files())


@pytest.mark.parametrize(
    "change",
    [
        {"loops": 4}, {"kind": "linear"}, {"scale": "inverse-sqrt"}, {"residual": False}, {"mask": "causal"}, {"ffn": "gelu"},
        {"token": 3}, {"dtype": "float32"},
    ],
    ids=str,
)  # fmt: skip
def test_another_architecture_is_refused(change):
    learner = compiled("ridge")
    data = learner.config.to_json()
    for name, value in change.items():
        if name in ("loops", "dtype"):
            data[name] = value
        elif name == "token":
            data["readout"]["token"] = value
        elif name == "ffn":
            data["blocks"][0]["ffn"]["kind"] = value
        else:
            data["blocks"][0]["attention"][name] = value
    tensors = {n: t.astype(data["dtype"]) for n, t in learner.tensors.items()}
    other = replace(learner, config=type(learner.config).from_json(data), tensors=tensors)
    with pytest.raises(Refused, match="is not of the form"):
        find(other.files())


@pytest.mark.parametrize(
    "name, change",
    [
        ("ridge", {"rate": 0.5}),
        ("ridge", {"decay": 0.25}),
        ("ridge", {"decay": 0.0}),
        ("ridge", {"steps": 4}),
        ("ridge", {"rows": 5}),
        ("lasso", {"threshold": 0.25}),
        ("ridge", {"spectrum": 20.0}),
        ("logistic", {"knots": (-2.0, 2.0), "bends": (0.25, -0.25)}),
        ("least squares", {"learner": "relu-lasso", "threshold": 0.5}),
        ("least squares", {"dtype": "float32"}),
    ],
)
def test_another_description_is_refused(name, change):
    learner = compiled(name)
    with pytest.raises(Refused):
        find(replace(learner, learner=replace(learner.learner, **change)).files())


def test_steps_that_are_too_long_are_refused():
    """With the right weights for it, too: the bound would not exist."""
    learner = compiled("least squares")
    long = context_learner(replace(learner.learner, rate=1.5))
    with pytest.raises(Refused, match="steps are too long"):
        find(long.files())


def test_a_type_that_drowns_the_answer_is_refused():
    with pytest.raises(Refused, match="bfloat16"):
        find(compiled("least squares", dtype="bfloat16", layers=50).files())


@pytest.mark.parametrize("name", ["ridge", "logistic ridge"])
def test_the_folder_is_checked(name, tmp_path):
    learner = compiled(name)
    artifact = learner.certified()
    artifact.save(tmp_path / "run")
    certificate = artifact.certificate
    assert certificate.level == 2 and certificate.proof is not None
    verdict = check_computation(tmp_path / "run")
    assert verdict.outcome == "proved" and verdict.sentence == sentence(learner.files())
    assert read_learner((tmp_path / "run/learner.json").read_bytes()) == learner.learner
    better = {"margin": "1.999", "weights": "0", "norm": "0"}
    for key, value in better.items():
        proof = replace(certificate.proof, parameters={**certificate.proof.parameters, key: value})
        _write(tmp_path, replace(certificate, proof=proof))
        assert check_computation(tmp_path / "run").outcome == "refused"
    assert isinstance(certificate.proof, Proof)
    claimed = replace(certificate, epsilon="0", upper="0", proof=replace(certificate.proof, bound="0"))
    _write(tmp_path, claimed)
    assert "better bound" in check_computation(tmp_path / "run").reason
    _write(tmp_path, certificate)
    text = json.loads((tmp_path / "run/learner.json").read_text())
    (tmp_path / "run/learner.json").write_text(json.dumps({**text, "steps": 2}))
    assert "was changed" in check_computation(tmp_path / "run").reason


def _write(folder, certificate: Certificate):
    (folder / "run/certificate.json").write_bytes(certificate.to_bytes())
