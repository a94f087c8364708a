"""`--config FILE.toml`: values are defaults, flags win, mistakes are one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from certiformer.cli import build, theorem
from certiformer.cli.options import parse
from certiformer.cli.terminal import Terminal
from certiformer.errors import BadInput

WHOLE = """
target = "x1**2"
on = "[0,1]"
eps = 0.10
level = 1
seconds = 5
quality = 0.25
dry-run = true
"""


def options(text: str, *arguments: str) -> Any:
    Path("c.toml").write_text(text)
    return parse(build, "build", [*arguments, "--config", "c.toml"], Terminal())


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_the_file_gives_every_flag_and_decimals_stay_exact():
    read = options(WHOLE)
    assert (read.target, read.on, read.eps, read.level, read.seconds) == ("x1**2", "[0,1]", "0.10", 1, 5.0)
    assert (read.quality, read.dry_run, read.json) == (0.25, True, False)


def test_flags_win():
    read = options(WHOLE, "x1**3", "--eps=1/100", "--level", "2", "--dry-run")
    assert (read.target, read.on, read.eps, read.level, read.dry_run) == ("x1**3", "[0,1]", "1/100", 2, True)


def test_what_the_file_leaves_out_is_still_required(cli, tmp_path):
    (tmp_path / "c.toml").write_text('target = "x1"\non = "[0,1]"\n')
    done = cli("build", "--config", str(tmp_path / "c.toml"))
    assert done.code == 2 and "--eps" in done.err


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("epps = 1", "has the unknown key 'epps'; did you mean 'eps'?"),
        ("zzz = 1", "has the unknown key 'zzz'; build knows alphabet, boxes, "),
        ('config = "other.toml"', "has the unknown key 'config'"),
        ("[build]\neps = 1", "has the unknown key 'build'"),
        ("level = 3", "level is one of 1, 2, not 3"),
        ("level = true", "level is one of 1, 2, not True"),
        ("boxes = 1.5", "boxes must be a whole number, not '1.5'"),
        ('seconds = "long"', "seconds must be a number, not 'long'"),
        ("json = 1", "json must be true or false, not 1"),
        ("eps = [1]", "eps must be a text, not [1]"),
        ("eps = ", "is not a TOML file"),
    ],
)
def test_mistakes_in_the_file_are_one_sentence(text, sentence):
    with pytest.raises(BadInput) as refusal:
        options(text)
    assert sentence in str(refusal.value) and "\n" not in str(refusal.value)


def test_a_file_that_is_not_there_and_a_verb_without_the_flag():
    with pytest.raises(BadInput, match=r"--config gone.toml cannot be read: No such file"):
        parse(build, "build", ["--config", "gone.toml"], Terminal())
    Path("c.toml").write_text("")
    assert parse(theorem, "theorem", ["--config", "c.toml"], Terminal()) == 2


def test_the_file_may_ask_for_json(cli):
    Path("c.toml").write_text("json = true\n" + WHOLE)
    done = cli("build", "--config", "c.toml")
    assert done.code == 0
    assert done.data["outcome"] == "estimate"
