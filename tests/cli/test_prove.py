"""`certiformer prove`: the user's own transformer, good, wrong and broken."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

CLAIM = ("sin(x1)", "--on", "[0,2*pi]")


def test_a_network_that_is_good_enough_is_certified(cli, finished):
    done = cli("prove", str(finished), *CLAIM, "--eps", "0.25", "--json", "--quiet")
    assert done.code == 0 and done.err == ""
    data = done.data
    assert (data["outcome"], data["level"], data["method"]) == ("proved", 2, "given")
    assert data["directory"] == "runs/sin-x1"
    copied = Path(data["directory"], "model.safetensors").read_bytes()
    assert copied == (finished / "model.safetensors").read_bytes()


def test_a_network_that_is_not_is_refuted_with_the_point(cli, finished):
    done = cli("prove", str(finished), *CLAIM, "--eps", "0.01", "--out", "refuted")
    assert done.code == 1
    assert "refuted    At (" in done.out and "certified" not in done.out
    checked = cli("check", "refuted", "--json")
    assert checked.code == 1
    assert checked.data["outcome"] == "refuted" and checked.data["lower"] > 0.01
    assert "refuted" in Path("refuted/report.html").read_text(encoding="utf-8")


def spoil(folder: Path, name: str, change) -> None:
    path = folder / name
    path.write_bytes(change(path.read_bytes()))


def with_infinite_weight(data: bytes) -> bytes:
    """The last eight bytes of the file are one float64 weight."""
    return data[:-8] + b"\x00\x00\x00\x00\x00\x00\xf0\x7f"


@pytest.mark.parametrize(
    ("name", "change", "word"),
    [
        ("model.safetensors", lambda data: data[:-20], "safetensors"),
        ("model.safetensors", lambda data: data[:5], "safetensors"),
        ("model.safetensors", lambda data: b"\x80\x04pickle" + data, "safetensors"),
        ("model.safetensors", lambda data: data.replace(b"registers", b"registerz"), "registerz"),
        ("model.safetensors", with_infinite_weight, "finite"),
        ("config.json", lambda data: b"{}", "config.json"),
        ("config.json", lambda data: b"not json", "config.json"),
        ("config.json", lambda data: json.dumps({**json.loads(data), "width": 10**9}).encode(), "shape"),
    ],
)
def test_a_broken_model_is_one_sentence_and_nothing_is_written(cli, folder, name, change, word):
    spoil(folder, name, change)
    done = cli("prove", str(folder), *CLAIM, "--eps", "0.5", "--json")
    assert done.code == 2
    assert done.data["outcome"] == "error" and word in done.data["reason"]
    assert not Path("runs").exists()


def test_a_folder_that_is_not_there_and_a_claim_that_does_not_fit(cli, finished):
    for arguments, word in (
        (("gone", *CLAIM), "gone"),
        ((str(finished), "x1*x2", "--on", "[0,1]^2"), "axes"),
        ((str(finished), "[x1, x1]", "--on", "[0,1]"), "outputs"),
        ((str(finished), "x9", "--on", "[0,1]"), "x9"),
    ):
        done = cli("prove", *arguments, "--eps", "0.5")
        assert (done.code, done.out) == (2, "")
        assert done.err.count("\n") == 1 and word in done.err
    assert not Path("runs").exists()
