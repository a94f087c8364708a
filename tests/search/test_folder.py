"""Run folders: names, resuming, refusing, and never looking finished too early."""

import os
from pathlib import Path

import pytest

from certiformer.artifact import folder as folders
from certiformer.errors import BadInput


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def run_folder(out=None, request="a", force=False, keep=True):
    return folders.run_folder(out, keep, "sin-x1", request, force)


def finish(out=None, request="a", force=False):
    with run_folder(out, request, force) as place:
        (place.fresh() / "certificate.json").write_text(request)
        assert not (place.folder / "certificate.json").exists() or force
        place.publish(folders.KINDS["target.json"].files)
    return place.folder.as_posix()


def interrupt(out=None, request="a"):
    """An interrupted search; returns its folder and whether it found what an earlier one had kept."""
    with pytest.raises(KeyboardInterrupt), run_folder(out, request, force=True) as place:
        kept = place.kept / folders.CHECKPOINT
        resumed = kept.exists()
        kept.write_text("so far")
        raise KeyboardInterrupt
    return place.folder.as_posix(), resumed


def test_default_names_count_up():
    assert [finish(), finish(), finish(request="b")] == ["runs/sin-x1", "runs/sin-x1-2", "runs/sin-x1-3"]


def test_a_name_that_is_being_made_is_not_free():
    with run_folder() as first, run_folder() as second:
        assert (first.folder.as_posix(), second.folder.as_posix()) == ("runs/sin-x1", "runs/sin-x1-2")


def test_the_same_request_resumes_and_another_one_does_not():
    assert interrupt(request="a") == ("runs/sin-x1", False)
    assert interrupt(request="b") == ("runs/sin-x1-2", False)
    assert interrupt(request="a") == ("runs/sin-x1", True)
    assert not os.path.exists("runs/sin-x1")
    assert finish(request="a") == "runs/sin-x1"
    assert sorted(os.listdir("runs")) == [".sin-x1-2.certiformer", "sin-x1"]


def test_an_interrupted_explicit_folder_of_another_request_is_cleaned():
    assert [interrupt("here", request) for request in "aab"] == [("here", False), ("here", True), ("here", False)]


def test_an_interrupted_replacement_keeps_the_finished_run():
    finish("here", "a")
    interrupt("here", "b")
    assert (Path("here/certificate.json").read_text(), sorted(os.listdir())) == ("a", [".here.certiformer", "here"])
    finish("here", "b", force=True)
    assert (Path("here/certificate.json").read_text(), os.listdir()) == ("b", ["here"])


def test_a_finished_explicit_folder_needs_force():
    finish("here")
    with pytest.raises(BadInput, match="--force"), run_folder("here"):
        pass
    assert finish("here", force=True) == "here"


def test_foreign_folders_and_files_are_left_alone(tmp_path):
    for name, held in (("photos", "me.png"), ("program", "program.json")):
        finish(name)
        (tmp_path / name / held).write_text("x")
        with (
            pytest.raises(BadInput, match=f"not an earlier finished run .it holds {held}."),
            run_folder(name, force=True),
        ):
            pass
        assert (tmp_path / name / held).read_text() == "x"
    (tmp_path / "file").write_text("x")
    with pytest.raises(BadInput, match="is a file"), run_folder("file", force=True):
        pass
    assert sorted(os.listdir()) == ["file", "photos", "program"]


def test_without_a_folder_nothing_stays():
    with run_folder(keep=False) as place:
        (place.fresh() / "certificate.json").touch()
    assert os.listdir() == [] and not place.path.exists()
