"""*Approximate*: a formula becomes a transformer, and everything on the way is shown.

| event | what it holds |
|---|---|
| `note` | the stage, and a sentence |
| `planned` | a candidate: method, sizes, predicted bound |
| `training` | the component that is trained, its units, the sampled error over the goal, its error curve or surface |
| `lower` | the proved lower end of the bracket |
| `boxes` | the split tree of the search, while it grows |
| `proof` | the boxes of the proof that the kernel is about to check, part by part |
| `checked` | how many of them it has confirmed |
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from certiformer.explore.requests import choice, number, read_entries, text
from certiformer.explore.rooms.events import Emit
from certiformer.report.live import shortened

if TYPE_CHECKING:
    from certiformer.model import Transformer

DEFAULT = {"formula": "sin(x1)+sin(x2)", "box": "[0,2*pi]^2", "epsilon": "0.1", "method": "auto", "seconds": 30.0}
METHODS = ("auto", "fit", "gather", "ridge", "voronoi", "temperatures", "ridge-temperatures", "sigmoid-heads")
SECONDS = 120.0
MOST_WEIGHTS = 400


def read(request: dict[str, Any]) -> dict[str, Any]:
    """What may be asked."""
    readers = {"formula": text(2_000), "box": text(300), "epsilon": text(100), "method": choice(*METHODS)}
    return read_entries(request, **readers, seconds=number(0, 60))


def run(request: dict[str, Any], folder: str | None, emit: Emit) -> dict[str, Any]:
    """Build, prove and check; the run is left in `folder`."""
    from certiformer import search
    from certiformer.explore.rooms.watching_build import BuildWatcher
    from certiformer.search.report_data import report_data
    from certiformer.search.request import read_formula
    from certiformer.search.watching import watched_by
    from certiformer.target import parse_domain

    domain = parse_domain(request["box"])
    target = read_formula(request["formula"], domain)
    watcher = BuildWatcher(emit, target.program, domain)
    with watched_by(watcher):
        artifact = search.build(
            target,  # type: ignore[arg-type]  # read by its own parser, so that no text can name a file
            on=request["box"],
            eps=request["epsilon"],
            method=request["method"],
            fit_seconds=request["seconds"],
            seconds=SECONDS,
            workers=1,
            out=folder,
            progress=watcher.progress,
        )
    report = report_data(artifact, checked=True)
    return {
        "report": {**report, "directory": None, "pictures": [shortened(picture) for picture in report["pictures"]]},
        "claim": artifact.claim,
        "word": artifact.word,
        "kept": artifact.directory is not None,
        "boxes": report["boxes"],
        "weights": [] if artifact.model is None else nonzero_weights(artifact.model),
    }


def nonzero_weights(model: Transformer) -> list[dict[str, Any]]:
    """The weights that are not zero, for the slider that breaks one: tensor, place in it, value."""
    import numpy as np

    rows = []
    for name, tensor in sorted(model.tensors.items()):
        flat = np.asarray(tensor, dtype=float).ravel()
        rows += [{"tensor": name, "at": int(at), "value": float(flat[at])} for at in np.flatnonzero(flat)]
    return rows[:MOST_WEIGHTS]


def warm_up() -> None:
    """Build the example once, which compiles what every build needs."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        run(DEFAULT, str(Path(folder) / "run"), lambda event, **facts: None)
