"""The run folder: what is written, in which order, and how a run that was interrupted is recognised.

While a run is under way its folder holds `unfinished.json`, which names the request. The files are written and checked in
a hidden staging folder; at the end each is renamed into place, `certificate.json` last, and then `unfinished.json` goes.
So a certificate appears only when everything it speaks of is there, and every other state is resumable or can be cleaned:
a killed run never looks finished.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any

from certiformer.certificate import (
    CERTIFICATE,
    CONFIG,
    LEAVES,
    MODEL,
    TARGET,
    Certificate,
    canonical,
    digest,
    parse_json,
    write_atomically,
)
from certiformer.errors import BadInput

UNFINISHED = "unfinished.json"
CHECKPOINT = "search.checkpoint"
STAGING = ".staging"
REPORT = "report.html"
CANDIDATES = "candidates.json"


def slug(text: str) -> str:
    """A short folder name for a formula.

    >>> slug("sin(x1)+sin(x2)"), slug("[x1*x2, x1-x2]"), slug("model.py:f")
    ('sin-x1-sin-x2', 'x1-x2-x1-x2', 'model-py-f')
    """
    words = re.findall(r"[A-Za-z0-9]+", text)
    return "-".join(words)[:40].strip("-").lower() or "run"


def is_finished(folder: Path) -> bool:
    return (folder / CERTIFICATE).exists() and not (folder / UNFINISHED).exists()


def _request_of(folder: Path) -> str | None:
    """The request that an unfinished folder was started for."""
    try:
        data = parse_json((folder / UNFINISHED).read_bytes(), UNFINISHED)
    except (OSError, BadInput):
        return None
    return data.get("request") if isinstance(data, dict) else None


def claim_folder(out: str | Path | None, name: str, request: str, force: bool) -> Path:
    """The folder this run may use, marked unfinished.

    Without `out`: `runs/<name>`, then `runs/<name>-2`, ...; the first one that is free or an unfinished run of the very
    same request (which is then resumed). With `out`: that folder, if it is free, resumable, or `force` is set.
    """
    if out is not None:
        folder = Path(out)
        if folder.exists() and not folder.is_dir():
            raise BadInput(f"--out {out} is a file, not a folder")
        if is_finished(folder) and not force:
            raise BadInput(f"{out} already holds a finished run; add --force to replace it or choose another --out")
        occupied = folder.exists() and any(folder.iterdir()) and not (folder / UNFINISHED).exists()
        if occupied and not is_finished(folder):
            raise BadInput(f"{out} is not empty and not a run folder; choose another --out")
    else:
        folder = _free_folder(Path("runs") / name, request)
    folder.mkdir(parents=True, exist_ok=True)
    if _request_of(folder) != request:
        for stale in (CERTIFICATE, CHECKPOINT, LEAVES, TARGET, MODEL, CONFIG, REPORT, CANDIDATES):
            (folder / stale).unlink(missing_ok=True)
    write_atomically(folder / UNFINISHED, canonical({"request": request}))
    return folder


def _free_folder(first: Path, request: str) -> Path:
    number = 1
    while True:
        folder = first if number == 1 else first.with_name(f"{first.name}-{number}")
        if not folder.exists() or (not is_finished(folder) and _request_of(folder) == request):
            return folder
        number += 1


def write_inputs(folder: Path, config: bytes, tensors: bytes, target: bytes, leaves: bytes) -> dict[str, str]:
    """Write everything but the certificate; returns the seals."""
    contents = {MODEL: tensors, CONFIG: config, TARGET: target, LEAVES: leaves}
    for name, data in contents.items():
        write_atomically(folder / name, data)
    return {name: digest(data) for name, data in contents.items()}


def write_certificate(folder: Path, certificate: Certificate) -> None:
    write_atomically(folder / CERTIFICATE, certificate.to_bytes())


def write_candidates(folder: Path, rows: list[dict[str, Any]]) -> None:
    """Keep the table of candidates for `show` and the report; no claim rests on it."""
    write_atomically(folder / CANDIDATES, canonical(rows))


def read_candidates(folder: Path) -> list[dict[str, Any]]:
    """The table of candidates of a run folder, empty if it has none."""
    try:
        rows = parse_json((folder / CANDIDATES).read_bytes(), CANDIDATES)
    except (OSError, BadInput):
        return []
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def publish(staging: Path, folder: Path) -> None:
    """Move the checked files into place, the certificate last, and mark the run finished."""
    for name in (MODEL, CONFIG, TARGET, LEAVES, CERTIFICATE):
        os.replace(staging / name, folder / name)
    mark_finished(folder)


def mark_finished(folder: Path) -> None:
    """The last act of a run: nothing of its scaffolding stays."""
    shutil.rmtree(folder / STAGING, ignore_errors=True)
    (folder / CHECKPOINT).unlink(missing_ok=True)
    (folder / UNFINISHED).unlink(missing_ok=True)


def abandon(folder: Path) -> None:
    """Leave no trace of a run that could not start."""
    if (folder / UNFINISHED).exists():
        mark_finished(folder)
        if not any(folder.iterdir()):
            folder.rmdir()
