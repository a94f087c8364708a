"""`compile circuit`, and `run`, `check`, `show` of its folder."""

from __future__ import annotations

import json

import pytest

from certiformer.cli.main import main

ADDER = """
inputs = ["a", "b", "c"]
outputs = ["carry", "sum"]
gates = [["sum", "XOR", "a", "b", "c"], ["carry", "00010111", "a", "b", "c"]]
"""


@pytest.fixture
def adder(tmp_path, capsys):
    (tmp_path / "adder.toml").write_text(ADDER)
    assert main(["compile", "circuit", str(tmp_path / "adder.toml"), "--out", str(tmp_path / "run"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["outcome"] == "proved" and facts["level"] == 2 and (facts["inputs"], facts["hidden"]) == (3, 8)
    return tmp_path / "run"


def test_the_adder(adder, capsys):
    assert main(["run", str(adder), "1 0 1", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["outputs"] == [1, 0] and facts["names"] == ["carry", "sum"] and facts["gates"]["sum"] == 0
    assert main(["run", str(adder), "111", "--trace"]) == 0
    printed = capsys.readouterr().out
    assert "carry=1 sum=1" in printed and "sum~1" in printed
    assert main(["run", str(adder), "111", "--quiet"]) == 0
    assert capsys.readouterr().out == "1 1\n"
    assert main(["check", str(adder)]) == 0 and main(["show", str(adder)]) == 0
    assert "For each of the 2^3 inputs" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["1 0"], "the circuit has 3 inputs, and 2 bits are given"),
        (["1 0 x"], "bit 3 of the input is 'x', which is not 0 or 1"),
        (["1 0 1", "--steps", "3"], "--steps is not for a compiled circuit"),
    ],
)
def test_bad_inputs(adder, arguments, message, capsys):
    assert main(["run", str(adder), *arguments]) == 2
    assert message in capsys.readouterr().err


def test_bad_files(tmp_path, capsys):
    path = tmp_path / "loop.toml"
    path.write_text('inputs = ["a"]\noutputs = ["y"]\ngates = [["y", "AND", "a", "z"], ["z", "NOT", "y"]]')
    assert main(["compile", "circuit", str(path), "--out", str(tmp_path / "run")]) == 2
    assert "the circuit has a cycle" in capsys.readouterr().err and not (tmp_path / "run").exists()
