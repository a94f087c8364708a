"""What a study is: jobs from options, and a result from the rows of the jobs.

Each module of `rates.studies` holds `STUDY: Study`, a frozen dataclass `Options` (JSON values only: its fields are the
flags of the command) and a job function `run(config) -> list[Row]` that runs anywhere (module level, no state, all
randomness from `config["seed"]`). A job is a chunk whose content the study decides, so that every engine computes
the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from certiformer.sweep.job import Job, Row


@dataclass(frozen=True)
class Series:
    """One line of a log-log picture.

    `theory` names exponents (for instance `founding_note`, `paper`, `corrected_mse`, `corrected_l1`); `excluded` are the
    names whose exponent is outside the interval of the slope it speaks of. A slope that cannot be fitted is None, with
    the reason in `note`.
    """

    name: str
    x: list[float]
    x_label: str
    error_mse: list[float]
    error_l1: list[float]
    slope_mse: float | None = None
    slope_interval: tuple[float, float] | None = None
    slope_l1: float | None = None
    slope_l1_interval: tuple[float, float] | None = None
    theory: dict[str, float] = field(default_factory=dict)
    excluded: list[str] = field(default_factory=list)
    window: tuple[float, float] | None = None
    note: str = ""


@dataclass(frozen=True)
class Table:
    """A table for people: a caption, headings, and rows of texts or numbers."""

    caption: str
    headings: list[str]
    rows: list[list[Any]]


@dataclass(frozen=True)
class Picture:
    """Something to look at beside the series. `kind` says how `data` is read:

    `spectrum`: {"names": [...], "values": [[sigma_1, ...], ...]}; `graph`: {"points": [[x, y], ...], "weights": [[...]]
    (row t: attention of point t), "wanted": [[...]] or None}; `heat`: {"rows": [...], "columns": [...], "values": [[...]]};
    `curves`: {"x_label", "y_label", "log_x", "log_y", "lines": [{"name", "x", "y"}]}.
    """

    kind: str
    title: str
    data: dict[str, Any]


@dataclass(frozen=True)
class Result:
    """What a study found. `findings` are sentences, each with its figures; `limits` say what was not measured."""

    study: str
    question: str
    options: dict[str, Any]
    series: list[Series]
    tables: list[Table] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    limits: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Study:
    """`jobs(options)` lists the chunks; `summary(rows, options)` makes the result from the rows of all finished jobs,
    and must cope with missing ones (it says so in `limits`)."""

    name: str
    question: str
    options: type
    full: dict[str, Any]  # what --full changes in the options
    jobs: Callable[[Any], list[Job]]
    summary: Callable[[Sequence[Row], Any], Result]
