"""`--method auto`: the table of candidates, the smallest proved one, and what happens when a small one fails."""

from __future__ import annotations

import numpy as np
import pytest

from certiformer.construct.method import METHODS, Size
from certiformer.errors import BadInput
from certiformer.model import Transformer
from certiformer.search import build, candidates
from certiformer.search.candidates import AUTO, OBJECTIVES, known_method

SINE = {"on": "[0, 2*pi]", "eps": "0.05"}


def test_auto_returns_the_smallest_proved_candidate():
    run = build("sin(x1)", **SINE, fit_seconds=5)
    assert run.certified
    sizes = [row["nonzero"] for row in run.candidates if row["nonzero"] is not None]
    assert sizes == sorted(sizes) and len(sizes) >= 5
    assert run.candidates[0]["outcome"] == "proved" and run.candidates[0]["method"] == run.certificate.method
    assert run.summary()["nonzero"] == sizes[0]
    assert all(row["outcome"] == "not tried" for row in run.candidates[1 : len(sizes)])


# Which methods apply to the sine: all of them but the one for affine targets.
# The three that take ten seconds each run only when asked for.
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name, marks=pytest.mark.slow if "temperatures" in name or name in ("voronoi", "sigmoid-heads") else ()
        )
        for name in AUTO
        if name != "gather"
    ],
)
def test_auto_is_never_larger_than_a_single_method(name):
    best = build("sin(x1)", **SINE, fit_seconds=5).summary()["nonzero"]
    alone = build("sin(x1)", **SINE, method=name)
    assert alone.certified
    assert best <= alone.summary()["nonzero"]


def test_a_method_that_does_not_apply_says_why():
    run = build("sin(x1)", **SINE, method="gather")
    assert run.outcome.value == "undecided" and "not affine" in run.certificate.reason


def planted(monkeypatch, change) -> None:
    """Let `fit` return blocks that look smallest but have been tampered with."""
    original = candidates._fitted

    def tampered(*arguments):
        found = original(*arguments)
        for candidate in found:
            good = candidate.realise
            candidate.realise = lambda good=good: change(good())
        return found

    monkeypatch.setattr(candidates, "_fitted", tampered)


def test_a_small_candidate_that_is_wrong_is_not_taken(monkeypatch):
    from dataclasses import replace

    def broken(built):
        tensors = {name: np.array(t) for name, t in built.model.tensors.items()}
        tensors["readout.bias"] = tensors["readout.bias"] + 0.2
        return replace(built, model=Transformer(built.model.config, tensors))

    planted(monkeypatch, broken)
    run = build("sin(x1)", **SINE, fit_seconds=5)
    assert run.certified and run.certificate.method != "fit"
    first = run.candidates[0]
    assert first["method"] == "fit" and first["outcome"] in ("refuted", "undecided")


@pytest.mark.slow
def test_a_fit_that_fails_brings_in_what_was_left_for_later(monkeypatch):
    from dataclasses import replace

    def broken(built):
        tensors = {name: np.array(t) for name, t in built.model.tensors.items()}
        tensors["readout.bias"] = tensors["readout.bias"] + 1.0
        return replace(built, model=Transformer(built.model.config, tensors))

    planted(monkeypatch, broken)
    run = build("x1*x2", on="[0,1]^2", eps="0.1", fit_seconds=5)
    assert run.certified and run.certificate.method == "ridge"
    assert [row["method"] for row in run.candidates[:2]] == ["fit", "ridge"]


@pytest.mark.slow
def test_objectives():
    few_heads = build("sin(x1)+sin(x2)", on="[0, 2*pi]^2", eps="0.2", objective="heads", fit_seconds=5)
    assert few_heads.certified
    heads = [row["heads"] for row in few_heads.candidates if row["nonzero"] is not None]
    assert heads == sorted(heads) and heads[0] == 1
    fast = build("sin(x1)+sin(x2)", on="[0, 2*pi]^2", eps="0.2", objective="time")
    assert fast.certified and "fit" not in [row["method"] for row in fast.candidates]


@pytest.mark.parametrize(
    ("formula", "on"),
    [pytest.param("3*x1 - x2/7 + 2", "[-1,2]^2", marks=pytest.mark.slow), ("5/3", "[0,1]"), ("x1", "[0,1]")],
)
def test_affine_targets_are_proved_to_rounding(formula, on):
    run = build(formula, on=on, eps="0.1", fit_seconds=3)
    assert run.certified and run.upper < 1e-14


@pytest.mark.parametrize(
    "formula",
    [
        "max(x1, x2)",
        pytest.param("abs(x1 - 2*x2) + min(x1, 0.25)", marks=pytest.mark.slow),
        pytest.param("max(min(2*x1, 1), 3*x1 - 2)", marks=pytest.mark.slow),
    ],
)
def test_piecewise_linear_targets_are_proved_to_rounding(formula):
    run = build(formula, on="[0,1]^2", eps="1e-6", method="ridge")
    assert run.certified and run.upper < 1e-12
    assert Size.of(run.model).units <= 4


def test_a_flat_region_costs_nothing():
    run = build("max(0, x1 - 0.5)**2", on="[0,1]", eps="1e-3", method="ridge")
    assert run.certified
    knots = -np.asarray(run.model.tensors["blocks.0.ffn.up_bias"])
    assert Size.of(run.model).units < 9 and (np.abs(knots) > 0.4).all()


@pytest.mark.slow
def test_an_epsilon_below_float64_is_undecided_with_the_reason():
    run = build("sin(x1)", on="[0,1]", eps="1e-19", fit_seconds=1)
    assert run.outcome.value == "undecided" and run.certificate.reason


def test_a_layout_that_the_method_cannot_use_is_a_mistake():
    with pytest.raises(BadInput, match="needs --layout token"):
        build("x1*x2", on="[0,1]^2", eps="0.1", method="voronoi", layout="sequence")
    assert build("x1*x2", on="[0,1]^2", eps="0.1", method="voronoi", layout="token").certified


@pytest.mark.parametrize(
    "layout", ["output-token", *(pytest.param(other, marks=pytest.mark.slow) for other in ("token", "sequence"))]
)
def test_every_layout_can_be_built(layout):
    run = build("max(x1, x2)", on="[0,1]^2", eps="0.1", method="ridge", layout=layout)
    assert run.certified and run.upper < 1e-12
    assert run.model.config.tokens == (1 if layout == "token" else 2)
    assert run.model.config.readout.kind == ("register" if layout == "output-token" else "token")


def test_unknown_names_are_one_sentence():
    with pytest.raises(BadInput, match="--method is one of auto, fit"):
        build("x1", on="[0,1]", eps="0.1", method="magic")
    with pytest.raises(BadInput, match="--objective is one of"):
        build("x1", on="[0,1]", eps="0.1", objective="beauty")
    assert known_method("fit") == "fit"


def test_the_command_line_knows_exactly_the_methods_there_are():
    from typing import get_args

    from certiformer.cli.build import Method

    assert set(get_args(Method)) == {"auto", "fit", *METHODS}
    assert set(OBJECTIVES) == {"parameters", "heads", "time"}
