"""Figures and tables of a study: the same bytes for the same data, nothing lost for odd data, texts that are escaped."""

from __future__ import annotations

import csv
import io
import json
import sys
import xml.etree.ElementTree as ElementTree

import pytest

from certiformer.report.rates_data import plain
from certiformer.report.rates_figures import draw_all, figures_of, save
from certiformer.report.rates_files import write_study
from certiformer.report.rates_page import write_rates
from certiformer.report.rates_tables import series_csv, to_latex, to_markdown
from report.rates_example import NASTY, bare, example, series

# Curves are drawn as spectra are.
DRAWN = example(pictures=example()["pictures"][:3], series=example()["series"][:3])


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    names, notes = write_study(DRAWN, folder)
    return folder, names, notes


def test_everything_is_written(written):
    folder, names, notes = written
    assert notes == []
    kinds = ("rates", "slopes", "spectrum-1", "graph-2", "heat-3")
    figures = [f"figure-{kind}.{end}" for kind in kinds for end in ("svg", "pdf")]
    assert names == ["result.json", "tables.md", "tables.tex", "report.html", *figures]
    assert sorted(path.name for path in folder.iterdir()) == sorted(names)
    assert json.loads((folder / "result.json").read_text()) == plain(DRAWN)
    for name in figures:
        content = (folder / name).read_bytes()
        assert content.startswith(b"%PDF") if name.endswith("pdf") else ElementTree.fromstring(content) is not None


def test_a_figure_is_the_same_for_the_same_data_and_another_for_other(tmp_path, written):
    folder, _, _ = written
    data = plain(DRAWN)
    save(dict(figures_of(data))["figure-heat-3"], tmp_path / "figure-heat-3")
    for name in ("figure-heat-3.svg", "figure-heat-3.pdf"):
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()
    data["pictures"][2]["data"]["values"][0][0] = 1.25
    save(dict(figures_of(data))["figure-heat-3"], tmp_path / "other")
    assert (tmp_path / "other.svg").read_bytes() != (folder / "figure-heat-3.svg").read_bytes()


def names_of(**changes) -> list[str]:
    return [name for name, _ in figures_of(plain(example(**changes)))]


def test_panels_are_drawn_when_lines_would_cover_each_other():
    for count, panels in ((3, False), (4, True), (24, True), (25, False)):
        names = names_of(series=[series(f"s{k}") for k in range(count)], pictures=[])
        assert names == ["figure-rates", *(["figure-panels"] if panels else []), "figure-slopes"]


def test_odd_data_is_drawn(tmp_path):
    odd = [
        bare("zeros", [1.0], [0.0]),
        bare("left", [0.0, 1.0], [1.0, None], x_label="other"),
        bare("no", [1.0], [None]),
    ]
    empty = [
        {"kind": "heat", "title": "", "data": {"rows": [], "columns": [], "values": []}},
        {"kind": "curves", "title": "", "data": {"x_label": "", "y_label": "", "lines": []}},
        {"kind": "graph", "title": "", "data": {"points": [[0, 0]], "weights": [[1.0]], "wanted": None}},
        {"kind": "unknown", "title": "", "data": {}},
    ]
    data = plain(example(series=odd, pictures=empty))
    names = [name for name, _ in figures_of(data)]
    assert names == ["figure-rates", "figure-rates-2", "figure-heat-1", "figure-curves-2", "figure-graph-3"]
    assert len(draw_all(data, tmp_path)) == 2 * len(names)
    assert "unknown kind unknown" in write_rates(data)


def test_many_series_with_long_names_have_room_for_their_legend(tmp_path):
    many = [series(f"series {k} with a long name " * 2, theory={}) for k in range(30)]
    drawn = dict(figures_of(plain(example(series=many, pictures=[]))))["figure-rates"]
    height = drawn().get_figheight()
    assert height > 2.8 + 30 / 2 * 0.12  # two columns of names, each line some 0.12 inch high


def test_without_matplotlib_the_rest_is_written(tmp_path, monkeypatch):
    (tmp_path / "figure-rates.svg").write_text("of an earlier run")
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # what an import of a missing library meets
    names, notes = write_study(example(), tmp_path)
    assert notes == ["figures need the library matplotlib: pip install 'certiformer[plot]'"]
    assert (
        sorted(path.name for path in tmp_path.iterdir())
        == sorted(names)
        == sorted(["result.json", "tables.md", "tables.tex", "report.html"])
    )


def test_latex_is_escaped_and_balanced():
    text = to_latex(plain(example()))
    assert r"\textless{}script\textgreater{}alert" in text and r"\$a\_1\$ \%d \textbackslash{}end\{table\}" in text
    assert text.count(r"\begin{table}") == text.count(r"\end{table}") == 2
    for line in text.splitlines():
        if line.endswith(r"\\"):
            assert line.replace(r"\&", "").count("&") in (1, 4)  # two columns in one table, five in the other


def test_markdown_has_as_many_cells_as_headings():
    text = to_markdown(plain(example(series=[])))
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 4 and all(row.replace(r"\|", "").count("|") == 3 for row in rows)
    assert r"\<script\>" in text and "<script>" not in text


def test_csv_reads_back_bit_for_bit():
    data = plain(example())
    rows = list(csv.DictReader(io.StringIO(series_csv(data))))
    assert len(rows) == 5 + 5 + 3 + 1
    assert [float(row["error_mse"]) for row in rows[:5]] == data["series"][0]["error_mse"]
    assert rows[10]["series"] == NASTY and rows[12]["error_mse"] == ""
