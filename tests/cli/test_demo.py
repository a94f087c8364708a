"""`python -m certiformer`: the demonstration shows an acceptance and a refusal and leaves nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

from certiformer import load, search
from certiformer.cli import demo
from certiformer.kernel.check import Verdict


def test_the_demonstration(tmp_path):
    environment = {**os.environ, "TMPDIR": str(tmp_path), "HOME": str(tmp_path)}
    command = [sys.executable, "-m", "certiformer"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    accepted, refused = done.stdout.find("\ncertified  At every"), done.stdout.find("\nrefused ")
    assert 0 < accepted < refused
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_exit_code_notices_a_checker_that_accepts_everything(cli, finished, monkeypatch):
    monkeypatch.setattr(search, "build", lambda *arguments, **options: replace(load(finished), recorded=False))
    assert cli("demo").code == 0
    accepts = Verdict("proved", 2, "0.1", None, "every step was recomputed", "")
    monkeypatch.setattr(demo, "_break_and_check", lambda built, folder: accepts)
    assert cli("demo").code == 1
