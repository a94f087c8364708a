"""The run folder: what is written, and how a run that was interrupted is recognised.

A run is made in a hidden workplace beside its folder (`disk.Workplace`): the files are written and checked there, and the
whole folder moves into place in one step. Until then an earlier run stays as it is, and a killed run never looks finished.
What an interrupted search had found out is kept in the workplace; the same request goes on from there.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from certiformer.disk import InUse, Workplace, check_place, is_in_use, scratch
from certiformer.errors import BadInput
from certiformer.kernel.certificate import Certificate
from certiformer.kernel.files import (
    CERTIFICATE,
    CONFIG,
    LEAVES,
    MODEL,
    TARGET,
    canonical,
    digest,
    parse_json,
    read_bytes,
)

CHECKPOINT = "search.checkpoint"
REPORT = "report.html"
CANDIDATES = "candidates.json"
RUN_FILES = (MODEL, CONFIG, TARGET, LEAVES, CERTIFICATE, REPORT, CANDIDATES)


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
            check_place(place.folder, CERTIFICATE, RUN_FILES, "finished run", force)
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
