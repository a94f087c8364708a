"""One study from its jobs to its folder: run what is missing, summarise, draw."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from certiformer.disk import Workplace, names_in, put_folder, refuse_taken_file
from certiformer.errors import BadInput
from certiformer.kernel.files import parse_json, read_bytes

if TYPE_CHECKING:
    from certiformer.rates.study import Result, Study
    from certiformer.sweep import Job, Progress, Row, Store

RUN, STORE = "run.json", "store"  # what was asked, written before anything else; and the finished jobs
WRITTEN = ("report.html", "result.json", "tables.md", "tables.tex", RUN, STORE)

Show = Callable[[str, float, float | None, str], None]


@dataclass(frozen=True)
class Finished:
    """What became of the jobs of a run."""

    rows: list[Row]
    jobs: dict[str, Any]  # total, done, missing, failed


@dataclass(frozen=True)
class Request:
    """How a study is run, beside the options of its own: the flags that every study has."""

    engine: str = "cores"
    workers: int | None = None
    store: str | None = None
    out: str | None = None
    csv: str | None = None
    force: bool = False
    tracker: str | None = None


@dataclass(frozen=True)
class Outcome:
    """What a study found, as plain data (`Result` with the standing of its jobs), its folder, and notes for the user."""

    data: dict[str, Any]
    directory: Path
    notes: list[str]

    @property
    def complete(self) -> bool:
        """Whether every job is done."""
        return self.data["jobs"]["done"] == self.data["jobs"]["total"]


def folder_of(study: Study, request: Request) -> Path:
    """Where a study is written."""
    return Path(request.out if request.out is not None else f"runs/rates-{study.name}")


def run_study(
    study: Study, chosen: Any, request: Request, command: str, progress: Show, say: Callable[[str], None]
) -> Outcome:
    """Run the jobs that are missing and write what came out.

    `chosen` are the study's own options; `command` is recorded; `progress` is called with the stage, what is done, all
    there is, and a note, `say` with remarks. What is finished stays when this is interrupted.
    """
    jobs = study.jobs(chosen)
    out = folder_of(study, request)
    if request.csv is not None:
        refuse_taken_file(Path(request.csv), request.force)
    asked = {"study": study.name, "command": command, "options": _writable(asdict(chosen))}
    question = (json.dumps(asked, indent=1) + "\n").encode("utf-8")
    with Workplace(out):
        with _study_folder(out, study.name, question):
            done = _measure(jobs, request, out, progress, say)
        data, notes = _written(study, chosen, done, out, question)
    return Outcome(data, out, notes)


@contextmanager
def _study_folder(out: Path, name: str, question: bytes) -> Iterator[None]:
    """The folder of a study, made if it is missing and removed again if nothing was finished in it."""
    require_place(out, name)
    made = not names_in(out)
    if made:
        put_folder(out, {RUN: question})
    try:
        yield
    except BaseException:
        if made and not any((out / STORE / "chunks").glob("*.parquet")):
            (out / RUN).unlink(missing_ok=True)
            shutil.rmtree(out / STORE, ignore_errors=True)
            with suppress(OSError):  # somebody has put something else into it
                out.rmdir()
        raise


def _measure(jobs: Sequence[Job], request: Request, out: Path, progress: Show, say: Callable[[str], None]) -> Finished:
    """The rows of all jobs, computed now or before, and which are missing."""
    from certiformer.sweep import Store, open_tracker, run_jobs, to_csv

    tracker = None if request.tracker is None else open_tracker(request.tracker)
    with Store(request.store or out / STORE, say=say) as store:

        def report(standing: Progress) -> None:
            left = standing.total - standing.done - standing.failed
            progress("measuring", standing.computed, standing.computed + left, progress_note(standing))

        rows = run_jobs(jobs, store, request.engine, request.workers, report, tracker)
        if request.csv is not None:
            functions = {job.function for job in jobs}
            count = to_csv(store, request.csv, functions.pop() if len(functions) == 1 else None, request.force)
            say(f"wrote {count:,} rows to {request.csv}")
        return Finished(rows, standing_of(store, jobs))


def progress_note(standing: Progress) -> str:
    """How many jobs are done, and how fast.

    >>> from types import SimpleNamespace
    >>> progress_note(SimpleNamespace(done=6, failed=1, total=8, computed=3, seconds=90.0))
    '6 of 8 jobs, 1 failed, 2 a minute'
    """
    failed = f", {standing.failed} failed" if standing.failed else ""
    rate = ""
    if standing.computed and standing.seconds > 0:
        speed = standing.computed / standing.seconds
        rate = f", {speed:.3g} a second" if speed >= 1 else f", {60 * speed:.3g} a minute"
    return f"{standing.done} of {standing.total} jobs{failed}{rate}"


def standing_of(store: Store, jobs: Sequence[Job]) -> dict[str, Any]:
    """Which jobs are done, which are missing and which have failed."""
    wanted = {job.id: job for job in jobs}
    lost = {job.id for job in store.missing(list(wanted.values()))}
    failed = {job.id: reason for job, reason in store.failed() if job.id in lost}
    return {
        "total": len(wanted),
        "done": len(wanted) - len(lost),
        "missing": [name for name in wanted if name in lost and name not in failed],
        "failed": [{"id": name, "reason": reason} for name, reason in failed.items()],
    }


def _written(study: Study, chosen: Any, done: Finished, out: Path, question: bytes) -> tuple[dict[str, Any], list[str]]:
    from certiformer.report.rates_data import plain
    from certiformer.report.rates_files import write_study

    result = study.summary(done.rows, chosen) if done.rows else _nothing(study, chosen)
    data = {**plain(result), "jobs": done.jobs}
    gone = len(done.jobs["missing"]) + len(done.jobs["failed"])
    if gone and done.rows:
        data["limits"] = [
            *data["limits"],
            f"{gone} of {done.jobs['total']} jobs gave no result; run it again to add them.",
        ]
    _, notes = write_study(data, out, {RUN: question})
    return data, notes


def _nothing(study: Study, chosen: Any) -> Result:
    from certiformer.rates.study import Result

    limits = ["No job has finished, so nothing was measured."]
    return Result(study.name, study.question, asdict(chosen), [], limits=limits)


def require_place(out: Path, name: str) -> None:
    """Refuse a folder that holds anything but an earlier run of the same study."""
    if out.exists() and not out.is_dir():
        raise BadInput(f"{out} is a file; a run of a study is a folder")
    present = names_in(out)
    foreign = {each for each in present if each not in WRITTEN and not each.startswith(("figure-", "."))}
    if present and (foreign or RUN not in present):
        raise BadInput(f"{out} is not empty and not an earlier run of a study; choose another --out")
    if present and (found := study_of(out)) != name:
        raise BadInput(f"{out} holds a run of the study {found!r}, not {name!r}; choose another --out")


def study_of(folder: Path) -> str:
    """Which study a folder belongs to."""
    try:
        return str(parse_json(read_bytes(folder / RUN), RUN)["study"])
    except (BadInput, TypeError, KeyError):
        raise BadInput(f"{folder / RUN} does not say which study this is; choose another --out") from None


def _writable(value: Any) -> Any:
    """JSON has no infinity: such numbers are written as words."""
    from certiformer.report.rates_data import plain

    return plain({"options": value})["options"]
