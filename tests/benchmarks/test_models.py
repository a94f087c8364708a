"""The shipped model is the one the benchmarks speak of, and the benchmark scripts say no when they should."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from certiformer.model import load

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
# The 401 x 401 grid of `train_sine_sum.py` and the point where gradient ascent finds the error largest.
SAMPLED_ERROR, WORST_POINT, WORST_ERROR = 0.106070, (4.70197527, 4.13295471), 0.108204


@pytest.fixture(scope="module")
def model():
    return load(BENCHMARKS / "models" / "trained-sine-sum")


def error(model, points):
    rows = np.asarray(points, float)
    return np.abs(model.evaluate(rows)[:, 0] - np.sin(rows).sum(1))


def test_the_shipped_model_has_the_stated_shape(model):
    config = model.config
    (block,) = config.blocks
    assert (config.tokens, config.input.width, config.width, config.code.kind) == (2, 1, 16, "table")
    assert [(g.count, g.key, g.value) for g in block.attention.heads] == [(1, 16, 16)]
    assert (block.ffn.width, block.ffn.kind, config.readout.kind, config.dtype) == (64, "relu", "mean", "float64")


def test_the_shipped_model_has_the_stated_error(model):
    axis = np.linspace(0, 2 * np.pi, 401)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2)
    # Stated to six decimals; a float64 run is off by about 1e-14.
    assert error(model, grid).max() == pytest.approx(SAMPLED_ERROR, abs=1e-6)
    assert error(model, [WORST_POINT])[0] == pytest.approx(WORST_ERROR, abs=1e-6)


def script(name):
    """A module of the benchmarks folder, which is not a package."""
    spec = importlib.util.spec_from_file_location(f"benchmarks_{name}", BENCHMARKS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("measured", "code"), [(0.5, 0), (1.0, 0), (1.5, 1), (float("nan"), 1), (None, 1)])
def test_a_missed_goal_is_exit_code_1(monkeypatch, capsys, measured, code):
    check = script("check")
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    figure = {"what": "a figure", "goal": 1.0, "measured": measured, "unit": "s", "note": ""}
    monkeypatch.setattr(check, "measure", lambda name: [{"case": name, **figure, "ok": check.reached(figure)}])
    assert check.main(["help", "--json"]) == code
    assert json.loads(capsys.readouterr().out)["missed"] == (["a figure"] if code else [])


def test_the_comparison_is_skipped_with_a_word_when_the_peer_is_absent():
    command = [sys.executable, str(BENCHMARKS / "against_auto_lirpa.py"), "--json"]
    for python, why in (("", "does not name a Python"), ("/does/not/exist", "cannot be run")):
        environment = {**os.environ, "CERTIFORMER_LIRPA_PYTHON": python}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == 0
        assert why in json.loads(done.stdout)["skipped"]


@pytest.mark.parametrize(("measured", "reached"), [(99.0, True), (None, False)])
def test_a_figure_without_a_goal_must_still_be_proved(measured, reached):
    assert script("check").reached({"goal": None, "measured": measured}) is reached
