"""The file `target.json`: source text, program, box and norm of a claim, in one canonical form.

Reading is strict: unknown, missing or repeated keys, wrong types, and anything outside the closed language are refused,
because a reader that guesses would let two programs understand one file differently.
Standard library only.
"""

from __future__ import annotations

import json
from typing import Any

from certiformer.errors import BadInput
from certiformer.kernel.programs import MAX_INPUTS, Program
from certiformer.target.domain import Domain, Target
from certiformer.target.tokens import MAX_TEXT

FORMAT = "certiformer-target-1"
NORM = "max"  # the largest absolute error over all outputs and all points of the box
_KEYS = {"format", "source", "program", "domain", "norm"}


def target_to_text(target: Target) -> str:
    """The canonical content of `target.json`: equal targets give equal bytes."""
    data = {
        "format": FORMAT,
        "source": target.source,
        "program": target.program.to_json(),
        "domain": [list(pair) for pair in target.domain.bounds],
        "norm": NORM,
    }
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True) + "\n"


def target_from_text(text: str | bytes) -> Target:
    """Read the content of `target.json`; the inverse of `target_to_text`."""
    try:
        data = json.loads(text, object_pairs_hook=_no_repeated_key)
    except (ValueError, RecursionError):
        raise BadInput("target.json is not valid JSON") from None
    if not isinstance(data, dict) or set(data) != _KEYS:
        raise BadInput(f"target.json must have exactly the keys {', '.join(sorted(_KEYS))}")
    if data["format"] != FORMAT or data["norm"] != NORM:
        raise BadInput(f"target.json must be of format {FORMAT!r} with norm {NORM!r}")
    if not isinstance(data["source"], str):
        raise BadInput("the source in target.json is not text")
    target = Target(data["source"], Program.from_json(data["program"]), _domain(data["domain"]))
    target.domain.check()
    return target


def _domain(data: Any) -> Domain:
    pairs = data if isinstance(data, list) and 1 <= len(data) <= MAX_INPUTS else []
    for pair in pairs:
        if not (isinstance(pair, list) and len(pair) == 2 and all(isinstance(end, str) for end in pair)):
            pairs = []
    if not pairs or any(len(end) > MAX_TEXT for pair in pairs for end in pair):
        raise BadInput("the domain in target.json is not a list of pairs of texts")
    return Domain(tuple((low, high) for low, high in pairs))


def _no_repeated_key(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) != len(pairs):
        raise ValueError("repeated key")
    return data
