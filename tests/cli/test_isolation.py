"""`check` runs no code that lies where a run folder can put it: in the current folder, or in one that PYTHONPATH names."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from fractions import Fraction
from pathlib import Path

import pytest

import certiformer
from certiformer.isolation import KEPT, code_inside, environment
from certiformer.kernel.certificate import Boxes
from certiformer.kernel.check import check
from negative.forge import Run, grid_model, target_of, uniform_tree

SOURCE = Path(certiformer.__file__).parents[1]
ROOT = SOURCE.parent
# Imported by whoever starts an interpreter, before a line of ours is run; and our own name.
NOT_OURS = {"certiformer", "sitecustomize", "usercustomize", "encodings", "io", "os", "codecs"}


@pytest.fixture(scope="module")
def claims(tmp_path_factory):
    """A true and a false claim, each with enough leaves for worker processes."""
    folder = tmp_path_factory.mktemp("claims")
    target = target_of("x1", "[0,1]")
    model = grid_model(target, "second", (3,), 3, Fraction(1)).model
    tree = uniform_tree(1, 9)
    for name, epsilon in (("true", "0.01"), ("false", "0.000000001")):
        Run(model, target, epsilon, Boxes(epsilon, 2, 0, len(tree)), tree).write(folder / name)
    return folder


def imported_names() -> set[str]:
    """Everything that a check imports, every module of the standard library, and what is installed beside it."""
    program = (
        "import sys; from certiformer.cli.main import main; main(['check', '/']); print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=ours())
    loaded = {name.partition(".")[0] for name in done.stderr.split()}
    assert {"tyro", "certiformer", "json"} <= loaded
    known = {
        "certiformer",
        "flint",
        "tyro",
        "rich",
        "numpy",
        "jax",
        "typeguard",
        "docstring_parser",
        "typing_extensions",
    }
    return {name for name in loaded | known | set(sys.stdlib_module_names) if name.isidentifier()}


def ours(**more: str) -> dict[str, str]:
    """The environment of this test without what makes interpreters import other things."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COV"))}
    return {**kept, "PYTHONPATH": str(SOURCE), **more}


MARK = "import os\nopen({place!r}, 'a').write({name!r} + '\\n')\n"
FORGE = """
import json, sys
if "kernel.workers" in " ".join(getattr(sys, "orig_argv", [])):
    print(json.dumps({"upper": ["1", "-60"], "leaves": 512}), flush=True)
"""


@pytest.fixture
def hostile(claims, tmp_path):
    """Makes a copy of a claim with a module of every name beside it, each of which leaves a mark when it is imported."""

    def make(claim: str, without: set[str] = frozenset()) -> tuple[Path, Path]:
        folder, marks = tmp_path / f"{claim}-{len(without)}", tmp_path / f"PWNED-{claim}-{len(without)}"
        shutil.copytree(claims / claim, folder)
        for name in imported_names() - set(without):
            (folder / f"{name}.py").write_text(MARK.format(place=str(marks), name=name) + FORGE)
        return folder, marks

    return make


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    """What an installer makes of the entry point in pyproject.toml."""
    module, _, name = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"][
        "certiformer"
    ].partition(":")
    path = tmp_path_factory.mktemp("bin") / "certiformer"
    path.write_text(f"import sys\nfrom {module} import {name}\nif __name__ == '__main__':\n    sys.exit({name}())\n")
    return path


def run(command: list[str], folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, env=ours(**variables))


def names_imported_by(command: list[str], folder: Path, marks: Path, **variables: str) -> set[str]:
    """What a Python that does nothing of ours imports from a folder; repeated without these until nothing is left."""
    taken: set[str] = set()
    while True:
        run(command, folder, **variables)
        if not marks.exists():
            return taken
        new = set(marks.read_text().split())
        marks.unlink()
        for name in new:
            (folder / f"{name}.py").unlink(missing_ok=True)
        taken |= new


@pytest.mark.parametrize(("claim", "code"), [("true", 0), ("false", 1)])
def test_check_inside_a_hostile_folder_imports_nothing_of_it(hostile, script, claim, code):
    folder, marks = hostile(claim)
    done = run([sys.executable, str(script), "check", ".", "--workers", "2", "--json"], folder)
    assert (done.returncode, marks.exists()) == (code, False), done.stderr
    assert json.loads(done.stdout)["outcome"] == ("proved" if code == 0 else "refused")
    assert done.stdout.count("\n") == 1


