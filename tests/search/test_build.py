"""`build` and `prove` end to end: outcomes, files, and what a killed run leaves behind."""

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import certiformer
from certiformer.errors import BadInput
from certiformer.kernel.certificate import Outcome
from certiformer.search import dry_run

SOURCE = str(Path(certiformer.__file__).resolve().parents[1])

# One method, so that nothing is trained; `auto` has its own tests.
build = partial(certiformer.build, method="voronoi")


def test_build_is_certified_and_its_bracket_contains_every_sampled_error():
    run = build("sin(x1)+sin(x2)", on="[0, 2*pi]^2", eps="0.1")
    assert run.certified
    points = np.random.default_rng(0).uniform(0, 2 * np.pi, (5000, 2))
    errors = np.abs(run.evaluate(points)[:, 0] - np.sin(points).sum(1))
    # float64 evaluation of T: scores below 1e3 and values below 2 lose at most 1e-12
    assert errors.max() <= float(run.certificate.upper) + 1e-12
    assert float(run.certificate.lower) <= float(run.certificate.upper) <= 0.1
    assert float(run.certificate.upper) <= 1.1 * float(run.certificate.lower)
    assert run.directory is None


@pytest.mark.parametrize("rule", [pytest.param("boxes", marks=pytest.mark.slow), "theorem", "sum"])
def test_every_rule_is_accepted_by_the_checker(rule, tmp_path):
    run = build("sin(x1)+cos(x2)", on="[0, 3]^2", eps="0.1", rule=rule, out=tmp_path / "run")
    assert run.certified
    assert run.summary()["rules"][0].startswith({"sum": "split"}.get(rule, rule))
    verdict = certiformer.check(tmp_path / "run")
    assert verdict.accepted
    assert float(verdict.upper) <= 0.1


def test_callables_and_several_outputs():
    import jax.numpy as jnp

    run = build(lambda x: jnp.stack([jnp.sin(x[0]), x[0] ** 2]), on="[0, 1]", eps=0.02)
    assert run.certified
    assert run.evaluate([[0.5]]).shape == (1, 2)


@pytest.mark.slow
def test_a_target_without_a_lipschitz_constant_is_proved_by_boxes():
    run = build("sqrt(x1)", on="[0, 1]", eps="0.1")
    assert run.certified
    assert run.summary()["rules"] == ["boxes"]


@pytest.mark.parametrize(("text", "box"), [("1/x1", "[-1, 1]"), ("log(x1)", "[-1, 1]"), ("sqrt(x1)", "[-2, -1]")])
def test_singular_targets_are_invalid_and_name_a_box(text, box, tmp_path):
    run = build(text, on=box, eps="0.1", out=tmp_path / "run")
    assert run.outcome is Outcome.INVALID
    assert "on about [" in run.certificate.reason
    assert not (tmp_path / "run").exists()


def test_a_step_is_undecided_with_the_reason(tmp_path):
    run = build("where(x1 < 0.3, 1, 0)", on="[0, 1]", eps="0.1", out=tmp_path / "run")
    assert run.outcome is Outcome.UNDECIDED
    assert "where" in run.certificate.reason
    assert not (tmp_path / "run").exists()


def test_prove_refutes_with_a_witness_that_the_checker_confirms(tmp_path):
    run = build("sin(x1)", on="[0, 2*pi]", eps="0.05")
    below = float(run.certificate.lower) * 0.99
    refuted = certiformer.prove(run.model, "sin(x1)", on="[0, 2*pi]", eps=below, out=tmp_path / "run")
    assert refuted.outcome is Outcome.REFUTED
    verdict = certiformer.check(tmp_path / "run")
    assert (verdict.outcome, verdict.exit_code) == ("refuted", 1)


@pytest.mark.slow
def test_prove_accepts_what_build_made(tmp_path):
    run = build("sin(x1)", on="[0, 2*pi]", eps="0.05")
    assert certiformer.prove(run.model, "sin(x1)", on="[0, 2*pi]", eps="0.05").certified


