"""What makes a page answer the pointer: its data, and one script that the page names by its hash.

The script is built from the folder `web` of the repository, with the components of `certiformer explore`. Without it the
page shows everything, only nothing can be touched. The data is JSON in which no `<` is left, so that no text of a folder
can end the element that holds it; the script writes texts as texts.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from functools import cache
from importlib.resources import files
from typing import Any

LISTS = {"values": 4, "points": 6, "target": 6, "model": 6, "error": 4}  # of a picture, and how many digits they keep


@cache
def _script() -> tuple[str, str]:
    """The script and its hash."""
    text = (files("certiformer.report") / "bundle" / "report.js").read_text(encoding="utf-8")
    return text, base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


def policy() -> str:
    """What a live page may do: draw what is inside it, and run this one script."""
    return f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{_script()[1]}'"


def live_part(kind: str, data: dict[str, Any]) -> str:
    """The elements at the end of a page of this kind."""
    text = json.dumps({"kind": kind, **data}, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    return f'<script type="application/json" id="live-data">{text}</script>\n<script>{_script()[0]}</script>\n'


def shortened(picture: dict[str, Any]) -> dict[str, Any]:
    """A picture whose numbers are no longer than a screen can tell apart."""
    return {name: numbers(value, LISTS[name]) if name in LISTS else value for name, value in picture.items()}


def numbers(values: Any, digits: int = 6) -> list[Any]:
    """Numbers as a page draws them: nested lists, shortened, None for what is not finite.

    >>> numbers([1 / 3, [float("inf"), None]])
    [0.333333, [None, None]]
    """
    listed = values.tolist() if hasattr(values, "tolist") else values
    return [numbers(value, digits) if isinstance(value, list) else _number(value, digits) for value in listed]


def _number(value: float | None, digits: int) -> float | None:
    return float(f"{value:.{digits}g}") if value is not None and math.isfinite(value) else None
