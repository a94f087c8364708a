"""A training that is killed goes on, and the model is the same bit for bit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import certiformer
from certiformer.kernel.files import MODEL
from recommend.shop import rows, write

FLAGS = ["--width", "16", "--blocks", "1", "--length", "12", "--core", "2", "--batch", "4", "--epochs", "1500"]
FLAGS += ["--patience", "1500", "--quiet"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(certiformer.__file__).parents[1])}


def command(out: str) -> list[str]:
    return [sys.executable, "-m", "certiformer", "recommend", "fit", "shop.csv", *FLAGS, "--out", out]


@pytest.mark.slow
def test_kill_9_and_again_is_the_same_model(tmp_path):
    write(tmp_path / "shop.csv", rows(120))
    subprocess.run(command("whole"), cwd=tmp_path, env=ENVIRONMENT, check=True, capture_output=True)
    index = tmp_path / ".killed.certiformer" / "kept" / "training" / "training.json"
    with subprocess.Popen(command("killed"), cwd=tmp_path, env=ENVIRONMENT, stdout=subprocess.DEVNULL) as victim:
        deadline = time.monotonic() + 300
        while not index.exists() and victim.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        assert index.exists() and victim.poll() is None, "the training ended before it could be killed"
        victim.send_signal(signal.SIGKILL)
    assert not (tmp_path / "killed").exists()
    subprocess.run(command("killed"), cwd=tmp_path, env=ENVIRONMENT, check=True, capture_output=True)
    assert not index.exists()
    for name in (MODEL, "recommend.json", "log.safetensors"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name
