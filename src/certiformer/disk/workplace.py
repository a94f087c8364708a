"""`Workplace`: the hidden folder `.NAME.certiformer` beside the folder NAME, in which the new NAME is made.

    .NAME.certiformer/lock           held by the process that writes; says which one
    .NAME.certiformer/request        what is being made: only the same request may use what is kept
    .NAME.certiformer/kept/          what the next run can use when this one is interrupted
    .NAME.certiformer/new/           the new folder, until it is complete
    .NAME.certiformer/journal.json   written just before the two change places (`publishing`)

NAME itself is the old folder, or missing, until the new one is complete. Nothing of a workplace stays after a run,
unless it was interrupted and something is kept.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import tempfile
import threading
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from types import TracebackType

from certiformer.disk.leftovers import (
    KEPT,
    LOCK,
    REQUEST,
    belongs_to_us,
    clear_workplace,
    is_resumable,
    remove,
    remove_leftovers,
    request_of,
)
from certiformer.disk.places import Locked, check_place, lock, refuse_unmovable, workplace_of
from certiformer.disk.publishing import JOURNAL, NEW, OLD, publish, settle
from certiformer.errors import BadInput

_held: dict[Path, Workplace] = {}  # by this process, which may enter a workplace that it holds once more


GOES_ON = "the same request goes on from what is kept"  # a note on what interrupted a run


class InUse(BadInput):
    """Another process writes the same folder."""


class Workplace:
    """Where a folder is made, for one process at a time.

        with Workplace(folder) as place:
            fill(place.fresh())
            place.publish(names)

    With a `request`, what the same request left when it was interrupted is found in `kept`.
    """

    def __init__(self, folder: str | Path, request: str = "") -> None:
        self.folder, self.target = Path(folder), Path(os.path.abspath(folder))
        self.path, self._request = workplace_of(self.target), request
        self._handle, self._made, self._thread = -1, [], 0

    @property
    def new(self) -> Path:
        """The folder to fill."""
        return self.path / NEW

    @property
    def kept(self) -> Path:
        """What is written here outlives an interruption."""
        return self.path / KEPT

    def __enter__(self) -> Workplace:
        held = _held.get(self.path)
        if held is not None and held._thread == threading.get_ident():
            return held
        refuse_unmovable(self.target)
        self._make_parents()
        try:
            remove_leftovers(self.target.parent)
            self._hold()
        except BaseException:
            self._remove_parents()
            raise
        _held[self.path], self._thread = self, threading.get_ident()
        try:
            self._prepare()
        except BaseException:
            self._leave()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, _: TracebackType | None
    ) -> None:
        if _held.get(self.path) is not self:
            return  # entered inside of another `with`, which still needs it
        keep = kind is not None and not issubclass(kind, BadInput) and is_resumable(self.path)
        if keep and problem is not None:
            problem.add_note(GOES_ON)
        self._leave(keep)

    def fresh(self) -> Path:
        """The folder to fill, empty."""
        remove(self.new)
        self.new.mkdir()
        return self.new

    def publish(self, known: Collection[str]) -> None:
        """Put the new folder into its place, in one step; of an earlier one, what is not `known` moves into the new one."""
        publish(self.path, self.target, known)
        remove(self.kept)

    def _make_parents(self) -> None:
        missing = [parent for parent in self.target.parents if not parent.exists()]
        for parent in reversed(missing):
            with contextlib.suppress(FileExistsError):
                parent.mkdir()
                self._made.append(parent)

    def _remove_parents(self) -> None:
        """Those that this run made and did not need."""
        with contextlib.suppress(OSError):
            for parent in reversed(self._made):
                parent.rmdir()

    def _hold(self) -> None:
        while True:
            with contextlib.suppress(FileExistsError):
                self.path.mkdir()
            if os.path.lexists(self.path) and not belongs_to_us(self.path, stat.S_IFDIR):
                raise BadInput(f"{self.path} is in the way; remove it or choose another --out")
            try:
                self._handle = lock(self.path / LOCK, wait=False)
                break
            except FileNotFoundError:
                continue  # its holder has finished and removed it
            except Locked:
                who = (self.path / LOCK).read_text(encoding="ascii", errors="replace").strip()
                process = f"process {who}" if who.isdecimal() else "another process"
                raise InUse(
                    f"{self.folder} is being written by {process}; wait for it or choose another --out"
                ) from None

    def _prepare(self) -> None:
        """Say who writes; make good what a killed run left; keep what is of use to this one."""
        os.ftruncate(self._handle, 0)
        os.write(self._handle, f"{os.getpid()}\n".encode())
        settle(self.path, self.target)
        if request_of(self.path) != self._request:
            remove(self.kept)
        for stale in (self.new, self.path / OLD, self.path / REQUEST):
            remove(stale)
        (self.path / REQUEST).write_text(self._request, encoding="utf-8")
        self.kept.mkdir(exist_ok=True)

    def _leave(self, keep: bool = False) -> None:
        """Give the workplace up; `keep` leaves what the same request can use."""
        try:
            settle(self.path, self.target)  # first: after half an exchange the old folder lies in here
            if keep:
                remove(self.new)
            else:
                clear_workplace(self.path)
        finally:
            _held.pop(self.path, None)
            os.close(self._handle)
            self._remove_parents()


def can_go_on(problem: BaseException) -> bool:
    """Whether what this ended is kept for the same request."""
    return GOES_ON in getattr(problem, "__notes__", ())


def is_in_use(folder: Path, request: str) -> bool:
    """Whether a folder is being made by a living process, or is to be resumed by another request than this one."""
    workplace = workplace_of(Path(os.path.abspath(folder)))
    try:
        os.close(lock(workplace / LOCK, wait=False, create=False))
    except Locked:
        return True
    except OSError:
        return False
    return is_resumable(workplace) and request_of(workplace) != request


@contextlib.contextmanager
def claimed(folder: str | Path, mark: str, known: Collection[str], what: str, force: bool) -> Iterator[Workplace]:
    """Hold a place that is free, or, with `force`, taken by an earlier folder of the same kind (`check_place`)."""
    with Workplace(folder) as place:
        check_place(place.folder, mark, known, what, force)
        yield place


def put_folder(folder: Path, files: Mapping[str, bytes], known: Collection[str] = ()) -> None:
    """Replace a folder by one that holds these files, whole or not at all; an earlier one may also have had `known`."""
    with Workplace(folder) as place:
        new = place.fresh()
        for name, data in files.items():
            (new / name).write_bytes(data)
        place.publish({*known, *files})


def recover(folder: str | Path) -> None:
    """Finish, or take back, the exchange in which a process was killed, before the folder is read."""
    target = Path(os.path.abspath(folder))
    workplace, missing = workplace_of(target), not target.exists()
    if not os.path.lexists(workplace / JOURNAL) or not belongs_to_us(workplace, stat.S_IFDIR):
        return
    try:
        handle = lock(workplace / LOCK, wait=missing)
    except (Locked, OSError):  # its writer is at work; or we may only read here, and what can be read is there
        return
    try:
        settle(workplace, target)
    except OSError:
        if missing:
            raise
    finally:
        os.close(handle)


def scratch() -> Workplace:
    """A workplace whose folder is never published; the next run removes it if this one is killed."""
    return Workplace(Path(tempfile.gettempdir(), f"scratch-{secrets.token_hex(8)}"))
