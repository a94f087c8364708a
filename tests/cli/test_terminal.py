"""Colours, wrapping and the closed pipe."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

from certiformer.cli.terminal import Terminal

PROGRAM = "from certiformer.cli.terminal import Terminal as T; T().fact('certified', 'yes', 'good')"


def on_a_terminal(**environment: str) -> str:
    """What the program writes when its standard output is a terminal."""
    ours, theirs = pty.openpty()
    keep = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "TERM")}
    subprocess.run([sys.executable, "-c", PROGRAM], stdout=theirs, env={**keep, **environment}, check=True, timeout=60)
    os.close(theirs)
    text = os.read(ours, 10_000).decode()
    os.close(ours)
    return text


@pytest.mark.parametrize(
    ("environment", "coloured"),
    [({"TERM": "xterm"}, True), ({"TERM": "xterm", "NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)],
)
def test_colours_only_on_a_terminal_that_wants_them(environment, coloured):
    text = on_a_terminal(**environment)
    assert ("\033[" in text) is coloured
    assert "certified" in text and "yes" in text


def test_texts_are_wrapped_beside_their_label(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    Terminal().fact("label", "word " * 30)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3 and lines[0].startswith("label      word")
    assert all(len(line) <= 60 for line in lines) and all(line.startswith(" " * 11) for line in lines[1:])


def test_json_refuses_what_is_not_a_number():
    with pytest.raises(ValueError):
        Terminal(["--json"]).emit({"upper": float("nan")})


CELLS = ("1.2345678901234567e-05", "−1.23 [−1.30, −1.10]", "123,456,789,012")
SENTENCE = "a sentence of many words that may be broken anywhere between two of them and nowhere else"


@pytest.mark.parametrize("columns", [*range(60, 125, 3)])
def test_a_cell_of_a_table_is_never_broken(capsys, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    Terminal().rows(("name", "value", "slope", "count", "says"), [("a row", *CELLS, SENTENCE)], texts=[4])
    lines = capsys.readouterr().out.splitlines()
    assert all(any(cell in line for line in lines) for cell in CELLS)
    assert max(map(len, lines)) <= columns
    stacked = "name a row" in lines
    assert stacked if columns < 80 else not stacked or columns < 90  # of 90 columns the unbroken cells leave enough


def test_a_table_that_fits_stands_as_it_is_below_80_columns(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    Terminal().rows(("name", "error"), [("a", "0.5"), ("bcd", "12")])
    assert [line.strip() for line in capsys.readouterr().out.splitlines()[::2]] == ["name  error", "a       0.5"]
