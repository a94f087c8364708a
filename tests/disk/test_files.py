"""One file: whole or not at all, never over something without being asked, never through a link."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import certiformer
from certiformer.disk import put_file, write_atomically
from certiformer.errors import BadInput


def test_a_write_replaces_the_file_and_leaves_nothing_else(tmp_path):
    path = tmp_path / "file"
    for data in (b"one", b"", b"three" * 1000):
        write_atomically(path, data)
        assert path.read_bytes() == data
        assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("moment", ["fsync", "replace", "ftruncate"])
def test_an_error_in_the_middle_keeps_the_old_file_and_cleans_up(tmp_path, monkeypatch, moment):
    path = tmp_path / "file"
    write_atomically(path, b"old")

    def fail(*_):
        raise OSError("no space left on the device")

    monkeypatch.setattr(os, moment, fail)
    with pytest.raises(OSError, match="no space"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


WRITER = """
import sys
from pathlib import Path
from certiformer.disk import write_atomically
path, size = Path(sys.argv[1]), 2_000_000
print("ready", flush=True)
while True:
    for byte in (b"a", b"b"):
        write_atomically(path, byte * size)
"""


def test_a_process_killed_at_random_moments_leaves_the_old_or_the_new_content(tmp_path):
    path = tmp_path / "file"
    write_atomically(path, b"a" * 2_000_000)
    environment = {**os.environ, "PYTHONPATH": str(Path(certiformer.__file__).parents[1])}
    seen = set()
    for attempt in range(8):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, env=environment, text=True
        )
        process.stdout.readline()
        time.sleep(0.003 + 0.004 * attempt)
        process.kill()
        process.communicate()
        content = path.read_bytes()
        assert len(content) == 2_000_000
        assert len(set(content)) == 1
        seen.add(content[:1])
    assert seen <= {b"a", b"b"}


def test_a_file_that_exists_is_replaced_only_with_force(tmp_path):
    put_file(tmp_path / "a", b"1", force=False)
    with pytest.raises(BadInput, match="already exists; add --force"):
        put_file(tmp_path / "a", b"2", force=False)
    assert (tmp_path / "a").read_bytes() == b"1"
    put_file(tmp_path / "a", b"2", force=True)
    assert (tmp_path / "a").read_bytes() == b"2" and os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("leads_to", ["a file", "nothing"])
@pytest.mark.parametrize("force", [False, True])
def test_nothing_is_written_through_a_link(tmp_path, leads_to, force):
    if leads_to == "a file":
        (tmp_path / "mine").write_bytes(b"mine")
    (tmp_path / "link").symlink_to(tmp_path / "mine")
    before = sorted(os.listdir(tmp_path))
    with pytest.raises(BadInput, match="is a link"):
        put_file(tmp_path / "link", b"new", force)
    assert sorted(os.listdir(tmp_path)) == before and (tmp_path / "link").is_symlink()
    assert leads_to == "nothing" or (tmp_path / "mine").read_bytes() == b"mine"


def test_a_link_under_the_hidden_name_is_not_followed(tmp_path):
    (tmp_path / "mine").write_bytes(b"mine")
    (tmp_path / ".a.certiformer-partial").symlink_to(tmp_path / "mine")
    with pytest.raises(OSError):
        put_file(tmp_path / "a", b"new", force=True)
    assert (tmp_path / "mine").read_bytes() == b"mine"


def test_folders_and_devices_are_no_files(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadInput, match="not a plain file"):
        put_file(tmp_path / "pipe", b"", force=True)
    with pytest.raises(BadInput, match="is a folder; name a file"):
        put_file(tmp_path, b"", force=True)
    with pytest.raises(BadInput, match="No such file"):
        put_file(tmp_path / "no" / "file", b"", force=True)
    assert os.listdir(tmp_path) == ["pipe"]
