"""Progress goes to standard error, says what is left, and can be silenced."""

from __future__ import annotations

import pytest

from certiformer.cli import progress as progress_module
from certiformer.cli.progress import progress_for
from certiformer.cli.terminal import Terminal


def test_lines_are_few_and_estimate_what_is_left(capsys, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(progress_module.time, "monotonic", lambda: now[0])
    with progress_for(Terminal()) as progress:
        for done in range(1, 12):
            progress("search", done, 20, f"{done} boxes")
            now[0] += 1.0
        progress("check", 1, 5, "1 of 5 leaves confirmed")
    caught = capsys.readouterr()
    assert caught.out == ""
    # The sixth call comes 5 s after the first: 6 of 20 boxes are done, so 5 * 14/6 = 12 s are left.
    assert caught.err.splitlines() == [
        "searching ...",
        "searching: 6 boxes, about 12 s left",
        "searching: 11 boxes, about 8 s left",
        "checking ...",
    ]


def test_quiet_says_nothing(capsys):
    with progress_for(Terminal(["--quiet"])) as progress:
        progress("search", 1, 2, "x")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("total", [None, 0, 10])
def test_the_bar_survives_every_kind_of_total(capsys, total):
    with progress_module._Bar() as progress:
        for stage in ("construct", "search", "check"):
            progress(stage, 0, total, "note")
            progress(stage, 5, total, "[0,1]^2")
    assert capsys.readouterr().out == ""
