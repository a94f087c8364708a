"""Folders appear whole or not at all, for one writer at a time, and never in the place of something else."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import certiformer
from certiformer.disk import (
    InUse,
    Workplace,
    check_place,
    publishing,
    put_folder,
    recover,
    refuse_own_input,
    scratch,
    workplace,
)
from certiformer.errors import BadInput

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(certiformer.__file__).parents[1])}


def contents(place: Path) -> dict[str, bytes]:
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}


@pytest.fixture(params=["in one step", "by two renamings"])
def system(request, monkeypatch):
    """A system that can exchange two names, and one that cannot."""
    if request.param == "by two renamings":
        monkeypatch.setattr(publishing, "exchange", lambda first, second: False)
    return request.param


def test_a_folder_is_replaced_as_a_whole(tmp_path):
    put_folder(tmp_path / "deep" / "a", {"x": b"1", "y": b"2"})
    put_folder(tmp_path / "deep" / "a", {"x": b"3"}, known={"y"})
    assert {path.name: path.read_bytes() for path in (tmp_path / "deep" / "a").iterdir()} == {"x": b"3"}
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["a"]


def test_a_full_disk_leaves_the_old_folder(tmp_path, monkeypatch):
    put_folder(tmp_path / "a", {"x": b"1"})

    def full(path, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space"):
        put_folder(tmp_path / "a", {"x": b"2"})
    assert [(path.name, path.read_bytes()) for path in (tmp_path / "a").iterdir()] == [("x", b"1")]
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("function", ["write", "ftruncate"])
def test_a_disk_that_is_full_from_the_start_leaves_no_workplace(tmp_path, monkeypatch, function):
    put_folder(tmp_path / "a", {"x": b"1"})

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, function, full)
    with pytest.raises(OSError, match="No space"):
        put_folder(tmp_path / "a", {"x": b"2"})
    monkeypatch.undo()
    assert contents(tmp_path) == {"a/x": b"1"} and os.listdir(tmp_path) == ["a"]


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
    put_folder(place, {"config.json": b""}, known={"machine.json", "thesis.tex"})
    with pytest.raises(BadInput, match="not an earlier compiled machine"):
        ask(True)


def test_what_is_not_ours_moves_into_the_new_folder(tmp_path, system):
    put_folder(tmp_path / "a", {"x": b"1", "y": b"1"})
    (tmp_path / "a" / "notes").mkdir()
    (tmp_path / "a" / "notes" / "mine").write_bytes(b"mine")
    put_folder(tmp_path / "a", {"x": b"2"}, known={"y"})
    assert contents(tmp_path) == {"a/x": b"2", "a/notes/mine": b"mine"}


class Killed(BaseException):
    """Stands for a kill: nothing of ours runs any more."""


@pytest.mark.parametrize("step", range(4))
def test_a_kill_around_the_exchange_keeps_one_folder_whole_and_what_is_not_ours(tmp_path, monkeypatch, system, step):
    put_folder(tmp_path / "a", {"x": b"1", "y": b"1"})
    (tmp_path / "a" / "mine").write_bytes(b"mine")
    rename, exchange, steps = os.rename, publishing.exchange, []

    def counted(act):
        def acted(first, second):
            if len(steps) == step:
                raise Killed
            steps.append(act)
            return act(first, second)

        return acted

    monkeypatch.setattr(os, "rename", counted(rename))
    monkeypatch.setattr(publishing, "exchange", counted(exchange))
    place = Workplace(tmp_path / "a").__enter__()
    (place.fresh() / "x").write_bytes(b"2")
    with contextlib.suppress(Killed):
        place.publish({"x", "y"})
    os.close(place._handle)  # what the system does when a process ends
    workplace._held.clear()
    monkeypatch.setattr(os, "rename", rename)
    monkeypatch.setattr(publishing, "exchange", exchange)
    recover(tmp_path / "a")
    found = {name: data for name, data in contents(tmp_path / "a").items() if name != "mine"}
    assert (tmp_path / "a" / "mine").read_bytes() == b"mine"
    assert found in ({"x": b"1", "y": b"1"}, {"x": b"2"})
    put_folder(tmp_path / "b", {})  # any other writer into the same parent makes the rest good
    assert contents(tmp_path) == {f"a/{name}": data for name, data in {**found, "mine": b"mine"}.items()}
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


@pytest.mark.parametrize("problem", [KeyboardInterrupt, OSError])
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("step", range(4))
@pytest.mark.parametrize("resumable", [False, True])
def test_an_interruption_or_an_error_around_the_exchange_loses_nothing(
    tmp_path, monkeypatch, system, problem, moment, step, resumable
):
    put_folder(tmp_path / "a", {"x": b"1", "y": b"1"})
    (tmp_path / "a" / "mine").write_bytes(b"mine")
    steps = []

    def stopping(act):
        def acted(first, second):
            steps.append(act)
            if len(steps) - 1 != step:
                return act(first, second)
            if moment == "after":
                act(first, second)
            raise problem

        return acted

    with contextlib.suppress(problem), Workplace(tmp_path / "a", "request") as place:
        (place.fresh() / "x").write_bytes(b"2")
        if resumable:
            (place.kept / "checkpoint").write_bytes(b"")
        monkeypatch.setattr(os, "rename", stopping(os.rename))
        monkeypatch.setattr(publishing, "exchange", stopping(publishing.exchange))
        place.publish({"x", "y"})
    monkeypatch.undo()
    found = {name: data for name, data in contents(tmp_path / "a").items() if name != "mine"}
    assert found in ({"x": b"1", "y": b"1"}, {"x": b"2"})
    assert (tmp_path / "a" / "mine").read_bytes() == b"mine"
    put_folder(tmp_path / "a", {"x": b"3"}, known={"y"})
    assert contents(tmp_path) == {"a/x": b"3", "a/mine": b"mine"}


def test_what_cannot_be_moved_into_the_new_folder_is_never_removed(tmp_path, monkeypatch, system):
    put_folder(tmp_path / "a", {"x": b"1"})
    (tmp_path / "a" / "notes").mkdir()
    (tmp_path / "a" / "notes" / "mine").write_bytes(b"mine")
    rename = os.rename

    def busy(first, second):
        if Path(first).name == "notes":
            raise OSError(16, "Device or resource busy", str(first))
        rename(first, second)

    monkeypatch.setattr(os, "rename", busy)
    for _ in range(2):  # nor by the next one who comes
        with pytest.raises(OSError, match="busy"):
            put_folder(tmp_path / "a", {"x": b"2"})
        put_folder(tmp_path / "b", {})
        assert b"mine" in contents(tmp_path).values()
    monkeypatch.undo()
    put_folder(tmp_path / "a", {"x": b"3"})
    assert contents(tmp_path) == {"a/x": b"3", "a/notes/mine": b"mine"}


def test_a_workplace_that_somebody_made_up_moves_nothing_into_a_folder(tmp_path):
    """A folder beside the one that is read says what it likes; what its links lead to stays where it is."""
    put_folder(tmp_path / "a", {"x": b"1"})
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "mine").write_bytes(b"mine")
    (tmp_path / ".a.certiformer").mkdir()
    (tmp_path / ".a.certiformer" / "new").symlink_to(tmp_path / "precious")
    inode = (tmp_path / "a").stat().st_ino
    for end in (lambda: recover(tmp_path / "a"), lambda: put_folder(tmp_path / "b", {})):
        (tmp_path / ".a.certiformer" / "journal.json").write_text(f'{{"inode": {inode}, "replaced": []}}')
        end()
        assert (tmp_path / "precious" / "mine").read_bytes() == b"mine" and os.listdir(tmp_path / "a") == ["x"]


def test_a_new_folder_that_is_taken_away_at_once_brings_the_old_one_back(tmp_path, monkeypatch):
    put_folder(tmp_path / "a", {"x": b"1"})
    (tmp_path / "a" / "mine").write_bytes(b"mine")
    exchange = publishing.exchange

    def taken_away(first, second):
        if exchange(first, second):
            os.rename(second, tmp_path / "elsewhere")
            return True
        pytest.skip("names cannot be exchanged here")

    monkeypatch.setattr(publishing, "exchange", taken_away)
    put_folder(tmp_path / "a", {"x": b"2"})
    assert contents(tmp_path) == {"a/x": b"1", "a/mine": b"mine", "elsewhere/x": b"2"}


HOLDER = """
import sys
from certiformer.disk import Workplace
with Workplace(sys.argv[1]) as place:
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_writer_is_told_who_writes_and_the_leftovers_of_a_killed_one_go_away(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path / "a")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=ENVIRONMENT,
    ) as holder:
        holder.stdout.readline()
        with pytest.raises(InUse, match=f"is being written by process {holder.pid}; wait for it"):
            put_folder(tmp_path / "a", {})
        put_folder(tmp_path / "b", {})  # does not take a living one for a leftover
        assert sorted(os.listdir(tmp_path)) == [".a.certiformer", "b"]
        holder.kill()
    put_folder(tmp_path / "b", {})
    assert os.listdir(tmp_path) == ["b"]


