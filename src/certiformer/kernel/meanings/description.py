"""The files that describe what a transformer computes: canonical JSON, read strictly. Standard library only."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from certiformer.errors import BadInput


def canonical_text(data: Mapping[str, Any]) -> str:
    """The one text of JSON data.

    >>> canonical_text({"b": [1], "a": "x"})
    '{"a":"x","b":[1]}\\n'
    """
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False) + "\n"


def read_entries(text: str | bytes, file: str) -> dict[str, Any]:
    """The JSON object in the text of `file`."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise BadInput(f"{file} is not valid JSON") from None
    if not isinstance(data, dict):
        raise BadInput(f"{file} is not a JSON object")
    return data


def require_entries(
    data: Mapping[str, Any], file: str, form: str, lists: Iterable[str], others: Iterable[str] = ()
) -> None:
    """Refuse data that does not have the format `form` and exactly these entries, the first of which are lists."""
    if set(data) != {"format", *lists, *others} or data["format"] != form:
        raise BadInput(f"{file} does not have exactly the entries of {form}")
    if any(type(data[name]) is not list for name in lists):
        raise BadInput(f"{file} has an entry that should be a list and is not")


def require_canonical(found: str, text: str | bytes, file: str) -> None:
    """Refuse a text that is not the one that `found`, made from what was read, says."""
    if found.encode() != (text.encode() if isinstance(text, str) else text):
        raise BadInput(f"{file} is not in its canonical form")
