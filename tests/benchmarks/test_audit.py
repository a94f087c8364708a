"""The benchmarks of the audit on small models: the writer of checkpoints, the peer that is missing, and any device."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from certiformer.audit import audit

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def writer() -> ModuleType:
    path = ROOT / "benchmarks" / "_llama_checkpoint.py"
    specification = importlib.util.spec_from_file_location("llama_checkpoint", path)
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_the_written_shards_are_a_complete_llama(writer, tmp_path, monkeypatch):
    for name, value in {"WIDTH": 64, "HIDDEN": 96, "HEADS": 4, "WORDS": 128, "POOL": 10_007, "SHARD": 1 << 17}.items():
        monkeypatch.setattr(writer, name, value)
    total = writer.write(tmp_path, layers=3)
    found = audit(tmp_path)
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    assert found.complete and found.coverage.total == total
    assert [len(layer.heads) for layer in found.measurements.layers] == [4, 4, 4]


def test_the_full_size_is_that_of_llama_2(writer):
    assert sum(rows * (shape[0] if shape else 1) for _, (rows, *shape) in writer.shapes(32)) == 6_738_415_616


def test_what_is_missing_is_skipped_and_said():
    command = [sys.executable, str(ROOT / "benchmarks" / "audit.py"), "minilm", "large", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={"PATH": ""})
    facts = json.loads(done.stdout)
    assert done.returncode == 0 and all("skipped" in facts[case] for case in ("minilm", "large"))


def test_small_layers_agree_on_any_device():
    command = [sys.executable, str(ROOT / "benchmarks" / "gpu" / "audit.py"), "--tiny", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    facts = json.loads(done.stdout)
    assert done.returncode == 0, done.stderr
    assert facts["deviation"] < 1e-12 and facts["map_deviation"] < 1e-6 and facts["maps"] == 16
