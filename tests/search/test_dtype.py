"""`--dtype`: the weights are stored in that type before the proof, and the rounding of runs is bounded as well."""

from __future__ import annotations

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from certiformer.errors import BadInput
from certiformer.kernel.check import check
from certiformer.kernel.files import CERTIFICATE
from certiformer.search import build
from negative.forge import reseal


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return build(
        "sin(x1)+sin(x2)",
        on="[0, 2*pi]^2",
        eps="0.05",
        method="ridge",
        dtype="float32",
        out=tmp_path_factory.mktemp("dtype") / "run",
    )


def test_the_proof_speaks_of_the_rounded_weights(run):
    assert run.certified and run.model.config.dtype == "float32"
    up = np.asarray(run.model.tensors["blocks.0.ffn.up_bias"])
    assert up.dtype == np.float32
    assert check(run.directory).accepted


def test_a_run_in_float32_stays_within_both_bounds(run):
    points = np.random.default_rng(0).uniform(0, 6.25, (500, 2)).astype(np.float32)
    config = run.model.config
    single = jax.tree.map(jnp.asarray, run.model)
    with jax.enable_x64(False):
        ran = np.array([np.asarray(single(jnp.asarray(p.reshape(config.tokens, -1)))) for p in points[:200]])
    assert ran.dtype == np.float32
    exact = np.sin(points[:200].astype(float)).sum(1)
    error = np.abs(ran[:, 0].astype(float) - exact).max()
    assert error <= run.upper + float(run.certificate.run_error)
    assert 0 < float(run.certificate.run_error) < 1e-3


def test_a_smaller_recorded_run_error_is_refused(run, tmp_path):
    import shutil

    folder = tmp_path / "forged"
    shutil.copytree(run.directory, folder)
    recorded = json.loads((folder / CERTIFICATE).read_bytes())["run_error"]
    reseal(folder, run_error=repr(float(recorded) / 50))
    assert check(folder).outcome == "refused"


def test_without_dtype_nothing_is_claimed_about_runs():
    plain = build("x1", on="[0,1]", eps="0.1", method="gather")
    assert plain.certified and plain.certificate.run_error is None
    assert b"run_error" not in plain.certificate.to_bytes()


def test_unknown_types_are_one_sentence():
    with pytest.raises(BadInput, match="--dtype is one of"):
        build("x1", on="[0,1]", eps="0.1", dtype="float16")
