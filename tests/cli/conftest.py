"""The command line in this process, and one finished run that tests may copy."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from certiformer.cli.main import main


@dataclass(frozen=True)
class Done:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> dict[str, Any]:
        """The one JSON object on standard output."""
        assert self.out.count("\n") == 1, self.out
        return json.loads(self.out)


@pytest.fixture
def cli(capfd, tmp_path, monkeypatch):
    """Run a command in an empty folder; standard output and error are caught at the level of the file descriptors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("COLUMNS", "100")

    def run(*arguments: str) -> Done:
        capfd.readouterr()
        code = main(arguments)
        caught = capfd.readouterr()
        return Done(code, caught.out, caught.err)

    return run


@pytest.fixture(scope="session")
def certified(tmp_path_factory) -> Done:
    """What `build --json` said about a certified run."""
    folder = tmp_path_factory.mktemp("finished") / "sine"
    arguments = ["build", "sin(x1)", "--on", "[0,2*pi]", "--eps", "0.2", "--method", "voronoi"]
    arguments += ["--out", str(folder), "--quiet", "--json"]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(arguments)
    return Done(code, out.getvalue(), err.getvalue())


@pytest.fixture(scope="session")
def finished(certified) -> Path:
    """The folder of that run, not to be changed."""
    return Path(certified.data["directory"])


@pytest.fixture
def folder(finished, tmp_path) -> Path:
    """A copy of the certified run that a test may break."""
    copy = tmp_path / "copy"
    shutil.copytree(finished, copy)
    return copy


@pytest.fixture(scope="session")
def compiled_reverse(tmp_path_factory):
    """The folder of a small compiled program, not to be changed."""
    from certiformer.cli.main import main

    folder = tmp_path_factory.mktemp("compiled") / "reverse"
    assert main(["compile", "reverse", "--vocab", "a,b", "--length", "4", "--out", str(folder), "--quiet"]) == 0
    return folder
