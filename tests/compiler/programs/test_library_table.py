"""The table of library programs on the page `compile`: complete, and a stale one is reported."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from certiformer.rasp.library import catalogue

ROOT = Path(__file__).resolve().parents[3]
SPECIFICATION = importlib.util.spec_from_file_location("library_table", ROOT / ".ci" / "library_table.py")
library_table = importlib.util.module_from_spec(SPECIFICATION)
SPECIFICATION.loader.exec_module(library_table)


def test_every_program_of_the_library_has_its_line():
    page = library_table.PAGE.read_text(encoding="utf-8")
    between = page.partition(library_table.BEGIN)[2].partition(library_table.END)[0]
    lines = [line for line in between.splitlines() if line.startswith("| `")]
    assert [line.split("`")[1] for line in lines] == list(catalogue())


def test_examples_show_the_program():
    entries = catalogue()
    assert library_table.example(entries["reverse"]).replace("`", "").split(" → ")[1].split() != []
    for name, entry in entries.items():
        given, answer = library_table.example(entry).replace("`", "").split(" → ")
        assert len(given.split()) == len(answer.split()), name


def test_a_stale_table_and_a_missing_one_are_reported(tmp_path, monkeypatch, capsys):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{library_table.BEGIN}\nold\n{library_table.END}\nafter\n")
    monkeypatch.setattr(library_table, "PAGE", page)
    monkeypatch.setattr(library_table, "catalogue", lambda: {"copy": catalogue()["copy"]})
    assert library_table.main(["--check"]) == 1 and "is stale" in capsys.readouterr().out
    assert library_table.main([]) == 0
    assert library_table.main(["--check"]) == 0
    assert page.read_text().startswith("before\n") and "| `copy` |" in page.read_text()
    with pytest.raises(SystemExit, match="has no table"):
        library_table.with_table("nothing", [])