def test_only_what_is_ours_is_removed(tmp_path):
    (tmp_path / ".mine").mkdir()
    (tmp_path / ".mine.certiformer").mkdir()
    (tmp_path / ".mine.certiformer" / "thesis.tex").write_text("years of work")  # ours by name, but never locked
    (tmp_path / ".a.1234").mkdir()
    (tmp_path / ".link.certiformer").symlink_to(tmp_path / ".mine")
    (tmp_path / "x.certiformer").write_text("")
    before = sorted(os.listdir(tmp_path))
    put_folder(tmp_path / "b", {})
    assert sorted(os.listdir(tmp_path)) == [*before[:4], "b", *before[4:]]
    assert (tmp_path / ".mine.certiformer" / "thesis.tex").exists()


def test_what_is_kept_is_for_the_same_request_only(tmp_path):
    def interrupted(request):
        with pytest.raises(KeyboardInterrupt), Workplace(tmp_path / "a", request) as place:
            found = [path.name for path in place.kept.iterdir()]
            (place.fresh() / "half").touch()
            (place.kept / "checkpoint").touch()
            raise KeyboardInterrupt
        return found

    assert (interrupted("one"), interrupted("one"), interrupted("two")) == ([], ["checkpoint"], [])
    put_folder(tmp_path / "b", {})
    assert sorted(os.listdir(tmp_path)) == [".a.certiformer", "b"]
    put_folder(tmp_path / "a", {})
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


