"""One trial of the parts (i) to (iii) of `soundness.py`, and what became of it.

A trial is named by its kind and number: with the campaign's seed these decide everything. Folders are checked in this
process, from a folder in memory; where a refusal was raised says whether the last rule of the proof was reached.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import os
import pkgutil
import random
import shutil
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field, is_dataclass
from pathlib import Path

import _soundness_bases as bases
from _soundness_forge import Forgery, forge
from _soundness_forms import FORMS
from _soundness_sources import SOURCES
from _soundness_stated import overstated
from flint import arb

from certiformer import axioms

# A refusal that is raised while one of these runs comes from reading the files, not from the rule that decides.
READING = {"read_files", "certificate_in", "sealed_contents", "read_claim", "read_model", "read_target", "from_text",
           "read_programs", "_rule"}  # fmt: skip
KINDS = {
    **{name: "forged" for name in bases.BASES},
    **{name: "sources" for name in SOURCES},
    **{name: "forms" for name in FORMS},
}


@dataclass
class Result:
    """What some trials of one kind came to; they add up."""

    kind: str
    trials: int = 0
    false: int = 0  # forgeries established false; sources and forms: cases that were compared
    last_rule: int = 0
    stated: int = 0  # certificates that say too much
    accepted: int = 0
    honest: int = 0
    honest_refused: int = 0
    crashed: int = 0
    seconds: float = 0.0
    sites: Counter = field(default_factory=Counter)
    finds: list[str] = field(default_factory=list)

    def add(self, other: Result) -> None:
        for name in (
            "trials",
            "false",
            "last_rule",
            "stated",
            "accepted",
            "honest",
            "honest_refused",
            "crashed",
            "seconds",
        ):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.sites += other.sites
        self.finds += other.finds


_raised: list[str] = []


@functools.cache
def watch_refusals() -> None:
    """Notes where a refusal is made: the file and the function of whoever made it, and whether files are still read."""
    from certiformer.errors import BadInput
    from certiformer.kernel import Refused

    def noted(self: Exception, *arguments: object) -> None:
        frame = sys._getframe(1)
        code, callers = frame.f_code, set()
        while frame is not None and "certiformer" in frame.f_code.co_filename:
            callers.add(frame.f_code.co_name)
            frame = frame.f_back
        reading = "reading " if callers & READING else ""
        _raised.append(f"{reading}{code.co_filename.rpartition('certiformer/')[2]}:{code.co_name}")
        Exception.__init__(self, *arguments)

    Refused.__init__ = noted  # type: ignore[method-assign]
    if Refused is not BadInput:
        BadInput.__init__ = noted  # type: ignore[method-assign]


@functools.cache
def remember_targets() -> None:
    """Keeps what was found out about a target: most forgeries have the one of their folder."""
    for kind in classes_of_targets():
        _remembered(kind)


def classes_of_targets() -> list[type]:
    """What axioms find out about a target, at hundreds of boxes, from nothing but the arguments: their classes that are
    made of a program."""
    modules = [
        importlib.import_module(f"certiformer.axioms.{name}") for _, name, _ in pkgutil.iter_modules(axioms.__path__)
    ]
    classes = {kind for module in modules for kind in vars(module).values()
               if isinstance(kind, type) and kind.__module__ == module.__name__}  # fmt: skip
    made = {kind: [*inspect.signature(kind).parameters.values()] for kind in classes if "__init__" in vars(kind)}
    plain = {kind for kind in made if not is_dataclass(kind)}
    return [kind for kind in plain if made[kind] and made[kind][0].annotation == "Program"]


def _remembered(kind: type) -> None:
    work, known = kind.__init__, {}

    def __init__(self: object, *arguments: object, **named: object) -> None:
        key = (*map(_text, arguments), *((name, _text(argument)) for name, argument in sorted(named.items())))
        if key not in known:
            work(self, *arguments, **named)
            if len(known) > 200:
                known.clear()
            known[key] = dict(vars(self))
        vars(self).update(known[key])

    kind.__init__ = __init__  # type: ignore[misc]


def _text(argument: object) -> object:
    """All digits of an argument: two that have the same text are the same."""
    ends = getattr(argument, "ends", None)
    numbers = [argument] if isinstance(argument, arb) else [x for pair in ends for x in pair] if ends else None
    return argument if numbers is None else str([(x.mid().man_exp(), x.rad().man_exp()) for x in numbers])


@functools.cache
def scratch() -> Path:
    """A folder in memory where there is one; removed when the process ends."""
    import atexit

    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    folder = Path(tempfile.mkdtemp(prefix="certiformer-soundness-", dir=memory))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@functools.cache
def honest_files(home: Path, kind: str) -> dict[str, bytes]:
    return bases.read(home / kind)


_written: dict[Path, dict[str, bytes]] = {}


def put(folder: Path, files: dict[str, bytes]) -> Path:
    """The files in a folder, without writing again what is there already."""
    there = _written.setdefault(folder, {})
    folder.mkdir(exist_ok=True)
    for name in set(there) - set(files):
        (folder / name).unlink()
        del there[name]
    for name, data in files.items():
        if there.get(name) != data:
            (folder / name).write_bytes(data)
            there[name] = data
    return folder


def judged(folder: Path):
    """The verdict of the checker, and where it refused (empty if it did not)."""
    from certiformer.kernel.check import check

    _raised.clear()
    verdict = check(folder, workers=1)
    return verdict, (_raised[-1] if _raised and verdict.outcome == "refused" else "")


def one(kind: str, number: int, seed: int, home: Path, result: Result, keep: Path) -> None:
    """One trial; adds to the result."""
    result.trials += 1
    rng = random.Random(f"{seed}/{kind}/{number}")
    if kind in FORMS:
        result.false += 1
        wrong = FORMS[kind](rng)
        if wrong:
            result.accepted += 1
            result.finds.append(f"{kind} {number}: {wrong}")
    elif kind in SOURCES:
        _source(kind, number, rng, result, keep)
    else:
        _forged(kind, number, rng, home, result, keep)


def _source(kind: str, number: int, rng: random.Random, result: Result, keep: Path) -> None:
    from certiformer.errors import BadInput

    try:
        files, certified, wrong = SOURCES[kind](rng)
    except BadInput:
        certified, wrong, files = False, "", {}
    result.honest += 1
    result.honest_refused += not certified
    result.false += certified
    if wrong:
        result.accepted += 1
        result.finds.append(f"{kind} {number}: {wrong}; {kept(keep, f'{kind}-{number}', files, wrong)}")


def _forged(kind: str, number: int, rng: random.Random, home: Path, result: Result, keep: Path) -> None:
    watch_refusals(), remember_targets()
    files = honest_files(home, kind)
    if number % 50 == 0:
        result.honest += 1
        verdict, _ = judged(put(scratch() / kind, files))
        result.honest_refused += not verdict.accepted
    if number % 10 == 7:
        _overstated(kind, number, rng, files, result, keep)
        return
    forgery = forge(kind, rng, files)
    if forgery is None:
        return
    result.false += 1
    verdict, site = judged(put(scratch() / kind, forgery.files))
    if verdict.outcome == forgery.outcome:
        result.accepted += 1
        place = kept(keep, f"{kind}-{number}", forgery.files, forgery.why)
        result.finds.append(f"{kind} {number}: {forgery.why}; accepted with {verdict.upper}; {place}")
        return
    result.sites[site] += 1
    result.last_rule += not site.startswith("reading ")


def _overstated(kind: str, number: int, rng: random.Random, files: dict, result: Result, keep: Path) -> None:
    """A certificate that says too much; whether it reached the last rule is not counted, most never can."""
    bent, why = overstated(rng, files)
    verdict, site = judged(put(scratch() / kind, bent))
    result.stated += 1
    if (verdict.outcome, verdict.exit_code) not in (("refused", 1), ("undecided", 3)):
        result.accepted += 1
        result.finds.append(f"{kind} {number}: {why}; {kept(keep, f'{kind}-{number}', bent, why)}")
    else:
        result.sites[site] += 1


def kept(keep: Path, name: str, files: dict[str, bytes], why: str) -> str:
    """Writes a folder that deceived the checker, with the reason beside it."""
    folder = keep / name
    folder.mkdir(parents=True, exist_ok=True)
    for file, data in files.items():
        (folder / file).write_bytes(data)
    (keep / f"{name}.txt").write_text(why + "\n")
    return str(folder)


def chunk(kind: str, first: int, count: int, seed: int, home: str, keep: str) -> Result:
    """Some trials of one kind, in this process."""
    import time
    import traceback

    result, began = Result(kind), time.process_time()
    for number in range(first, first + count):
        try:
            one(kind, number, seed, Path(home), result, Path(keep))
        except Exception:  # neither a verdict nor a refusal: a defect of the checker or of the campaign
            result.crashed += 1
            result.finds.append(f"{kind} {number} crashed: {traceback.format_exc()[-600:]}")
    result.seconds = time.process_time() - began
    return result


def stored(kind: str, wanted: int, seed: int, home: str) -> list[Forgery]:
    """The first false forgeries of a kind."""
    found: list[Forgery] = []
    files = honest_files(Path(home), kind)
    for number in range(20 * wanted):
        forgery = forge(kind, random.Random(f"{seed}/{kind}/{number}"), files)
        if forgery is not None:
            found.append(forgery)
        if len(found) == wanted:
            break
    return found