def test_level_one_is_not_called_certified():
    run = build("sin(x1)", on="[0, 2*pi]", eps="0.05", level=1)
    assert run.outcome is Outcome.PROVED
    assert not run.certified
    assert "numerical" in run.word
    assert run.outcome.exit_code(run.level) == 3


@pytest.mark.parametrize(
    "change",
    [
        {"eps": "0"},
        {"eps": "-1"},
        {"eps": "nan"},
        {"on": "[1, 0]"},
        {"method": "magic"},
        {"rule": "luck"},
        {"level": 3},
    ],
)
def test_bad_requests_write_nothing(change, tmp_path):
    request = {"on": "[0, 1]^2", "eps": "0.1", "out": tmp_path / "run"} | change
    with pytest.raises(BadInput):
        build("x1*x2", **request)
    assert not (tmp_path / "run").exists()


def test_load_gives_back_the_run(tmp_path):
    run = build("sin(x1)", on="[0, 1]", eps="0.05", out=tmp_path / "run")
    again = certiformer.load(tmp_path / "run")
    points = [[0.2], [0.7]]
    assert np.array_equal(again.evaluate(points), run.evaluate(points))
    assert again.summary() == {**run.summary(), "word": "proved, as recorded"}
    assert "certified" in repr(run) and "proved, as recorded" in repr(again)
    assert "<table>" in again._repr_html_()


def test_dry_run_predicts_the_size():
    predicted = dry_run("sin(x1)+sin(x2)", on="[0, 2*pi]^2", eps="0.1", method="voronoi")
    run = build("sin(x1)+sin(x2)", on="[0, 2*pi]^2", eps="0.1", rule="theorem")
    assert predicted["registers"] == run.model.config.registers
    assert predicted["dense"] == run.model.parameter_count()


def test_a_dry_run_of_auto_lists_the_methods_and_trains_nothing():
    predicted = dry_run("sin(x1)+sin(x2)", on="[0, 2*pi]^2", eps="0.1")
    assert [row["method"] for row in predicted["candidates"]][0] == predicted["method"]
    assert "fit" not in [row["method"] for row in predicted["candidates"]]


@pytest.mark.parametrize(
    "delay", [pytest.param(seconds, marks=pytest.mark.slow) for seconds in (1.2, 2.0, 3.0, 4.0, 5.0, 6.0)]
)
def test_kill_leaves_nothing_that_looks_finished_and_the_next_run_succeeds(delay, tmp_path):
    request = "'sin(x1*x2)', on='[0,2]^2', eps='0.05', out='run', rule='boxes', method='voronoi'"
    code = f"import certiformer; print(certiformer.build({request}).certified)"
    environment = dict(os.environ, PYTHONPATH=SOURCE)
    process = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL)
    time.sleep(delay)
    process.send_signal(signal.SIGKILL)
    killed = process.wait() == -signal.SIGKILL
    folder = tmp_path / "run"
    if killed and (folder / "certificate.json").exists():
        assert certiformer.check(folder).accepted  # published whole just before the signal
    done = subprocess.run(
        [sys.executable, "-c", code.replace("out='run'", "out='run', force=True")],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == "True", done.stderr
    assert certiformer.check(folder).accepted
    assert sorted(p.name for p in folder.iterdir()) == sorted(
        ["model.safetensors", "config.json", "target.json", "leaves.bin", "certificate.json"]
    )
    assert json.loads((folder / "certificate.json").read_text())["recorded"]["level"] == 2


def test_a_failing_canary_refuses_the_float64_search_but_not_the_ball_rules(monkeypatch):
    from certiformer.interval.canaries import Canaries
    from certiformer.search import box_evidence

    monkeypatch.setattr(box_evidence, "run_canaries", lambda batch: Canaries(("x / 3 is not IEEE",)))
    refused = build("sin(x1)", on="[0, 1]", eps="0.05", rule="boxes")
    assert refused.outcome is Outcome.UNDECIDED
    assert "x / 3" in refused.certificate.reason
    assert build("sin(x1)", on="[0, 1]", eps="0.05", rule="theorem").certified
