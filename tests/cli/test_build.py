"""`certiformer build`: results, exit codes, folders, and every kind of bad input."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from certiformer import load
from certiformer.cli.outcome import write_report
from certiformer.cli.terminal import Terminal
from certiformer.kernel.check import check
from certiformer.report import page
from certiformer.verify import branch_and_bound
from certiformer.verify.tree import SplitTree

PROMISED = {
    "outcome": str,
    "level": int,
    "epsilon": float,
    "lower": float,
    "upper": float,
    "method": str,
    "nonzero": int,
    "dense": int,
    "heads": int,
    "seconds": float,
    "directory": str,
}


def everything_below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_a_certified_build_for_a_reader(cli, tmp_path):
    done = cli("build", "-x1**2", "--on", "[-1,1]", "--eps", "0.2", "--method", "voronoi")
    assert done.code == 0
    labels = [line[:11].strip() for line in done.out.splitlines()]
    assert [label for label in labels if label] == ["built", "error", "certified", "proof", "folder", "next"]
    assert len(labels) <= 12
    assert "certified  At every real point x1 of [-1, 1]" in done.out and "-x1**2 by at\n" in done.out
    assert "certiformer check runs/x1-2 " in done.out
    assert done.err.startswith("constructing ...\n")
    report = (tmp_path / "runs" / "x1-2" / "report.html").read_text(encoding="utf-8")
    assert ">certified</span>" in report
    assert check(tmp_path / "runs" / "x1-2").accepted


def test_json_is_one_object_with_the_promised_fields(certified):
    assert (certified.code, certified.err) == (0, "")
    data = certified.data
    assert {name: type(data[name]) for name in PROMISED} == PROMISED
    assert data["outcome"] == "proved" and data["level"] == 2
    assert 0 < data["lower"] <= data["upper"] <= data["epsilon"] == 0.2
    assert Path(data["directory"], "certificate.json").is_file()


def test_level_1_is_never_called_certified(cli):
    done = cli("build", "x1", "--on", "[0,1]", "--eps", "0.2", "--method", "voronoi", "--level", "1", "--out", "one")
    assert done.code == 3
    assert "proved (numerical)" in done.out
    assert "certified" not in done.out + done.err
    assert "certified" not in Path("one/report.html").read_text(encoding="utf-8")


def test_a_finished_folder_is_replaced_only_by_force(cli, folder):
    before = (folder / "certificate.json").read_bytes()
    arguments = (
        "build",
        "x1",
        "--on",
        "[0,1]",
        "--eps",
        "0.2",
        "--method",
        "voronoi",
        "--rule",
        "theorem",
        "--json",
        "--quiet",
    )
    refused = cli(*arguments, "--out", str(folder))
    assert refused.code == 2 and "--force" in refused.data["reason"]
    assert (folder / "certificate.json").read_bytes() == before
    assert cli(*arguments, "--out", str(folder), "--force").code == 0
    assert (folder / "certificate.json").read_bytes() != before


def test_a_dry_run_writes_nothing(cli, tmp_path):
    done = cli("build", "x1*x2", "--on", "[0,1]^2", "--eps", "0.05", "--dry-run")
    assert done.code == 0 and "nothing: this was a dry run" in done.out
    data = cli("build", "x1*x2", "--on", "[0,1]^2", "--eps", "0.05", "--dry-run", "--json").data
    assert data["outcome"] == "estimate" and data["nonzero"] > 0 and data["bound"] <= 0.05
    assert len(data["candidates"]) > 2
    assert everything_below(tmp_path) == []


def test_no_proof_and_no_counterexample_is_undecided(cli):
    bounded = ("--method", "voronoi", "--rule", "boxes", "--boxes", "3")
    done = cli("build", "sin(x1)", "--on", "[0,6]", "--eps", "0.02", *bounded, "--out", "short")
    assert done.code == 3
    assert "undecided  The budget of 3 boxes is spent" in done.out and "certified" not in done.out
    assert "confirms that nothing is claimed" in done.out
    assert cli("check", "short").code == 3
    assert "undecided" in Path("short/report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("formula", "box"),
    [
        ("1/x1", "[-1,1]"),
        ("log(x1)", "[-1,1]"),
        ("sqrt(x1)", "[-2,-1]"),
        ("tan(x1)", "[0,3]"),
        ("x1/(x1-x2)", "[0,1]^2"),
    ],
)
def test_a_singular_target_is_invalid_with_the_sub_box_named(cli, tmp_path, formula, box):
    done = cli("build", formula, "--on", box, "--eps", "0.1")
    assert done.code == 2
    assert done.out.startswith("invalid") and re.search(r" on about \[[^\]]+, [^\]]+\]", done.out)
    as_json = cli("build", formula, "--on", box, "--eps", "0.1", "--json")
    assert as_json.code == 2
    assert as_json.data["outcome"] == "invalid" and re.search(r" on about \[[^\]]+, [^\]]+\]", as_json.data["reason"])
    assert everything_below(tmp_path) == []


GOOD = {"formula": "x1", "--on": "[0,1]", "--eps": "0.1"}
BAD_INPUT = [
    ({"formula": "sinn(x1)"}, "sinn"),
    ({"formula": "x2"}, "x2"),
    ({"formula": "x1 +"}, ""),
    ({"formula": "__import__('os')"}, ""),
    ({"formula": "9**9**9"}, "exponent"),
    ({"formula": "1" + "+x1" * 700}, "characters"),
    ({"formula": "(" * 101 + "x1" + ")" * 101}, "deep"),
    ({"formula": ""}, ""),
    ({"formula": "gone.py:f"}, "gone.py"),
    ({"--on": "[1,0]"}, "[1, 0]"),
    ({"--on": "[1,1]"}, "[1, 1]"),
    ({"--on": "[0,inf]"}, "inf"),
    ({"--on": "[0,1/0]"}, ""),
    ({"--on": "nonsense"}, ""),
    ({"--on": ""}, ""),
    ({"--eps": "0"}, "positive"),
    ({"--eps": "-0.1"}, "positive"),
    ({"--eps": "nan"}, "nan"),
    ({"--eps": "inf"}, "inf"),
    ({"--eps": "pi"}, "pi"),
    ({"--boxes": "0"}, "--boxes"),
    ({"--seconds": "-1"}, "--seconds"),
    ({"--seconds": "nan"}, "--seconds"),
    ({"--order": "99"}, "--order"),
]


@pytest.mark.parametrize(("change", "word"), BAD_INPUT)
def test_bad_input_is_one_sentence_and_nothing_is_written(cli, tmp_path, change, word):
    wanted = {**GOOD, **change}
    arguments = ["build", wanted.pop("formula"), *(part for pair in wanted.items() for part in pair)]
    done = cli(*arguments)
    assert (done.code, done.out) == (2, ""), done
    assert done.err.startswith("certiformer: ") and done.err.count("\n") == 1 and word in done.err
    as_json = cli(*arguments, "--json")
    assert as_json.code == 2 and as_json.data == {"outcome": "error", "reason": done.err[len("certiformer: ") : -1]}
    assert everything_below(tmp_path) == []


def test_a_jax_function_of_a_file(cli):
    Path("surface.py").write_text("import jax.numpy as jnp\ndef height(x):\n    return jnp.sin(x[0])\n")
    Path("plain.py").write_text("import math\ndef height(x):\n    return math.sin(x[0])\n")
    arguments = ("--on", "[0,1]", "--eps", "0.1", "--method", "voronoi", "--rule", "theorem", "--json", "--quiet")
    good = cli("build", "surface.py:height", *arguments)
    assert good.code == 0
    assert "sin(x1)" in good.data["sentence"]
    Path("exits.py").write_text("def height(x):\n    raise SystemExit(0)\n")
    for name in ("plain", "exits"):
        bad = cli("build", f"{name}.py:height", *arguments)
        assert bad.code == 2 and bad.data["outcome"] == "error"
    assert everything_below(Path("runs"))[0].startswith("surface-py-height")


SEARCHED = ("build", "sin(x1)", "--on", "[0,2*pi]", "--eps", "0.1", "--method", "voronoi", "--rule", "boxes", "--quiet")


@pytest.mark.parametrize("saved", [True, False])
def test_an_interruption_says_whether_the_same_command_goes_on(cli, monkeypatch, tmp_path, saved):
    saves, restored, save, restore = [], [], SplitTree.save, SplitTree.restore

    def interrupted(tree, path, seal):
        if saved:
            save(tree, path, seal)
        if not saves:
            saves.append(tree.count)
            raise KeyboardInterrupt

    def noted(path, seal, dimension):
        tree = restore(path, seal, dimension)
        restored.append(None if tree is None else tree.count)
        return tree

    monkeypatch.setattr(branch_and_bound, "CHECKPOINT_SECONDS", -1.0)
    monkeypatch.setattr(SplitTree, "save", interrupted)
    monkeypatch.setattr(SplitTree, "restore", noted)
    done = cli(*SEARCHED)
    assert (done.code, done.out) == (130, "")
    kept = "interrupted; the same command goes on from what is kept: "
    nothing = "interrupted, and nothing is kept; the same command begins again: "
    assert done.err == f"certiformer: {kept if saved else nothing}{shlex.join(('certiformer', *SEARCHED))}\n"
    assert sorted(path.name for path in tmp_path.glob("runs/*")) == ([".sin-x1.certiformer"] if saved else [])
    assert cli(*SEARCHED).code == 0
    assert restored == [None, saves[0] if saved else None]
    assert sorted(path.name for path in tmp_path.glob("runs/*")) == ["sin-x1"]


def test_a_report_that_fails_does_not_spoil_the_proof(capsys, monkeypatch, folder):
    def broken(data):
        raise ValueError("no ink")

    monkeypatch.setattr(page, "write", broken)
    before = (folder / "report.html").read_bytes()
    assert write_report(load(folder), Terminal()) is None
    assert "no ink" in capsys.readouterr().err
    assert (folder / "report.html").read_bytes() == before and check(folder).accepted


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (("--tokens", "2"), "--tokens must divide the number of inputs, which is 3"),
        (("--out-tokens", "2"), "--out-tokens must divide the number of outputs, which is 3"),
        (("--out-width", "2"), "--out-width must divide the number of outputs, which is 3"),
        (("--tokens", "3", "--out-tokens", "3", "--out-width", "3"), "is not the number of outputs"),
    ],
)
@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
def test_a_sequence_request_that_contradicts_itself(cli, tmp_path, flags, reason, dry):
    done = cli("build", "[x1, x2, x3]", "--on", "[0,1]^3", "--eps", "0.1", *flags, *dry, "--json")
    assert done.code == 2 and reason in done.data["reason"]
    assert everything_below(tmp_path) == []