@pytest.mark.parametrize("way", ["PYTHONPATH", "python -m", "both"])
@pytest.mark.parametrize(("claim", "code"), [("true", 0), ("false", 1)])
def test_what_the_interpreter_itself_does_not_import_is_not_imported(hostile, script, way, claim, code):
    """With a hostile PYTHONPATH, or with `python -m` inside the folder, an interpreter imports some modules before ours. All
    others are left alone."""
    folder, marks = hostile(claim, NOT_OURS)
    variables = {} if way == "python -m" else {"PYTHONPATH": os.pathsep.join([str(SOURCE), str(folder)])}
    if way == "both":
        variables["PYTHONPATH"] = os.pathsep.join([str(folder), str(SOURCE), ""])
    (folder / "nothing_of_ours.py").write_text("")
    start = ["-c", "pass"] if way == "PYTHONPATH" else ["-m", "nothing_of_ours"]
    names_imported_by([sys.executable, *start], folder, marks, **variables)
    begin = [str(script)] if way == "PYTHONPATH" else ["-m", "certiformer"]
    done = run([sys.executable, *begin, "check", ".", "--workers", "2", "--json"], folder, **variables)
    assert not marks.exists(), marks.read_text()
    assert done.stdout, done.stderr
    assert done.returncode == code
    assert json.loads(done.stdout)["outcome"] == ("proved" if code == 0 else "refused")


def test_the_earlier_way_of_starting_imports_the_folder(hostile):
    """The negative control: the marks are seen where a worker is started with the current folder on its path."""
    folder, marks = hostile("false")
    run([sys.executable, "-m", "certiformer.kernel.workers"], folder)
    assert marks.exists()
    marks.unlink()
    run([sys.executable, "-c", "from certiformer.cli.main import main; main(['check', '.'])"], folder)
    assert marks.exists()


def test_only_harmless_variables_are_passed_on(monkeypatch):
    for name in ("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "LD_PRELOAD", "XLA_FLAGS", "BASH_ENV"):
        monkeypatch.setenv(name, "/nowhere")
    for name in KEPT:
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("LD_LIBRARY_PATH", ".:/opt/lib::lib")
    monkeypatch.delenv("DYLD_LIBRARY_PATH", raising=False)
    passed = environment()
    assert set(passed) == {*KEPT, "PATH", "LD_LIBRARY_PATH"}
    assert passed["LD_LIBRARY_PATH"] == "/opt/lib" and passed["PATH"] == os.defpath


def test_a_folder_that_holds_the_checker_is_not_checked(claims, tmp_path, script, monkeypatch):
    """A checkout as a run folder: whoever made it made the checker."""
    assert code_inside(str(claims / "true")) is None
    assert code_inside(str(ROOT)) is not None
    folder = tmp_path / "run"
    shutil.copytree(claims / "true", folder)
    (folder / "lib").mkdir()
    monkeypatch.syspath_prepend(str(folder / "lib"))
    with pytest.raises(certiformer.BadInput, match="inside the folder that it should check"):
        check(folder)
    shutil.copytree(
        SOURCE / "certiformer", folder / "lib" / "certiformer", ignore=shutil.ignore_patterns("__pycache__")
    )
    done = run([sys.executable, str(script), "check", ".", "--json"], folder, PYTHONPATH=str(folder / "lib"))
    assert done.returncode == 2 and "inside the folder" in json.loads(done.stdout)["reason"]


def test_the_terminal_goes_along(claims, script):
    """Progress, widths and the working folder are those of the command that was typed."""
    done = run([sys.executable, str(script), "check", "true", "--workers", "2"], claims, COLUMNS="60", NO_COLOR="1")
    assert done.returncode == 0
    assert "certiformer show true" in done.stdout
    assert max(len(line) for line in done.stdout.splitlines() if not line.startswith("next")) <= 60
    assert "checking" in done.stderr  # what progress is without a screen


def test_an_interrupt_ends_the_workers(tmp_path, script):
    """Ctrl-C reaches the process that was started, which ends with 130 and leaves no worker behind."""
    target = target_of("sin(x1)*cos(x2)*exp(x3)", "[0,1]^3")
    model = grid_model(target, "second", (3, 3, 3), 3, Fraction(1)).model
    tree = uniform_tree(3, 6)
    Run(model, target, "9", Boxes("9", 6, 0, len(tree)), tree).write(tmp_path / "run")
    command = [sys.executable, str(script), "check", "run", "--workers", "2"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ours()
    )
    workers: list[int] = []
    for _ in range(600):
        workers = children(process.pid)
        if len(workers) == 2 or process.poll() is not None:
            break
        time.sleep(0.05)
    assert len(workers) == 2
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors.splitlines()[-1].endswith("interrupted") and "Traceback" not in errors
    assert not any(Path(f"/proc/{pid}").exists() for pid in workers)


def children(pid: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == pid:
                found.append(int(entry.name))
    return found
