"""One writer at a time, and never over its own input: every verb that writes a folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import certiformer

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(certiformer.__file__).parents[1])}
HOLDER = """
import sys
from certiformer.disk import Workplace
with Workplace("out"):
    print("held", flush=True)
    sys.stdin.read()
"""
SINE = ("sin(x1)", "--on", "[0,2*pi]", "--eps", "0.2")
VERBS = {
    "build": ("build", *SINE, "--method", "voronoi"),
    "build a table": ("build", "data.csv", "--inputs", "x1", "--outputs", "y"),
    "prove": ("prove", "model", *SINE),
    "compile": ("compile", "reverse", "--vocab", "a,b", "--length", "3"),
    "compile automaton": ("compile", "automaton", "(ab)*", "--length", "8"),
    "compile incontext": ("compile", "incontext", "gd", "--features", "1"),
    "export": ("export", "model", "--to", "torch"),
    "rates": ("rates", "jackson", "--no-trained", "--engine", "here"),
}


@pytest.fixture
def inputs(finished, tmp_path):
    shutil.copytree(finished, tmp_path / "model")
    (tmp_path / "data.csv").write_text("x1,y\n0,1\n1,2\n")


@pytest.mark.parametrize("verb", VERBS)
def test_a_folder_that_another_process_writes_is_refused_with_its_number(cli, inputs, tmp_path, verb):
    before = sorted(os.listdir(tmp_path))
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENVIRONMENT
    ) as holder:
        holder.stdout.readline()
        done = cli(*VERBS[verb], "--out", "out")
        said = f"certiformer: out is being written by process {holder.pid}; wait for it or choose another --out\n"
        assert done.code == 2 and done.err.endswith(said)
        holder.stdin.close()
    assert sorted(os.listdir(tmp_path)) == before


@pytest.mark.parametrize(
    "command",
    [
        ("prove", "model", *SINE),
        ("export", "model", "--to", "hf"),
        ("build", "model", "--on", "[0,1]", "--eps", "0.1"),
    ],
    ids=lambda command: command[0],
)
def test_what_a_command_reads_is_never_replaced(cli, inputs, tmp_path, command):
    before = {path.name: path.read_bytes() for path in (tmp_path / "model").iterdir()}
    (tmp_path / "again").symlink_to("model")
    for out in ("model", "./model/", "again"):
        done = cli(*command, "--out", out, "--force")
        assert done.code == 2 and "would replace model, which this command reads" in done.err
    assert {path.name: path.read_bytes() for path in (tmp_path / "model").iterdir()} == before
