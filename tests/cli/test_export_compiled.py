"""`certiformer export` of a compiled program: every format, the claim with it, and what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from certiformer.cli.main import main

STOCK = ("transformerlens", "gpt2", "llama", "phi3")
PROGRAM = """
from certiformer import rasp
before = rasp.Select(rasp.indices, rasp.indices, rasp.Comparison.LEQ)
seen = rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ) & before)
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory) -> Path:
    """Folders of a causal program in two types, and of one that looks ahead; not to be changed."""
    place = tmp_path_factory.mktemp("compiled")
    (place / "mine.py").write_text(PROGRAM, encoding="utf-8")
    base = ["compile", f"{place}/mine.py:seen", "--vocab", "a,b", "--length", "6", "--causal", "--quiet"]
    for dtype in ("float32", "float64"):
        assert main([*base, "--dtype", dtype, "--out", str(place / dtype)]) == 0
    assert main(["compile", "reverse", "--length", "4", "--quiet", "--out", str(place / "reverse")]) == 0
    return place


@pytest.mark.parametrize("kind", STOCK)
def test_the_claim_and_the_tokens_go_along(cli, compiled, kind):
    done = cli("export", str(compiled / "float32"), "--to", kind, "--out", "out", "--json")
    assert done.code == 0 and done.err == ""
    assert done.data["notes"]["claim"].endswith("in real arithmetic and in a run in float32.")
    assert f"> {done.data['notes']['claim']}" in Path("out/README.md").read_text(encoding="utf-8")
    tokens = json.loads(Path("out/tokens.json").read_text(encoding="utf-8"))
    assert [entry["value"] for entry in tokens["inputs"]] == ["a", "b"]
    assert [entry["value"] for entry in tokens["outputs"]] == [1, 2, 3, 4, 5, 6]
    assert "use " in cli("export", str(compiled / "float32"), "--to", kind, "--out", "out", "--force").out


@pytest.mark.parametrize("kind", ["onnx", "torch", "hf"])
def test_the_other_formats_take_programs_too(cli, compiled, kind):
    if kind == "onnx":
        pytest.importorskip("onnx", reason='the library onnx is not installed: pip install "certiformer[onnx]"')
    done = cli(
        "export", str(compiled / "float32"), "--to", kind, "--out", "out.onnx" if kind == "onnx" else "out", "--json"
    )
    assert done.code == 0 and "claim" in done.data["notes"]


def test_a_float64_program_is_proved_again_for_llama(cli, compiled):
    done = cli("export", str(compiled / "float64"), "--to", "llama", "--out", "out", "--json")
    assert done.code == 0 and done.data["notes"]["claim"].endswith("in a run in float32.")
    config = json.loads(Path("out/config.json").read_text(encoding="utf-8"))
    assert config["dtype"] == "float32"


def test_a_program_that_looks_ahead_is_refused_in_one_sentence(cli, compiled):
    for kind in ("gpt2", "llama", "phi3"):
        done = cli("export", str(compiled / "reverse"), "--to", kind, "--out", "out")
        assert (done.code, done.out) == (2, "") and "looks ahead" in done.err and done.err.count("\n") == 1
    assert cli("export", str(compiled / "reverse"), "--to", "transformerlens", "--out", "out").code == 0


@pytest.mark.parametrize("name", ["model.safetensors", "program.json", "circuit.json"])
def test_a_certificate_about_other_files_is_refused(cli, compiled, name):
    shutil.copytree(compiled / "float32", "mine")
    Path("mine", name).write_bytes(Path("mine", name).read_bytes() + b" ")
    done = cli("export", "mine", "--to", "gpt2")
    assert (done.code, done.out) == (2, "") and f"is about another {name}" in done.err