def test_nothing_is_kept_for_a_request_that_nobody_can_repeat(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(KeyboardInterrupt), scratch() as place:
        (place.kept / "checkpoint").touch()
        raise KeyboardInterrupt
    assert os.listdir(tmp_path) == []
    killed = scratch().__enter__()
    (killed.kept / "checkpoint").touch()
    os.close(killed._handle)  # what the system does when a process ends
    workplace._held.clear()
    with scratch():
        assert not killed.path.exists()


@pytest.mark.parametrize("problem", [KeyboardInterrupt, ValueError, BadInput])
def test_what_stops_before_anything_is_kept_leaves_nothing(tmp_path, problem):
    with pytest.raises(problem), Workplace(tmp_path / "deep" / "er" / "a") as place:
        (place.fresh() / "half").touch()
        raise problem
    assert os.listdir(tmp_path) == []


def test_links_mounts_and_the_current_folder_are_refused(tmp_path, monkeypatch):
    put_folder(tmp_path / "a", {"x": b"1"})
    (tmp_path / "link").symlink_to(tmp_path / "a")
    with pytest.raises(BadInput, match="is a link"):
        put_folder(tmp_path / "link", {})
    monkeypatch.chdir(tmp_path / "a")
    for name in (".", "..", tmp_path):
        with pytest.raises(BadInput, match="the folder in which this program runs"):
            put_folder(Path(name), {})
    with pytest.raises(BadInput, match="mounted"):
        put_folder(Path("/proc"), {})
    assert contents(tmp_path / "a") == {"x": b"1"}


def test_a_command_never_writes_over_what_it_reads(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "again").symlink_to(tmp_path / "model")
    for out in ("model", "again", "."):
        with pytest.raises(BadInput, match="which this command reads"):
            refuse_own_input(tmp_path / out, tmp_path / "model")
    refuse_own_input(tmp_path / "model" / "inside", tmp_path / "model")
    refuse_own_input(tmp_path / "sin(x1)", "sin(x1)")
    refuse_own_input(None, tmp_path)


def test_a_scratch_folder_goes_away():
    with scratch() as place:
        (place.fresh() / "x").touch()
        assert place.new.is_dir()
    assert not place.path.exists()
