"""In-context learners: the file `learner.json` says which algorithm a transformer runs on its context.

Every kind of learner has a record of its own; they share this reader and the canonical form. Losses are means over the
rows of the context that are given, weights start at zero.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields
from fractions import Fraction
from importlib import import_module
from typing import Any, Protocol

from flint import arb

from certiformer.errors import BadInput
from certiformer.kernel import Refused
from certiformer.kernel.balls import ball, decimal
from certiformer.kernel.files import LEARNER, parse_json
from certiformer.kernel.programs import exact_text

FORMAT = "certiformer-learner-1"
DTYPES = ("float64", "float32", "bfloat16")
# What `learner` may say, and the record that describes it.
KINDS = {
    "gd": "least_squares.LeastSquares",
    "ridge": "least_squares.LeastSquares",
    "relu-least-squares": "relu_learner.ReluLearner",
    "relu-logistic": "relu_learner.ReluLearner",
    "relu-lasso": "relu_learner.ReluLearner",
    "selection": "selection.Selection",
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
    """The record of `learner.json`, which has exactly its entries in their canonical form."""
    raw = text.encode() if isinstance(text, str) else text
    data = parse_json(raw, LEARNER)
    if not isinstance(data, dict) or "learner" not in data:
        raise BadInput(f"{LEARNER} is not the description of a learner")
    kind = data["learner"]
    if not isinstance(kind, str) or kind not in KINDS:
        raise BadInput(f"{LEARNER} describes the learner {str(kind)[:40]!r}, which is none of {', '.join(KINDS)}")
    module, name = KINDS[kind].split(".")
    record = getattr(import_module(f"certiformer.kernel.meanings.{module}"), name)
    if set(data) != {"format", *(field.name for field in fields(record))} or data["format"] != FORMAT:
        raise BadInput(f"{LEARNER} does not have exactly the entries of {FORMAT} for the learner {kind}")
    entries = {key: tuple(value) if type(value) is list else value for key, value in data.items() if key != "format"}
    learner = record(**entries)
    if learner.to_text().encode() != raw:
        raise BadInput(f"{LEARNER} is not in its canonical form")
    return learner


def learner_text(entries: Mapping[str, Any]) -> str:
    """The canonical content of `learner.json`."""
    return json.dumps({"format": FORMAT, **entries}, sort_keys=True, separators=(",", ":"), allow_nan=False) + "\n"


def require_count(value: Any, name: str, most: int) -> None:
    """Refuse anything but a whole number from 1 to `most`."""
    if type(value) is not int or not 1 <= value <= most:
        raise BadInput(f"{name} is a whole number from 1 to {most:,}, not {value!r}")


def require_number(value: Any, name: str, least: float = 0.0, strict: bool = True) -> None:
    """Refuse anything but a finite float above `least` (or equal to it, unless `strict`)."""
    if type(value) is not float or not math.isfinite(value) or value < least or (strict and value == least):
        relation = "above" if strict else "not below"
        raise BadInput(f"{name} is a number {relation} {least!r}, not {value!r}")


def require_choice(value: Any, name: str, choices: tuple[str, ...]) -> None:
    """Refuse anything but one of some words."""
    if value not in choices:
        raise BadInput(f"{name} is one of {', '.join(choices)}, not {value!r}")


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


def most(bound: arb) -> str:
    """An upper bound as sentences write it, rounded up."""
    return exact_text(Fraction(decimal(bound, up=True)))


def require_tolerance(stated: float, error: arb) -> arb:
    """What a proved error leaves of the stated tolerance."""
    tolerance = written(stated)
    left = (ball(tolerance) - error).lower()
    if not left > 0:
        raise Refused(f"the proved bound is at most {most(error)}, above the tolerance {exact_text(tolerance)}")
    return left
