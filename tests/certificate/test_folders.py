"""Folders appear whole or not at all, and never in the place of something else."""

from __future__ import annotations

import pytest

from certiformer.certificate import check_place, description_of, files, put_folder
from certiformer.errors import BadInput


def test_a_folder_is_replaced_as_a_whole(tmp_path):
    put_folder(tmp_path / "deep" / "a", {"x": b"1", "y": b"2"})
    put_folder(tmp_path / "deep" / "a", {"x": b"3"})
    assert {path.name: path.read_bytes() for path in (tmp_path / "deep" / "a").iterdir()} == {"x": b"3"}
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["a"]


def test_a_full_disk_leaves_the_old_folder(tmp_path, monkeypatch):
    put_folder(tmp_path / "a", {"x": b"1"})

    def full(path, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "write_atomically", full)
    with pytest.raises(OSError, match="No space"):
        put_folder(tmp_path / "a", {"x": b"2"})
    assert [(path.name, path.read_bytes()) for path in (tmp_path / "a").iterdir()] == [("x", b"1")]
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_place_is_taken_only_by_its_own_kind(tmp_path):
    place = tmp_path / "a"

    def ask(force):
        check_place(place, "machine.json", ("config.json",), "compiled machine", force)

    ask(False)
    place.write_text("")
    with pytest.raises(BadInput, match="a is a file; a compiled machine is a folder"):
        ask(True)
    place.unlink()
    put_folder(place, {"machine.json": b"", "config.json": b""})
    with pytest.raises(BadInput, match="already holds a compiled machine; add --force"):
        ask(False)
    ask(True)
    (place / "thesis.tex").touch()
    with pytest.raises(BadInput, match="not empty and not an earlier compiled machine"):
        ask(True)
    put_folder(place, {"config.json": b""})
    with pytest.raises(BadInput, match="not an earlier compiled machine"):
        ask(True)


def test_the_description_says_what_a_folder_computes(tmp_path):
    assert description_of(tmp_path) is None
    (tmp_path / "gates.json").touch()
    assert description_of(tmp_path) == "gates.json"
