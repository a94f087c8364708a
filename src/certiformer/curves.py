"""`curve`: size against proved error for one's own function, from several certified builds of it.

Every point is a run folder `eps-E` that `check` accepts. What a folder of an earlier call holds is used again only after
the checker has accepted it anew, so no number of a curve is merely read.
"""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from certiformer.api.building import Box, Method, Rule, box_text, build
from certiformer.api.folders import load
from certiformer.artifact import Artifact
from certiformer.disk import Workplace, names_in, write_atomically
from certiformer.errors import BadInput, MissingExtra
from certiformer.kernel.certificate import Outcome
from certiformer.kernel.check import check
from certiformer.kernel.files import CERTIFICATE, MODEL, digest, parse_json, read_bytes
from certiformer.report.curve_files import curve_files
from certiformer.search.case import Progress
from certiformer.search.request import read_any, read_epsilon
from certiformer.target import any_target_to_text

DATA, FORMAT = "curve.json", "certiformer-curve-1"
FILES = (DATA, "curve.csv", "curve.tex", "curve.svg", "curve.pdf")
MOST = 100  # tolerances of one curve


@dataclass(frozen=True)
class Point:
    """What became of one tolerance. `lower` and `upper` are exact decimals that the checker proved, or None; the other
    numbers are counted or measured."""

    epsilon: str
    outcome: str
    lower: str | None
    upper: str | None
    nonzero: int | None
    parameters: int | None
    heads: int | None
    units: int | None
    registers: int | None
    method: str
    seconds: float
    folder: str | None
    weights: str | None

    @property
    def certified(self) -> bool:
        """Whether the checker has accepted that the error is at most epsilon."""
        return self.outcome == "certified"


@dataclass(frozen=True)
class Curve:
    """The points of a curve, from the largest tolerance to the smallest, and what is drawn of them."""

    target: str
    on: str
    points: tuple[Point, ...]
    directory: Path | None = None
    notes: tuple[str, ...] = ()

    @property
    def certified(self) -> bool:
        """Whether every point is."""
        return all(point.certified for point in self.points)

    def to_json(self) -> dict[str, Any]:
        """The curve as plain data, for files and pictures."""
        points = [asdict(point) for point in self.points]
        return {"format": FORMAT, "target": self.target, "on": self.on, "points": points}

    def _repr_html_(self) -> str:
        from certiformer.report.curve_files import HEADINGS, rows_of

        head = "".join(f"<th>{name}</th>" for name in HEADINGS)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>"
            for row in rows_of(self.to_json())
        )
        picture = "" if self.directory is None else self.directory / "curve.svg"
        drawn = picture.read_text(encoding="utf-8") if picture and picture.exists() else ""
        return f"<p>{html.escape(self.target)} on {html.escape(self.on)}</p>{drawn}<table><tr>{head}</tr>{body}</table>"


