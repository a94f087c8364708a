"""Every verb that writes, killed (signal 9) at its file operations: the old or the new result is there, whole, and the next
run succeeds and leaves nothing else. The slow tests kill at every other operation, some 200 times in all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import certiformer
from certiformer.cli.main import main

DRIVER = Path(__file__).with_name("kill_driver.py")
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(certiformer.__file__).parents[1]), "JAX_PLATFORMS": "cpu"}
LINE = ("--on", "[0,1]", "--eps", "0.3", "--quiet", "--force")  # affine targets, which are proved in the shortest time
STUDY = (
    "rates",
    "jackson",
    "--no-trained",
    "--diagonal",
    "masked",
    "--target-rank",
    "inf",
    "--mh",
    "1",
    "2",
    "4",
    "--cut",
    "8",
    "--samples",
    "32",
    "--engine",
    "here",
    "--quiet",
)


@dataclass(frozen=True)
class Case:
    """A command that makes the old result, and one that replaces it."""

    first: tuple[str, ...]
    command: tuple[str, ...]
    out: str
    few: tuple[int, ...]  # operations at which it is killed in the quick test


CASES = {
    "build": Case(
        ("build", "x1", *LINE, "--method", "gather", "--out", "out"),
        ("build", "2*x1", *LINE, "--method", "gather", "--out", "out"),
        "out",
        (9,),
    ),
    "prove": Case(
        ("prove", "one", "x1", *LINE, "--out", "out"),
        ("prove", "two", "2*x1", *LINE, "--out", "out"),
        "out",
        (14,),
    ),
    "compile": Case(
        ("compile", "reverse", "--vocab", "a,b", "--length", "3", "--quiet", "--force", "--out", "out"),
        ("compile", "reverse", "--vocab", "a,b", "--length", "4", "--quiet", "--force", "--out", "out"),
        "out",
        (2, 13, 18),
    ),
    "export": Case(
        ("export", "long", "--to", "torch", "--quiet", "--force", "--out", "out"),
        ("export", "short", "--to", "torch", "--quiet", "--force", "--out", "out"),
        "out",
        (5, 12, 14),
    ),
    "audit": Case(
        ("audit", "long", "--quiet", "--force", "--out", "out.html"),
        ("audit", "short", "--quiet", "--force", "--out", "out.html"),
        "out.html",
        (1, 2),
    ),
    "rates": Case(
        (*STUDY, "--alpha", "1", "--out", "out"),
        (*STUDY, "--alpha", "1", "2", "--out", "out"),
        "out",
        (30,),
    ),
}


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    """For every verb, made once: the folder with the old result."""
    made: dict[str, Path] = {}

    def of(name: str) -> Path:
        if name not in made:
            made[name] = folder = tmp_path_factory.mktemp(name)
            with pytest.MonkeyPatch.context() as patch:
                patch.chdir(folder)
                _prepare(name, CASES[name])
        return made[name]

    return of


def _prepare(name: str, case: Case) -> None:
    if name in ("export", "audit"):
        for length, place in (("3", "short"), ("4", "long")):
            assert main(["compile", "reverse", "--vocab", "a,b", "--length", length, "--quiet", "--out", place]) == 0
    if name == "prove":
        for target, place in (("x1", "one"), ("2*x1", "two")):
            assert main(["build", target, *LINE, "--method", "gather", "--out", place]) == 0
    assert main(list(case.first)) == 0


def killed(name: str, start: Path, area: Path, way: str, kills: list[int]) -> dict:
    area.mkdir()
    case = CASES[name]
    order = {"area": str(area), "start": str(start), "command": case.command, "way": way}
    order |= {"kills": kills, "readable": [] if "." in case.out else [case.out]}
    done = subprocess.run(
        [sys.executable, str(DRIVER), json.dumps(order)], env=ENVIRONMENT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def judge(found: dict, out: str) -> list[str]:
    """What is wrong, in sentences: a result that is neither old nor new, a next run that fails or leaves something."""
    faults = []
    for kill in found["kills"]:
        results = {name: what for name, what in kill["seen"].items() if not _is_job(name) and _belongs(name, out)}
        allowed = [
            {name: what for name, what in found[which].items() if not _is_job(name) and _belongs(name, out)}
            for which in ("old", "new")
        ]
        allowed += [{name: what for name, what in state.items() if name != f"{out}/report.html"} for state in allowed]
        if results not in allowed:
            faults.append(f"after the kill before operation {kill['number']} there is {sorted(results)}")
        gone = [name for name in found["old"] if name not in kill["seen"] and not _belongs(name, out, files=True)]
        if gone:
            faults.append(f"after the kill before operation {kill['number']} {gone} are gone")
        if kill["again"] != found["code"] or kill["then"] != found["new"]:
            faults.append(f"the run after the kill before operation {kill['number']} left {sorted(kill['then'])}")
    return faults


def _is_job(name: str) -> bool:
    return "/store/" in name  # finished jobs, which only become more


def _belongs(name: str, out: str, files: bool = False) -> bool:
    return name == out or (name.startswith(f"{out}/") and not (files and _is_job(name)))


@pytest.mark.parametrize("name", CASES)
def test_a_kill_leaves_the_old_or_the_new_result(name, start, tmp_path):
    found = killed(name, start(name), tmp_path / "area", "in one step", list(CASES[name].few))
    assert found["old"] != found["new"] and len(found["kills"]) == len(CASES[name].few)
    assert judge(found, CASES[name].out) == []


@pytest.mark.slow
@pytest.mark.parametrize("way", ["in one step", "by two renamings"])
@pytest.mark.parametrize("name", CASES)
def test_a_kill_at_every_other_file_operation_leaves_the_old_or_the_new_result(name, way, start, tmp_path):
    found = killed(name, start(name), tmp_path / "area", way, list(range(1, 500, 1 if name == "audit" else 2)))
    assert found["old"] != found["new"] and len(found["kills"]) >= 3
    print(f"{name}, {way}: {len(found['kills'])} kills")
    assert judge(found, CASES[name].out) == []


def test_a_lost_file_a_mixed_folder_and_litter_are_seen():
    old, new = {"out/x": "1", "out/y": "1"}, {"out/x": "2", "out/y": "2"}
    kill = {"number": 1, "seen": old, "again": 0, "then": new}
    honest = {"old": old, "new": new, "code": 0, "kills": [kill, {**kill, "seen": new}]}
    assert judge(honest, "out") == []
    for change in (
        {"seen": {"out/x": "2", "out/y": "1"}},
        {"seen": {"out/x": "1"}},
        {"seen": {}},
        {"then": {**new, ".out.certiformer": "hidden"}},
        {"then": old},
        {"again": 256},
    ):
        assert judge({**honest, "kills": [{**kill, **change}]}, "out") != []
