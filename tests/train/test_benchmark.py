"""The benchmark of training: both sides see the same batches, and a missing peer is said in a sentence."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def models():
    specification = importlib.util.spec_from_file_location("_train_models", FOLDER / "_train_models.py")
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_the_order_for_the_peer_is_what_members_draw(models):
    points, wanted = models.batches(None, 2)

    @jax.jit
    def drawn(step):
        key = jax.random.fold_in(jax.random.key(np.uint32(0)), step)
        return models.draw(key, None, (jax.numpy.asarray(points), jax.numpy.asarray(wanted)))

    for step, place in enumerate(models.order(6)):
        x, y = drawn(step)
        assert np.array_equal(x, points[place]) and np.array_equal(y, wanted[place])
    assert len(set(models.order(30).tolist())) == models.BATCHES


def test_sizes_are_those_claimed(models):
    assert sum(tensor[0].size for tensor in models.starts(1).values()) == 3345
    # Per token of the forward pass: embedding 64, three projections 1,536, scores and mixing 512, output 512, units 4,096.
    assert models.step_operations(32) == 3 * 32 * (8 * (64 + 1536 + 512 + 512 + 4096) + 32)


def test_a_missing_peer_is_skipped_in_a_sentence():
    environment = {**os.environ, "CERTIFORMER_TORCH_PYTHON": "/does/not/exist"}
    command = [sys.executable, str(FOLDER / "train.py")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout == (
        "skipped: CERTIFORMER_TORCH_PYTHON=/does/not/exist cannot be run: No such file or directory\n"
    )
    listed = subprocess.run([*command, "--list"], capture_output=True, text=True)
    assert listed.stdout.splitlines()[0] == "batch-32   1,000 models, goal 6 times"
