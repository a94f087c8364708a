"""Where an export may go, and what a failure leaves behind."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from certiformer.disk import put_file
from certiformer.errors import BadInput
from certiformer.export import to_hf, write
from certiformer.export.folder import put_export
from certiformer.model import save
from export.cases import case

FILES = {"README.md": b"one", "config.json": b"{}"}


def contents(place):
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}


def test_a_folder_is_replaced_only_with_force(tmp_path):
    place = tmp_path / "deep" / "out"
    put_export(place, FILES, force=False)
    with pytest.raises(BadInput, match="already exists; add --force"):
        put_export(place, FILES, force=False)
    put_export(place, {**FILES, "README.md": b"two"}, force=True)
    assert contents(tmp_path) == {"deep/out/README.md": b"two", "deep/out/config.json": b"{}"}


def test_an_empty_folder_may_be_filled(tmp_path):
    (tmp_path / "out").mkdir()
    put_export(tmp_path / "out", FILES, force=False)
    assert contents(tmp_path / "out") == FILES


@pytest.mark.parametrize("force", [False, True])
def test_something_else_is_never_replaced(tmp_path, force):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "README.md").write_text("mine")
    (tmp_path / "home" / "thesis.tex").write_text("mine")
    (tmp_path / "file").write_text("mine")
    save(case("plain"), tmp_path / "model")
    before = contents(tmp_path)
    for name, sentence in (
        ("home", "not an earlier export"),
        ("file", "is a file"),
        ("model", "not an earlier export"),
    ):
        with pytest.raises(BadInput, match=sentence):
            to_hf(case("plain"), tmp_path / name, force=force)
    with pytest.raises(BadInput, match="is a folder; name a file"):
        put_file(tmp_path / "home", b"", force)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("force", [False, True])
def test_a_failure_leaves_the_old_export_or_nothing(tmp_path, monkeypatch, force):
    if force:
        put_export(tmp_path / "out", FILES, force=False)
    before = contents(tmp_path)
    written, write_bytes = [], Path.write_bytes

    def full(path, data):
        written.append(path)
        if len(written) == 2:
            raise OSError(28, "No space left on device")
        return write_bytes(path, data)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space"):
        put_export(tmp_path / "out", {**FILES, "README.md": b"two"}, force)
    assert contents(tmp_path) == before and os.listdir(tmp_path) == (["out"] if force else [])


def test_formats_and_endings_are_checked(tmp_path):
    with pytest.raises(BadInput, match="no export to 'pickle'; choose onnx, torch, hf"):
        write(case("plain"), "pickle", tmp_path / "out", {})
    with pytest.raises(BadInput, match=r"ends in \.onnx"):
        write(case("plain"), "onnx", tmp_path / "model.safetensors", {}, force=True)
    assert os.listdir(tmp_path) == []
