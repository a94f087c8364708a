"""`certiformer bench`: finds the scripts of the checkout and passes their exit code on."""

from __future__ import annotations

from pathlib import Path

import pytest

import certiformer
from certiformer.cli.bench import find_script
from certiformer.errors import BadInput


@pytest.fixture
def checkout(tmp_path, monkeypatch) -> Path:
    """A checkout whose only benchmark prints its arguments and fails."""
    home = tmp_path / "checkout"
    (home / "benchmarks").mkdir(parents=True)
    (home / "pyproject.toml").touch()
    (home / "benchmarks" / "_cases.py").touch()
    (home / "benchmarks" / "speed.py").write_text(
        "import sys, certiformer\nprint(sys.argv[1:], certiformer.__version__)\nsys.exit(1)\n"
    )
    return home


def test_arguments_go_through_and_so_does_the_exit_code(cli, checkout, monkeypatch):
    from certiformer.cli import bench

    monkeypatch.setattr(bench, "find_script", lambda name, _: find_script(name, checkout))
    done = cli("bench", "speed", "one", "two", "--json")
    assert done.code == 1
    assert done.out == f"['one', 'two', '--json'] {certiformer.__version__}\n"


def test_without_a_checkout_or_with_a_wrong_name_it_says_so(checkout, tmp_path):
    with pytest.raises(BadInput, match="there is no benchmark 'sped'; did you mean 'speed'"):
        find_script("sped", checkout)
    with pytest.raises(BadInput, match="there is no benchmark '_cases'"):
        find_script("_cases", checkout)
    with pytest.raises(BadInput, match="part of the source checkout"):
        find_script("speed", tmp_path)
