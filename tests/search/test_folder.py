"""Run folders: names, resuming, refusing, and never looking finished too early."""

import pytest

from certiformer.errors import BadInput
from certiformer.search import folder as folders


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def finish(folder):
    (folder / "certificate.json").write_text("{}")
    folders.mark_finished(folder)


def test_default_names_count_up(tmp_path):
    first = folders.claim_folder(None, "sin-x1", "a", False)
    assert first.as_posix() == "runs/sin-x1"
    assert not folders.is_finished(first)
    finish(first)
    assert folders.is_finished(first)
    assert folders.claim_folder(None, "sin-x1", "a", False).as_posix() == "runs/sin-x1-2"


def test_the_same_request_resumes_and_another_one_does_not():
    first = folders.claim_folder(None, "f", "a", False)
    (first / folders.CHECKPOINT).write_text("kept")
    assert folders.claim_folder(None, "f", "a", False) == first
    assert (first / folders.CHECKPOINT).exists()
    assert folders.claim_folder(None, "f", "b", False) != first


def test_an_unfinished_explicit_folder_of_another_request_is_cleaned():
    first = folders.claim_folder("here", "f", "a", False)
    (first / folders.CHECKPOINT).write_text("stale")
    folders.claim_folder("here", "f", "b", False)
    assert not (first / folders.CHECKPOINT).exists()


def test_a_finished_explicit_folder_needs_force():
    first = folders.claim_folder("here", "f", "a", False)
    finish(first)
    with pytest.raises(BadInput, match="--force"):
        folders.claim_folder("here", "f", "a", False)
    assert folders.claim_folder("here", "f", "a", True) == first
    assert not folders.is_finished(first)


def test_a_foreign_folder_and_a_file_are_left_alone(tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "me.png").write_text("x")
    with pytest.raises(BadInput, match="not a run folder"):
        folders.claim_folder("photos", "f", "a", True)
    (tmp_path / "file").write_text("x")
    with pytest.raises(BadInput, match="is a file"):
        folders.claim_folder("file", "f", "a", True)
    assert (tmp_path / "photos" / "me.png").read_text() == "x"


def test_publishing_moves_the_certificate_last(tmp_path, monkeypatch):
    folder = folders.claim_folder("run", "f", "a", False)
    staging = folder / folders.STAGING
    staging.mkdir()
    names = ["model.safetensors", "config.json", "target.json", "leaves.bin", "certificate.json"]
    for name in names:
        (staging / name).write_text("x")
    moved = []
    replace = folders.os.replace

    def recording(source, goal):
        moved.append(goal.name)
        assert not folders.is_finished(folder)
        replace(source, goal)

    monkeypatch.setattr(folders.os, "replace", recording)
    folders.publish(staging, folder)
    assert moved == names
    assert folders.is_finished(folder)
    assert sorted(p.name for p in folder.iterdir()) == sorted(names)
