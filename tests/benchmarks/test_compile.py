"""The comparison with Tracr: skipped with a word without it, honest in its counting, and the same programs on both sides."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from certiformer.rasp.library import catalogue

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
VARIABLE = "CERTIFORMER_TRACR_PYTHON"


@pytest.fixture
def module(monkeypatch):
    """A function that imports a module of the benchmarks folder, which is not a package."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module


@pytest.fixture
def benchmark(module, monkeypatch):
    """The script, without a peer and without leave to change the cores of the test process."""
    spec = importlib.util.spec_from_file_location("benchmarks_compile", BENCHMARKS / "compile.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    monkeypatch.delattr(os, "sched_setaffinity", raising=False)
    monkeypatch.delenv(VARIABLE, raising=False)
    return script


OURS = {"certified": True, "margin": "", "wrong": 0, "tried": 9, "cpu": 0.02, "parameters": 100, "jitted": 50.0}
PEER = {"cpu": 2.0, "parameters": 100, "wrong": 0, "tried": 9, "jitted": 10.0, "shipped": 1.0}


def row(ours=None, peer=None, name="hist", length=50):
    """A row that meets every goal exactly, with these changes; a figure that is None is left out."""
    sides = [{**side, **(changes or {})} for side, changes in ((OURS, ours), (PEER, peer))]
    ours, peer = ({key: value for key, value in side.items() if value is not None} for side in sides)
    made = {"name": name, "length": length, "vocabulary": 4, "ours": ours, "peer": peer}
    return {**made, "ratios": {}}


@pytest.mark.parametrize(
    ("changed", "missed"),
    [
        (row(), None),
        (row({"certified": False, "margin": "leaks"}), "certified by"),
        (row({"wrong": 1}), "agrees with"),
        (row({"tried": 0}), "agrees with"),
        (row({"wrong": None}), "agrees with"),
        (row({"cpu": 0.1}, {"cpu": 60.0}), "compiled in"),
        (row({"cpu": 0.9}, {"cpu": 90.0}, length=1000), None),
        (row({"cpu": 1.0}, {"cpu": 100.0}, length=1000), "compiled in"),
        (row({"cpu": 0.021}), "times faster"),
        (row({"parameters": 101}), "no more parameters"),
        (row({"parameters": 2}, name="reverse"), "no more parameters"),
        (row({"parameters": 1}, name="reverse"), None),
        (row({"parameters": 3}, name="dyck1", length=20), "no more parameters"),
        (row({"parameters": 2}, name="dyck1", length=20), None),
        (row({"jitted": 49.0}), "forward pass"),
        (row({"jitted": None}), "forward pass"),
        # What the peer cannot do is not compared; where it was out of time its limit counts.
        (row({"parameters": 101, "cpu": 0.09}, dict.fromkeys(PEER)), None),
        (row({"cpu": 0.09}, {**dict.fromkeys(PEER), "cpu": 8.9, "reason": "out of time"}), "times faster"),
    ],
)
def test_every_goal_is_demanded_exactly(module, benchmark, monkeypatch, capsys, changed, missed):
    goals = list(module("_compile_goals").judged([row(), changed]))
    found = [goal["goal"] for goal in goals if goal["missed"]]
    assert len(found) == (missed is not None) and all(missed in goal for goal in found)
    monkeypatch.setattr(benchmark, "measured", lambda cases, alone, limit: [changed])
    for arguments in (["hist"], ["hist", "--json"], ["hist", "--quiet"]):
        assert benchmark.main(arguments) == (0 if missed is None else 1)
        told = capsys.readouterr().out
        if missed is not None:
            assert missed in (told if "--json" not in arguments else " ".join(json.loads(told)["missed"]))


def test_the_ratios(module):
    found = module("_compile_goals").ratios(row({"cpu": 0.01, "parameters": 50, "jitted": 100.0}))
    assert found == {"seconds": 200.0, "parameters": 2.0, "forward": 10.0, "shipped": 100.0}


def test_without_tracr_the_comparison_is_skipped_with_a_word(benchmark, monkeypatch, capsys, tmp_path):
    (tmp_path / "tracr.py").write_text("raise ImportError('not in this test')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    asked = []
    ours = {key: value for key, value in row().items() if key != "peer"}
    monkeypatch.setattr(benchmark, "measured", lambda cases, alone, limit: asked.append(alone) or [ours])
    for python, why in (("", "does not name"), ("/does/not/exist", "cannot be run"), (sys.executable, "not in this")):
        monkeypatch.setenv(VARIABLE, python)
        assert benchmark.main(["hist"]) == 0
        assert "skipped" in (told := capsys.readouterr().out) and VARIABLE in told and why in told
        assert benchmark.main(["hist", "--json"]) == 0
        assert why in json.loads(capsys.readouterr().out)["skipped"]
    assert asked and all(asked)


def test_a_process_that_fails_is_named_and_misses_the_goals(benchmark, module, monkeypatch):
    failed = subprocess.CompletedProcess([], 1, stdout="", stderr="Traceback\nOops: it broke\n")
    monkeypatch.setattr(benchmark, "_run", lambda command, timeout=None: failed)
    monkeypatch.setenv(VARIABLE, "python")
    (made,) = benchmark.measured([module("_compile_cases").Case("hist", 5, ("a",), 4)], False, 60.0)
    assert made["ours"] == {"reason": "our process failed: Oops: it broke"}
    assert made["peer"] == {"reason": "failed: Oops: it broke"}
    missed = [goal["goal"] for goal in module("_compile_goals").judged([made]) if goal["missed"]]
    assert len(missed) == 3  # certified, exact, compiled in time; nothing to compare
    assert "Oops" in benchmark.line(made)


def test_after_one_length_out_of_time_longer_ones_are_not_tried(benchmark, module, monkeypatch):
    cases = module("_compile_cases").cases_of("hist", ("a", "b", "c"))
    tried = []

    def peer(case, limit, hopeless):
        tried.append((case.length, case.asked, hopeless))
        return {"cpu": limit, "reason": "out of time"} if case.length == 20 and case.asked == 4 else {"cpu": 3.0}

    monkeypatch.setenv(VARIABLE, "python")
    monkeypatch.setattr(benchmark, "our_figures", lambda cases: [{"reason": "x"} for _ in cases])
    monkeypatch.setattr(benchmark, "peer_figures", peer)
    list(benchmark.measured(cases, False, 60.0))
    assert [length for length, asked, hopeless in tried if hopeless] == [50, 100, 1000]
    assert {asked for _, asked, hopeless in tried if hopeless} == {4}


def test_both_sides_have_the_same_programs(module):
    """Tracr is not installed here, so the keys of the peer's table are read from its source."""
    tree = ast.parse((BENCHMARKS / "_tracr_peer.py").read_text())
    (table,) = [node.value for node in tree.body if isinstance(node, ast.AnnAssign)]
    keys = [key.value for key in table.keys]
    assert sorted(keys) == sorted(module("_compile_cases").PEER_NAMES)
    assert set(keys) <= set(catalogue())


def test_vocabularies_have_the_size_asked_for_or_are_the_programs_own(module):
    cases = module("_compile_cases")
    kept = {}
    for name, entry in catalogue().items():
        for size in cases.SIZES:
            vocab = cases.vocabulary(name, entry.vocab, size)
            assert len(set(vocab)) == len(vocab)
            assert name == "sort_unique" or set(entry.vocab) <= set(vocab)
            if len(vocab) != size:
                assert vocab == entry.vocab
                kept.setdefault(size, []).append(name)
        assert {case.length for case in cases.cases_of(name, entry.vocab)} >= set(cases.LENGTHS)
    assert kept == {4: ["dyck3", "shuffle_dyck3", "addition"], 20: ["addition"]}
    assert all(cases.cases_of(name, catalogue()[name].vocab)[-1].length == 1000 for name in cases.LONG_NAMES)


def test_a_case_survives_the_command_line(module):
    case = module("_compile_cases").Case("mean_after_delimiter", 5, (1, 2, "|", 3), 4)
    assert type(case).from_text(case.to_text()) == case


@pytest.mark.parametrize("name", ["dyck2", "shuffle_dyck1", "addition", "sort_unique", "palindrome"])
def test_inputs_contain_what_a_program_is_meant_for(module, name):
    entry = catalogue()[name]
    vocab = module("_compile_cases").vocabulary(name, entry.vocab, 20)
    inputs = module("_compile_inputs").drawn(name, 11, vocab, 30)
    assert inputs == module("_compile_inputs").drawn(name, 11, vocab, 30)
    assert all(len(xs) == 11 and set(xs) <= set(vocab) for xs in inputs)
    if name in ("addition", "sort_unique"):
        assert sum(entry.fits(xs) for xs in inputs) >= 10
    else:
        # Both answers occur: a program that always says no is noticed.
        assert {entry.oracle(xs)[0] for xs in inputs} == {True, False}


def test_our_side_is_certified_and_notices_a_wrong_transformer(module):
    from certiformer.api.compiling import compile as compile_certified

    ours = module("_compile_ours")
    case = module("_compile_cases").Case("shift", 8, ("a", "b", "c", "d"), 4)
    found = ours.figures(case)
    assert found["certified"] and (found["wrong"], found["all_inputs"]) == (0, False) and found["tried"] > 20
    assert set(ours.compile_seconds(case, "float32")) == {"seconds", "cpu", "again"}
    small = ours.figures(replace(case, length=2))
    assert (small["tried"], small["wrong"], small["all_inputs"]) == (4 + 16, 0, True)

    program = catalogue()["shift"].make()
    made = compile_certified(program, case.vocab, case.length, certified=False)
    made.model.tensors["readout.bias"] = np.roll(np.asarray(made.model.tensors["readout.bias"]), 1)
    assert ours.agreement(case, made.subject, program)["wrong"] > 0
