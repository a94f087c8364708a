"""Run folders of every kind: which files one holds, how it is read, and how it is written, whole or not at all.

| file | holds |
|---|---|
| `certificate.json` | the claim, and the hashes of the files that it is about |
| `model.safetensors`, `config.json` | the transformer |
| `target.json`, `leaves.bin` | of a function or a table: the recorded target and the bisections of its box |
| `program.json`, `circuit.json` | of a program: its graph, and what every coordinate, head and hidden unit computes |
| `machine.json`, `automaton.json`, `gates.json` or `learner.json` | the description of what else is computed |
| `hits.json` | of a recommender: the recorded hits of the users that were sealed (`certiformer.recommend`) |
| `basis.json` | of realistic weights: which directions of the stream the coordinates of the circuit are |
| `report.html`, `candidates.json`, `circuit.html` | drawings and tables for readers; no claim rests on them |

A search is made in a hidden workplace beside its folder (`disk.Workplace`): the files are written and checked there, and
the whole folder moves into place in one step. Until then an earlier run stays as it is, and a killed run never looks
finished. What an interrupted search had found out is kept in the workplace; the same request goes on from there.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from certiformer.disk import InUse, Workplace, check_place, claimed, is_in_use, put_folder, recover, scratch
from certiformer.errors import BadInput
from certiformer.kernel.certificate import Certificate, certificate_in
from certiformer.kernel.files import (
    AUTOMATON,
    BASIS,
    CERTIFICATE,
    CIRCUIT,
    CONFIG,
    GATES,
    HITS,
    LEARNER,
    LEAVES,
    MACHINE,
    MODEL,
    PROGRAM,
    TARGET,
    canonical,
    digest,
    parse_json,
    read_bytes,
    read_files,
)

CHECKPOINT = "search.checkpoint"
REPORT = "report.html"
DRAWING = "circuit.html"
CANDIDATES = "candidates.json"


@dataclass(frozen=True)
class Kind:
    """One kind of run folder: its name, the file that tells it apart, what is sealed, and what else may be there."""

    name: str
    mark: str
    sealed: tuple[str, ...]
    others: tuple[str, ...] = ()

    @property
    def files(self) -> tuple[str, ...]:
        """Every name that such a folder may hold."""
        return (*self.sealed, CERTIFICATE, *self.others)


KINDS = {
    TARGET: Kind("finished run", CERTIFICATE, (MODEL, CONFIG, TARGET, LEAVES), (REPORT, CANDIDATES)),
    PROGRAM: Kind("compiled program", PROGRAM, (MODEL, CONFIG, PROGRAM, CIRCUIT), (DRAWING, BASIS)),
    MACHINE: Kind("compiled machine", MACHINE, (MODEL, CONFIG, MACHINE)),
    AUTOMATON: Kind("compiled automaton", AUTOMATON, (MODEL, CONFIG, AUTOMATON)),
    GATES: Kind("compiled circuit", GATES, (MODEL, CONFIG, GATES)),
    LEARNER: Kind("compiled learner", LEARNER, (MODEL, CONFIG, LEARNER)),
    HITS: Kind("recommender", HITS, (MODEL, CONFIG, HITS)),
}
"""The kinds of folders, by the file that says what the transformer does (`Certificate.subject`)."""


def held(folder: str | Path, subject: str, force: bool) -> AbstractContextManager[Workplace]:
    """Hold a place that is free or, with `force`, taken by an earlier folder of the same kind."""
    kind = KINDS[subject]
    return claimed(folder, kind.mark, kind.files, kind.name, force)


def write_folder(folder: str | Path, subject: str, files: Mapping[str, bytes], force: bool) -> Path:
    """Write the files of a finished folder, whole or not at all; an earlier one of its kind goes only with `force`."""
    with held(folder, subject, force):
        put_folder(Path(folder), files, KINDS[subject].files)
    return Path(folder)


def read_folder(directory: str | Path) -> tuple[Certificate, dict[str, bytes]]:
    """The certificate of a finished folder of any kind, and the files that belong to its claim. Nothing is checked."""
    folder = Path(directory)
    recover(folder)
    if not (folder / CERTIFICATE).is_file():
        raise BadInput(f"{directory} is not the folder of a finished run: it has no {CERTIFICATE}")
    files = read_files(folder)
    certificate = certificate_in(files)
    kind = KINDS[certificate.subject]
    missing = [name for name in kind.sealed if name not in files]
    if missing:
        raise BadInput(f"{directory} is not the folder of a {kind.name}: it has no {missing[0]}")
    return certificate, {name: files[name] for name in (*kind.sealed, BASIS) if name in files}


def slug(text: str) -> str:
    """A short folder name for a formula.

    >>> slug("sin(x1)+sin(x2)"), slug("[x1*x2, x1-x2]"), slug("model.py:f")
    ('sin-x1-sin-x2', 'x1-x2-x1-x2', 'model-py-f')
    """
    words = re.findall(r"[A-Za-z0-9]+", text)
    return "-".join(words)[:40].strip("-").lower() or "run"


@contextmanager
def run_folder(out: str | Path | None, keep: bool, name: str, request: str, force: bool) -> Iterator[Workplace]:
    """Where this run is made, for this process alone.

    With `out`: that folder, if it is free or `force` is set. Without, but with `keep`: `runs/<name>`, then `runs/<name>-2`,
    ...; the first one that is free or an interrupted run of the very same request (which is then resumed). With neither,
    a folder that goes away.
    """
    with ExitStack() as stack:
        if out is not None:
            place = stack.enter_context(Workplace(out, request))
            kind = KINDS[TARGET]
            check_place(place.folder, kind.mark, kind.files, kind.name, force)
        else:
            place = _enter_free(stack, Path("runs") / name, request) if keep else stack.enter_context(scratch())
        yield place


def _enter_free(stack: ExitStack, first: Path, request: str) -> Workplace:
    """The first folder of its name that nobody has and nobody makes."""
    for number in itertools.count(1):
        folder = first if number == 1 else first.with_name(f"{first.name}-{number}")
        if folder.exists() or is_in_use(folder, request):
            continue
        with suppress(InUse), ExitStack() as attempt:
            place = attempt.enter_context(Workplace(folder, request))
            if not folder.exists():  # once more: now nobody else of ours can make it
                stack.push(attempt.pop_all())
                return place
    raise BadInput(f"{first} and its successors are all taken")


def write_inputs(folder: Path, config: bytes, tensors: bytes, target: bytes, leaves: bytes) -> dict[str, str]:
    """Write everything but the certificate into a folder that is not published yet; returns the seals."""
    contents = {MODEL: tensors, CONFIG: config, TARGET: target, LEAVES: leaves}
    for name, data in contents.items():
        (folder / name).write_bytes(data)
    return {name: digest(data) for name, data in contents.items()}


def inputs_in(folder: Path) -> dict[str, bytes]:
    """What `write_inputs` wrote."""
    return {name: (folder / name).read_bytes() for name in KINDS[TARGET].sealed}


def write_certificate(folder: Path, certificate: Certificate) -> None:
    (folder / CERTIFICATE).write_bytes(certificate.to_bytes())


def write_candidates(folder: Path, rows: list[dict[str, Any]]) -> None:
    """Keep the table of candidates for `show` and the report; no claim rests on it."""
    (folder / CANDIDATES).write_bytes(canonical(rows))


def read_candidates(folder: Path) -> list[dict[str, Any]]:
    """The table of candidates of a run folder, empty if it has none."""
    try:
        rows = parse_json(read_bytes(folder / CANDIDATES), CANDIDATES)
    except BadInput:
        return []
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