def curve(
    target: str | Callable[..., Any],
    *,
    on: Box,
    eps: Sequence[str | float] | str,
    method: Method = "auto",
    objective: Literal["parameters", "heads", "time"] = "parameters",
    fit_seconds: float = 30.0,
    rule: Rule = "auto",
    boxes: int = 2_000_000,
    seconds: float = 600.0,
    quality: float = 0.1,
    order: int | None = None,
    seed: int = 0,
    dtype: Literal["float64", "float32", "bfloat16"] | None = None,
    workers: int | None = None,
    out: str | Path | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Curve:
    """Build `target` on the box `on` for each tolerance of `eps`, and say how large each transformer is and how close.

    **Arguments:**

    - `target`: a formula in x1, ..., xD, a function written in jax.numpy, or its `"file.py:name"`.
    - `on`: the box, as for `build`.
    - `eps`: several tolerances, as a list or as text: `"0.1,0.03,0.01"`.
    - `out`: a folder for one run folder a tolerance and `curve.svg`, `.pdf`, `.csv`, `.tex`, written anew after each of
      them, so that an interrupted call goes on (default: nothing stays on disk).
    - `force`: build again what is there.
    - `method`, `objective`, `fit_seconds`, `rule`, `boxes`, `seconds`, `quality`, `order`, `seed`, `dtype`, `workers`,
      `progress`: as for `build`, for each tolerance.

    >>> import certiformer
    >>> drawn = certiformer.curve("sin(x1)", on="[0, 2*pi]", eps=[0.3, 0.1], method="ridge")
    >>> [(point.epsilon, point.certified, point.nonzero) for point in drawn.points]
    [('0.3', True, 10), ('0.1', True, 16)]
    """
    tolerances = _tolerances(eps)
    box = box_text(on)
    wanted = read_any(target, box)
    arguments: dict[str, Any] = {"method": method, "objective": objective, "fit_seconds": fit_seconds, "rule": rule}
    arguments |= {"boxes": boxes, "seconds": seconds, "quality": quality, "order": order, "seed": seed, "dtype": dtype}
    arguments["workers"] = workers
    request = {
        "target": digest(any_target_to_text(wanted).encode()),
        **{name: value for name, value in arguments.items() if name not in ("boxes", "seconds", "workers")},
    }
    run = _Curve(target, wanted, box, arguments, progress or (lambda stage, done, total, note: None))
    if out is None:
        return Curve(wanted.source, box, tuple(run.points(tolerances, None, False)))
    folder = Path(out)
    with Workplace(folder):
        _require_place(folder, request, force)
        folder.mkdir(exist_ok=True)
        points: list[Point] = []
        drawn = Curve(wanted.source, box, (), folder)
        for point in run.points(tolerances, folder, force):
            points.append(point)
            drawn = _written(Curve(wanted.source, box, tuple(points), folder), request)
        return drawn


@dataclass(frozen=True)
class _Curve:
    """What all points have in common."""

    target: str | Callable[..., Any]
    wanted: Any
    on: str
    arguments: dict[str, Any]
    progress: Progress

    def points(self, tolerances: Sequence[str], folder: Path | None, force: bool):
        for number, text in enumerate(tolerances):
            said = f"eps {text}, {number + 1} of {len(tolerances)}"
            place = None if folder is None else folder / f"eps-{text.replace('/', '-of-')}"
            run = None if place is None or force else self._kept(place, text)
            if run is None:
                run = build(
                    self.target,
                    on=self.on,
                    eps=text,
                    out=place,
                    force=True,
                    progress=self._said(said),
                    **self.arguments,
                )
            yield _point(run, text, place)

    def _said(self, prefix: str) -> Progress:
        def say(stage: str, done: float, total: float | None, note: str) -> None:
            self.progress(f"{prefix}: {stage}", done, total, note)

        return say

    def _kept(self, place: Path, text: str) -> Artifact | None:
        """An earlier run of this tolerance, if the checker accepts it now."""
        if not (place / CERTIFICATE).is_file():
            return None
        run = load(place)
        same = (
            any_target_to_text(run.subject.target) == any_target_to_text(self.wanted)
            and run.certificate.epsilon == text
        )
        if not same or run.outcome is not Outcome.PROVED:
            return None
        self.progress("check", 0, None, f"checking {place}")
        return run if check(place, workers=self.arguments["workers"]).accepted else None


def _point(run: Artifact, text: str, place: Path | None) -> Point:
    facts, certificate = run.summary(), run.certificate
    proved = run.outcome is Outcome.PROVED and run.level == 2  # by the checker, at once or in `_kept`
    return Point(
        text,
        "certified" if proved else run.outcome.value,
        certificate.lower,
        certificate.upper if proved else None,
        facts["nonzero"],
        facts["dense"],
        facts["heads"],
        facts["units"],
        facts["registers"],
        certificate.method,
        facts["seconds"],
        None if place is None or run.model is None else place.name,
        certificate.seals.get(MODEL),
    )


def _tolerances(eps: Sequence[str | float] | str) -> list[str]:
    """The texts of the tolerances, largest first."""
    parts = [part for part in eps.split(",") if part.strip()] if isinstance(eps, str) else list(eps)
    if not 2 <= len(parts) <= MOST:
        raise BadInput(f"a curve has 2 to {MOST} tolerances, as in 0.1,0.03,0.01; there are {len(parts)}")
    values: dict[Fraction, str] = {}
    for part in parts:
        text, value = read_epsilon(part)
        if value in values:
            raise BadInput(f"the tolerance {text} is given twice")
        values[value] = text
    return [values[value] for value in sorted(values, reverse=True)]


def _require_place(folder: Path, request: dict[str, Any], force: bool) -> None:
    """Refuse a folder that holds anything but an earlier curve of the same request."""
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"{folder} is a file; a curve is a folder")
    present = {name for name in names_in(folder) if not name.startswith(".")}
    foreign = sorted(name for name in present if name not in FILES and not name.startswith("eps-"))
    if foreign:
        raise BadInput(f"{folder} is not empty and not an earlier curve (it holds {foreign[0]}); choose another --out")
    if DATA not in present or force:
        return
    data = parse_json(read_bytes(folder / DATA), DATA)
    if not isinstance(data, dict) or data.get("request") != request:
        raise BadInput(
            f"{folder} holds the curve of another function or other options; add --force or choose another --out"
        )


def _written(drawn: Curve, request: dict[str, Any]) -> Curve:
    """Write every file of the curve as it stands; what the pictures need may be missing."""
    folder, data = drawn.directory or Path(), drawn.to_json()
    files: dict[str, bytes] = {DATA: (json.dumps({**data, "request": request}, indent=1) + "\n").encode()}
    notes: tuple[str, ...] = ()
    try:
        files |= curve_files(data, pictures=True)
    except MissingExtra as missing:
        files |= curve_files(data, pictures=False)
        notes = (str(missing),)
    for name, content in files.items():
        write_atomically(folder / name, content)
    return Curve(drawn.target, drawn.on, drawn.points, drawn.directory, notes)
