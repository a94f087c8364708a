"""In-context learners as targets: the file `learner.json` says which algorithm a transformer runs on its context.

Every kind of learner has a record of its own; they share this reader and the canonical form. Losses are means over the
rows of the context that are given, weights start at zero. Standard library only: the checker reads the same records.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from importlib import import_module
from typing import Any, Protocol

from certiformer.errors import BadInput
from certiformer.target.description import canonical_text, read_entries, require_canonical

FORMAT = "certiformer-learner-1"
DTYPES = ("float64", "float32", "bfloat16")
# What `learner` may say, and the record that describes it.
KINDS = {
    "gd": ("certiformer.target.least_squares", "LeastSquares"),
    "ridge": ("certiformer.target.least_squares", "LeastSquares"),
    "relu-least-squares": ("certiformer.target.relu_learner", "ReluLearner"),
    "relu-logistic": ("certiformer.target.relu_learner", "ReluLearner"),
    "relu-lasso": ("certiformer.target.relu_learner", "ReluLearner"),
    "selection": ("certiformer.target.selection", "Selection"),
}


class Learner(Protocol):
    """What all learners have: sizes, the box that the claim speaks of, and the theorem, whose module says the claim."""

    @property
    def learner(self) -> str: ...

    @property
    def features(self) -> int: ...

    @property
    def rows(self) -> int: ...

    @property
    def bound(self) -> float: ...

    @property
    def label_bound(self) -> float: ...

    @property
    def dtype(self) -> str: ...

    @property
    def rule(self) -> str: ...

    def to_text(self) -> str: ...


def read_learner(text: str | bytes) -> Learner:
    """The record of `learner.json`; only canonical bytes are accepted."""
    kind = _object(text).get("learner")
    if not isinstance(kind, str) or kind not in KINDS:
        raise BadInput(f"learner.json describes the learner {str(kind)[:40]!r}, which is none of {', '.join(KINDS)}")
    module, name = KINDS[kind]
    found = getattr(import_module(module), name).from_text(text)
    require_canonical(found.to_text(), text, "learner.json")
    return found


def learner_text(entries: Mapping[str, Any]) -> str:
    """The canonical content of `learner.json`."""
    return canonical_text({"format": FORMAT, **entries})


def entries_of(text: str | bytes, names: Iterable[str]) -> dict[str, Any]:
    """The entries of `learner.json`, which must be exactly `names` beside the format; lists become tuples."""
    data = _object(text)
    if set(data) != {"format", *names} or data["format"] != FORMAT:
        raise BadInput(f"learner.json does not have exactly the entries of {FORMAT} for the learner {data['learner']}")
    del data["format"]
    return {name: tuple(value) if type(value) is list else value for name, value in data.items()}


def require_count(value: Any, name: str, most: int) -> None:
    """Refuse anything but a whole number from 1 to `most`."""
    if type(value) is not int or not 1 <= value <= most:
        raise BadInput(f"{name} is a whole number from 1 to {most:,}, not {value!r}")


def require_number(value: Any, name: str, least: float = 0.0, strict: bool = True) -> None:
    """Refuse anything but a finite float above `least` (or equal to it, unless `strict`)."""
    if type(value) is not float or not math.isfinite(value) or value < least or (strict and value == least):
        relation = "above" if strict else "not below"
        raise BadInput(f"{name} is a number {relation} {least!r}, not {value!r}")


def written(value: float) -> Fraction:
    """The decimal that stands in `learner.json` for a float: the shortest one that is read as this float.

    >>> written(0.1)
    Fraction(1, 10)
    """
    return Fraction(repr(float(value)))


def larger_reading(value: float) -> Fraction:
    """The larger of the decimal in the file and the float it is read as: a proof up to here covers both."""
    return max(written(value), Fraction(value))


def smaller_reading(value: float) -> Fraction:
    """The smaller of the decimal in the file and the float it is read as."""
    return min(written(value), Fraction(value))


def _object(text: str | bytes) -> dict[str, Any]:
    data = read_entries(text, "learner.json")
    if "learner" not in data or "format" not in data:
        raise BadInput("learner.json is not the description of a learner")
    return data
