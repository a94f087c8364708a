"""*Audit*: what theorems say of a checkpoint: the one named when the server began, or one that was dropped on the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from certiformer.errors import BadInput
from certiformer.explore.requests import optional, read_entries, run_name, whole
from certiformer.explore.rooms.events import Emit

SINGLE = ("model.gguf", "model.onnx", "model.npz")


def read(request: dict[str, Any]) -> dict[str, Any]:
    """What may be asked."""
    return read_entries(request, upload=optional(run_name), heads=optional(whole(1, 1024)))


def run(request: dict[str, Any], folder: str | None, emit: Emit) -> dict[str, Any]:
    """Read, measure and judge the checkpoint."""
    from certiformer.audit.result import audit

    if folder is None:
        raise BadInput("drop a checkpoint here, or name its folder when you start: certiformer explore FOLDER")
    path = Path(folder)
    single = [path / name for name in SINGLE if (path / name).is_file()]
    config = {"heads": request["heads"]} if request["heads"] else {}

    def progress(done: int, total: int, what: str) -> None:
        emit("note", stage="audit", note=what)

    data = audit(single[0] if single else path, progress=progress, **config).to_json()
    name = "the checkpoint that was dropped here" if request["upload"] else path.name
    return {"audit": {**data, "path": name, "provenance": []}}
