"""The comparison with PyTorch: skipped with a word without it, honest in its counting, and the same architecture."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from certiformer.construct.gather_block import gather_transformer
from certiformer.construct.method import Shape
from certiformer.construct.position_gating import Ridges, gated

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
VARIABLE = "CERTIFORMER_TORCH_PYTHON"


def script(name):
    """A module of the benchmarks folder, which is not a package."""
    spec = importlib.util.spec_from_file_location(f"benchmarks_{name}", BENCHMARKS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def benchmark(monkeypatch):
    """The script, with a peer that is there and without leave to change the cores of the test process."""
    module = script("against_pytorch")
    monkeypatch.setattr(module, "missing_peer", lambda: "")
    monkeypatch.delattr(os, "sched_setaffinity", raising=False)
    return module


def answers(ratios):
    """A stand-in for the measurement: these ratios by target, None for one that was not certified."""

    def compared(name, seconds, seeds):
        if ratios[name] is None:
            return {"name": name, "eps": "0.1", "reason": "undecided", "ratio": 0.0}
        ours = {"units": 3, "activation": "relu", "rows": 1, "upper": 0.5, "seconds": 1.0}
        return {"name": name, "eps": "1", **ours, "sampled": 1.0, "rate": 1e-3, "steps": 9, "ratio": ratios[name]}

    return compared


@pytest.mark.parametrize("as_json", [True, False])
def test_without_pytorch_it_is_skipped_with_a_word(tmp_path, as_json):
    (tmp_path / "torch.py").write_text("raise ImportError('not in this test')\n")
    command = [sys.executable, str(BENCHMARKS / "against_pytorch.py"), "sine"] + ["--json"] * as_json
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    for python, why in (
        ("/does/not/exist", "cannot be run"),
        ("", "cannot import torch"),
        (sys.executable, "not in this"),
    ):
        environment = {**os.environ, VARIABLE: python, "PYTHONPATH": path}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)["skipped"] if as_json else done.stdout.removeprefix("skipped: ")
        assert why in told and VARIABLE in told


@pytest.mark.parametrize(
    ("ratios", "median", "code"),
    [
        ({"sine": 2.0, "bell": 3.0, "runge": 0.5}, 2.0, 0),
        ({"sine": 1.9, "bell": 3.0, "runge": 0.5}, 1.9, 1),
        ({"sine": 9.0, "bell": None, "runge": None}, 0.0, 1),
        ({"sine": math.inf, "bell": math.inf, "runge": None}, None, 0),  # JSON has no infinity
    ],
)
def test_what_is_not_certified_counts_as_nothing(benchmark, monkeypatch, capsys, ratios, median, code):
    monkeypatch.setattr(benchmark, "compared", answers(ratios))
    assert benchmark.main([*ratios, "--json"]) == code
    told = json.loads(capsys.readouterr().out)
    assert told["median"] == median
    assert told["counted_as_0"] == [name for name, value in ratios.items() if value is None]
    assert benchmark.main(list(ratios)) == code
    table = capsys.readouterr().out
    assert all(name in table for name in ratios) and ("undecided" in table) == (None in ratios.values())


def test_a_failed_process_is_named_and_counts_as_nothing(benchmark, monkeypatch):
    failed = subprocess.CompletedProcess([], 1, stdout="", stderr="Traceback\nOops: it broke\n")
    monkeypatch.setattr(benchmark, "_run", lambda command, environment: failed)
    row = benchmark.compared("sine", 1.0, 1)
    assert (row["ratio"], row["reason"]) == (0.0, "our process failed: Oops: it broke")
    ours = {"name": "sine", "eps": "0.02", "units": 2, "activation": "gelu", "rows": 1, "upper": 0.01, "seconds": 1.0}
    done = [subprocess.CompletedProcess([], 0, stdout=json.dumps(ours), stderr=""), failed]
    monkeypatch.setattr(benchmark, "_run", lambda command, environment: done.pop(0))
    row = benchmark.compared("sine", 1.0, 1)
    assert (row["ratio"], row["reason"]) == (0.0, "the peer failed: Oops: it broke")


def test_the_best_try_of_the_peer_counts_and_a_diverged_one_does_not(benchmark, monkeypatch):
    ours = {"name": "sine", "eps": "0.02", "units": 2, "activation": "gelu", "rows": 1, "upper": 0.01, "seconds": 1.0}
    tries = [{"rate": rate, "sampled": sampled, "steps": 5} for rate, sampled in ((1e-3, 0.03), (1e-2, None))]
    outputs = [json.dumps(ours), "\n".join(map(json.dumps, tries))]
    monkeypatch.setattr(
        benchmark, "_run", lambda command, environment: subprocess.CompletedProcess([], 0, outputs.pop(0), "")
    )
    row = benchmark.compared("sine", 1.0, 1)
    assert (row["rate"], row["sampled"]) == (1e-3, 0.03)
    assert row["ratio"] == 0.03 / 0.01


def test_ratios_of_exact_results(benchmark):
    assert benchmark.ratio(0.1, 0.0) == math.inf
    assert benchmark.ratio(0.0, 0.0) == 1.0
    assert benchmark.ratio(0.5, 0.25) == 2.0


def test_the_peer_is_given_the_target_on_its_box(benchmark, tmp_path, monkeypatch):
    from certiformer.search.suite import case

    monkeypatch.setattr(benchmark, "POOL", 100)
    points, values = benchmark.write_problem(case("sort-two"), tmp_path)
    with np.load(tmp_path / "problem.npz") as problem:
        assert problem["low"].tolist() == [0, 0] and problem["high"].tolist() == [1, 1]
        train, wanted = problem["train_points"], problem["train_values"]
    assert len(points) == 201**2 + 20_000 and len(train) == 100
    for at, of in ((points, values), (train, wanted)):
        assert (of == np.sort(at, axis=1)[:, ::-1]).all()
        assert at.min() >= 0 and at.max() <= 1


@pytest.mark.parametrize("per_position", [False, True])
def test_the_peer_computes_what_our_block_computes(per_position):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (pip install torch): its block was not run")
    peer = script("_torch_peer")
    generator = np.random.default_rng(3)
    shape = Shape(2, 2, 2 if per_position else 1, 1 if per_position else 2, "sequence")
    sizes = ((4, 2), (2,), (5, 4), (5,), (5, 2))
    ridges = Ridges(*(generator.normal(size=size) for size in sizes))
    low, high = np.full(4, -1.0), np.ones(4)
    model = gather_transformer(shape, low, high, *ridges)
    if per_position:
        feed = gated(shape, low, high, ridges, "relu")
        up = np.concatenate([np.zeros((len(feed.bias), 2)), feed.gate, feed.up], axis=1)
        skip = np.concatenate([feed.own, feed.position, feed.read]).T
        arrays = (skip, feed.constant, up, feed.bias, feed.down.T)
    else:
        arrays = (ridges.linear.T, ridges.constant, ridges.weights, ridges.bias, ridges.coefficients.T)
    assert model.config.blocks[0].ffn is not None and len(arrays[3]) == model.config.blocks[0].ffn.width
    block = peer.Block(4, 2, 2 if per_position else 1, len(arrays[3]), "relu").double()
    points = generator.uniform(low, high, (200, 4))
    names = ("skip.weight", "skip.bias", "up.weight", "up.bias", "down.weight")
    block.load_state_dict({name: torch.tensor(array) for name, array in zip(names, arrays, strict=True)})
    with torch.no_grad():
        outputs = block(torch.tensor(points)).numpy()
    # Sums of some twenty terms of size up to 50 (the gates), rounded: 20 * 50 * 2^-53 is 1e-13.
    assert np.abs(outputs - model.evaluate(points)).max() < 1e-12
    assert np.abs(outputs).max() > 0.1


def test_the_peer_learns_a_line_and_reports_in_units_of_the_target(tmp_path):
    torch = pytest.importorskip(
        "torch", reason="PyTorch is not installed (pip install torch): its training was not run"
    )
    peer = script("_torch_peer")
    x = np.linspace(3, 5, 4096)[:, None]
    arrays = {"low": np.array([3.0]), "high": np.array([5.0]), "train_points": x, "train_values": 100 * x + 7}
    problem = peer.Scaled({**arrays, "test_points": x, "test_values": 100 * x + 7})
    torch.manual_seed(0)
    block = peer.Block(1, 1, 1, 0, "relu")
    before = problem.sampled_error(block)
    assert peer.train(block, problem, 1e-2, math.inf, 1500) == 1500
    # The half range is 100: an untrained line is off by about that, a trained one by float32 rounding and Adam's last steps.
    assert before > 10 and problem.sampled_error(block) < 0.1
    with torch.no_grad():
        block.skip.bias.fill_(math.nan)
    assert problem.sampled_error(block) == math.inf
