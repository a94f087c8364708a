"""`certiformer export`: files beside the run, the claim with them, and no claim about other weights."""

from __future__ import annotations

import hashlib
import sys
from dataclasses import replace

import numpy as np
import pytest

from certiformer import load
from certiformer.kernel.certificate import Outcome
from certiformer.kernel.check import check
from certiformer.model import save


def test_onnx_carries_the_claim_and_computes_the_same(cli, folder):
    onnx = pytest.importorskip("onnx", reason='the library onnx is not installed: pip install "certiformer[onnx]"')
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    done = cli("export", str(folder), "--to", "onnx", "--json")
    assert done.code == 0 and done.err == ""
    path = folder.with_name("copy.onnx")
    assert done.data["files"] == [str(path)] and done.data["bytes"] == path.stat().st_size
    props = {entry.key: entry.value for entry in onnx.load(path).metadata_props}
    assert props == done.data["notes"]
    assert props["claim"] == check(folder).sentence
    assert props["model_sha256"] == hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    assert "rounding" in props["claim_scope"] and props["recorded"] == "proved, as recorded"
    points = np.linspace(0, 6, 50)[:, None]
    outputs = runtime.InferenceSession(path).run(None, {"points": points})[0]
    assert np.abs(outputs - load(folder).evaluate(points)).max() <= 1e-10  # see tests/export/cases.py


def test_a_place_that_is_taken_needs_force(cli, folder):
    for arguments, code in (([], 0), ([], 2), (["--force"], 0)):
        done = cli("export", str(folder), "--to", "torch", *arguments)
        assert done.code == code
    assert "use " in done.out and "claim " in done.out
    assert cli("export", str(folder), "--to", "torch", "--json").data["reason"].count("--force") == 1
    assert check(folder).accepted


def test_a_model_folder_has_no_claim(cli, folder, tmp_path):
    save(load(folder).model, tmp_path / "bare")
    done = cli("export", str(tmp_path / "bare"), "--to", "hf", "--out", "new/card", "--quiet")
    assert (done.code, done.out, done.err) == (0, "new/card\n", "")
    assert "Nothing: no proof" in (tmp_path / "new" / "card" / "README.md").read_text(encoding="utf-8")
    assert "none goes along (no certificate)" in cli("export", str(tmp_path / "bare"), "--to", "hf").out


def test_a_claim_that_is_not_proved_is_not_carried(cli, folder):
    certificate = replace(load(folder).certificate, outcome=Outcome.UNDECIDED, level=0)
    (folder / "certificate.json").write_bytes(certificate.to_bytes())
    notes = cli("export", str(folder), "--to", "torch", "--json").data["notes"]
    assert notes["recorded"] == "undecided" and "claim" not in notes


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "target.json"])
def test_a_certificate_about_other_files_is_refused(cli, folder, name):
    (folder / name).write_bytes((folder / name).read_bytes() + b" ")
    done = cli("export", str(folder), "--to", "hf")
    assert (done.code, done.out) == (2, "")
    assert f"is about another {name}" in done.err and not folder.with_name("copy-hf").exists()


def test_a_missing_library_or_folder_is_one_sentence(cli, folder, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "onnx", None)
    done = cli("export", str(folder), "--to", "onnx")
    assert (done.code, done.out) == (2, "")
    assert done.err.endswith('pip install "certiformer[onnx]"\n') and done.err.count("\n") == 1
    assert "is not a folder" in cli("export", "gone", "--to", "hf", "--json").data["reason"]
    (tmp_path / "empty").mkdir()
    assert "holds no model.safetensors" in cli("export", "empty", "--to", "hf", "--json").data["reason"]
    assert cli("export", str(folder), "--to", "pickle").code == 2
