"""Trackers to choose from: a file of JSON lines, and adapters for libraries that are loaded only when they are used."""

from __future__ import annotations

import importlib
import json
import math
import os
from types import ModuleType
from typing import Any

from certiformer.errors import BadInput, MissingExtra
from certiformer.sweep.tracker import Tracker


class JsonLines:
    """One JSON object per call, appended to a file; `kind` is start, log, summary or finish."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = path

    def start(self, project: str, name: str, config: dict[str, Any]) -> None:
        self._write({"kind": "start", "project": project, "name": name, "config": config})

    def log(self, values: dict[str, float], step: int) -> None:
        self._write({"kind": "log", "step": step, "values": values})

    def summary(self, values: dict[str, Any]) -> None:
        self._write({"kind": "summary", "values": values})

    def finish(self) -> None:
        self._write({"kind": "finish"})

    def _write(self, line: dict[str, Any]) -> None:
        # JSON has no NaN: numbers that are not finite become texts.
        text = json.dumps(_finite(line), allow_nan=False)
        with open(self._path, "a", encoding="utf-8") as file:
            file.write(text + "\n")


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


class Wandb:
    """Weights & Biases: `init(project, name, config)` gives a run with `log(data, step)`, `summary.update`, `finish()`."""

    def __init__(self) -> None:
        self._library, self._run = _load("wandb"), None

    def start(self, project: str, name: str, config: dict[str, Any]) -> None:
        self._run = self._library.init(project=project, name=name, config=config)

    def log(self, values: dict[str, float], step: int) -> None:
        _started(self._run).log(values, step=step)

    def summary(self, values: dict[str, Any]) -> None:
        _started(self._run).summary.update(values)

    def finish(self) -> None:
        _started(self._run).finish()


class Trackio:
    """trackio: `init(project, name, config)`, `log(metrics, step)`, `finish()`; the summary is a last log."""

    def __init__(self) -> None:
        self._library, self._step = _load("trackio"), 0

    def start(self, project: str, name: str, config: dict[str, Any]) -> None:
        self._library.init(project=project, name=name, config=config)

    def log(self, values: dict[str, float], step: int) -> None:
        self._step = step
        self._library.log(values, step=step)

    def summary(self, values: dict[str, Any]) -> None:
        self._library.log({f"summary/{name}": value for name, value in values.items()}, step=self._step)

    def finish(self) -> None:
        self._library.finish()


class Mlflow:
    """MLflow: an experiment per project; configurations are params, logs are metrics, the summary is tags."""

    def __init__(self) -> None:
        self._library = _load("mlflow")

    def start(self, project: str, name: str, config: dict[str, Any]) -> None:
        self._library.set_experiment(project)
        self._library.start_run(run_name=name)
        self._library.log_params(config)

    def log(self, values: dict[str, float], step: int) -> None:
        self._library.log_metrics({name: float(value) for name, value in values.items()}, step=step)

    def summary(self, values: dict[str, Any]) -> None:
        self._library.set_tags(values)

    def finish(self) -> None:
        self._library.end_run()


_LIBRARIES = {"wandb": Wandb, "trackio": Trackio, "mlflow": Mlflow}


def open_tracker(name: str) -> Tracker:
    """A tracker by name: `wandb`, `trackio`, `mlflow`, or a file that ends in `.jsonl`.

    >>> open_tracker("clipboard")
    Traceback (most recent call last):
    certiformer.errors.BadInput: there is no tracker 'clipboard': choose wandb, trackio, mlflow or a file ending in .jsonl
    """
    if name in _LIBRARIES:
        return _LIBRARIES[name]()
    if name.endswith(".jsonl"):
        return JsonLines(name)
    raise BadInput(f"there is no tracker {name!r}: choose {', '.join(_LIBRARIES)} or a file ending in .jsonl")


def _load(library: str) -> ModuleType:
    try:
        return importlib.import_module(library)
    except ImportError:
        raise MissingExtra(f"this tracker needs {library}, which is not installed: pip install {library}") from None


def _started(run: Any) -> Any:
    if run is None:
        raise BadInput("a tracker is started before anything is logged to it")
    return run
