"""The busy beaver on whatever device there is, for a few steps."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_a_short_run_is_right():
    flags = ["--steps", "20000", "--near-steps", "300", "--tape", "800", "--json"]
    command = [sys.executable, str(ROOT / "benchmarks" / "gpu" / "busy_beaver.py"), *flags]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert (
        facts["cached"]["steps"] == 20_000 and facts["cached"]["right"] and facts["cached"]["passes_computed"] < 20_000
    )
    assert facts["near"]["steps"] == 300 and facts["near"]["right"] and facts["near"]["deviation"] == 0.0
