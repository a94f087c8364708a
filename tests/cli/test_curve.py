"""`curve`: every point is certified anew, files hold what is proved, and an interrupted curve goes on."""

from __future__ import annotations

import csv
import sys

import pytest

import certiformer
from certiformer import curves
from certiformer.errors import BadInput
from certiformer.kernel.certificate import certificate_in
from certiformer.kernel.files import read_files

SINE = ("sin(x1)", "--on", "[0, 2*pi]", "--method", "ridge")
FILES = {"curve.json", "curve.csv", "curve.tex", "curve.svg", "curve.pdf"}


@pytest.fixture
def built(cli):
    done = cli("curve", *SINE, "--eps", "0.3,0.1", "--out", "curve", "--json", "--quiet")
    assert done.code == 0
    return done


def points(path):
    with open(path, encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_a_curve_has_files_and_certified_folders(built, tmp_path):
    folder = tmp_path / "curve"
    assert {path.name for path in folder.iterdir()} == FILES | {"eps-0.3", "eps-0.1"}
    rows = points(folder / "curve.csv")
    assert [row["epsilon"] for row in rows] == ["0.3", "0.1"]
    for row in rows:
        verdict = certiformer.check(folder / row["folder"])
        certificate = certificate_in(read_files(folder / row["folder"]))
        assert verdict.accepted and row["outcome"] == "certified"
        assert (row["lower"], row["upper"]) == (certificate.lower, certificate.upper)
        assert float(row["upper"]) <= float(row["epsilon"])
    assert int(rows[0]["nonzero"]) < int(rows[1]["nonzero"])
    assert "\\toprule" in (folder / "curve.tex").read_text() and "<svg" in (folder / "curve.svg").read_text()
    assert (folder / "curve.pdf").read_bytes().startswith(b"%PDF")
    assert [point["epsilon"] for point in built.data["points"]] == ["0.3", "0.1"]


def test_what_is_there_is_checked_and_not_built_again(built, cli, tmp_path, monkeypatch):
    asked = []
    build = curves.build
    monkeypatch.setattr(curves, "build", lambda *a, **k: asked.append(k["eps"]) or build(*a, **k))
    drawn = certiformer.curve("sin(x1)", on="[0, 2*pi]", eps=["0.3", 0.1, 0.2], out=tmp_path / "curve", method="ridge")
    assert asked == ["0.2"] and [point.epsilon for point in drawn.points] == ["0.3", "0.2", "0.1"]
    assert drawn.certified and "<svg" in drawn._repr_html_()


def test_a_changed_folder_is_not_believed(built, tmp_path, monkeypatch):
    """The negative control: of a folder whose weights were changed, nothing is used."""
    asked = []
    build = curves.build
    monkeypatch.setattr(curves, "build", lambda *a, **k: asked.append(k["eps"]) or build(*a, **k))
    weights = tmp_path / "curve" / "eps-0.3" / "model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
    drawn = certiformer.curve("sin(x1)", on="[0, 2*pi]", eps="0.3,0.1", out=tmp_path / "curve", method="ridge")
    assert asked == ["0.3"] and drawn.certified
    assert certiformer.check(tmp_path / "curve" / "eps-0.3").accepted


def test_an_interrupted_curve_keeps_what_is_done_and_goes_on(cli, tmp_path, monkeypatch):
    build = curves.build

    def interrupted(*arguments, **named):
        if named["eps"] == "0.1":
            raise KeyboardInterrupt
        return build(*arguments, **named)

    monkeypatch.setattr(curves, "build", interrupted)
    command = ("curve", *SINE, "--eps", "0.3,0.1", "--out", "curve", "--quiet")
    done = cli(*command)
    assert done.code == 130 and "what is done is drawn in curve" in done.err
    assert [row["epsilon"] for row in points(tmp_path / "curve" / "curve.csv")] == ["0.3"]
    monkeypatch.setattr(curves, "build", build)
    assert cli(*command).code == 0
    assert [row["epsilon"] for row in points(tmp_path / "curve" / "curve.csv")] == ["0.3", "0.1"]


def test_a_point_that_is_not_proved_is_said(cli, tmp_path):
    done = cli(
        "curve", "abs(x1)", "--on", "[-1, 1]", "--eps", "0.5,1e-9", "--method", "voronoi", "--seconds", "3", "--json"
    )
    assert done.code == 3
    first, last = done.data["points"]
    assert first["outcome"] == "certified" and last["outcome"] != "certified" and last["upper"] is None


def test_another_request_or_a_foreign_folder_is_refused(built, cli, tmp_path):
    other = cli("curve", "cos(x1)", *SINE[1:], "--eps", "0.3,0.1", "--out", "curve")
    assert other.code == 2 and "the curve of another function" in other.err
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "thesis.tex").write_text("mine")
    taken = cli("curve", *SINE, "--eps", "0.3,0.1", "--out", "taken")
    assert taken.code == 2 and "it holds thesis.tex" in taken.err


def test_tolerances_are_several_different_numbers():
    for eps, sentence in ((["0.1"], "2 to 100 tolerances"), ("0.1,1/10", "given twice"), ("0.1,x", "x")):
        with pytest.raises(BadInput, match=sentence):
            certiformer.curve("sin(x1)", on="[0, 1]", eps=eps)


def test_without_matplotlib_the_tables_are_written_and_the_rest_is_asked_for(cli, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = cli("curve", *SINE, "--eps", "0.5,0.3", "--out", "curve")
    assert done.code == 0 and "pip install 'certiformer[plot]'" in done.err
    present = {path.name for path in (tmp_path / "curve").iterdir()}
    assert FILES - present == {"curve.svg", "curve.pdf"}
